/*
 * Messages to bytes and back: MessagePack-RPC, by the tables that messages.h expands to. encode.c (tables and
 * encoding) and objects.c (what decode.c reads) are the only users of msgpack-c.
 *
 *   request      [0, msgid, method, [params]]
 *   response     [1, msgid, nil, result]  or  [1, msgid, failure, nil]
 *   notification [2, method, [params]]
 *
 * Unknown fields are ignored, so that later versions can add some, unless the reader is strict, as it always is with
 * jobs that have steps; a missing required one, a duplicate, a wrong type or a value out of range is an error that
 * names the field.
 */
#ifndef PROTOCOL_ENCODING_H
#define PROTOCOL_ENCODING_H

#include <stdbool.h>

#include "messages.h"

/* A row of a map's table. */
struct field {
    const char *name;
    size_t name_size; /* bytes of the name's text */
    enum field_kind {
        FIELD_U64,
        FIELD_INDEX,
        FIELD_F64,
        FIELD_TEXT,
        FIELD_PROSE,
        FIELD_WORD,
        FIELD_BYTES,
        FIELD_U64S,
        FIELD_I64S,
        FIELD_WORDS,
        FIELD_MAP,
        FIELD_MAPS,
        FIELD_TEXTS,
        FIELD_STEPS,
        FIELD_JOBS,
        FIELD_ITEMS
    } kind;
    bool required;
    size_t offset;       /* offset of the member */
    size_t count_offset; /* offset of a list's count */
    uint64_t max;        /* largest value, or longest list */
    const void *of;      /* struct words, or struct map_type */
};

struct map_type {
    const char *name;
    const struct field *fields;
    size_t field_count;
    size_t size_bytes;   /* bytes of the map's struct */
    size_t given_offset; /* offset of the mask of the fields that are given, even if they are 0; 0: there is none */
};

#define X(NAME, ...) extern const struct map_type msg_##NAME##_type;
MAPS_LIST(X)
#undef X

/* The types of steps, by enum operation_id; the first field of each says which it is. */
extern const struct map_type *const step_types[OPERATION_COUNT];
/* The least that a whole number of a field may be: 0 or 1. */
unsigned field_least(const struct field *field);

/* "a, b, c": the names of the fields from the `first` on, or "none". Cut to size. Returns out. */
const char *fields_join(const struct map_type *type, size_t first, char *out, size_t size);

const char *method_name(enum method method);
/* The method of that name, which need not end in a zero; METHOD_COUNT: there is none. */
enum method method_find(const char *name, size_t size);

/* A place for encoded bytes: at most capacity of them. */
struct encoded {
    uint8_t *bytes;
    size_t size, capacity;
};

/* Each appends one message to *out; -EMSGSIZE, with *out as it was, when it does not fit. */
int encode_request(struct encoded *out, uint32_t msgid, enum method method, const struct map_type *type,
                   const void *params);
int encode_result(struct encoded *out, uint32_t msgid, const struct map_type *type, const void *result);
int encode_failure(struct encoded *out, uint32_t msgid, const struct error *error);
int encode_notification(struct encoded *out, enum method method, const struct map_type *type, const void *params);

/* One received message, opened: its envelope is known, its map not yet read. */
struct message {
    enum message_kind { MESSAGE_REQUEST, MESSAGE_RESPONSE, MESSAGE_NOTIFICATION } kind;
    uint32_t msgid;                     /* not of notifications */
    bool has_msgid;                     /* also when opening failed after it: the error can be answered */
    enum method method;                 /* METHOD_COUNT: an unknown one */
    char method_text[LIMIT_NAME_BYTES]; /* cut to fit */
    bool failed;                        /* a response that carries a failure */
    bool strict;                        /* set once it is open: a field that is not known is an error */
    struct arena *arena;                /* decode.c's own */
};

/*
 * Opens the one complete message in bytes[0..size), which walk() has accepted and which must stay until the message is
 * closed. Returns 0, or -EBADMSG (or -ENOMEM) and *error; close in either case.
 */
int message_open(struct message *message, const uint8_t *bytes, size_t size, struct error *error);
/* Does the same in memory that the caller keeps for one message after the other; NULL before the first. What a long
 * message needs more is freed with it. */
int message_open_in(struct message *message, struct arena **arena, const uint8_t *bytes, size_t size,
                    struct error *error);
void arena_destroy(struct arena *arena);
/*
 * Reads params, or the result, or, of a response that failed, the failure (msg_failure_type) into a struct of that
 * type. Returns 0, or -EINVAL and *error, which names the field; *out is then untouched.
 */
int message_read(const struct message *message, const struct map_type *type, void *out, struct error *error);
/* Reads item `index` of a list of maps, by its field's name, out of params or a result: 1, 0 when there are no more
 * items, or no such list, or -EINVAL and *error. */
int message_read_item(const struct message *message, const char *name, uint32_t index, const struct map_type *type,
                      void *out, struct error *error);
void message_close(struct message *message);

/* The msgid of a request that walk() has refused, from its beginning, so that the refusal can be answered. */
bool message_find_msgid(const uint8_t *bytes, size_t size, uint32_t *msgid);

/* An error as a failure to be sent. */
void error_to_failure(const struct error *error, struct msg_failure *failure);
/* A received failure as the error it was. */
void failure_to_error(const struct msg_failure *failure, struct error *error);

#endif

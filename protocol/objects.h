/*
 * The objects of a message, as msgpack-c finds them: one list, in which each object is followed by the objects that are
 * in it. Only encode.c and decode.c know of them.
 */
#ifndef PROTOCOL_OBJECTS_H
#define PROTOCOL_OBJECTS_H

#include <stddef.h>
#include <stdint.h>

struct object {
    enum object_type {
        OBJECT_NIL,
        OBJECT_BOOLEAN,
        OBJECT_POSITIVE, /* an integer that is not negative */
        OBJECT_NEGATIVE,
        OBJECT_FLOAT,
        OBJECT_TEXT,
        OBJECT_BINARY,
        OBJECT_LIST,
        OBJECT_MAP
    } type;
    uint32_t size; /* bytes of text or binary data, items of a list, pairs of a map */
    union {
        uint64_t u64;
        int64_t i64;
        double f64;
        const char *bytes;
        size_t count; /* of a list or map: objects up to its end, with itself */
    } via;
};

/* Objects of one message after the other, in memory that is kept. */
struct objects {
    struct object *list; /* the first is the message itself */
    uint32_t count, capacity;
};

/*
 * Parses bytes that walk() has accepted, which stay in use. Returns 0, -ENOMEM, or -EBADMSG if they are not one object.
 * objects_drop, in either case, keeps memory for most messages, and frees what a long one needed more.
 */
int objects_parse(struct objects *objects, const uint8_t *bytes, size_t size);
void objects_drop(struct objects *objects);
void objects_free(struct objects *objects);

/* The first item of a list that has some, or the key of the first pair of a map. */
static inline const struct object *object_first(const struct object *container)
{
    return container + 1;
}

/* What follows an object: the next item, the value of a key, or the key of the next pair. */
static inline const struct object *object_next(const struct object *object)
{
    return object + (object->type >= OBJECT_LIST ? object->via.count : 1);
}

#endif

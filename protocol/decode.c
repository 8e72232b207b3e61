/* Bytes to messages, field by field by the tables of encode.c, with an error that names the field: encoding.h. */
#include "encoding.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "objects.h"
#include "text.h"

/* The parsed bytes of a message, until it is closed. */
struct arena {
    struct objects objects;
    const struct object *map; /* params, result or failure; NULL: left out, as good as empty */
    bool is_kept;             /* for further messages */
};

static bool text_is(const struct object *object, const char *text, size_t size)
{
    return object->type == OBJECT_TEXT && object->size == size && memcmp(object->via.bytes, text, size) == 0;
}

static const char *type_name(const struct object *object)
{
    switch (object->type) {
    case OBJECT_NIL:
        return "nil";
    case OBJECT_BOOLEAN:
        return "a boolean";
    case OBJECT_POSITIVE:
    case OBJECT_NEGATIVE:
        return "an integer";
    case OBJECT_FLOAT:
        return "a floating-point number";
    case OBJECT_TEXT:
        return "text";
    case OBJECT_LIST:
        return "a list";
    case OBJECT_MAP:
        return "a map";
    default:
        return "binary data";
    }
}

/*
 * The envelope.
 */

static int malformed(struct error *error, const char *what)
{
    return error_set(error, -EBADMSG, "malformed message: %s", what);
}

static bool msgid_read(const struct object *object, uint32_t *msgid)
{
    if (object->type != OBJECT_POSITIVE || object->via.u64 > UINT32_MAX)
        return false;
    *msgid = (uint32_t)object->via.u64;
    return true;
}

/* Method and params, the last two elements of requests and notifications. */
static int call_open(struct message *message, const struct object *method, const struct object *params,
                     struct error *error)
{
    struct arena *arena = message->arena;
    if (method->type != OBJECT_TEXT)
        return malformed(error, "the method is not text");
    text_show(message->method_text, sizeof message->method_text, method->via.bytes, method->size);
    message->method = method_find(method->via.bytes, method->size);
    if (params->type != OBJECT_LIST || params->size > 1)
        return malformed(error, "params are not a list of one map");
    if (params->size == 0)
        return 0;
    arena->map = object_first(params);
    return arena->map->type == OBJECT_MAP ? 0 : malformed(error, "params are not a list of one map");
}

/* Failure and result, the last two elements of responses. */
static int response_open(struct message *message, const struct object *failure, const struct object *result,
                         struct error *error)
{
    struct arena *arena = message->arena;
    message->failed = failure->type != OBJECT_NIL;
    if (message->failed && result->type != OBJECT_NIL)
        return malformed(error, "a response has both an error and a result");
    arena->map = message->failed ? failure : result;
    return arena->map->type == OBJECT_MAP ? 0 : malformed(error, "a response's error or result is no map");
}

/* A notification's elements after its type. */
static int notification_open(struct message *message, const struct object *method, size_t count, struct error *error)
{
    return count == 3 ? call_open(message, method, object_next(method), error)
                      : malformed(error, "a notification has three elements: type, method, params");
}

static int envelope_open(struct message *message, const struct object *object, struct error *error)
{
    if (object->type != OBJECT_LIST || object->size == 0)
        return malformed(error, "not a list of a type and what belongs to it");
    const struct object *type = object_first(object), *second = object_next(type);
    const size_t count = object->size;
    if (type->type != OBJECT_POSITIVE || type->via.u64 > MESSAGE_NOTIFICATION)
        return malformed(error, "its type is not 0 (request), 1 (response) or 2 (notification)");
    message->kind = (enum message_kind)type->via.u64;
    if (message->kind == MESSAGE_NOTIFICATION)
        return notification_open(message, second, count, error);
    message->has_msgid = count > 1 && msgid_read(second, &message->msgid);
    if (count != 4)
        return malformed(error, message->kind == MESSAGE_REQUEST
                                    ? "a request has four elements: type, msgid, method, params"
                                    : "a response has four elements: type, msgid, error, result");
    if (!message->has_msgid)
        return malformed(error, "the msgid is not an integer from 0 to 4294967295");
    const struct object *third = object_next(second), *fourth = object_next(third);
    return message->kind == MESSAGE_REQUEST ? call_open(message, third, fourth, error)
                                            : response_open(message, third, fourth, error);
}

bool message_find_msgid(const uint8_t *bytes, size_t size, uint32_t *msgid)
{
    /* An array of four, the request type, and an unsigned integer, each in its shortest form, as packers write them. */
    if (size < 3 || bytes[0] != 0x94 || bytes[1] != MESSAGE_REQUEST)
        return false;
    size_t width = bytes[2] < 0x80 ? 0 : bytes[2] >= 0xcc && bytes[2] <= 0xce ? (size_t)1 << (bytes[2] - 0xcc) : size;
    if (width > size - 3)
        return false;
    uint32_t value = width ? 0 : bytes[2];
    for (size_t i = 0; i < width; i++)
        value = value << 8 | bytes[3 + i];
    *msgid = value;
    return true;
}

void arena_destroy(struct arena *arena)
{
    if (!arena)
        return;
    objects_free(&arena->objects);
    free(arena);
}

static int message_parse(struct message *message, const uint8_t *bytes, size_t size, struct error *error)
{
    struct objects *objects = &message->arena->objects;
    const int code = objects_parse(objects, bytes, size);
    if (code == -ENOMEM)
        return error_set(error, -ENOMEM, "out of memory for a message");
    return code ? malformed(error, "not one MessagePack object") : envelope_open(message, objects->list, error);
}

int message_open_in(struct message *message, struct arena **arena, const uint8_t *bytes, size_t size,
                    struct error *error)
{
    *message = (struct message){.method = METHOD_COUNT};
    if (!*arena)
        *arena = calloc(1, sizeof **arena);
    if (!*arena)
        return error_set(error, -ENOMEM, "out of memory for a message");
    message->arena = *arena;
    message->arena->is_kept = true;
    return message_parse(message, bytes, size, error);
}

int message_open(struct message *message, const uint8_t *bytes, size_t size, struct error *error)
{
    struct arena *arena = NULL;
    int code = message_open_in(message, &arena, bytes, size, error);
    if (arena)
        arena->is_kept = false;
    return code;
}

void message_close(struct message *message)
{
    struct arena *arena = message->arena;
    message->arena = NULL;
    if (!arena)
        return;
    if (!arena->is_kept) {
        arena_destroy(arena);
        return;
    }
    arena->map = NULL;
    objects_drop(&arena->objects);
}

/*
 * The maps. Each function returns 0, or -EINVAL and the reader's error.
 */

#define PATH_BYTES 128

/* Knows where it is, for messages: `job.submit: field "input.shape[2]" is nil`. The path is put into words only for
 * them: that takes longer than reading. */
struct reader {
    const char *what; /* the method */
    struct place {
        const char *name; /* name of a field; NULL: a list's item */
        uint32_t index;
    } places[LIMIT_MESSAGE_DEPTH];
    unsigned depth;
    bool strict; /* about fields that are not known, */
    bool asked;  /* since hello asked for it */
    struct error *error;
};

static const char *reader_path(const struct reader *reader, char out[PATH_BYTES])
{
    size_t length = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < reader->depth && length < PATH_BYTES; i++) {
        const struct place *place = &reader->places[i];
        if (place->name)
            length += (size_t)snprintf(out + length, PATH_BYTES - length, "%s%s", i ? "." : "", place->name);
        else
            length += (size_t)snprintf(out + length, PATH_BYTES - length, "[%" PRIu32 "]", place->index);
    }
    return out;
}

/* Functions that refuse are kept apart: the others are shorter then, and take no room for texts. */
#define REFUSAL __attribute__((noinline, cold))

REFUSAL static int reader_fail(const struct reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int reader_fail(const struct reader *reader, const char *format, ...)
{
    char detail[LIMIT_ERROR_BYTES / 2], path[PATH_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    return error_set(reader->error, -EINVAL, "%s: field \"%s\" %s", reader->what, reader_path(reader, path), detail);
}

/* Steps into a field, or with a NULL name into a list's item. */
static void reader_enter(struct reader *reader, const char *name, uint32_t index)
{
    assert(reader->depth < LIMIT_MESSAGE_DEPTH); /* walk() has looked */
    reader->places[reader->depth++] = (struct place){name, index};
}

static void reader_leave(struct reader *reader)
{
    reader->depth--;
}

/* `least` is for the message: what is below it but not negative is refused later, by who knows more of it. */
REFUSAL static int refuse_number(const struct reader *reader, const struct object *object, unsigned least, uint64_t max)
{
    if (object->type == OBJECT_NEGATIVE)
        return reader_fail(reader, "is %" PRId64 "; allowed: %u to %" PRIu64, object->via.i64, least, max);
    if (object->type != OBJECT_POSITIVE)
        return reader_fail(reader, "is %s; expected: an integer", type_name(object));
    return reader_fail(reader, "is %" PRIu64 "; allowed: %u to %" PRIu64, object->via.u64, least, max);
}

/* Returns whether it is a number of at most `max`, which *out is then. */
static bool number_get(const struct object *object, uint64_t max, uint64_t *out)
{
    if (object->type != OBJECT_POSITIVE || object->via.u64 > max)
        return false;
    *out = object->via.u64;
    return true;
}

static int read_u64(const struct reader *reader, const struct object *object, uint64_t max, uint64_t *out)
{
    return number_get(object, max, out) ? 0 : refuse_number(reader, object, 0, max);
}

static int read_index(const struct reader *reader, const struct object *object, uint64_t max, uint64_t *out)
{
    uint64_t value;
    if (!number_get(object, max, &value))
        return refuse_number(reader, object, 0, max);
    *out = value + 1;
    return 0;
}

static int read_i64(const struct reader *reader, const struct object *object, int64_t *out)
{
    if (object->type == OBJECT_NEGATIVE) {
        *out = object->via.i64;
        return 0;
    }
    uint64_t value;
    if (!number_get(object, UINT64_MAX, &value))
        return refuse_number(reader, object, 0, UINT64_MAX);
    if (value > INT64_MAX)
        return reader_fail(reader, "is %" PRIu64 "; allowed: %" PRId64 " to %" PRId64, value, INT64_MIN, INT64_MAX);
    *out = (int64_t)value;
    return 0;
}

/* Integers too, where a double holds them exactly: MessagePack libraries write whole numbers so. */
static int read_f64(const struct reader *reader, const struct object *object, double *out)
{
    const uint64_t exact = UINT64_C(1) << 53;
    bool positive = object->type == OBJECT_POSITIVE;
    if (object->type == OBJECT_FLOAT) {
        *out = object->via.f64;
        return 0;
    }
    if (!positive && object->type != OBJECT_NEGATIVE)
        return reader_fail(reader, "is %s; expected: a number", type_name(object));
    if (positive ? object->via.u64 > exact : object->via.i64 < -(int64_t)exact)
        return reader_fail(reader,
                           "is an integer beyond 2^53, which a double may not hold; give a floating-point number");
    *out = positive ? (double)object->via.u64 : (double)object->via.i64;
    return 0;
}

static int read_text(const struct reader *reader, const struct object *object, uint64_t max, char *out)
{
    if (object->type != OBJECT_TEXT)
        return reader_fail(reader, "is %s; expected: text", type_name(object));
    size_t size = object->size;
    if (size > max)
        return reader_fail(reader, "has %zu bytes; allowed: 0 to %" PRIu64, size, max);
    if (memchr(object->via.bytes, '\0', size))
        return reader_fail(reader, "contains a zero byte");
    memcpy(out, object->via.bytes, size);
    out[size] = '\0';
    text_clean(out); /* whoever it is from, it ends on terminals and in logs */
    return 0;
}

REFUSAL static int refuse_word(const struct reader *reader, const struct object *object, const struct words *words)
{
    char given[33], allowed[LIMIT_WORDS_BYTES];
    words_join(words, allowed, sizeof allowed);
    if (object->type != OBJECT_TEXT)
        return reader_fail(reader, "is %s; allowed: %s", type_name(object), allowed);
    return reader_fail(reader, "is \"%s\"; allowed: %s",
                       text_show(given, sizeof given, object->via.bytes, object->size), allowed);
}

REFUSAL static int refuse_missing(struct reader *reader, const struct field *field)
{
    char allowed[LIMIT_WORDS_BYTES];
    reader_enter(reader, field->name, 0);
    if (field->kind != FIELD_WORD && field->kind != FIELD_WORDS)
        return reader_fail(reader, "is missing");
    return reader_fail(reader, "is missing; allowed: %s", words_join(field->of, allowed, sizeof allowed));
}

static int read_word(const struct reader *reader, const struct object *object, const struct words *words, uint32_t *out)
{
    const bool is_text = object->type == OBJECT_TEXT;
    const int word = is_text ? words_find(words, object->via.bytes, object->size) : -1;
    if (word < 0)
        return refuse_word(reader, object, words);
    *out = (uint32_t)word;
    return 0;
}

static int read_bytes(const struct reader *reader, const struct object *object, const struct field *field, void *out)
{
    if (object->type != OBJECT_BINARY)
        return reader_fail(reader, "is %s; expected: binary data", type_name(object));
    uint32_t count = object->size;
    if (count < 1 || count > field->max)
        return reader_fail(reader, "has %" PRIu32 " bytes; allowed: 1 to %" PRIu64, count, field->max);
    memcpy((char *)out + field->offset, object->via.bytes, count);
    memcpy((char *)out + field->count_offset, &count, sizeof count);
    return 0;
}

static int read_map(struct reader *reader, const struct object *object, const struct map_type *type, void *out);

/* The value that a map has under this key; NULL: none. */
static const struct object *pair_find(const struct object *map, const char *key)
{
    const size_t size = strlen(key);
    const struct object *at = object_first(map);
    for (uint32_t i = 0; i < map->size; i++) {
        const struct object *value = object_next(at);
        if (text_is(at, key, size))
            return value;
        at = object_next(value);
    }
    return NULL;
}

/* The operation decides which fields there are, so it is looked for first. */
static int read_step(struct reader *reader, const struct object *object, union msg_step *out)
{
    const struct field *field = &step_types[0]->fields[0];
    uint32_t operation = 0;
    if (object->type != OBJECT_MAP)
        return reader_fail(reader, "is %s; expected: a map", type_name(object));
    const struct object *value = pair_find(object, field->name);
    if (!value)
        return refuse_missing(reader, field);
    reader_enter(reader, field->name, 0);
    int code = read_word(reader, value, field->of, &operation);
    if (code)
        return code;
    reader_leave(reader);
    return read_map(reader, object, step_types[operation], out);
}

/* Reads a job by its kind, which its steps show: a job with steps is read as job.run reads it. */
static int read_job(struct reader *reader, const struct object *object, struct msg_batch_job *job)
{
    const bool strict = reader->strict, asked = reader->asked;
    if (object->type != OBJECT_MAP)
        return reader_fail(reader, "is %s; expected: a map", type_name(object));
    job->runs = pair_find(object, "steps") != NULL;
    if (!job->runs) {
        memset(&job->submit, 0, sizeof job->submit);
        return read_map(reader, object, &msg_job_submit_params_type, &job->submit);
    }
    memset(&job->run, 0, sizeof job->run);
    reader->strict = true;
    reader->asked = false;
    int code = read_map(reader, object, &msg_job_run_params_type, &job->run);
    reader->strict = strict;
    reader->asked = asked;
    return code;
}

static int read_item(struct reader *reader, const struct object *object, const struct field *field, void *items,
                     uint32_t i)
{
    switch (field->kind) {
    case FIELD_U64S:
        return read_u64(reader, object, UINT64_MAX, (uint64_t *)items + i);
    case FIELD_I64S:
        return read_i64(reader, object, (int64_t *)items + i);
    case FIELD_WORDS:
        return read_word(reader, object, field->of, (uint32_t *)items + i);
    case FIELD_TEXTS:
        return read_text(reader, object, LIMIT_NAME_BYTES - 1, ((char(*)[LIMIT_NAME_BYTES])items)[i]);
    case FIELD_STEPS:
        return read_step(reader, object, (union msg_step *)items + i);
    case FIELD_JOBS:
        return read_job(reader, object, (struct msg_batch_job *)items + i);
    default:
        assert(field->kind == FIELD_MAPS);
        return read_map(reader, object, field->of,
                        (char *)items + i * ((const struct map_type *)field->of)->size_bytes);
    }
}

static int read_list(struct reader *reader, const struct object *object, const struct field *field, void *out)
{
    unsigned least = field->kind == FIELD_MAPS || field->kind == FIELD_JOBS ? 0 : 1;
    if (object->type != OBJECT_LIST)
        return reader_fail(reader, "is %s; expected: a list", type_name(object));
    uint32_t count = object->size;
    if (count < least || count > field->max)
        return reader_fail(reader, "has %" PRIu32 " items; allowed: %u to %" PRIu64, count,
                           field->kind == FIELD_JOBS ? 1 : least, field->max);
    const struct object *item = object_first(object);
    for (uint32_t i = 0; i < count; i++, item = object_next(item)) {
        reader_enter(reader, NULL, i);
        int code = read_item(reader, item, field, (char *)out + field->offset, i);
        if (code)
            return code;
        reader_leave(reader);
    }
    memcpy((char *)out + field->count_offset, &count, sizeof count);
    return 0;
}

/* Parameters of operations are 1 or more, but for flags. */
unsigned field_least(const struct field *field)
{
    for (size_t i = 0; i < OPERATION_COUNT && field->max > 1; i++)
        if (field >= step_types[i]->fields && field < step_types[i]->fields + step_types[i]->field_count)
            return 1;
    return 0;
}

static int read_value(struct reader *reader, const struct object *object, const struct field *field, void *out)
{
    void *value = (char *)out + field->offset;
    switch (field->kind) {
    case FIELD_U64:
        if (!number_get(object, field->max, value))
            return refuse_number(reader, object, field_least(field), field->max);
        return 0;
    case FIELD_INDEX:
        return read_index(reader, object, field->max, value);
    case FIELD_F64:
        return read_f64(reader, object, value);
    case FIELD_TEXT:
    case FIELD_PROSE:
        return read_text(reader, object, field->max, value);
    case FIELD_WORD:
        return read_word(reader, object, field->of, value);
    case FIELD_BYTES:
        return read_bytes(reader, object, field, out);
    case FIELD_MAP:
        return read_map(reader, object, field->of, value);
    case FIELD_ITEMS:
        return 0;
    default:
        return read_list(reader, object, field, out);
    }
}

/* The row that a key names; type->field_count where none does. Looks from `expected` on: most senders keep the order of
 * the table, and then few names have to be compared. */
static size_t row_find(const struct map_type *type, const struct object *key, size_t expected)
{
    const size_t count = type->field_count;
    for (size_t i = 0, row = expected; i < count; i++, row++) {
        row = row < count ? row : 0;
        if (text_is(key, type->fields[row].name, type->fields[row].name_size))
            return row;
    }
    return count;
}

const char *fields_join(const struct map_type *type, size_t first, char *out, size_t size)
{
    size_t used = 0;
    snprintf(out, size, "none");
    for (size_t i = first; i < type->field_count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i > first ? ", " : "", type->fields[i].name);
    return out;
}

/* A value as somebody has written it, in few words. */
static const char *value_show(const struct object *object, char *out, size_t size)
{
    char text[33];
    if (object->type == OBJECT_POSITIVE)
        snprintf(out, size, "%" PRIu64, object->via.u64);
    else if (object->type == OBJECT_NEGATIVE)
        snprintf(out, size, "%" PRId64, object->via.i64);
    else if (object->type == OBJECT_FLOAT)
        snprintf(out, size, "%.17g", object->via.f64);
    else if (object->type == OBJECT_TEXT)
        snprintf(out, size, "\"%s\"", text_show(text, sizeof text, object->via.bytes, object->size));
    else
        snprintf(out, size, "%s", type_name(object));
    return out;
}

/* The operation whose steps have this type; NULL: it is that of another map. */
static const char *operation_of(const struct map_type *type)
{
    for (size_t i = 0; i < OPERATION_COUNT; i++)
        if (step_types[i] == type)
            return step_words.words[i];
    return NULL;
}

REFUSAL static int refuse_field(struct reader *reader, const struct object *key, const struct map_type *type)
{
    char name[LIMIT_NAME_BYTES], value[48], names[160];
    const char *operation = operation_of(type);
    reader_enter(reader, text_show(name, sizeof name, key->via.bytes, key->size), 0);
    if (operation)
        return reader_fail(reader, "is %s, but operation \"%s\" has no such parameter; it takes: %s",
                           value_show(object_next(key), value, sizeof value), operation,
                           fields_join(type, 1, names, sizeof names));
    if (reader->asked)
        return reader_fail(reader, "is not known, and hello asked to be strict; look for a slip, or leave it out");
    return reader_fail(reader, "is %s, but there is no such field; there are: %s",
                       value_show(object_next(key), value, sizeof value), fields_join(type, 0, names, sizeof names));
}

REFUSAL static int refuse_key(const struct reader *reader, const struct object *key)
{
    char path[PATH_BYTES];
    return error_set(reader->error, -EINVAL, "%s: the name of a field%s%s is %s; expected: text", reader->what,
                     reader->depth ? " of " : "", reader_path(reader, path), type_name(key));
}

/* Reads one pair, notes its row's bit in *seen, and the row after it as that of the next one. */
static int read_pair(struct reader *reader, const struct object *key, const struct map_type *type, uint64_t *seen,
                     size_t *expected, void *out)
{
    if (key->type != OBJECT_TEXT)
        return refuse_key(reader, key);
    size_t row = row_find(type, key, *expected);
    if (row == type->field_count)
        return reader->strict ? refuse_field(reader, key, type) : 0;
    *expected = row + 1;
    reader_enter(reader, type->fields[row].name, 0);
    if (*seen >> row & 1)
        return reader_fail(reader, "is there twice");
    *seen |= UINT64_C(1) << row;
    int code = read_value(reader, object_next(key), &type->fields[row], out);
    if (!code)
        reader_leave(reader);
    return code;
}

/* Reads a map. The recursion is as deep as the maps of messages.h are nested, whatever was sent. */
static int read_map(struct reader *reader, const struct object *object, const struct map_type *type, void *out)
{
    if (object->type != OBJECT_MAP)
        return reader_fail(reader, "is %s; expected: a map", type_name(object));
    uint64_t seen = 0;
    size_t expected = 0;
    const struct object *key = object_first(object);
    for (uint32_t i = 0; i < object->size; i++, key = object_next(object_next(key))) {
        int code = read_pair(reader, key, type, &seen, &expected, out);
        if (code)
            return code;
    }
    for (size_t row = 0; row < type->field_count; row++)
        if (type->fields[row].required && !(seen >> row & 1))
            return refuse_missing(reader, &type->fields[row]);
    if (type->given_offset)
        memcpy((char *)out + type->given_offset, &seen, sizeof seen);
    return 0;
}

/* job.run is always strict: nobody wants a chain of steps that was done without one of its parameters, and its senders
 * are no older than the method. */
static bool is_always_strict(const struct message *message)
{
    return message->kind == MESSAGE_REQUEST && message->method == METHOD_job_run;
}

static struct reader reader_of(const struct message *message, struct error *error)
{
    return (struct reader){.what = message->kind == MESSAGE_RESPONSE ? "response" : method_name(message->method),
                           .strict = message->strict || is_always_strict(message),
                           .asked = message->strict && !is_always_strict(message),
                           .error = error};
}

/* A list of jobs, which is long, comes last in its struct: NULL where there is none. */
static const struct field *jobs_of(const struct map_type *type)
{
    const struct field *last = type->field_count > 0 ? &type->fields[type->field_count - 1] : NULL;
    return last && last->kind == FIELD_JOBS ? last : NULL;
}

static void jobs_move(const struct field *field, const void *from, void *to)
{
    const struct msg_batch_job *jobs = (const void *)((const char *)from + field->offset);
    struct msg_batch_job *out = (void *)((char *)to + field->offset);
    uint32_t count;
    memcpy(&count, (const char *)from + field->count_offset, sizeof count);
    for (uint32_t i = 0; i < count; i++) {
        out[i].runs = jobs[i].runs;
        if (jobs[i].runs)
            out[i].run = jobs[i].run;
        else
            out[i].submit = jobs[i].submit;
    }
}

/* Reads aside first, so that *out stays as it is when a field is wrong. */
static int read_aside(struct reader *reader, const struct object *object, const struct map_type *type, void *out)
{
    max_align_t map[type->size_bytes / sizeof(max_align_t) + 1]; /* most are small, and threads may have small stacks */
    const struct field *jobs = jobs_of(type);
    const size_t size_bytes = jobs ? jobs->offset : type->size_bytes;
    memset(map, 0, size_bytes);
    int code = read_map(reader, object, type, map);
    if (code)
        return code;
    memcpy(out, map, size_bytes);
    if (jobs)
        jobs_move(jobs, map, out);
    return 0;
}

int message_read(const struct message *message, const struct map_type *type, void *out, struct error *error)
{
    static const struct object empty = {.type = OBJECT_MAP, .via.count = 1};
    const struct arena *arena = message->arena;
    struct reader reader = reader_of(message, error);
    return read_aside(&reader, arena->map ? arena->map : &empty, type, out);
}

int message_read_item(const struct message *message, const char *name, uint32_t index, const struct map_type *type,
                      void *out, struct error *error)
{
    const struct arena *arena = message->arena;
    const struct object *list = arena->map ? pair_find(arena->map, name) : NULL;
    if (!list || list->type != OBJECT_LIST || index >= list->size)
        return 0;
    struct reader reader = reader_of(message, error);
    const struct object *item = object_first(list);
    for (uint32_t i = 0; i < index; i++)
        item = object_next(item);
    reader_enter(&reader, name, 0);
    reader_enter(&reader, NULL, index);
    int code = read_aside(&reader, item, type, out);
    return code ? code : 1;
}

void failure_to_error(const struct msg_failure *failure, struct error *error)
{
    int code = status_to_errno(failure->code);
    error_set(error, code ? code : -ENOTRECOVERABLE, "%s", failure->message);
    error->retry_ms = failure->retry_ms < LIMIT_RETRY_MAX_MS ? (uint32_t)failure->retry_ms : LIMIT_RETRY_MAX_MS;
}

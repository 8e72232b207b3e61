#include "codec.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "value.h"

/* Bytes from outside, for a message to people: one line of ASCII, whatever they are, and never half a character. */
static char *text_show(char *out, size_t size, const char *text, size_t length)
{
    size_t n = length < size - 1 ? length : size - 1;
    for (size_t i = 0; i < n; i++)
        out[i] = text[i] >= ' ' && text[i] <= '~' && text[i] != '"' ? text[i] : '?';
    out[n] = '\0';
    return out;
}

static bool text_is(const struct value *value, const char *text)
{
    return value->kind == VALUE_TEXT && value->count == strlen(text) && memcmp(value->bytes, text, value->count) == 0;
}

static const char *kind_name(const struct value *value)
{
    static const char *const names[] = {
        [VALUE_NIL] = "nil",
        [VALUE_BOOLEAN] = "a boolean",
        [VALUE_UNSIGNED] = "an integer",
        [VALUE_NEGATIVE] = "an integer",
        [VALUE_FLOAT] = "a floating-point number",
        [VALUE_TEXT] = "text",
        [VALUE_BINARY] = "binary data",
        [VALUE_LIST] = "a list",
        [VALUE_MAP] = "a map",
    };
    return names[value->kind];
}

/*
 * The envelope.
 */

static int malformed(struct error *error, const char *what)
{
    return error_set(error, -EBADMSG, "malformed message: %s", what);
}

/* The map at `at`: params, result or failure. */
static int map_open(struct message *message, const uint8_t *at, const char *what, struct error *error)
{
    struct value value;
    value_read(at, &value);
    message->map = at;
    return value.kind == VALUE_MAP ? 0 : malformed(error, what);
}

/* Method and params, the last two elements of requests and notifications. */
static int call_open(struct message *message, const uint8_t *at, struct error *error)
{
    static const char wrong[] = "params are not a list of one map";
    struct value method, params;
    at = value_read(at, &method);
    if (method.kind != VALUE_TEXT)
        return malformed(error, "the method is not text");
    text_show(message->method_text, sizeof message->method_text, (const char *)method.bytes, method.count);
    for (size_t i = 0; i < METHOD_COUNT && message->method == METHOD_COUNT; i++)
        if (text_is(&method, method_name(i)))
            message->method = i;
    at = value_read(at, &params);
    if (params.kind != VALUE_LIST || params.count > 1)
        return malformed(error, wrong);
    return params.count == 0 ? 0 : map_open(message, at, wrong, error);
}

/* Failure and result, the last two elements of responses. */
static int response_open(struct message *message, const uint8_t *at, struct error *error)
{
    struct value failure, result;
    const uint8_t *second = value_skip(at);
    value_read(at, &failure);
    value_read(second, &result);
    message->failed = failure.kind != VALUE_NIL;
    if (message->failed && result.kind != VALUE_NIL)
        return malformed(error, "a response has both an error and a result");
    return map_open(message, message->failed ? at : second, "a response's error or result is no map", error);
}

static int envelope_open(struct message *message, const uint8_t *at, struct error *error)
{
    struct value list, type, msgid;
    at = value_read(at, &list);
    if (list.kind != VALUE_LIST || list.count == 0)
        return malformed(error, "not a list of a type and what belongs to it");
    at = value_read(at, &type);
    if (type.kind != VALUE_UNSIGNED || type.u64 > MESSAGE_NOTIFICATION)
        return malformed(error, "its type is not 0 (request), 1 (response) or 2 (notification)");
    message->kind = (enum message_kind)type.u64;
    if (message->kind == MESSAGE_NOTIFICATION)
        return list.count == 3 ? call_open(message, at, error)
                               : malformed(error, "a notification has three elements: type, method, params");
    if (list.count > 1) {
        value_read(at, &msgid);
        message->has_msgid = msgid.kind == VALUE_UNSIGNED && msgid.u64 <= UINT32_MAX;
        message->msgid = message->has_msgid ? (uint32_t)msgid.u64 : 0;
        at = value_skip(at);
    }
    if (list.count != 4)
        return malformed(error, message->kind == MESSAGE_REQUEST
                                    ? "a request has four elements: type, msgid, method, params"
                                    : "a response has four elements: type, msgid, error, result");
    if (!message->has_msgid)
        return malformed(error, "the msgid is not an integer from 0 to 4294967295");
    return message->kind == MESSAGE_REQUEST ? call_open(message, at, error) : response_open(message, at, error);
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

int message_open(struct message *message, const uint8_t *bytes, struct error *error)
{
    *message = (struct message){.method = METHOD_COUNT};
    return envelope_open(message, bytes, error);
}

/*
 * The maps. Each function returns 0, or -EINVAL and the reader's error.
 */

#define PATH_BYTES 128

/* Knows where it is, for messages: `job.submit: field "input.shape[2]" is nil`. The path is put into words only for
 * them: that takes longer than reading. */
struct reader {
    const char *what;  /* the method */
    const uint8_t *at; /* the object that is read next */
    struct step {
        const char *name; /* of a field; NULL: a list's item */
        uint32_t index;
    } steps[LIMIT_MESSAGE_DEPTH];
    unsigned depth;
    struct error *error;
};

static const char *reader_path(const struct reader *reader, char out[PATH_BYTES])
{
    size_t length = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < reader->depth && length < PATH_BYTES; i++) {
        const struct step *step = &reader->steps[i];
        if (step->name)
            length += (size_t)snprintf(out + length, PATH_BYTES - length, "%s%s", i ? "." : "", step->name);
        else
            length += (size_t)snprintf(out + length, PATH_BYTES - length, "[%" PRIu32 "]", step->index);
    }
    return out;
}

static int reader_fail(const struct reader *reader, const char *format, ...) __attribute__((format(printf, 2, 3)));

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
    reader->steps[reader->depth++] = (struct step){name, index};
}

static void reader_leave(struct reader *reader)
{
    reader->depth--;
}

static struct value reader_take(struct reader *reader)
{
    struct value value;
    reader->at = value_read(reader->at, &value);
    return value;
}

static int read_u64(const struct reader *reader, const struct value *object, uint64_t max, uint64_t *out)
{
    if (object->kind == VALUE_NEGATIVE)
        return reader_fail(reader, "is %" PRId64 "; allowed: 0 to %" PRIu64, object->i64, max);
    if (object->kind != VALUE_UNSIGNED)
        return reader_fail(reader, "is %s; expected: an integer", kind_name(object));
    if (object->u64 > max)
        return reader_fail(reader, "is %" PRIu64 "; allowed: 0 to %" PRIu64, object->u64, max);
    *out = object->u64;
    return 0;
}

static int read_index(const struct reader *reader, const struct value *object, uint64_t max, uint64_t *out)
{
    uint64_t value;
    int code = read_u64(reader, object, max, &value);
    if (code == 0)
        *out = value + 1;
    return code;
}

static int read_i64(const struct reader *reader, const struct value *object, int64_t *out)
{
    if (object->kind == VALUE_NEGATIVE) {
        *out = object->i64;
        return 0;
    }
    uint64_t value;
    int code = read_u64(reader, object, UINT64_MAX, &value);
    if (code)
        return code;
    if (value > INT64_MAX)
        return reader_fail(reader, "is %" PRIu64 "; allowed: %" PRId64 " to %" PRId64, value, INT64_MIN, INT64_MAX);
    *out = (int64_t)value;
    return 0;
}

/* Integers too, where a double holds them exactly: MessagePack libraries write whole numbers so. */
static int read_f64(const struct reader *reader, const struct value *object, double *out)
{
    const uint64_t exact = UINT64_C(1) << 53;
    bool positive = object->kind == VALUE_UNSIGNED;
    if (object->kind == VALUE_FLOAT) {
        *out = object->f64;
        return 0;
    }
    if (!positive && object->kind != VALUE_NEGATIVE)
        return reader_fail(reader, "is %s; expected: a number", kind_name(object));
    if (positive ? object->u64 > exact : object->i64 < -(int64_t)exact)
        return reader_fail(reader,
                           "is an integer beyond 2^53, which a double may not hold; give a floating-point number");
    *out = positive ? (double)object->u64 : (double)object->i64;
    return 0;
}

static int read_text(const struct reader *reader, const struct value *object, uint64_t max, char *out)
{
    if (object->kind != VALUE_TEXT)
        return reader_fail(reader, "is %s; expected: text", kind_name(object));
    size_t size = object->count;
    if (size > max)
        return reader_fail(reader, "has %zu bytes; allowed: 0 to %" PRIu64, size, max);
    if (memchr(object->bytes, '\0', size))
        return reader_fail(reader, "contains a zero byte");
    memcpy(out, object->bytes, size);
    out[size] = '\0';
    return 0;
}

static int read_word(const struct reader *reader, const struct value *object, const struct words *words, uint32_t *out)
{
    char given[33], allowed[128];
    if (object->kind != VALUE_TEXT)
        return reader_fail(reader, "is %s; allowed: %s", kind_name(object), words_join(words, allowed, sizeof allowed));
    int word = words_find(words, (const char *)object->bytes, object->count);
    if (word < 0)
        return reader_fail(reader, "is \"%s\"; allowed: %s",
                           text_show(given, sizeof given, (const char *)object->bytes, object->count),
                           words_join(words, allowed, sizeof allowed));
    *out = (uint32_t)word;
    return 0;
}

static int read_bytes(const struct reader *reader, const struct value *object, const struct field *field, void *out)
{
    if (object->kind != VALUE_BINARY)
        return reader_fail(reader, "is %s; expected: binary data", kind_name(object));
    uint32_t count = object->count;
    if (count < 1 || count > field->max)
        return reader_fail(reader, "has %" PRIu32 " bytes; allowed: 1 to %" PRIu64, count, field->max);
    memcpy((char *)out + field->offset, object->bytes, count);
    memcpy((char *)out + field->count_offset, &count, sizeof count);
    return 0;
}

static int read_map(struct reader *reader, const struct value *object, const struct map_type *type, void *out);

static int read_item(struct reader *reader, const struct value *object, const struct field *field, void *items,
                     uint32_t i)
{
    switch (field->kind) {
    case FIELD_U64S:
        return read_u64(reader, object, UINT64_MAX, (uint64_t *)items + i);
    case FIELD_I64S:
        return read_i64(reader, object, (int64_t *)items + i);
    case FIELD_WORDS:
        return read_word(reader, object, field->of, (uint32_t *)items + i);
    default:
        assert(field->kind == FIELD_MAPS);
        return read_map(reader, object, field->of,
                        (char *)items + i * ((const struct map_type *)field->of)->size_bytes);
    }
}

static int read_list(struct reader *reader, const struct value *object, const struct field *field, void *out)
{
    unsigned least = field->kind == FIELD_MAPS ? 0 : 1;
    if (object->kind != VALUE_LIST)
        return reader_fail(reader, "is %s; expected: a list", kind_name(object));
    uint32_t count = object->count;
    if (count < least || count > field->max)
        return reader_fail(reader, "has %" PRIu32 " items; allowed: %u to %" PRIu64, count, least, field->max);
    for (uint32_t i = 0; i < count; i++) {
        struct value item = reader_take(reader);
        reader_enter(reader, NULL, i);
        int code = read_item(reader, &item, field, (char *)out + field->offset, i);
        if (code)
            return code;
        reader_leave(reader);
    }
    memcpy((char *)out + field->count_offset, &count, sizeof count);
    return 0;
}

static int read_value(struct reader *reader, const struct value *object, const struct field *field, void *out)
{
    void *value = (char *)out + field->offset;
    switch (field->kind) {
    case FIELD_U64:
        return read_u64(reader, object, field->max, value);
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
    default:
        return read_list(reader, object, field, out);
    }
}

/* The row that a key names; type->field_count where none does. Looks from `expected` on: most senders keep the order of
 * the table, and then few names have to be compared. */
static size_t row_find(const struct map_type *type, const struct value *key, size_t expected)
{
    for (size_t i = 0; i < type->field_count; i++) {
        size_t row = (expected + i) % type->field_count;
        if (text_is(key, type->fields[row].name))
            return row;
    }
    return type->field_count;
}

/* Reads one pair, notes its row's bit in *seen, and the row after it as that of the next one. */
static int read_pair(struct reader *reader, const struct map_type *type, uint64_t *seen, size_t *expected, void *out)
{
    char path[PATH_BYTES];
    struct value key = reader_take(reader), value;
    if (key.kind != VALUE_TEXT)
        return error_set(reader->error, -EINVAL, "%s: the name of a field%s%s is %s; expected: text", reader->what,
                         reader->depth ? " of " : "", reader_path(reader, path), kind_name(&key));
    size_t row = row_find(type, &key, *expected);
    if (row == type->field_count) {
        reader->at = value_skip(reader->at);
        return 0;
    }
    *expected = row + 1;
    reader_enter(reader, type->fields[row].name, 0);
    if (*seen >> row & 1)
        return reader_fail(reader, "is there twice");
    *seen |= UINT64_C(1) << row;
    value = reader_take(reader);
    int code = read_value(reader, &value, &type->fields[row], out);
    if (!code)
        reader_leave(reader);
    return code;
}

/* As deep as the maps of messages.h are nested, whatever was sent. */
static int read_map(struct reader *reader, const struct value *object, const struct map_type *type, void *out)
{
    if (object->kind != VALUE_MAP)
        return reader_fail(reader, "is %s; expected: a map", kind_name(object));
    uint64_t seen = 0;
    size_t expected = 0;
    for (uint32_t i = 0; i < object->count; i++) {
        int code = read_pair(reader, type, &seen, &expected, out);
        if (code)
            return code;
    }
    for (size_t row = 0; row < type->field_count; row++)
        if (type->fields[row].required && !(seen >> row & 1)) {
            reader_enter(reader, type->fields[row].name, 0);
            return reader_fail(reader, "is missing");
        }
    return 0;
}

/* Room for any of the structs. */
union any_map {
#define X(NAME, FIELDS) struct msg_##NAME NAME;
    MAPS_LIST(X)
#undef X
};

int message_read(const struct message *message, const struct map_type *type, void *out, struct error *error)
{
    static const uint8_t empty[] = {0x80};
    struct reader reader = {.error = error, .at = message->map ? message->map : empty};
    reader.what = message->kind == MESSAGE_RESPONSE ? "response" : method_name(message->method);
    /* Read aside first, so that *out stays as it is when a field is wrong. */
    union any_map map;
    memset(&map, 0, type->size_bytes);
    struct value object = reader_take(&reader);
    int code = read_map(&reader, &object, type, &map);
    if (!code)
        memcpy(out, &map, type->size_bytes);
    return code;
}

void failure_to_error(const struct msg_failure *failure, struct error *error)
{
    int code = status_to_errno(failure->code);
    error_set(error, code ? code : -ENOTRECOVERABLE, "%s", failure->message);
    error->retry_ms = (uint32_t)failure->retry_ms;
}

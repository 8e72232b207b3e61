#include "codec.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "text.h"
#include "token.h"

/* Bytes from outside, for a message to people: one line of ASCII, whatever they are, and never half a character. */
static char *text_show(char *out, size_t size, const char *text, size_t length)
{
    size_t n = length < size - 1 ? length : size - 1;
    for (size_t i = 0; i < n; i++)
        out[i] = text[i] >= ' ' && text[i] <= '~' && text[i] != '"' ? text[i] : '?';
    out[n] = '\0';
    return out;
}

static char *token_show(char *out, size_t size, const struct token *token)
{
    return text_show(out, size, (const char *)token->bytes, token->count);
}

static bool token_is_text(const struct token *token, const char *text, size_t size)
{
    return token->kind == TOKEN_TEXT && token->count == size && memcmp(token->bytes, text, size) == 0;
}

static const char *kind_name(const struct token *token)
{
    static const char *const names[] = {
        [TOKEN_NIL] = "nil",
        [TOKEN_BOOLEAN] = "a boolean",
        [TOKEN_POSITIVE] = "an integer",
        [TOKEN_NEGATIVE] = "an integer",
        [TOKEN_FLOAT] = "a floating-point number",
        [TOKEN_TEXT] = "text",
        [TOKEN_BINARY] = "binary data",
        [TOKEN_LIST] = "a list",
        [TOKEN_MAP] = "a map",
    };
    return names[token->kind];
}

static bool is_map(const uint8_t *at)
{
    return token_next(&at).kind == TOKEN_MAP;
}

/*
 * The envelope.
 */

static int malformed(struct error *error, const char *what)
{
    return error_set(error, -EBADMSG, "malformed message: %s", what);
}

/* Method and params, the last two elements of requests and notifications. */
static int call_open(struct message *message, const uint8_t *at, struct error *error)
{
    const struct token method = token_next(&at), params = token_next(&at);
    if (method.kind != TOKEN_TEXT)
        return malformed(error, "the method is not text");
    message->method = method_find((const char *)method.bytes, method.count);
    if (message->method == METHOD_COUNT)
        token_show(message->method_text, sizeof message->method_text, &method);
    else
        memcpy(message->method_text, method.bytes, method.count);
    if (params.kind != TOKEN_LIST || params.count > 1 || (params.count == 1 && !is_map(at)))
        return malformed(error, "params are not a list of one map");
    message->map = params.count == 1 ? at : NULL;
    return 0;
}

/* Failure and result, the last two elements of responses. */
static int response_open(struct message *message, const uint8_t *failure, struct error *error)
{
    const uint8_t *at = failure, *result = failure;
    message->failed = token_next(&at).kind != TOKEN_NIL;
    token_skip(&result);
    at = result;
    if (message->failed && token_next(&at).kind != TOKEN_NIL)
        return malformed(error, "a response has both an error and a result");
    message->map = message->failed ? failure : result;
    return is_map(message->map) ? 0 : malformed(error, "a response's error or result is no map");
}

int message_open(struct message *message, const uint8_t *bytes, struct error *error)
{
    const struct token envelope = token_next(&bytes);
    *message = (struct message){.method = METHOD_COUNT};
    if (envelope.kind != TOKEN_LIST || envelope.count == 0)
        return malformed(error, "not a list of a type and what belongs to it");
    const struct token kind = token_next(&bytes);
    if (kind.kind != TOKEN_POSITIVE || kind.positive > MESSAGE_NOTIFICATION)
        return malformed(error, "its type is not 0 (request), 1 (response) or 2 (notification)");
    message->kind = (enum message_kind)kind.positive;
    if (message->kind == MESSAGE_NOTIFICATION)
        return envelope.count == 3 ? call_open(message, bytes, error)
                                   : malformed(error, "a notification has three elements: type, method, params");
    const struct token msgid = envelope.count > 1 ? token_next(&bytes) : (struct token){.kind = TOKEN_NIL};
    message->has_msgid = msgid.kind == TOKEN_POSITIVE && msgid.positive <= UINT32_MAX;
    message->msgid = message->has_msgid ? (uint32_t)msgid.positive : 0;
    if (envelope.count != 4)
        return malformed(error, message->kind == MESSAGE_REQUEST
                                    ? "a request has four elements: type, msgid, method, params"
                                    : "a response has four elements: type, msgid, error, result");
    if (!message->has_msgid)
        return malformed(error, "the msgid is not an integer from 0 to 4294967295");
    return message->kind == MESSAGE_REQUEST ? call_open(message, bytes, error) : response_open(message, bytes, error);
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

/*
 * The maps. Each function returns 0, or -EINVAL and the reader's error.
 */

#define PATH_BYTES 128

/* Knows where it is, for messages: `job.submit: field "input.shape[2]" is nil`. The path is put into words only for
 * them: that takes longer than reading. */
struct reader {
    const uint8_t *at; /* the next token */
    const char *what;  /* the method */
    struct place {
        const char *name; /* of a field; NULL: a list's item */
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
    reader->places[reader->depth++] = (struct place){name, index};
}

static void reader_leave(struct reader *reader)
{
    reader->depth--;
}

static int read_u64(struct reader *reader, uint64_t max, uint64_t *out)
{
    const struct token token = token_next(&reader->at);
    if (token.kind == TOKEN_NEGATIVE)
        return reader_fail(reader, "is %" PRId64 "; allowed: 0 to %" PRIu64, token.negative, max);
    if (token.kind != TOKEN_POSITIVE)
        return reader_fail(reader, "is %s; expected: an integer", kind_name(&token));
    if (token.positive > max)
        return reader_fail(reader, "is %" PRIu64 "; allowed: 0 to %" PRIu64, token.positive, max);
    *out = token.positive;
    return 0;
}

static int read_index(struct reader *reader, uint64_t max, uint64_t *out)
{
    uint64_t value;
    int code = read_u64(reader, max, &value);
    if (code == 0)
        *out = value + 1;
    return code;
}

static int read_i64(struct reader *reader, int64_t *out)
{
    const uint8_t *at = reader->at;
    const struct token token = token_next(&at);
    uint64_t value;
    if (token.kind == TOKEN_NEGATIVE) {
        *out = token.negative;
        reader->at = at;
        return 0;
    }
    int code = read_u64(reader, UINT64_MAX, &value);
    if (code)
        return code;
    if (value > INT64_MAX)
        return reader_fail(reader, "is %" PRIu64 "; allowed: %" PRId64 " to %" PRId64, value, INT64_MIN, INT64_MAX);
    *out = (int64_t)value;
    return 0;
}

/* Integers too, where a double holds them exactly: MessagePack libraries write whole numbers so. */
static int read_f64(struct reader *reader, double *out)
{
    const uint64_t exact = UINT64_C(1) << 53;
    const struct token token = token_next(&reader->at);
    const bool positive = token.kind == TOKEN_POSITIVE;
    if (token.kind == TOKEN_FLOAT) {
        *out = token.floating;
        return 0;
    }
    if (!positive && token.kind != TOKEN_NEGATIVE)
        return reader_fail(reader, "is %s; expected: a number", kind_name(&token));
    if (positive ? token.positive > exact : token.negative < -(int64_t)exact)
        return reader_fail(reader,
                           "is an integer beyond 2^53, which a double may not hold; give a floating-point number");
    *out = positive ? (double)token.positive : (double)token.negative;
    return 0;
}

static int read_text(struct reader *reader, uint64_t max, char *out)
{
    const struct token token = token_next(&reader->at);
    const size_t size = token.count;
    if (token.kind != TOKEN_TEXT)
        return reader_fail(reader, "is %s; expected: text", kind_name(&token));
    if (size > max)
        return reader_fail(reader, "has %zu bytes; allowed: 0 to %" PRIu64, size, max);
    if (memchr(token.bytes, '\0', size))
        return reader_fail(reader, "contains a zero byte");
    memcpy(out, token.bytes, size);
    out[size] = '\0';
    text_clean(out); /* whoever it is from, it ends on terminals and in logs */
    return 0;
}

static int read_word(struct reader *reader, const struct words *words, uint32_t *out)
{
    char given[33], allowed[LIMIT_WORDS_BYTES];
    const struct token token = token_next(&reader->at);
    if (token.kind != TOKEN_TEXT)
        return reader_fail(reader, "is %s; allowed: %s", kind_name(&token), words_join(words, allowed, sizeof allowed));
    int word = words_find(words, (const char *)token.bytes, token.count);
    if (word < 0)
        return reader_fail(reader, "is \"%s\"; allowed: %s", token_show(given, sizeof given, &token),
                           words_join(words, allowed, sizeof allowed));
    *out = (uint32_t)word;
    return 0;
}

static int read_bytes(struct reader *reader, const struct field *field, void *out)
{
    const struct token token = token_next(&reader->at);
    const uint32_t count = (uint32_t)token.count;
    if (token.kind != TOKEN_BINARY)
        return reader_fail(reader, "is %s; expected: binary data", kind_name(&token));
    if (count < 1 || count > field->max)
        return reader_fail(reader, "has %" PRIu32 " bytes; allowed: 1 to %" PRIu64, count, field->max);
    memcpy((char *)out + field->offset, token.bytes, count);
    memcpy((char *)out + field->count_offset, &count, sizeof count);
    return 0;
}

static int read_map(struct reader *reader, const struct map_type *type, void *out);

/* The value that the map there has under this key; NULL: none. */
static const uint8_t *pair_find(const uint8_t *at, const char *key)
{
    const size_t size = strlen(key);
    for (uint64_t left = token_next(&at).count; left > 0; left--) {
        const struct token name = token_next(&at);
        if (token_is_text(&name, key, size))
            return at;
        for (uint64_t i = token_children(&name); i > 0; i--)
            token_skip(&at);
        token_skip(&at);
    }
    return NULL;
}

/* An error unless a map is next. */
static int expect_map(const struct reader *reader)
{
    const uint8_t *at = reader->at;
    const struct token token = token_next(&at);
    return token.kind == TOKEN_MAP ? 0 : reader_fail(reader, "is %s; expected: a map", kind_name(&token));
}

/* The operation decides which fields there are, so it is looked for first. */
static int read_step(struct reader *reader, union msg_step *out)
{
    const struct field *field = &step_types[0]->fields[0];
    const uint8_t *map = reader->at;
    uint32_t operation;
    int code = expect_map(reader);
    if (code)
        return code;
    reader_enter(reader, field->name, 0);
    reader->at = pair_find(map, field->name);
    code = reader->at ? read_word(reader, field->of, &operation) : reader_fail(reader, "is missing");
    if (code)
        return code;
    reader_leave(reader);
    reader->at = map;
    return read_map(reader, step_types[operation], out);
}

/* Its steps show which kind of job it is. One that has some is read as job.run reads it. */
static int read_job(struct reader *reader, struct msg_batch_job *job)
{
    const bool strict = reader->strict, asked = reader->asked;
    int code = expect_map(reader);
    if (code)
        return code;
    job->runs = pair_find(reader->at, "steps") != NULL;
    if (!job->runs) {
        memset(&job->submit, 0, sizeof job->submit);
        return read_map(reader, &msg_job_submit_params_type, &job->submit);
    }
    memset(&job->run, 0, sizeof job->run);
    reader->strict = true;
    reader->asked = false;
    code = read_map(reader, &msg_job_run_params_type, &job->run);
    reader->strict = strict;
    reader->asked = asked;
    return code;
}

static int read_item(struct reader *reader, const struct field *field, void *items, uint32_t i)
{
    switch (field->kind) {
    case FIELD_U64S:
        return read_u64(reader, UINT64_MAX, (uint64_t *)items + i);
    case FIELD_I64S:
        return read_i64(reader, (int64_t *)items + i);
    case FIELD_WORDS:
        return read_word(reader, field->of, (uint32_t *)items + i);
    case FIELD_TEXTS:
        return read_text(reader, LIMIT_NAME_BYTES - 1, ((char(*)[LIMIT_NAME_BYTES])items)[i]);
    case FIELD_STEPS:
        return read_step(reader, (union msg_step *)items + i);
    case FIELD_JOBS:
        return read_job(reader, (struct msg_batch_job *)items + i);
    default:
        assert(field->kind == FIELD_MAPS);
        return read_map(reader, field->of, (char *)items + i * ((const struct map_type *)field->of)->size_bytes);
    }
}

static int read_list(struct reader *reader, const struct field *field, void *out)
{
    unsigned least = field->kind == FIELD_MAPS || field->kind == FIELD_JOBS ? 0 : 1;
    const struct token token = token_next(&reader->at);
    const uint32_t count = (uint32_t)token.count;
    if (token.kind != TOKEN_LIST)
        return reader_fail(reader, "is %s; expected: a list", kind_name(&token));
    if (count < least || count > field->max)
        return reader_fail(reader, "has %" PRIu32 " items; allowed: %u to %" PRIu64, count, least, field->max);
    for (uint32_t i = 0; i < count; i++) {
        reader_enter(reader, NULL, i);
        int code = read_item(reader, field, (char *)out + field->offset, i);
        if (code)
            return code;
        reader_leave(reader);
    }
    memcpy((char *)out + field->count_offset, &count, sizeof count);
    return 0;
}

static int read_value(struct reader *reader, const struct field *field, void *out)
{
    void *value = (char *)out + field->offset;
    switch (field->kind) {
    case FIELD_U64:
        return read_u64(reader, field->max, value);
    case FIELD_INDEX:
        return read_index(reader, field->max, value);
    case FIELD_F64:
        return read_f64(reader, value);
    case FIELD_TEXT:
    case FIELD_PROSE:
        return read_text(reader, field->max, value);
    case FIELD_WORD:
        return read_word(reader, field->of, value);
    case FIELD_BYTES:
        return read_bytes(reader, field, out);
    case FIELD_MAP:
        return read_map(reader, field->of, value);
    case FIELD_ITEMS:
        token_skip(&reader->at);
        return 0;
    default:
        return read_list(reader, field, out);
    }
}

/* The row that a key names; type->field_count where none does. Looks from `expected` on: most senders keep the order of
 * the table, and then few names have to be compared. */
static size_t row_find(const struct map_type *type, const struct token *key, size_t expected)
{
    const size_t count = type->field_count;
    for (size_t i = 0, row = expected; i < count; i++, row++) {
        row = row < count ? row : 0;
        if (token_is_text(key, type->fields[row].name, type->fields[row].name_size))
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
static const char *value_show(const struct token *token, char *out, size_t size)
{
    char text[33];
    if (token->kind == TOKEN_POSITIVE)
        snprintf(out, size, "%" PRIu64, token->positive);
    else if (token->kind == TOKEN_NEGATIVE)
        snprintf(out, size, "%" PRId64, token->negative);
    else if (token->kind == TOKEN_FLOAT)
        snprintf(out, size, "%.17g", token->floating);
    else if (token->kind == TOKEN_TEXT)
        snprintf(out, size, "\"%s\"", token_show(text, sizeof text, token));
    else
        snprintf(out, size, "%s", kind_name(token));
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

/* Its value is next. */
static int unknown_field(struct reader *reader, const struct token *key, const struct map_type *type)
{
    const struct token token = token_next(&reader->at);
    char name[LIMIT_NAME_BYTES], value[48], names[160];
    const char *operation = operation_of(type);
    reader_enter(reader, token_show(name, sizeof name, key), 0);
    if (operation)
        return reader_fail(reader, "is %s, but operation \"%s\" has no such parameter; it takes: %s",
                           value_show(&token, value, sizeof value), operation,
                           fields_join(type, 1, names, sizeof names));
    if (reader->asked)
        return reader_fail(reader, "is not known, and hello asked to be strict; look for a slip, or leave it out");
    return reader_fail(reader, "is %s, but there is no such field; there are: %s",
                       value_show(&token, value, sizeof value), fields_join(type, 0, names, sizeof names));
}

static int skip_unknown(struct reader *reader, const struct token *key, const struct map_type *type)
{
    if (reader->strict)
        return unknown_field(reader, key, type);
    token_skip(&reader->at);
    return 0;
}

/* Reads one pair, notes its row's bit in *seen, and the row after it as that of the next one. */
static int read_pair(struct reader *reader, const struct map_type *type, uint64_t *seen, size_t *expected, void *out)
{
    char path[PATH_BYTES];
    const struct token key = token_next(&reader->at);
    if (key.kind != TOKEN_TEXT)
        return error_set(reader->error, -EINVAL, "%s: the name of a field%s%s is %s; expected: text", reader->what,
                         reader->depth ? " of " : "", reader_path(reader, path), kind_name(&key));
    size_t row = row_find(type, &key, *expected);
    if (row == type->field_count)
        return skip_unknown(reader, &key, type);
    *expected = row + 1;
    reader_enter(reader, type->fields[row].name, 0);
    if (*seen >> row & 1)
        return reader_fail(reader, "is there twice");
    *seen |= UINT64_C(1) << row;
    int code = read_value(reader, &type->fields[row], out);
    if (!code)
        reader_leave(reader);
    return code;
}

/* As deep as the maps of messages.h are nested, whatever was sent. */
static int read_map(struct reader *reader, const struct map_type *type, void *out)
{
    uint64_t seen = 0;
    size_t expected = 0;
    int code = expect_map(reader);
    if (code)
        return code;
    for (uint64_t left = token_next(&reader->at).count; left > 0; left--)
        if ((code = read_pair(reader, type, &seen, &expected, out)))
            return code;
    for (size_t row = 0; row < type->field_count; row++)
        if (type->fields[row].required && !(seen >> row & 1)) {
            reader_enter(reader, type->fields[row].name, 0);
            return reader_fail(reader, "is missing");
        }
    if (type->given_offset)
        memcpy((char *)out + type->given_offset, &seen, sizeof seen);
    return 0;
}

/* Room for any of the structs. */
union any_map {
#define X(NAME, ...) struct msg_##NAME NAME;
    MAPS_LIST(X)
#undef X
};

/* Of a chain of steps nobody wants one that was done without a parameter, and whoever sends it is no older than it. */
static bool is_always_strict(const struct message *message)
{
    return message->kind == MESSAGE_REQUEST && message->method == METHOD_job_run;
}

static struct reader reader_of(const struct message *message, const uint8_t *at, struct error *error)
{
    return (struct reader){.at = at,
                           .what = message->kind == MESSAGE_RESPONSE ? "response" : method_name(message->method),
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
static int read_aside(struct reader *reader, const struct map_type *type, void *out)
{
    union any_map map;
    const struct field *jobs = jobs_of(type);
    const size_t size_bytes = jobs ? jobs->offset : type->size_bytes;
    memset(&map, 0, size_bytes);
    int code = read_map(reader, type, &map);
    if (code)
        return code;
    memcpy(out, &map, size_bytes);
    if (jobs)
        jobs_move(jobs, &map, out);
    return 0;
}

int message_read(const struct message *message, const struct map_type *type, void *out, struct error *error)
{
    static const uint8_t empty[] = {0x80};
    struct reader reader = reader_of(message, message->map ? message->map : empty, error);
    return read_aside(&reader, type, out);
}

int message_read_item(const struct message *message, const char *name, uint32_t index, const struct map_type *type,
                      void *out, struct error *error)
{
    const uint8_t *at = message->map ? pair_find(message->map, name) : NULL;
    const struct token list = at ? token_next(&at) : (struct token){.kind = TOKEN_NIL};
    if (list.kind != TOKEN_LIST || index >= list.count)
        return 0;
    for (uint32_t i = 0; i < index; i++)
        token_skip(&at);
    struct reader reader = reader_of(message, at, error);
    reader_enter(&reader, name, 0);
    reader_enter(&reader, NULL, index);
    int code = read_aside(&reader, type, out);
    return code ? code : 1;
}

void failure_to_error(const struct msg_failure *failure, struct error *error)
{
    int code = status_to_errno(failure->code);
    error_set(error, code ? code : -ENOTRECOVERABLE, "%s", failure->message);
    error->retry_ms = (uint32_t)failure->retry_ms;
}

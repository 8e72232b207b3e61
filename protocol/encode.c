/* Messages to bytes, and the tables of all maps, by which encode.c writes and decode.c reads: encoding.h. */
#include "encoding.h"

#include <assert.h>
#include <errno.h>
#include <msgpack.h>
#include <stdio.h>
#include <string.h>

/* One table per map, from the lists of messages.h: what each kind has beside its name and place. */
// clang-format off
#define REST_U64(S, NAME, DETAIL)   0, DETAIL, NULL
#define REST_INDEX(S, NAME, DETAIL) 0, DETAIL, NULL
#define REST_F64(S, NAME, DETAIL)   0, DETAIL, NULL
#define REST_TEXT(S, NAME, DETAIL)  0, LIMIT_NAME_BYTES - 1, NULL
#define REST_PROSE(S, NAME, DETAIL) 0, LIMIT_ERROR_BYTES - 1, NULL
#define REST_WORD(S, NAME, DETAIL)  0, 0, &DETAIL
#define REST_BYTES(S, NAME, DETAIL) offsetof(struct msg_##S, NAME##_count), DETAIL, NULL
#define REST_U64S(S, NAME, DETAIL)  offsetof(struct msg_##S, NAME##_count), DETAIL, NULL
#define REST_I64S(S, NAME, DETAIL)  offsetof(struct msg_##S, NAME##_count), DETAIL, NULL
#define REST_WORDS(S, NAME, DETAIL) offsetof(struct msg_##S, NAME##_count), DETAIL##_MAX, &DETAIL
#define REST_MAP(S, NAME, DETAIL)   0, 0, &msg_##DETAIL##_type
#define REST_MAPS(S, NAME, DETAIL)  offsetof(struct msg_##S, NAME##_count), DETAIL##_MAX, &msg_##DETAIL##_type
#define REST_TEXTS(S, NAME, DETAIL) offsetof(struct msg_##S, NAME##_count), DETAIL, NULL
#define REST_STEPS(S, NAME, DETAIL) offsetof(struct msg_##S, NAME##_count), DETAIL, NULL
#define REST_JOBS(S, NAME, DETAIL)  offsetof(struct msg_##S, NAME##_count), DETAIL, NULL
#define REST_ITEMS(S, NAME, DETAIL) offsetof(struct msg_##S, NAME##_count), UINT32_MAX, &msg_##DETAIL##_type
#define IS_REQUIRED true
#define IS_OPTIONAL false
#define ROW(S, NAME, KIND, PRESENCE, DETAIL, ...) \
    {#NAME, sizeof #NAME - 1, FIELD_##KIND, IS_##PRESENCE, offsetof(struct msg_##S, NAME), REST_##KIND(S, NAME, DETAIL)},
#define MAP_TYPE(NAME, FIELDS, GIVEN_OFFSET)                                                               \
    static const struct field NAME##_rows[] = {FIELDS(ROW, NAME){0}}; /* C has no empty arrays */           \
    const struct map_type msg_##NAME##_type = {#NAME, NAME##_rows, sizeof NAME##_rows / sizeof NAME##_rows[0] - 1, \
                                               sizeof(struct msg_##NAME), GIVEN_OFFSET};                   \
    static_assert(sizeof NAME##_rows / sizeof NAME##_rows[0] <= 64, "fields are noted in 64 bits");
#define X(NAME, FIELDS) MAP_TYPE(NAME, FIELDS, 0)
FIRST_MAPS(X)
JOB_MAPS(X)
LAST_MAPS(X)
#undef X
#define X(NAME, FIELDS, ...) MAP_TYPE(NAME, FIELDS, offsetof(struct msg_##NAME, given))
OPERATIONS(X)
#undef X

const struct map_type *const step_types[OPERATION_COUNT] = {
#define X(NAME, ...) &msg_##NAME##_type,
    OPERATIONS(X)
#undef X
};

static const struct method_row {
    const char *name;
    size_t size;
} method_rows[METHOD_COUNT] = {
#define X(HANDLER, METHOD, PARAMS, RESULT) {METHOD, sizeof METHOD - 1},
    METHODS(X)
#undef X
#define X(NAME, METHOD, PARAMS) {METHOD, sizeof METHOD - 1},
    NOTIFICATIONS(X)
#undef X
};
// clang-format on

const char *method_name(enum method method)
{
    return (size_t)method < METHOD_COUNT ? method_rows[method].name : "unknown";
}

enum method method_find(const char *name, size_t size)
{
    size_t i = 0;
    while (i < METHOD_COUNT && (method_rows[i].size != size || memcmp(method_rows[i].name, name, size) != 0))
        i++;
    return (enum method)i;
}

static const void *member(const void *from, size_t offset)
{
    return (const char *)from + offset;
}

static uint32_t count_get(const struct field *field, const void *from)
{
    uint32_t count;
    memcpy(&count, member(from, field->count_offset), sizeof count);
    assert(count <= field->max);
    return count;
}

/*
 * Encoding. Each function returns 0, or what encoded_write returned.
 */

/* Appends a piece; the packer calls this for each. */
static int encoded_write(void *context, const char *bytes, size_t size)
{
    struct encoded *out = context;
    if (size > out->capacity - out->size)
        return -EMSGSIZE;
    if (size == 1) /* as most pieces are */
        out->bytes[out->size] = (uint8_t)*bytes;
    else
        memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
    return 0;
}

/* Returns a packer for a single value. The compiler sees what it calls if it is made where it is used. */
static inline msgpack_packer packer_of(struct encoded *out)
{
    msgpack_packer packer;
    msgpack_packer_init(&packer, out, encoded_write);
    return packer;
}

/* X(the function's ending, type of the value, the library's function) */
#define PACKED(X)                         \
    X(u32, uint32_t, msgpack_pack_uint32) \
    X(u64, uint64_t, msgpack_pack_uint64) \
    X(i64, int64_t, msgpack_pack_int64)   \
    X(f64, double, msgpack_pack_double)   \
    X(array, size_t, msgpack_pack_array)  \
    X(pairs, size_t, msgpack_pack_map)
#define X(NAME, TYPE, PACK)                                \
    static int put_##NAME(struct encoded *out, TYPE value) \
    {                                                      \
        msgpack_packer packer = packer_of(out);            \
        return PACK(&packer, value);                       \
    }
PACKED(X)
#undef X

static int put_nil(struct encoded *out)
{
    msgpack_packer packer = packer_of(out);
    return msgpack_pack_nil(&packer);
}

static int put_name(struct encoded *out, const char *name, size_t size)
{
    msgpack_packer packer = packer_of(out);
    int code = msgpack_pack_str(&packer, size);
    return code ? code : msgpack_pack_str_body(&packer, name, size);
}

static int put_text(struct encoded *out, const char *text)
{
    return put_name(out, text, strlen(text));
}

static int put_bytes(struct encoded *out, const void *bytes, size_t size)
{
    msgpack_packer packer = packer_of(out);
    int code = msgpack_pack_bin(&packer, size);
    return code ? code : msgpack_pack_bin_body(&packer, bytes, size);
}

static int put_word(struct encoded *out, const struct words *words, uint32_t word)
{
    assert(word < words->count);
    return put_text(out, words->words[word]);
}

static int put_map(struct encoded *out, const struct map_type *type, const void *from);

static int put_step(struct encoded *out, const union msg_step *step)
{
    assert(step->operation < OPERATION_COUNT);
    return put_map(out, step_types[step->operation], step);
}

static int put_job(struct encoded *out, const struct msg_batch_job *job)
{
    return job->runs ? put_map(out, &msg_job_run_params_type, &job->run)
                     : put_map(out, &msg_job_submit_params_type, &job->submit);
}

static int put_item(struct encoded *out, const struct field *field, const void *items, uint32_t i)
{
    switch (field->kind) {
    case FIELD_U64S:
        return put_u64(out, ((const uint64_t *)items)[i]);
    case FIELD_I64S:
        return put_i64(out, ((const int64_t *)items)[i]);
    case FIELD_WORDS:
        return put_word(out, field->of, ((const uint32_t *)items)[i]);
    case FIELD_TEXTS:
        return put_text(out, ((const char(*)[LIMIT_NAME_BYTES])items)[i]);
    case FIELD_STEPS:
        return put_step(out, (const union msg_step *)items + i);
    case FIELD_JOBS:
        return put_job(out, (const struct msg_batch_job *)items + i);
    default:
        assert(field->kind == FIELD_MAPS || field->kind == FIELD_ITEMS);
        return put_map(out, field->of, member(items, i * ((const struct map_type *)field->of)->size_bytes));
    }
}

static int put_value(struct encoded *out, const struct field *field, const void *from)
{
    const void *value = member(from, field->offset);
    switch (field->kind) {
    case FIELD_U64:
        return put_u64(out, *(const uint64_t *)value);
    case FIELD_INDEX:
        return put_u64(out, *(const uint64_t *)value - 1);
    case FIELD_F64:
        return put_f64(out, *(const double *)value);
    case FIELD_TEXT:
    case FIELD_PROSE:
        return put_text(out, value);
    case FIELD_WORD:
        return put_word(out, field->of, *(const uint32_t *)value);
    case FIELD_BYTES:
        return put_bytes(out, value, count_get(field, from));
    case FIELD_MAP:
        return put_map(out, field->of, value);
    case FIELD_ITEMS:
        value = *(const void *const *)value;
        break;
    default:
        break;
    }
    uint32_t count = count_get(field, from);
    int code = put_array(out, count);
    for (uint32_t i = 0; i < count && !code; i++)
        code = put_item(out, field, value, i);
    return code;
}

/* True when all fields of a map are zero, also required ones. Bytes between and behind fields do not count, since a
 * struct filled by assignment leaves them as they are. */
static bool map_is_zero(const struct map_type *type, const void *from);

static bool field_is_zero(const struct field *field, const void *from)
{
    switch (field->kind) {
    case FIELD_U64:
    case FIELD_INDEX:
        return *(const uint64_t *)member(from, field->offset) == 0;
    case FIELD_F64:
        return *(const double *)member(from, field->offset) == 0;
    case FIELD_WORD:
        return *(const uint32_t *)member(from, field->offset) == 0;
    case FIELD_TEXT:
    case FIELD_PROSE:
        return *(const char *)member(from, field->offset) == '\0';
    case FIELD_MAP:
        return map_is_zero(field->of, member(from, field->offset));
    default:
        return count_get(field, from) == 0;
    }
}

static bool map_is_zero(const struct map_type *type, const void *from)
{
    for (size_t i = 0; i < type->field_count; i++)
        if (!field_is_zero(&type->fields[i], from))
            return false;
    return true;
}

static uint64_t given_fields(const struct map_type *type, const void *from)
{
    return type->given_offset ? *(const uint64_t *)member(from, type->given_offset) : 0;
}

/* Optional fields that are zero mean the same when they are left out, unless they are known to be given. */
static bool field_is_left_out(const struct map_type *type, size_t row, const void *from)
{
    const struct field *field = &type->fields[row];
    return !field->required && !(given_fields(type, from) >> row & 1) && field_is_zero(field, from);
}

/* Writes a map. The recursion is as deep as the maps of messages.h are nested. */
static int put_map(struct encoded *out, const struct map_type *type, const void *from)
{
    size_t count = 0;
    uint64_t there = 0; /* by field */
    for (size_t i = 0; i < type->field_count; i++) {
        const bool is_there = !field_is_left_out(type, i, from);
        there |= (uint64_t)is_there << i;
        count += is_there;
    }
    int code = put_pairs(out, count);
    for (size_t i = 0; i < type->field_count && !code; i++) {
        if (!(there >> i & 1))
            continue;
        code = put_name(out, type->fields[i].name, type->fields[i].name_size);
        if (!code)
            code = put_value(out, &type->fields[i], from);
    }
    return code;
}

/* Request and notification: method and params after the first elements. */
static int put_call(struct encoded *out, enum method method, const struct map_type *type, const void *params)
{
    int code = put_text(out, method_name(method));
    if (!code)
        code = put_array(out, 1);
    return code ? code : put_map(out, type, params);
}

static int put_head(struct encoded *out, size_t elements, enum message_kind kind)
{
    int code = put_array(out, elements);
    return code ? code : put_u32(out, kind);
}

/* Ends an encoding: back to where it began when it did not fit. */
static int encoded_end(struct encoded *out, size_t begin, int code)
{
    if (code)
        out->size = begin;
    return code ? -EMSGSIZE : 0;
}

int encode_request(struct encoded *out, uint32_t msgid, enum method method, const struct map_type *type,
                   const void *params)
{
    size_t begin = out->size;
    int code = put_head(out, 4, MESSAGE_REQUEST);
    if (!code)
        code = put_u32(out, msgid);
    if (!code)
        code = put_call(out, method, type, params);
    return encoded_end(out, begin, code);
}

/* One of the two maps is there, the other nil. */
static int encode_response(struct encoded *out, uint32_t msgid, bool failed, const struct map_type *type,
                           const void *map)
{
    size_t begin = out->size;
    int code = put_head(out, 4, MESSAGE_RESPONSE);
    if (!code)
        code = put_u32(out, msgid);
    if (!code && !failed)
        code = put_nil(out);
    if (!code)
        code = put_map(out, type, map);
    if (!code && failed)
        code = put_nil(out);
    return encoded_end(out, begin, code);
}

int encode_result(struct encoded *out, uint32_t msgid, const struct map_type *type, const void *result)
{
    return encode_response(out, msgid, false, type, result);
}

void error_to_failure(const struct error *error, struct msg_failure *failure)
{
    assert(error->code < 0);
    enum scand_status status = status_from_errno(error->code);
    const char *message = error->message[0] ? error->message : status_text(status);
    *failure = (struct msg_failure){.code = status, .retry_ms = error->retry_ms};
    snprintf(failure->name, sizeof failure->name, "%s", status_word(status));
    snprintf(failure->message, sizeof failure->message, "%s", message);
}

int encode_failure(struct encoded *out, uint32_t msgid, const struct error *error)
{
    struct msg_failure failure;
    error_to_failure(error, &failure);
    return encode_response(out, msgid, true, &msg_failure_type, &failure);
}

int encode_notification(struct encoded *out, enum method method, const struct map_type *type, const void *params)
{
    size_t begin = out->size;
    int code = put_head(out, 3, MESSAGE_NOTIFICATION);
    if (!code)
        code = put_call(out, method, type, params);
    return encoded_end(out, begin, code);
}

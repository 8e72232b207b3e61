/* Messages to bytes and back: round trips, golden bytes, and envelopes. test_fields.c has the fields. */
#include "protocol/encoding.h"

#include <errno.h>

#include "protocol/describe.h"
#include "tests/unit/bytes.h"

static uint8_t out_bytes[LIMIT_MESSAGE_BYTES];

static struct encoded room(void)
{
    return (struct encoded){out_bytes, 0, sizeof out_bytes};
}

static void check_bytes(const struct encoded *out, const void *expected, size_t size)
{
    CHECK_EQ(out->size, size);
    CHECK(out->size == size && memcmp(out->bytes, expected, size) == 0);
}

/*
 * Round trips.
 */

static void fill(const struct map_type *type, void *out, uint64_t *seed);

/* Fills a job of a batch. Jobs with steps are longer: a message has room for some only. */
static void fill_job(struct msg_batch_job *job, bool runs, uint64_t *seed)
{
    job->runs = runs;
    if (runs)
        fill(&msg_job_run_params_type, &job->run, seed);
    else
        fill(&msg_job_submit_params_type, &job->submit, seed);
}

static void fill_step(union msg_step *step, uint64_t *seed)
{
    uint32_t operation = (uint32_t)(random_next(seed) % OPERATION_COUNT);
    fill(step_types[operation], step, seed);
    step->operation = operation;
}

/* Fills every member of a struct with valid values, by its table. */
static void fill(const struct map_type *type, void *out, uint64_t *seed)
{
    for (size_t i = 0; i < type->field_count; i++) {
        const struct field *field = &type->fields[i];
        char *at = (char *)out + field->offset;
        const struct words *words = field->of;
        const struct map_type *inner = field->of;
        uint32_t count = (uint32_t)(1 + random_next(seed) % (field->max ? field->max : 1));
        switch (field->kind) {
        case FIELD_U64:
            *(uint64_t *)at = random_next(seed) >> random_next(seed) % 64;
            if (*(uint64_t *)at > field->max)
                *(uint64_t *)at = field->max;
            break;
        case FIELD_INDEX:
            *(uint64_t *)at = random_next(seed) % (field->max + 2);
            break;
        case FIELD_F64:
            *(double *)at = (double)(int64_t)random_next(seed) * 0x1p-40 + 0x1p-60;
            break;
        case FIELD_TEXT:
        case FIELD_PROSE:
            memset(at, 'a' + (int)(random_next(seed) % 26), random_next(seed) % (field->max + 1));
            break;
        case FIELD_WORD:
            *(uint32_t *)at = (uint32_t)(random_next(seed) % words->count);
            break;
        case FIELD_BYTES:
            memset(at, (int)random_next(seed), count);
            memcpy((char *)out + field->count_offset, &count, sizeof count);
            break;
        case FIELD_MAP:
            fill(inner, at, seed);
            break;
        case FIELD_ITEMS: /* what is sent from elsewhere is not read into it */
            break;
        default:
            for (uint32_t j = 0; j < count; j++) {
                if (field->kind == FIELD_U64S || field->kind == FIELD_I64S)
                    ((uint64_t *)at)[j] = random_next(seed) << random_next(seed) % 64 >> random_next(seed) % 64;
                else if (field->kind == FIELD_WORDS)
                    ((uint32_t *)at)[j] = (uint32_t)(random_next(seed) % words->count);
                else if (field->kind == FIELD_TEXTS)
                    memset(at + j * LIMIT_NAME_BYTES, 'a', random_next(seed) % LIMIT_NAME_BYTES);
                else if (field->kind == FIELD_STEPS)
                    fill_step((union msg_step *)at + j, seed);
                else if (field->kind == FIELD_JOBS)
                    fill_job((struct msg_batch_job *)(void *)at + j, j % 16 == 1, seed);
                else
                    fill(inner, at + j * inner->size_bytes, seed);
            }
            memcpy((char *)out + field->count_offset, &count, sizeof count);
        }
    }
    if (type->given_offset) { /* also what is 0 */
        const uint64_t given = UINT64_MAX >> (64 - type->field_count);
        memcpy((char *)out + type->given_offset, &given, sizeof given);
    }
}

static void check_round_trip(const struct encoded *out, const struct map_type *type, const void *sent,
                             const struct message *expected)
{
    struct message message;
    struct error error = {0};
    uint8_t *copy;
    static _Alignas(uint64_t) char got[131072];
    memset(got, 0, sizeof got);
    CHECK_EQ(open_copy(&message, out->bytes, out->size, &copy, &error), 0);
    CHECK_EQ(message.kind, expected->kind);
    CHECK_EQ(message.method, expected->method);
    CHECK_EQ(message.has_msgid, expected->has_msgid);
    CHECK_EQ(message.msgid, expected->msgid);
    CHECK_EQ(message.failed, false);
    CHECK_EQ(message_read(&message, type, got, &error), 0);
    CHECK(memcmp(got, sent, type->size_bytes) == 0);
    if (error.code)
        fprintf(stderr, "%s\n", error.message);
    message_close(&message);
    message_close(&message); /* twice is once */
    free(copy);
}

/* Reads a message in an arena that has had others, which the caller destroys. */
static void check_in_arena(struct arena **arena, const struct encoded *out, const struct map_type *type,
                           const void *sent)
{
    struct message message;
    struct error error = {0};
    static _Alignas(uint64_t) char got[131072];
    memset(got, 0, sizeof got);
    CHECK_EQ(message_open_in(&message, arena, out->bytes, out->size, &error), 0);
    CHECK_EQ(message_read(&message, type, got, &error), 0);
    CHECK(memcmp(got, sent, type->size_bytes) == 0);
    message_close(&message);
    message_close(&message); /* twice is once */
}

static void every_type_in_every_message(void)
{
    struct arena *arena = NULL;
    static const struct map_type *const types[] = {
#define X(NAME, ...) &msg_##NAME##_type,
        MAPS_LIST(X)
#undef X
    };
    uint64_t seed = random_seed();
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        for (int round = 0; round < 50; round++) {
            static _Alignas(uint64_t) char sent[131072];
            memset(sent, 0, sizeof sent);
            REQUIRE(types[i]->size_bytes <= sizeof sent);
            fill(types[i], sent, &seed);
            uint32_t msgid = (uint32_t)random_next(&seed);
            enum method method = random_next(&seed) % METHOD_COUNT;
            struct encoded out = room();
            CHECK_EQ(encode_request(&out, msgid, method, types[i], sent), 0);
            check_in_arena(&arena, &out, types[i], sent);
            check_round_trip(&out, types[i], sent,
                             &(struct message){MESSAGE_REQUEST, .msgid = msgid, .has_msgid = true, .method = method});
            out = room();
            CHECK_EQ(encode_result(&out, msgid, types[i], sent), 0);
            check_round_trip(
                &out, types[i], sent,
                &(struct message){MESSAGE_RESPONSE, .msgid = msgid, .has_msgid = true, .method = METHOD_COUNT});
            out = room();
            CHECK_EQ(encode_notification(&out, method, types[i], sent), 0);
            check_round_trip(&out, types[i], sent, &(struct message){MESSAGE_NOTIFICATION, .method = method});
        }
    }
    arena_destroy(arena);
}

static void failures_round_trip(void)
{
    struct error sent, got, error;
    error_set(&sent, -EAGAIN, "the queue is full");
    sent.retry_ms = 250;
    struct encoded out = room();
    CHECK_EQ(encode_failure(&out, 9, &sent), 0);
    struct message message;
    struct msg_failure failure;
    uint8_t *copy;
    REQUIRE(open_copy(&message, out.bytes, out.size, &copy, &error) == 0);
    CHECK_EQ(message.kind, MESSAGE_RESPONSE);
    CHECK_EQ(message.msgid, 9);
    CHECK(message.failed);
    REQUIRE(message_read(&message, &msg_failure_type, &failure, &error) == 0);
    CHECK_EQ(failure.code, SCAND_BUSY);
    CHECK(strcmp(failure.name, "busy") == 0);
    failure_to_error(&failure, &got);
    CHECK_EQ(got.code, -EAGAIN);
    CHECK_EQ(got.retry_ms, 250);
    CHECK(strcmp(got.message, "the queue is full") == 0);
    message_close(&message);
    free(copy);
    failure.retry_ms = UINT32_MAX; /* for which nobody is to sleep */
    failure_to_error(&failure, &got);
    CHECK_EQ(got.retry_ms, LIMIT_RETRY_MAX_MS);
    failure.code = 4711; /* of a later version */
    failure_to_error(&failure, &got);
    CHECK_EQ(got.code, -ENOTRECOVERABLE);
    failure.code = SCAND_OK; /* a failure is none */
    failure_to_error(&failure, &got);
    CHECK_EQ(got.code, -ENOTRECOVERABLE);
}

static void a_failure_without_words_gets_its_status_text(void)
{
    struct error sent = {.code = -ENOENT}, error;
    struct encoded out = room();
    CHECK_EQ(encode_failure(&out, 1, &sent), 0);
    struct message message;
    struct msg_failure failure;
    uint8_t *copy;
    REQUIRE(open_copy(&message, out.bytes, out.size, &copy, &error) == 0);
    CHECK_EQ(message_read(&message, &msg_failure_type, &failure, &error), 0);
    CHECK(strcmp(failure.message, status_text(SCAND_NOT_FOUND)) == 0);
    message_close(&message);
    free(copy);
}

/*
 * Golden bytes, which clients in other languages send and expect.
 */

// clang-format off
#define CHECK_BYTES(OUT, LITERAL) check_bytes(OUT, LITERAL, sizeof(LITERAL) - 1)

static void golden_hello(void)
{
    struct msg_hello_params params = {.version_min = 1, .version_max = 1, .client = "me"};
    struct encoded out = room();
    CHECK_EQ(encode_request(&out, 1, METHOD_hello, &msg_hello_params_type, &params), 0);
    CHECK_BYTES(&out, "\x94\x00\x01\xa5hello\x91\x83\xabversion_min\x01\xabversion_max\x01\xa6"
                      "client\xa2me");
}

static void golden_ping(void)
{
    struct encoded out = room();
    struct msg_nothing nothing;
    CHECK_EQ(encode_request(&out, 0xffffffff, METHOD_server_ping, &msg_nothing_type, &nothing), 0);
    CHECK_BYTES(&out, "\x94\x00\xce\xff\xff\xff\xff\xabserver.ping\x91\x80");
    out = room();
    CHECK_EQ(encode_result(&out, 300, &msg_nothing_type, &nothing), 0);
    CHECK_BYTES(&out, "\x94\x01\xcd\x01\x2c\xc0\x80");
}

static void golden_buffer_create(void)
{
    struct msg_buffer_create_params params = {.size = 400000000, .place = SCAND_PLACE_HOST};
    struct msg_buffer_create_result result = {.buffer = 1, .segment = 16777216, .fds = 24};
    struct encoded out = room();
    CHECK_EQ(encode_request(&out, 2, METHOD_buffer_create, &msg_buffer_create_params_type, &params), 0);
    CHECK_BYTES(&out, "\x94\x00\x02\xad"
                      "buffer.create\x91\x82\xa4size\xce\x17\xd7\x84\x00\xa5place\xa4host");
    out = room();
    CHECK_EQ(encode_result(&out, 2, &msg_buffer_create_result_type, &result), 0);
    CHECK_BYTES(&out, "\x94\x01\x02\xc0\x83\xa6"
                      "buffer\x01\xa7segment\xce\x01\x00\x00\x00\xa3"
                      "fds\x18");
}

static void golden_buffer_import_device(void)
{
    struct msg_buffer_import_device_params params = {.size = 5, .offset = 3, .handle = "\x00\xffx", .handle_count = 3};
    struct msg_buffer_export_result result = {.size = 5, .allocation = 7, .fds = 1};
    struct encoded out = room();
    CHECK_EQ(
        encode_request(&out, 2, METHOD_buffer_import_device, &msg_buffer_import_device_params_type, &params), 0);
    CHECK_BYTES(&out, "\x94\x00\x02\xb4"
                      "buffer.import_device\x91\x83\xa4size\x05\xa6offset\x03\xa6handle\xc4\x03\x00\xffx");
    out = room();
    CHECK_EQ(encode_result(&out, 2, &msg_buffer_export_result_type, &result), 0);
    CHECK_BYTES(&out, "\x94\x01\x02\xc0\x83\xa4size\x05\xaa"
                      "allocation\x07\xa3"
                      "fds\x01");
}

static void golden_progress_and_failure(void)
{
    struct msg_job_progress progress = {.job = 3, .rows_done = 5000, .rows = 10000};
    struct encoded out = room();
    CHECK_EQ(encode_notification(&out, METHOD_job_progress, &msg_job_progress_type, &progress), 0);
    CHECK_BYTES(&out, "\x93\x02\xacjob.progress\x91\x83\xa3job\x03\xa9rows_done\xcd\x13\x88\xa4rows\xcd\x27\x10");
    out = room();
    CHECK_EQ(encode_notification(&out, METHOD_job_ending, &msg_job_id_type, &(struct msg_job_id){.job = 3}), 0);
    CHECK_BYTES(&out, "\x93\x02\xaajob.ending\x91\x81\xa3job\x03");
    struct error error;
    error_set(&error, -ENOENT, "no");
    out = room();
    CHECK_EQ(encode_failure(&out, 4, &error), 0);
    CHECK_BYTES(&out, "\x94\x01\x04\x83\xa4"
                      "code\x06\xa4name\xa9not_found\xa7message\xa2no\xc0");
}

static const struct msg_job_submit_params submit = {
    .input = {1, 240, SCAND_DTYPE_F32, {100, 1000}, 2, {4240, 4}, 2},
    .output = {1, 240, SCAND_DTYPE_F64, {100, 1000}, 2, {-8000, 8}, 2},
    .axis = 1,
    .passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD},
    .passes_count = 2,
    .accumulator = SCAND_ACCUMULATOR_F2,
};

/* Defaults are left out: kind, op, intermediate, progress, demean, ending. */
static void golden_job_submit(void)
{
    struct encoded out = room();
    CHECK_EQ(encode_request(&out, 5, METHOD_job_submit, &msg_job_submit_params_type, &submit), 0);
    CHECK_BYTES(&out, "\x94\x00\x05\xaajob.submit\x91\x85"
                      "\xa5input\x85\xa6"
                      "buffer\x01\xa6offset\xcc\xf0\xa5"
                      "dtype\xa3"
                      "f32\xa5shape\x92\x64\xcd\x03\xe8\xa7strides\x92\xcd\x10\x90\x04"
                      "\xa6output\x85\xa6"
                      "buffer\x01\xa6offset\xcc\xf0\xa5"
                      "dtype\xa3"
                      "f64\xa5shape\x92\x64\xcd\x03\xe8\xa7strides\x92\xd1\xe0\xc0\x08"
                      "\xa4"
                      "axis\x01\xa6passes\x92\xa7"
                      "forward\xa8"
                      "backward\xab"
                      "accumulator\xa2"
                      "f2");
}

// clang-format on

/* Padding between the fields of a map, and behind the items of its lists, has no meaning. */
static void padding_is_no_value(void)
{
    uint8_t bytes[2][4096];
    struct encoded clean = {bytes[0], 0, sizeof bytes[0]}, soiled = {bytes[1], 0, sizeof bytes[1]};
    struct msg_job_submit_params params = submit;
    const size_t end = offsetof(struct msg_tensor, dtype) + sizeof params.offsets.dtype;
    CHECK(end < offsetof(struct msg_tensor, shape));
    memset((char *)&params.offsets + end, 0xa5, offsetof(struct msg_tensor, shape) - end);
    params.coefficients.shape[1] = 7;
    CHECK_EQ(encode_request(&clean, 5, METHOD_job_submit, &msg_job_submit_params_type, &submit), 0);
    CHECK_EQ(encode_request(&soiled, 5, METHOD_job_submit, &msg_job_submit_params_type, &params), 0);
    CHECK_EQ(soiled.size, clean.size);
    CHECK(memcmp(bytes[0], bytes[1], clean.size) == 0);
}

static void what_does_not_fit_leaves_nothing(void)
{
    uint8_t bytes[4096];
    struct encoded whole = {bytes, 0, sizeof bytes};
    CHECK_EQ(encode_request(&whole, 5, METHOD_job_submit, &msg_job_submit_params_type, &submit), 0);
    for (size_t capacity = 0; capacity < whole.size; capacity++) {
        uint8_t *small = malloc(capacity + 1);
        struct encoded out = {small, capacity > 3 ? 3 : 0, capacity}, before = out;
        int code = encode_request(&out, 5, METHOD_job_submit, &msg_job_submit_params_type, &submit);
        CHECK_EQ(code, -EMSGSIZE);
        CHECK_EQ(out.size, before.size);
        CHECK_EQ(encode_notification(&out, METHOD_job_submit, &msg_job_submit_params_type, &submit), -EMSGSIZE);
        free(small);
    }
    struct encoded twice = {bytes, whole.size, 2 * whole.size}; /* it appends, up to the last byte */
    CHECK_EQ(encode_request(&twice, 5, METHOD_job_submit, &msg_job_submit_params_type, &submit), 0);
    CHECK_EQ(twice.size, 2 * whole.size);
    CHECK(memcmp(bytes, bytes + whole.size, whole.size) == 0);
    struct encoded none = {bytes, 0, 3};
    CHECK_EQ(encode_result(&none, 1, &msg_job_submit_params_type, &submit), -EMSGSIZE);
    CHECK_EQ(encode_failure(&none, 1, &(struct error){.code = -EINVAL}), -EMSGSIZE);
    CHECK_EQ(none.size, 0);
}

/*
 * Envelopes.
 */

/* Checks that opening fails with these words; the msgid is known or not. */
static void check_malformed(const char *bytes, size_t size, bool has_msgid, const char *words)
{
    struct message message;
    struct error error = {0};
    uint8_t *copy;
    CHECK_EQ(open_copy(&message, (const uint8_t *)bytes, size, &copy, &error), -EBADMSG);
    CHECK_EQ(error.code, -EBADMSG);
    CHECK_CONTAINS(error.message, words);
    CHECK_EQ(message.has_msgid, has_msgid);
    CHECK(!has_msgid || message.msgid == 7);
    message_close(&message);
    free(copy);
}

#define MALFORMED(LITERAL, HAS_MSGID, WORDS) check_malformed(LITERAL, sizeof(LITERAL) - 1, HAS_MSGID, WORDS)

static void envelopes_are_checked(void)
{
    MALFORMED("\xc0", false, "not a list");
    MALFORMED("\x07", false, "not a list");
    MALFORMED("\xa1x", false, "not a list");
    MALFORMED("\x80", false, "not a list");
    MALFORMED("\x81\x00\x07", false, "not a list");
    MALFORMED("\x90", false, "not a list");
    MALFORMED("\x94\x03\x07\xa1x\x90", false, "its type is not");
    MALFORMED("\x94\xff\x07\xa1x\x90", false, "its type is not");
    MALFORMED("\x94\xc2\x07\xa1x\x90", false, "its type is not");
    MALFORMED("\x94\xcf\x00\x00\x00\x01\x00\x00\x00\x00\x07\xa1x\x90", false, "its type is not");
    MALFORMED("\x91\x00", false, "a request has four elements");
    MALFORMED("\x92\x00\x07", true, "a request has four elements");
    MALFORMED("\x93\x00\x07\xa1x", true, "a request has four elements");
    MALFORMED("\x95\x00\x07\xa1x\x90\x00", true, "a request has four elements");
    MALFORMED("\x94\x00\xff\xa1x\x90", false, "the msgid");
    MALFORMED("\x94\x00\xa1x\xa1x\x90", false, "the msgid");
    MALFORMED("\x94\x00\xca\x00\x00\x00\x00\xa1x\x90", false, "the msgid");
    MALFORMED("\x94\x00\xcf\x00\x00\x00\x01\x00\x00\x00\x07\xa1x\x90", false, "the msgid"); /* 7 in its low half */
    MALFORMED("\x94\x00\x07\x05\x90", true, "the method is not text");
    MALFORMED("\x94\x00\x07\xc4\x01x\x90", true, "the method is not text");
    MALFORMED("\x94\x00\x07\xa1x\xc0", true, "params are not a list of one map");
    MALFORMED("\x94\x00\x07\xa1x\x80", true, "params are not a list of one map");
    MALFORMED("\x94\x00\x07\xa1x\x91\xc0", true, "params are not a list of one map");
    MALFORMED("\x94\x00\x07\xa1x\x91\x90", true, "params are not a list of one map");
    MALFORMED("\x94\x00\x07\xa1x\x92\x80\x80", true, "params are not a list of one map");
    MALFORMED("\x94\x02\x07\xa1x\x90", false, "a notification has three elements");
    MALFORMED("\x92\x02\xa1x", false, "a notification has three elements");
    MALFORMED("\x93\x02\x07\x90", false, "the method is not text");
    MALFORMED("\x93\x02\xa1x\x07", false, "params are not");
    MALFORMED("\x93\x01\x07\xc0", true, "a response has four elements");
    MALFORMED("\x94\x01\x07\x80\x80", true, "both an error and a result");
    MALFORMED("\x94\x01\x07\xc0\xc0", true, "is no map");
    MALFORMED("\x94\x01\x07\xc0\x05", true, "is no map");
    MALFORMED("\x94\x01\x07\xa1x\xc0", true, "is no map");
}

static void bytes_that_are_not_one_object(void)
{
    struct message message;
    struct error error;
    CHECK_EQ(message_open(&message, (const uint8_t *)"\x90\x90", 2, &error), -EBADMSG);
    message_close(&message);
    CHECK_EQ(message_open(&message, (const uint8_t *)"\x92\x90", 2, &error), -EBADMSG);
    CHECK(!message.has_msgid);
    message_close(&message);
    CHECK_EQ(message_open(&message, (const uint8_t *)"\xc1", 1, NULL), -EBADMSG);
    message_close(&message);
    struct arena *arena = NULL;
    for (int i = 0; i < 2; i++) { /* what could not be read leaves the arena to the next message */
        CHECK_EQ(message_open_in(&message, &arena, (const uint8_t *)"\x92\x90", 2, &error), -EBADMSG);
        message_close(&message);
        CHECK_EQ(message_open_in(&message, &arena, (const uint8_t *)"\x93\x02\xa1x\x90", 5, &error), 0);
        message_close(&message);
    }
    arena_destroy(arena);
}

/* A message of as many objects as there may be, and shorter ones after it, in one arena. */
static void the_most_objects(void)
{
    static uint8_t bytes[LIMIT_MESSAGE_BYTES];
    static const char head[] = "\x94\x00\x07\xaajob.cancel\x91\x82\xa3job\x05\xa1x\xdc";
    const size_t begin = sizeof head - 1, items = sizeof bytes - begin - 2;
    struct arena *arena = NULL;
    memcpy(bytes, head, begin);
    bytes[begin] = (uint8_t)(items >> 8);
    bytes[begin + 1] = (uint8_t)items;
    for (int i = 0; i < 3; i++) {
        const bool is_long = i == 1;
        struct message message;
        struct error error;
        struct msg_job_id id = {0};
        REQUIRE(message_open_in(&message, &arena, is_long ? bytes : (const uint8_t *)"\x94\x00\x07\xa1x\x90",
                                is_long ? sizeof bytes : 6, &error) == 0);
        CHECK_EQ(message_read(&message, &msg_job_id_type, &id, &error), is_long ? 0 : -EINVAL);
        CHECK_EQ(id.job, is_long ? 5 : 0);
        message_close(&message);
    }
    arena_destroy(arena);
}

/* The first bytes of requests that the walk refuses. */
static void msgids_of_refused_requests(void)
{
    static const struct {
        const char *bytes;
        size_t size;
        bool found;
        uint32_t msgid;
    } cases[] = {
        {"\x94\x00\x07\xc7", 4, true, 7},
        {"\x94\x00\x7f", 3, true, 127},
        {"\x94\x00\xcc\xff", 4, true, 255},
        {"\x94\x00\xcd\x01\x02", 5, true, 258},
        {"\x94\x00\xce\xff\xfe\xfd\xfc", 7, true, 0xfffefdfc},
        {"\x94\x00\xce\xff\xfe\xfd", 6, false, 0},
        {"\x94\x00\xcc", 3, false, 0},
        {"\x94\x00", 2, false, 0},
        {"\x94", 1, false, 0},
        {"", 0, false, 0},
        {"\x94\x01\x07", 3, false, 0},
        {"\x93\x00\x07", 3, false, 0},
        {"\x94\x00\xff", 3, false, 0},
        {"\x94\x00\xcf\x00\x00\x00\x00\x00\x00\x00\x07", 11, false, 0},
        {"\x94\x00\xa1x", 4, false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t *copy = malloc(cases[i].size + 1);
        uint32_t msgid = 0;
        memcpy(copy, cases[i].bytes, cases[i].size);
        CHECK_EQ(message_find_msgid(copy, cases[i].size, &msgid), cases[i].found);
        CHECK_EQ(msgid, cases[i].msgid);
        free(copy);
    }
}

static void params_may_be_left_out(void)
{
    struct message message;
    struct error error;
    uint8_t *copy;
    struct msg_nothing nothing;
    REQUIRE(open_copy(&message, (const uint8_t *)"\x94\x00\x07\xabserver.ping\x90", 16, &copy, &error) == 0);
    CHECK_EQ(message.method, METHOD_server_ping);
    CHECK_EQ(message_read(&message, &msg_nothing_type, &nothing, &error), 0);
    struct msg_job_id id;
    CHECK_EQ(message_read(&message, &msg_job_id_type, &id, &error), -EINVAL);
    CHECK_CONTAINS(error.message, "server.ping: field \"job\" is missing");
    message_close(&message);
    free(copy);
}

/* An unknown method's name goes into an answer: it must be printable, and short. */
static void unknown_methods(void)
{
    struct message message;
    struct error error;
    uint8_t *copy;
    REQUIRE(open_copy(&message, (const uint8_t *)"\x94\x00\x07\xa6no\xff\"\nm\x90", 11, &copy, &error) == 0);
    CHECK_EQ(message.method, METHOD_COUNT);
    CHECK(strcmp(message.method_text, "no???m") == 0);
    message_close(&message);
    free(copy);
    struct bytes bytes = {.size = 0};
    char name[201];
    memset(name, 'n', 200);
    name[200] = '\0';
    PUT(&bytes, "\x94\x00\x07");
    put_str(&bytes, name);
    PUT(&bytes, "\x90");
    REQUIRE(open_copy(&message, bytes.bytes, bytes.size, &copy, &error) == 0);
    CHECK_EQ(message.method, METHOD_COUNT);
    CHECK_EQ(strlen(message.method_text), LIMIT_NAME_BYTES - 1);
    message_close(&message);
    free(copy);
    const char *const others[] = {"", "hell", "helloo", "Hello", "job.submit\n"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        bytes.size = 0;
        PUT(&bytes, "\x94\x00\x07");
        put_str(&bytes, others[i]);
        PUT(&bytes, "\x90");
        REQUIRE(open_copy(&message, bytes.bytes, bytes.size, &copy, &error) == 0);
        CHECK_EQ(message.method, METHOD_COUNT);
        message_close(&message);
        free(copy);
    }
}

static void methods_have_their_names(void)
{
    CHECK(strcmp(method_name(METHOD_hello), "hello") == 0);
    CHECK(strcmp(method_name(METHOD_job_submit), "job.submit") == 0);
    CHECK(strcmp(method_name(METHOD_job_progress), "job.progress") == 0);
    CHECK(strcmp(method_name(METHOD_COUNT), "unknown") == 0);
    for (size_t i = 0; i < METHOD_COUNT; i++)
        CHECK(method_name(i) && strlen(method_name(i)) < LIMIT_NAME_BYTES);
}

/* Whole numbers arrive as whole numbers, whatever they were sent as. */
static void whole_numbers_as_floating_ones(void)
{
    static const struct {
        const char *bytes;
        size_t size;
        double value;
    } list[] = {{"\x05", 1, 5}, {"\xfe", 1, -2}, {"\xca\x40\xa0\x00\x00", 5, 5}, {"\xcd\x01\x00", 3, 256}};
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        uint8_t whole[512];
        struct encoded out = {whole, 0, sizeof whole};
        struct msg_job_submit_params params = submit, got;
        struct message message;
        struct error error;
        params.coefficient = 1.5;
        REQUIRE(encode_request(&out, 5, METHOD_job_submit, &msg_job_submit_params_type, &params) == 0);
        uint8_t *number = memmem(whole, out.size, "\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00", 9), *copy;
        REQUIRE(number);
        memmove(number + list[i].size, number + 9, (size_t)(whole + out.size - (number + 9)));
        memcpy(number, list[i].bytes, list[i].size);
        REQUIRE(open_copy(&message, whole, out.size - 9 + list[i].size, &copy, &error) == 0);
        CHECK_EQ(message_read(&message, &msg_job_submit_params_type, &got, &error), 0);
        CHECK(got.coefficient == list[i].value);
        message_close(&message);
        free(copy);
    }
}

/* A response has no method to name. */
static void errors_in_responses(void)
{
    struct message message;
    struct error error;
    struct msg_buffer_id id;
    uint8_t *copy;
    REQUIRE(open_copy(&message, (const uint8_t *)"\x94\x01\x07\xc0\x80", 5, &copy, &error) == 0);
    CHECK_EQ(message_read(&message, &msg_buffer_id_type, &id, &error), -EINVAL);
    CHECK_CONTAINS(error.message, "response: field \"buffer\" is missing");
    CHECK_EQ(message_read(&message, &msg_buffer_id_type, &id, NULL), -EINVAL);
    message_close(&message);
    free(copy);
}

/* The largest batch fits a message, as libscand counts on. */
static void the_largest_batch_fits_a_message(void)
{
    static struct msg_job_batch_params batch;
    static uint8_t bytes[LIMIT_MESSAGE_BYTES];
    struct encoded out = {bytes, 0, sizeof bytes};
    struct msg_tensor tensor = {UINT64_MAX, UINT64_MAX, SCAND_DTYPE_IBM32, {0}, SCAND_RANK_MAX, {0}, SCAND_RANK_MAX};
    for (int i = 0; i < SCAND_RANK_MAX; i++) {
        tensor.shape[i] = UINT64_MAX;
        tensor.strides[i] = INT64_MIN;
    }
    struct msg_then_step step = {.passes = {SCAND_PASS_BACKWARD, SCAND_PASS_BACKWARD},
                                 .passes_count = SCAND_PASSES_MAX,
                                 .kind = SCAND_KIND_EXCLUSIVE,
                                 .op = SCAND_OPERATOR_AFFINE,
                                 .accumulator = SCAND_ACCUMULATOR_EXACT,
                                 .intermediate = SCAND_INTERMEDIATE_AUTO + 1,
                                 .demean = 1,
                                 .coefficient = 0.1};
    struct msg_job_submit_params job = {.input = tensor,
                                        .output = tensor,
                                        .axis = SCAND_RANK_MAX - 1,
                                        .passes = {SCAND_PASS_BACKWARD, SCAND_PASS_BACKWARD},
                                        .passes_count = SCAND_PASSES_MAX,
                                        .kind = SCAND_KIND_EXCLUSIVE,
                                        .op = SCAND_OPERATOR_AFFINE,
                                        .accumulator = SCAND_ACCUMULATOR_EXACT,
                                        .intermediate = SCAND_INTERMEDIATE_AUTO + 1,
                                        .progress = 1,
                                        .demean = 1,
                                        .offsets = tensor,
                                        .coefficient = 0.1,
                                        .coefficients = tensor,
                                        .operation = SCAND_OPERATION_REDUCE,
                                        .reduction = SCAND_REDUCTION_NORM,
                                        .priority = SCAND_PRIORITY_HIGH,
                                        .deadline_ms = LIMIT_DEADLINE_MS,
                                        .then_count = SCAND_STEPS_MAX,
                                        .ending = 1};
    memset(job.algorithm, 'a', sizeof job.algorithm - 1);
    for (int i = 0; i < SCAND_STEPS_MAX; i++)
        job.then[i] = step;
    batch.jobs_count = LIMIT_BATCH_JOBS;
    for (int i = 0; i < LIMIT_BATCH_JOBS; i++)
        batch.jobs[i].submit = job;
    CHECK_EQ(encode_request(&out, UINT32_MAX, METHOD_job_batch, &msg_job_batch_params_type, &batch), 0);
}

/* A list that is sent from where it lies is read item by item. */
static void items_are_read_one_by_one(void)
{
    static struct msg_hello_result sent, got;
    static struct msg_operation operations[OPERATION_COUNT], item;
    struct encoded out = room();
    struct message message;
    struct error error;
    uint8_t *copy;
    for (uint32_t i = 0; i < OPERATION_COUNT; i++)
        operation_describe(i, &operations[i]);
    sent.operations = operations;
    sent.operations_count = OPERATION_COUNT;
    REQUIRE(encode_result(&out, 1, &msg_hello_result_type, &sent) == 0);
    REQUIRE(open_copy(&message, out.bytes, out.size, &copy, &error) == 0);
    CHECK_EQ(message_read(&message, &msg_hello_result_type, &got, &error), 0);
    CHECK(!got.operations && got.operations_count == 0);
    for (uint32_t i = 0; i < OPERATION_COUNT; i++) {
        CHECK_EQ(message_read_item(&message, "operations", i, &msg_operation_type, &item, &error), 1);
        CHECK(memcmp(&item, &operations[i], sizeof item) == 0);
    }
    CHECK_EQ(message_read_item(&message, "operations", OPERATION_COUNT, &msg_operation_type, &item, &error), 0);
    CHECK_EQ(message_read_item(&message, "operation", 0, &msg_operation_type, &item, &error), 0);
    CHECK_EQ(message_read_item(&message, "operations", 0, &msg_tensor_type, &item, &error), -EINVAL);
    CHECK_CONTAINS(error.message, "response: field \"operations[0].buffer\" is missing");
    message_close(&message);
    free(copy);
}

/* The answer to hello, of a daemon with as many devices as there may be. */
static void hello_fits_a_message(void)
{
    static struct msg_hello_result hello;
    static struct msg_operation operations[OPERATION_COUNT];
    struct encoded out = room();
    fill(&msg_hello_result_type, &hello, &(uint64_t){1});
    for (hello.devices_count = 0; hello.devices_count < LIMIT_MAPS; hello.devices_count++) {
        struct msg_device *device = &hello.devices[hello.devices_count];
        memset(device, 0xff, sizeof *device);
        memset(device->name, 'a', sizeof device->name);
        memset(device->backend, 'a', sizeof device->backend);
        device->name[sizeof device->name - 1] = device->backend[sizeof device->backend - 1] = '\0';
    }
    for (uint32_t i = 0; i < OPERATION_COUNT; i++)
        operation_describe(i, &operations[i]);
    hello.operations = operations;
    hello.operations_count = OPERATION_COUNT;
    CHECK_EQ(encode_result(&out, UINT32_MAX, &msg_hello_result_type, &hello), 0);
}

/* The longest job, each of its steps with all that any operation takes. */
static void the_longest_job_fits_a_message(void)
{
    static struct msg_job_run_params job;
    uint64_t seed = random_seed();
    for (int round = 0; round < 50; round++) {
        struct encoded out = room();
        memset(&job, 0, sizeof job);
        fill(&msg_job_run_params_type, &job, &seed);
        for (job.steps_count = 0; job.steps_count < LIMIT_STEPS; job.steps_count++)
            fill_step(&job.steps[job.steps_count], &seed);
        CHECK_EQ(encode_request(&out, UINT32_MAX, METHOD_job_run, &msg_job_run_params_type, &job), 0);
    }
}

static const struct test tests[] = {
    TEST(every_type_in_every_message),
    TEST(failures_round_trip),
    TEST(a_failure_without_words_gets_its_status_text),
    TEST(golden_hello),
    TEST(golden_ping),
    TEST(golden_buffer_create),
    TEST(golden_buffer_import_device),
    TEST(golden_progress_and_failure),
    TEST(golden_job_submit),
    TEST(padding_is_no_value),
    TEST(what_does_not_fit_leaves_nothing),
    TEST(envelopes_are_checked),
    TEST(bytes_that_are_not_one_object),
    TEST(the_most_objects),
    TEST(msgids_of_refused_requests),
    TEST(params_may_be_left_out),
    TEST(unknown_methods),
    TEST(methods_have_their_names),
    TEST(whole_numbers_as_floating_ones),
    TEST(errors_in_responses),
    TEST(the_largest_batch_fits_a_message),
    TEST(items_are_read_one_by_one),
    TEST(hello_fits_a_message),
    TEST(the_longest_job_fits_a_message),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

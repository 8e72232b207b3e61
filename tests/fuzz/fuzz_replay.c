/*
 * Feeds the fuzz target without a fuzzer: the files named as arguments, or else random mutations of valid messages.
 *
 * TEST_SEED repeats a run; TEST_ROUNDS says how many mutations. An input that ends the program is left in
 * fuzz_crash.bin when the build has no sanitizer, and can be given as an argument.
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "protocol/codec.h"
#include "protocol/describe.h"
#include "tests/check.h"

#define ROUNDS 120000

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct input {
    uint8_t bytes[8192];
    size_t size;
};

static struct input inputs[2 * METHOD_COUNT + 11 + OPERATION_COUNT];
static size_t input_count;
static struct input current;

static void on_abort(int number)
{
    FILE *file = fopen("fuzz_crash.bin", "wb"); /* not safe in a handler, and better than nothing on the way out */
    if (file) {
        fwrite(current.bytes, 1, current.size, file);
        fclose(file);
    }
    signal(number, SIG_DFL);
    raise(number);
}

static void add(const struct encoded *out)
{
    inputs[input_count++].size = out->size;
}

static struct encoded next_room(void)
{
    return (struct encoded){inputs[input_count].bytes, 0, sizeof inputs[0].bytes};
}

static void add_submit(void)
{
    const struct msg_job_submit_params submit = {
        .input = {1, 240, SCAND_DTYPE_F32, {100, 1000, 7}, 3, {4240, 4, -40000}, 3},
        .output = {2, 0, SCAND_DTYPE_F64, {100, 1000, 7}, 3, {8000, 8, 800000}, 3},
        .axis = 1,
        .passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD},
        .passes_count = 2,
        .kind = SCAND_KIND_EXCLUSIVE,
        .accumulator = SCAND_ACCUMULATOR_F2,
        .intermediate = SCAND_INTERMEDIATE_F64,
        .progress = 1,
        .demean = 1,
        .algorithm = "kogge-stone",
        .then = {{.passes = {SCAND_PASS_BACKWARD}, .passes_count = 1, .op = SCAND_OPERATOR_AFFINE, .coefficient = 0.5}},
        .then_count = 1,
    };
    struct encoded out = next_room();
    encode_request(&out, 70000, METHOD_job_submit, &msg_job_submit_params_type, &submit);
    add(&out);
}

/* A job of one step, for each operation. */
static void add_runs(void)
{
    static const struct msg_tensor tensor = {1, 240, SCAND_DTYPE_F32, {100, 1000, 7}, 3, {4240, 4, -40000}, 3};
    for (uint32_t operation = 0; operation < OPERATION_COUNT; operation++) {
        struct msg_job_run_params run = {.input = tensor, .output = tensor, .axis = 1, .steps_count = 2};
        const struct map_type *type = step_types[operation];
        run.steps[0].operation = run.steps[1].operation = operation;
        for (size_t i = 1; i < type->field_count; i++)
            if (type->fields[i].kind == FIELD_MAP)
                memcpy((char *)&run.steps[1] + type->fields[i].offset, &tensor, sizeof tensor);
            else
                memset((char *)&run.steps[1] + type->fields[i].offset, 1, 1);
        struct encoded out = next_room();
        encode_request(&out, 9, METHOD_job_run, &msg_job_run_params_type, &run);
        add(&out);
    }
}

static void add_import_device(void)
{
    const struct msg_buffer_import_device_params params = {
        .size = 400, .offset = 512, .handle = {1, 2, 3}, .handle_count = SCAND_IPC_BYTES, .allocation = 1024, .fds = 1};
    struct encoded out = next_room();
    encode_request(&out, 5, METHOD_buffer_import_device, &msg_buffer_import_device_params_type, &params);
    add(&out);
}

static void add_hello(void)
{
    const struct msg_hello_params params = {1, 3, "somebody", 0};
    static struct msg_operation operation;
    operation_describe(OPERATION_scan, &operation);
    struct msg_hello_result result = {
        .version = 1, .server = "scand", .devices_count = 2, .operations = &operation, .operations_count = 1};
    strcpy(result.devices[0].name, "one");
    strcpy(result.devices[1].backend, "cpu");
    result.limits.row_samples = LIMIT_ROW_SAMPLES;
    struct encoded out = next_room();
    encode_request(&out, 1, METHOD_hello, &msg_hello_params_type, &params);
    add(&out);
    out = next_room();
    encode_result(&out, 1, &msg_hello_result_type, &result);
    add(&out);
}

static void add_batch(void)
{
    static const struct msg_job_batch_params params = {
        .jobs_count = 3, .jobs = {{.axis = 1, .passes_count = 1}, {.passes_count = 2}, {.deadline_ms = 5}}};
    static const struct msg_job_batch_result result = {
        .jobs_count = 2, .jobs = {{.times = {1, 2, 3, 4, 5}}, {.error = {.code = SCAND_BUSY, .retry_ms = 20}}}};
    const struct msg_job_id id = {.job = 6, .index = 3};
    struct encoded out = next_room();
    encode_request(&out, 6, METHOD_job_batch, &msg_job_batch_params_type, &params);
    add(&out);
    out = next_room();
    encode_result(&out, 6, &msg_job_batch_result_type, &result);
    add(&out);
    out = next_room();
    encode_request(&out, 7, METHOD_job_cancel, &msg_job_id_type, &id);
    add(&out);
}

/* Room for any of the structs. */
union any {
#define X(NAME, ...) struct msg_##NAME NAME;
    MAPS_LIST(X)
#undef X
};

/* Each method's params and result with every field zero, and a few that are full. */
static void inputs_make(void)
{
    static const union any zeros;
    struct encoded out;
#define X(HANDLER, METHOD, PARAMS, RESULT)                                     \
    out = next_room();                                                         \
    encode_request(&out, 200, METHOD_##HANDLER, &msg_##PARAMS##_type, &zeros); \
    add(&out);                                                                 \
    out = next_room();                                                         \
    encode_result(&out, 3, &msg_##RESULT##_type, &zeros);                      \
    add(&out);
    METHODS(X)
#undef X
    const struct error error = {.code = -EAGAIN, .retry_ms = 20, .message = "later"};
    const struct msg_job_progress progress = {.job = 5, .rows_done = 1000, .rows = 100000};
    out = next_room();
    encode_failure(&out, 4, &error);
    add(&out);
    out = next_room();
    encode_notification(&out, METHOD_job_progress, &msg_job_progress_type, &progress);
    add(&out);
    add_submit();
    add_runs();
    add_batch();
    add_import_device();
    add_hello();
}

/* A byte that means something in MessagePack more often than not. */
static uint8_t telling_byte(uint64_t *seed)
{
    static const uint8_t telling[] = {0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc4, 0xc6, 0xc7,
                                      0xca, 0xcb, 0xcc, 0xcf, 0xd3, 0xd4, 0xd8, 0xd9, 0xdb, 0xdc, 0xdd, 0xdf, 0xff};
    return random_next(seed) % 2 ? telling[random_next(seed) % sizeof telling] : (uint8_t)random_next(seed);
}

/* One change: a bit, a byte, bytes removed, bytes repeated, a piece of another message, or the end cut off. */
static void mutate(struct input *input, uint64_t *seed)
{
    size_t at = random_next(seed) % input->size, count = 1 + random_next(seed) % 16, rest = input->size - at;
    const struct input *other = &inputs[random_next(seed) % input_count];
    size_t from = random_next(seed) % other->size;
    count = count < rest ? count : rest;
    switch (random_next(seed) % 6) {
    case 0:
        input->bytes[at] ^= (uint8_t)(1u << random_next(seed) % 8);
        break;
    case 1:
        input->bytes[at] = telling_byte(seed);
        break;
    case 2:
        memmove(input->bytes + at, input->bytes + at + count, rest - count);
        input->size -= count;
        break;
    case 3:
        if (input->size + count > sizeof input->bytes)
            break;
        memmove(input->bytes + at + count, input->bytes + at, rest);
        input->size += count;
        break;
    case 4:
        count = count < other->size - from ? count : other->size - from;
        memcpy(input->bytes + at, other->bytes + from, count);
        break;
    default:
        input->size = random_next(seed) % 8 ? input->size : at;
    }
    if (input->size == 0)
        input->bytes[input->size++] = telling_byte(seed);
}

static void mutations_run(uint64_t seed, uint64_t rounds)
{
    for (uint64_t round = 0; round < rounds; round++) {
        current = inputs[random_next(&seed) % input_count];
        for (uint64_t changes = random_next(&seed) % 6; changes > 0; changes--)
            mutate(&current, &seed);
        LLVMFuzzerTestOneInput(current.bytes, current.size);
    }
}

static int file_run(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return 1;
    }
    current.size = fread(current.bytes, 1, sizeof current.bytes, file);
    fclose(file);
    LLVMFuzzerTestOneInput(current.bytes, current.size);
    printf("%s: %zu bytes, nothing wrong\n", path, current.size);
    return 0;
}

int main(int argc, char **argv)
{
    int code = 0;
    signal(SIGABRT, on_abort);
    signal(SIGSEGV, on_abort);
    for (int i = 1; i < argc; i++)
        code |= file_run(argv[i]);
    if (argc > 1)
        return code;
    const char *rounds = getenv("TEST_ROUNDS");
    inputs_make();
    mutations_run(random_seed(), rounds ? strtoull(rounds, NULL, 0) : ROUNDS);
    printf("%zu messages and their mutations, nothing wrong\n", input_count);
    return 0;
}

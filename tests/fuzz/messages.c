/*
 * Messages of every kind, for replay_message to begin with: made of the tables, so that a new message or operation is
 * among them.
 */
#include <errno.h>

#include "protocol/describe.h"
#include "protocol/encoding.h"
#include "tests/fuzz/replay.h"

static struct replay_input *next_input;

static struct encoded next_room(void)
{
    next_input = replay_add();
    return (struct encoded){next_input->bytes, 0, sizeof next_input->bytes};
}

static void add(const struct encoded *out)
{
    next_input->size = out->size;
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

static void add_import_file(void)
{
    const struct msg_buffer_import_file_params params = {.size = 40000000000, .fds = 1};
    struct encoded out = next_room();
    encode_request(&out, 8, METHOD_buffer_import_file, &msg_buffer_import_file_params_type, &params);
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
        .jobs_count = 3,
        .jobs = {{.submit = {.axis = 1, .passes_count = 1}},
                 {.runs = true,
                  .run = {.axis = 1, .steps_count = 1, .steps = {{.scan = {OPERATION_scan, .passes_count = 2}}}}},
                 {.submit = {.deadline_ms = 5}}}};
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
void replay_seed(void)
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
    add_import_file();
    add_hello();
}

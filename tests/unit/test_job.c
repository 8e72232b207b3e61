/* A job by itself: its plan, its chunks, its states, and which jobs must wait for which. */
#include "daemon/core/jobs/job.h"

#include <errno.h>

#include "kernels/order1/order.h"
#include "kernels/tutorial/scan/variants.h"
#include "tests/check.h"

static struct error error;

/* Two buffers of 4000 bytes whose memory nothing touches. */
static unsigned char memory[2][4000];
static struct buffer buffers[2];

static void buffers_begin(void)
{
    for (int i = 0; i < 2; i++) {
        struct span span = {SCAND_PLACE_HOST, memory[i], sizeof memory[i], sizeof memory[i], false, false};
        buffers[i] = (struct buffer){.span = span, .id = (uint64_t)i + 1, .holds = 1};
    }
}

static struct msg_tensor rows_of(uint64_t buffer, uint64_t rows, uint64_t length, uint64_t offset)
{
    return (struct msg_tensor){.buffer = buffer,
                               .offset = offset,
                               .shape = {rows, length},
                               .shape_count = 2,
                               .strides = {4 * (int64_t)length, 4},
                               .strides_count = 2};
}

static struct msg_job_submit_params scan_of(struct msg_tensor input, struct msg_tensor output)
{
    return (struct msg_job_submit_params){.input = input, .output = output, .axis = 1, .passes_count = 1};
}

static struct request request;
static struct msg_job_run_params run;

static int plan_in(struct job *job, const struct msg_job_submit_params *params, const struct job_chunks *chunks)
{
    buffers_begin();
    *job = (struct job){.arrived_us = 100};
    int r = request_init_submit(&request, params, &run, &error);
    for (uint32_t i = 0; i < request.operand_count && !r; i++)
        if (request.operands[i].tensor)
            job->operands[i].buffer = &buffers[request.operands[i].tensor->buffer - 1];
    return r ? r : job_plan(job, &request, chunks, &error);
}

static int plan(struct job *job, const struct msg_job_submit_params *params, uint64_t chunk_bytes)
{
    const struct job_chunks chunks = {.bytes = chunk_bytes};
    return plan_in(job, params, &chunks);
}

/* Returns a job of 10 rows of 100 samples, `rows_per_chunk` at a time. */
static struct job planned(uint64_t rows_per_chunk)
{
    struct job job;
    struct msg_job_submit_params params = scan_of(rows_of(1, 10, 100, 0), rows_of(2, 10, 100, 0));
    CHECK_EQ(plan(&job, &params, rows_per_chunk * 400), 0);
    CHECK_EQ(job.chunk_rows, rows_per_chunk);
    return job;
}

/*
 * Plans.
 */

static void plan_finds_the_addresses(void)
{
    struct job job;
    struct msg_job_submit_params params = scan_of(rows_of(1, 3, 10, 8), rows_of(2, 3, 10, 40));
    params.progress = 1;
    CHECK_EQ(plan(&job, &params, 4096), 0);
    CHECK(job.rows.input == memory[0] + 8);
    CHECK(job.rows.output == memory[1] + 40);
    const struct operand *input = &job.operands[OPERAND_INPUT], *output = &job.operands[OPERAND_OUTPUT];
    CHECK(input->buffer == &buffers[0] && output->buffer == &buffers[1]);
    CHECK(input->extent.begin == 8 && input->extent.end == 128);
    CHECK(output->extent.begin == 40 && output->extent.end == 160);
    CHECK(job.wants_progress);
    CHECK_EQ(job.state, JOB_QUEUED);
    CHECK_EQ(buffers[0].holds, 1);
}

static void plan_fills_chunks(void)
{
    struct job job;
    struct msg_job_submit_params params = scan_of(rows_of(1, 10, 30, 0), rows_of(2, 10, 30, 0));
    CHECK_EQ(plan(&job, &params, 359), 0);
    CHECK_EQ(job.chunk_rows, 2);
    CHECK_EQ(plan(&job, &params, 360), 0);
    CHECK_EQ(job.chunk_rows, 3);
    CHECK_EQ(plan(&job, &params, 1), 0); /* a row is never divided */
    CHECK_EQ(job.chunk_rows, 1);
    params.output.dtype = SCAND_DTYPE_F64;
    params.output.strides[0] = 240, params.output.strides[1] = 8;
    CHECK_EQ(plan(&job, &params, 720), 0);
    CHECK_EQ(job.chunk_rows, 2);
    params.input = params.output, params.input.buffer = 1, params.input.dtype = SCAND_DTYPE_F64;
    CHECK_EQ(plan(&job, &params, 720), 0); /* 240 bytes a row: one place serves both */
    CHECK_EQ(job.chunk_rows, 3);
    params.input.dtype = SCAND_DTYPE_F16;
    CHECK_EQ(plan(&job, &params, 720), 0); /* 60 and 240 */
    CHECK_EQ(job.chunk_rows, 2);
}

/* Samples count as they are computed: by passes, operators and steps, and however often one is read. */
static void plan_counts_work(void)
{
    const struct job_chunks chunks = {.bytes = 960, .long_bytes = KIB(16), .work_per_byte = 2};
    struct msg_job_submit_params params = scan_of(rows_of(1, 10, 30, 0), rows_of(2, 10, 30, 0));
    struct job *chain = malloc(sizeof *chain), job;
    REQUIRE(chain);
    params.passes_count = 2;
    params.accumulator = SCAND_ACCUMULATOR_F2;
    CHECK_EQ(plan_in(&job, &params, &chunks), 0);
    CHECK_EQ(job.chunk_rows, 8); /* 2 passes of 4 take as long as 4 bytes */
    params.then_count = 2;
    params.then[0] = params.then[1] = (struct msg_then_step){.passes_count = 2, .accumulator = SCAND_ACCUMULATOR_F2};
    CHECK_EQ(plan_in(chain, &params, &chunks), 0);
    CHECK_EQ(chain->sample_bytes, 12);
    CHECK_EQ(chain->chunk_rows, 2);
    job_destroy(NULL, chain);
    params.then_count = 0;
    params.op = SCAND_OPERATOR_AFFINE;
    params.coefficient = 0.5;
    CHECK_EQ(plan_in(&job, &params, &chunks), 0);
    CHECK_EQ(job.sample_bytes, 32);
    CHECK_EQ(job.chunk_rows, 1);
    CHECK(!job_next_is_long(&job));
}

/* Samples of which each has a line of the cache to itself count as what they take, where work does. */
static void plan_counts_lines(void)
{
    struct job_chunks chunks = {.bytes = KIB(4), .long_bytes = KIB(8), .work_per_byte = 2};
    struct msg_job_submit_params params = scan_of(rows_of(1, 3, 10, 0), rows_of(2, 3, 10, 0));
    struct job job;
    params.input.strides[0] = params.output.strides[0] = -1280;
    params.input.strides[1] = params.output.strides[1] = 128;
    params.input.offset = params.output.offset = 2560;
    CHECK_EQ(plan_in(&job, &params, &chunks), 0);
    CHECK_EQ(job.sample_bytes, 64);
    CHECK_EQ(job.chunk_rows, 6);
    params.input.strides[0] = params.output.strides[0] = 4; /* of a line other rows have a part */
    CHECK_EQ(plan_in(&job, &params, &chunks), 0);
    CHECK_EQ(job.sample_bytes, 4);
    params.input.strides[0] = params.output.strides[0] = -1280;
    chunks.work_per_byte = 0;
    CHECK_EQ(plan_in(&job, &params, &chunks), 0);
    CHECK_EQ(job.sample_bytes, 4);
}

/* A row that is shorter than a line of the cache, and shares it with no other, counts as the line. */
static void plan_counts_lines_of_short_rows(void)
{
    const struct job_chunks chunks = {.bytes = 256, .long_bytes = KIB(8), .work_per_byte = 2};
    const uint64_t lengths[] = {1, 3, 16};
    for (int i = 0; i < 3; i++) {
        struct msg_job_submit_params params = scan_of(rows_of(1, 10, lengths[i], 0), rows_of(2, 10, lengths[i], 0));
        struct job job;
        params.input.strides[0] = params.output.strides[0] = 256;
        CHECK_EQ(plan_in(&job, &params, &chunks), 0);
        CHECK_EQ(job_bytes(&job, 0, 10), 640);
        CHECK_EQ(job.chunk_rows, 4);
        params.input.strides[0] = 60; /* of its line another row has a part */
        CHECK_EQ(plan_in(&job, &params, &chunks), 0);
        CHECK_EQ(job_bytes(&job, 0, 10), 40 * lengths[i]);
    }
}

/* Plans a triangle of half-width 2,048 in place of the request's step. */
static void plan_triangle(struct job *job, const struct msg_job_submit_params *params, const struct job_chunks *chunks)
{
    CHECK_EQ(plan_in(job, params, chunks), 0);
    run.steps[0].triangle = (struct msg_triangle){.operation = OPERATION_triangle, .half_width = 2048};
    CHECK_EQ(request_init(&request, &run, &run, &error), 0);
    CHECK_EQ(job_plan(job, &request, chunks, &error), 0);
}

/* Rows count as they are computed, however few samples they have: a number is made of each, a step in tiles begins with
 * each, and a triangle sums at least three segments. */
static void plan_counts_short_rows(void)
{
    struct job_chunks chunks = {.bytes = KIB(64), .long_bytes = KIB(128), .work_per_byte = 2};
    struct msg_job_submit_params params = scan_of(rows_of(1, 900, 1, 0), rows_of(2, 900, 1, 0));
    struct job job;
    CHECK_EQ(plan_in(&job, &params, &chunks), 0);
    CHECK_EQ(job_bytes(&job, 0, 900), 3600);
    params.operation = SCAND_OPERATION_REDUCE;
    params.reduction = SCAND_REDUCTION_SUM;
    params.passes_count = 0;
    CHECK_EQ(plan_in(&job, &params, &chunks), 0);
    CHECK(job.chunk_rows > 100 && job.chunk_rows < 500);
    CHECK(!job_is_small(&job, KIB(64), true));
    run.steps[0].demean = (struct msg_demean){.operation = OPERATION_demean};
    CHECK_EQ(request_init(&request, &run, &run, &error), 0);
    CHECK_EQ(job_plan(&job, &request, &chunks, &error), 0);
    CHECK(job.row_bytes > 20 && job.row_bytes < 200); /* some 30 ns */
    plan_triangle(&job, &params, &chunks);
    CHECK(job.chunk_rows > 5 && job.chunk_rows < 20);
    CHECK(job_bytes(&job, 0, 900) > 900 * 3 * 2048);
}

/* On a GPU only what steps in tiles take for a row counts besides its bytes. */
static void plan_counts_rows_in_tiles(void)
{
    struct job_chunks chunks = {.bytes = KIB(64), .long_bytes = KIB(128)};
    struct msg_job_submit_params params = scan_of(rows_of(1, 900, 1, 0), rows_of(2, 900, 1, 0));
    struct job job;
    params.operation = SCAND_OPERATION_REDUCE;
    params.reduction = SCAND_REDUCTION_SUM;
    params.passes_count = 0;
    plan_triangle(&job, &params, &chunks);
    CHECK_EQ(job_bytes(&job, 0, 900), 900 * 8);
    chunks.row_work = 4 * chunks.bytes;
    plan_triangle(&job, &params, &chunks);
    CHECK_EQ(job_bytes(&job, 0, 900), 900 * (8 + (6 * 2048 + 256) / 4));
    chunks.bytes *= 64; /* larger chunks have no more of it */
    plan_triangle(&job, &params, &chunks);
    CHECK_EQ(job.chunk_rows, 20);
    CHECK_EQ(plan_in(&job, &params, &chunks), 0);
    CHECK_EQ(job.row_bytes, 0);
}

/* Rows that are ragged, and those of affine scans, trapezoids and scans without means, are begun one by one, in each
 * step, and that takes longer in f2. */
static void plan_counts_rows_one_by_one(void)
{
    struct job_chunks chunks = {.bytes = KIB(64), .long_bytes = KIB(128), .work_per_byte = 2};
    const struct msg_tensor line = {.buffer = 1, .shape = {100}, .shape_count = 1, .strides = {4}, .strides_count = 1};
    struct msg_job_submit_params params = {.input = line, .output = line, .passes_count = 1, .offsets = line};
    struct job job;
    params.offsets.buffer = 2;
    params.offsets.dtype = SCAND_DTYPE_U32;
    CHECK_EQ(plan_in(&job, &params, &chunks), 0);
    CHECK(job.row_bytes > 200 && job.row_bytes < 500);
    const uint64_t least = job.row_bytes;
    params.passes_count = 2;
    params.accumulator = SCAND_ACCUMULATOR_F2;
    CHECK_EQ(plan_in(&job, &params, &chunks), 0);
    CHECK(job.row_bytes > 2 * least && job.row_bytes < 5 * least);
    params = scan_of(rows_of(1, 10, 1, 0), rows_of(2, 10, 1, 0));
    params.accumulator = SCAND_ACCUMULATOR_F2;
    CHECK_EQ(plan_in(&job, &params, &chunks), 0);
    CHECK_EQ(job.row_bytes, 0);
    params.demean = 1;
    CHECK_EQ(plan_in(&job, &params, &chunks), 0);
    CHECK(job.row_bytes > least);
    params.demean = 0;
    params.kind = SCAND_KIND_TRAPEZOID;
    CHECK_EQ(plan_in(&job, &params, &chunks), 0);
    CHECK(job.row_bytes > least);
    params.kind = SCAND_KIND_INCLUSIVE;
    params.op = SCAND_OPERATOR_AFFINE;
    params.coefficient = 0.5;
    CHECK_EQ(plan_in(&job, &params, &chunks), 0);
    CHECK(job.row_bytes > 8 * least && job.row_bytes < 20 * least);
    chunks.work_per_byte = 0;
    CHECK_EQ(plan_in(&job, &params, &chunks), 0);
    CHECK_EQ(job.row_bytes, 0);
}

static void plan_counts_samples_that_are_one(void)
{
    const struct job_chunks chunks = {.bytes = 960, .long_bytes = 1920, .work_per_byte = 2};
    struct msg_job_submit_params params = scan_of(rows_of(1, 2, 1000, 0), rows_of(2, 2, 1, 0));
    struct job job;
    params.input.strides[0] = params.input.strides[1] = 0;
    params.operation = SCAND_OPERATION_REDUCE;
    params.reduction = SCAND_REDUCTION_SUM;
    params.passes_count = 0;
    CHECK_EQ(plan_in(&job, &params, &chunks), 0);
    CHECK_EQ(job.chunk_rows, 1);
    CHECK(job_next_is_long(&job));
    CHECK(!job_is_small(&job, 4000, true));
}

static const char *refused(const struct msg_job_submit_params *params)
{
    struct job job;
    error.message[0] = '\0';
    CHECK_EQ(plan(&job, params, 4096), -EINVAL);
    return error.message;
}

static void plan_refuses(void)
{
    struct msg_job_submit_params good = scan_of(rows_of(1, 10, 100, 0), rows_of(2, 10, 100, 0)), bad = good;
    bad.axis = 2;
    CHECK_CONTAINS(refused(&bad), "\"axis\" is 2");
    bad = good, bad.input.offset = 1;
    CHECK_CONTAINS(refused(&bad), "\"input\" ends at byte 4001, but its buffer has 4000");
    bad = good, bad.output.offset = UINT64_MAX;
    CHECK_CONTAINS(refused(&bad), "\"output\" reaches past 2^63 bytes");
    bad = good, bad.output.strides[0] = 396;
    CHECK_CONTAINS(refused(&bad), "elements of \"output\" overlap: a stride of 396");
    bad = good, bad.input.strides[0] = bad.input.strides[1] = INT64_MIN;
    CHECK_CONTAINS(refused(&bad), "\"input\" reaches past 2^63 bytes");
}

static void plan_compares_input_and_output(void)
{
    struct job job;
    struct msg_job_submit_params in_place = scan_of(rows_of(1, 5, 100, 0), rows_of(1, 5, 100, 0)), params = in_place;
    CHECK_EQ(plan(&job, &params, 4096), 0);
    params.output.offset = 1996;
    CHECK_CONTAINS(refused(&params),
                   "\"input\" (bytes 0 to 2000) and \"output\" (bytes 1996 to 3996) of buffer 1 overlap");
    params.output.offset = 2000;
    CHECK_EQ(plan(&job, &params, 4096), 0);
    params.input.offset = 2000, params.output.offset = 0;
    CHECK_EQ(plan(&job, &params, 4096), 0);
    params = scan_of(rows_of(1, 5, 100, 0), rows_of(1, 5, 100, 0));
    params.output.strides[0] = 404;
    CHECK_CONTAINS(refused(&params), "overlap; make them the same elements, of dtypes of one size, or keep them apart");
    params = scan_of(rows_of(1, 5, 100, 0), rows_of(1, 5, 100, 0));
    params.output.dtype = SCAND_DTYPE_F64, params.output.strides[0] = 800, params.output.strides[1] = 8;
    CHECK_CONTAINS(refused(&params), "dtypes of one size");
    params.input = params.output, params.output.dtype = SCAND_DTYPE_F32; /* every other word of f64 input */
    params.input.dtype = SCAND_DTYPE_F64;
    CHECK_CONTAINS(refused(&params), "dtypes of one size");
    params = scan_of(rows_of(1, 5, 100, 0), rows_of(1, 5, 100, 0));
    params.input.dtype = SCAND_DTYPE_IBM32;
    CHECK_EQ(plan(&job, &params, 4096), 0);
    params.input = rows_of(1, 5, 100, 0), params.input.strides[0] = 0; /* the input alone may repeat a row */
    params.output = rows_of(2, 5, 100, 0);
    CHECK_EQ(plan(&job, &params, 4096), 0);
}

/* Whatever else such a job says: nothing of it is ever touched. */
/* Coefficients may be the input, but not what is written. */
static void plan_with_coefficients(void)
{
    struct msg_job_submit_params params = scan_of(rows_of(1, 5, 100, 0), rows_of(2, 5, 100, 0));
    struct job job;
    params.op = SCAND_OPERATOR_AFFINE;
    params.coefficients = rows_of(1, 5, 100, 0);
    CHECK_EQ(plan(&job, &params, 4 * 800), 0);
    CHECK(job.rows.coefficients == memory[0]);
    CHECK_EQ(job.chunk_rows, 4); /* of 400 bytes of samples and as many of coefficients */
    params.coefficients.buffer = 2;
    params.coefficients.offset = 1996;
    CHECK_EQ(plan(&job, &params, 1000), -EINVAL);
    CHECK_CONTAINS(error.message, "\"coefficients\" (bytes 1996 to 3996) and \"output\" (bytes 0 to 2000) of buffer 2 "
                                  "overlap; keep them apart");
    params.coefficients.offset = 2000;
    CHECK_EQ(plan(&job, &params, 1000), 0);
    CHECK(job.rows.coefficients == memory[1] + 2000);
    params.coefficients.offset = 2004;
    CHECK_EQ(plan(&job, &params, 1000), -EINVAL);
    CHECK_CONTAINS(error.message, "\"coefficients\" ends at byte 4004");
}

/* A chunk brings the job's further scans along. */
static void plan_with_steps(void)
{
    struct msg_job_submit_params params = scan_of(rows_of(1, 10, 100, 0), rows_of(2, 10, 100, 0));
    struct job *job = malloc(sizeof *job);
    struct chunk chunk;
    REQUIRE(job);
    params.then_count = 2;
    params.then[0] = (struct msg_then_step){.passes = {SCAND_PASS_BACKWARD}, .passes_count = 1};
    params.then[1] =
        (struct msg_then_step){.passes = {SCAND_PASS_FORWARD}, .passes_count = 1, .op = SCAND_OPERATOR_MAX};
    CHECK_EQ(plan(job, &params, 800), 0);
    job_next_chunk(job, &chunk, 0);
    CHECK(chunk.step_count == 3 && chunk.steps == job->steps);
    CHECK(chunk.steps[1].rule.passes[0] == SCAND_PASS_BACKWARD && chunk.steps[2].rule.op == SCAND_OPERATOR_MAX);
    struct scan_rows then = rows_then(chunk.rows, &chunk.steps[2].rule);
    CHECK(then.input == memory[1] && then.output == memory[1] && then.rule.op == SCAND_OPERATOR_MAX);
    CHECK(then.input_stride == 4 && then.input_outer_strides[0] == 400 && then.row_count == 10);
    job_destroy(NULL, job);
}

static void plan_refuses_a_step(void)
{
    struct msg_job_submit_params params = scan_of(rows_of(1, 10, 100, 0), rows_of(2, 10, 100, 0));
    struct job *job = malloc(sizeof *job);
    REQUIRE(job);
    params.then_count = 2;
    params.then[0].passes_count = params.then[1].passes_count = 1;
    params.then[1].coefficient = 1;
    CHECK_EQ(plan(job, &params, 800), -EINVAL);
    CHECK_CONTAINS(error.message, "\"then[1].coefficient\" is for");
    job_destroy(NULL, job);
}

/* A device has memory for the values between the steps of one chunk, so such chunks are bounded, however large others
 * may be. */
static void plan_bounds_values_between_steps(void)
{
    const uint64_t rows = UINT64_C(1) << 20;
    const struct job_chunks chunks = {.bytes = GIB(1)};
    struct msg_job_run_params params = {
        .input = rows_of(1, rows, 100, 0), .output = rows_of(2, rows, 100, 0), .axis = 1};
    struct job *job = calloc(1, sizeof *job);
    REQUIRE(job);
    params.steps[0].scan = (struct msg_scan){.operation = OPERATION_scan, .passes_count = 1};
    params.steps[1].map = (struct msg_map){.operation = OPERATION_map, .op = MAP_NEG};
    for (params.steps_count = 1; params.steps_count <= 2; params.steps_count++) {
        buffers_begin();
        buffers[0].span.size_bytes = buffers[1].span.size_bytes = GIB(1);
        REQUIRE(request_init(&request, &params, &run, &error) == 0);
        job->operands[OPERAND_INPUT].buffer = &buffers[0];
        job->operands[OPERAND_OUTPUT].buffer = &buffers[1];
        CHECK_EQ(job_plan(job, &request, &chunks, &error), 0);
        const uint64_t bytes = job->chunk_rows * 100 * sizeof(float);
        CHECK(params.steps_count == 1 ? bytes > LIMIT_BETWEEN_CHUNK_BYTES : bytes <= LIMIT_BETWEEN_CHUNK_BYTES);
    }
    job_destroy(NULL, job);
}

static void plan_of_nothing(void)
{
    struct job job;
    struct msg_job_submit_params params = scan_of(rows_of(1, 0, 100, UINT64_MAX), rows_of(1, 0, 100, UINT64_MAX / 2));
    params.input.strides[0] = INT64_MIN;
    CHECK_EQ(plan(&job, &params, 4096), 0);
    CHECK(!job_has_rows(&job));
    CHECK(!job.rows.input && !job.rows.output);
    params = scan_of(rows_of(1, 100, 0, 0), rows_of(2, 100, 0, 4000));
    CHECK_EQ(plan(&job, &params, 4096), 0);
    CHECK(!job_has_rows(&job));
}

/*
 * Chunks and states.
 */

/* A small job has as many bytes as the device says, and rows of an order block, or less. */
static void what_is_small(void)
{
    struct job job = planned(10);
    CHECK(job_is_small(&job, 4000, false) && !job_is_small(&job, 3999, false));
    job.rows.length = ORDER_BLOCK;
    CHECK(job_is_small(&job, UINT64_MAX, false));
    job.rows.length = ORDER_BLOCK + 1;
    CHECK(!job_is_small(&job, UINT64_MAX, false));
}

static void chunks_cover_the_rows_once(void)
{
    struct job job = planned(4);
    struct chunk chunks[3];
    const uint64_t firsts[] = {0, 4, 8}, counts[] = {4, 4, 2};
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(job.state, i ? JOB_RUNNING : JOB_QUEUED);
        CHECK(job_has_rows(&job));
        job_next_chunk(&job, &chunks[i], 150 + (uint64_t)i);
        CHECK_EQ(chunks[i].first, firsts[i]);
        CHECK_EQ(chunks[i].count, counts[i]);
        CHECK(chunks[i].rows == &job.rows && chunks[i].owner == &job);
        CHECK(chunks[i].spans[OPERAND_INPUT].base == memory[0] && chunks[i].spans[OPERAND_OUTPUT].base == memory[1]);
    }
    CHECK_EQ(job.state, JOB_ENDING);
    CHECK(!job_has_rows(&job));
    CHECK_EQ(job.times.queued_us, 50);
    CHECK_EQ(job.started_us, 150);
    for (int i = 2; i >= 0; i--) {
        chunks[i].upload_us = 1, chunks[i].kernel_us = 2, chunks[i].download_us = 3;
        CHECK_EQ(job_return(&job, &chunks[i]), i == 0);
    }
    CHECK_EQ(job.state, JOB_ENDED);
    CHECK_EQ(job.outcome.code, 0);
    CHECK_EQ(job.rows_done, 10);
    CHECK_EQ(job.times.upload_us, 3);
    CHECK_EQ(job.times.kernel_us, 6);
    CHECK_EQ(job.times.download_us, 9);
}

static void first_failure_is_the_outcome(void)
{
    struct job job = planned(4);
    struct chunk chunks[2];
    job_next_chunk(&job, &chunks[0], 150);
    job_next_chunk(&job, &chunks[1], 150);
    chunks[1].status = -EIO;
    CHECK(!job_return(&job, &chunks[1]));
    CHECK_EQ(job.state, JOB_ENDING);
    CHECK(!job_has_rows(&job));
    chunks[0].status = -EOWNERDEAD;
    CHECK(job_return(&job, &chunks[0]));
    CHECK_EQ(job.outcome.code, -EIO);
    CHECK_CONTAINS(job.outcome.message, "the device failed on rows 4 to 7; the output is incomplete");
    CHECK_EQ(job.rows_done, 0);
}

/* A rule that a device cannot do is named in the job's own terms. */
static void failure_of_a_rule(void)
{
    struct job job = planned(10);
    struct chunk chunk;
    job.steps[0].rule.op = SCAND_OPERATOR_MAX;
    job_next_chunk(&job, &chunk, 150);
    chunk.status = -EOPNOTSUPP;
    CHECK(job_return(&job, &chunk));
    CHECK_EQ(job.outcome.code, -EOPNOTSUPP);
    CHECK_CONTAINS(job.outcome.message, "device cannot do this scan");
    CHECK_CONTAINS(job.outcome.message, "\"op\" is \"max\", \"kind\" \"inclusive\", \"input.dtype\" \"f32\"");
}

/* A failure for want of pinned memory that shows only after some rows leaves an output that is no longer what it was.
 */
static void failure_for_want_of_pinned_memory(void)
{
    for (int done = 0; done < 2; done++) {
        struct job job = planned(4);
        struct chunk chunk;
        for (int i = 0; i <= done; i++) {
            job_next_chunk(&job, &chunk, 150);
            chunk.status = i < done ? 0 : -EFAULT;
            CHECK_EQ(job_return(&job, &chunk), i == done);
        }
        CHECK_EQ(job.outcome.code, -EOPNOTSUPP);
        CHECK_CONTAINS(job.outcome.message, "could not be pinned");
        CHECK_EQ(strstr(job.outcome.message, "use buffer.create; some of it was") != NULL, done);
    }
}

/* A refused algorithm's message says which daemon can run it. */
static void failure_of_an_algorithm(void)
{
    static const char *const lists[][2] = {{"serial-cpu", "--device cpu can"}, {"warp-v0", "--device cuda can"}};
    for (size_t i = 0; i < 2; i++) {
        struct job job = planned(10);
        struct chunk chunk;
        job.steps[0].rule.algorithm = (uint32_t)variant_find(lists[i][0]) + 1;
        job_next_chunk(&job, &chunk, 150);
        chunk.status = -EOPNOTSUPP;
        CHECK(job_return(&job, &chunk));
        CHECK_EQ(job.outcome.code, -EOPNOTSUPP);
        CHECK_CONTAINS(job.outcome.message, lists[i][0]);
        CHECK_CONTAINS(job.outcome.message, lists[i][1]);
    }
}

static void failure_of_the_last_chunk(void)
{
    struct job job = planned(10);
    struct chunk chunk;
    job_next_chunk(&job, &chunk, 150);
    chunk.status = -EIO;
    CHECK(job_return(&job, &chunk));
    CHECK_EQ(job.outcome.code, -EIO);
}

static void stop_while_queued(void)
{
    struct job job = planned(4);
    CHECK(job_stop(&job, -ECANCELED, "100%s"));
    CHECK_EQ(job.state, JOB_ENDED);
    CHECK_CONTAINS(job.outcome.message, "100%s"); /* a text, not a format */
    CHECK(!job_has_rows(&job));
    CHECK(job_stop(&job, -EIO, "again"));
    CHECK_EQ(job.outcome.code, -ECANCELED);
}

static void stop_while_running(void)
{
    struct job job = planned(4);
    struct chunk chunk;
    job_next_chunk(&job, &chunk, 150);
    CHECK(!job_stop(&job, -ECANCELED, "stop"));
    CHECK_EQ(job.state, JOB_ENDING);
    CHECK(!job_has_rows(&job));
    CHECK(!job_stop(&job, -EIO, "again"));
    chunk.status = 0;
    CHECK(job_return(&job, &chunk));
    CHECK_EQ(job.outcome.code, -ECANCELED);
    CHECK_EQ(job.rows_done, 4);
}

static void stop_between_chunks(void)
{
    struct job job = planned(4);
    struct chunk chunk;
    job_next_chunk(&job, &chunk, 150);
    CHECK(!job_return(&job, &chunk));
    CHECK_EQ(job.state, JOB_RUNNING);
    CHECK(job_stop(&job, -ECANCELED, "stop"));
    CHECK_EQ(job.state, JOB_ENDED);
}

/*
 * Conflicts.
 */

static struct job job_on(struct msg_tensor input, struct msg_tensor output)
{
    struct job job;
    struct msg_job_submit_params params = scan_of(input, output);
    CHECK_EQ(plan(&job, &params, 4096), 0);
    job_find_reach(&job);
    return job;
}

static void conflicts(void)
{
    struct msg_tensor low = rows_of(1, 1, 100, 0), high = rows_of(1, 1, 100, 400), across = rows_of(1, 1, 2, 396);
    struct msg_tensor low2 = rows_of(2, 1, 100, 0), high2 = rows_of(2, 1, 100, 400), small2 = rows_of(2, 1, 2, 800);
    struct job earlier = job_on(low, low2), other = job_on(high, high2), reader = job_on(low, high2);
    CHECK(!job_conflicts(&other, &earlier));
    CHECK(!job_conflicts(&reader, &earlier)); /* reading the same is no conflict */
    struct job writes_what_it_reads = job_on(rows_of(2, 1, 2, 2000), across);
    CHECK(job_conflicts(&writes_what_it_reads, &earlier));
    CHECK(job_conflicts(&earlier, &writes_what_it_reads));
    struct job writes_the_same = job_on(rows_of(1, 1, 100, 1000), low2);
    CHECK(job_conflicts(&writes_the_same, &earlier));
    struct job reads_what_it_writes = job_on(low2, rows_of(1, 1, 100, 1000));
    CHECK(job_conflicts(&reads_what_it_writes, &earlier));
    struct job touches = job_on(across, small2);
    CHECK(!job_conflicts(&touches, &earlier));
}

/* In one buffer, where jobs are told apart by all that they touch. */
static void conflicts_in_one_buffer(void)
{
    struct job low = job_on(rows_of(1, 1, 100, 0), rows_of(1, 1, 100, 0)),
               next = job_on(rows_of(1, 1, 100, 400), rows_of(1, 1, 100, 400)),
               last = job_on(rows_of(1, 1, 100, 396), rows_of(1, 1, 100, 800)),
               around = job_on(rows_of(1, 1, 100, 0), rows_of(1, 1, 100, 800)),
               back = job_on(rows_of(1, 1, 100, 800), rows_of(1, 1, 100, 0));
    CHECK(!job_conflicts(&low, &next) && !job_conflicts(&next, &low));
    CHECK(job_conflicts(&last, &low) && job_conflicts(&low, &last));
    CHECK(!job_conflicts(&around, &next) && !job_conflicts(&next, &around)); /* what lies between is not touched */
    CHECK(job_conflicts(&around, &low) && job_conflicts(&low, &around));
    CHECK(!job_conflicts(&back, &next) && job_conflicts(&back, &around) && job_conflicts(&back, &last));
}

/* A further operand that is read lies in another buffer than the input. */
static void conflicts_of_several_buffers(void)
{
    struct msg_job_submit_params params = scan_of(rows_of(1, 1, 100, 0), rows_of(1, 1, 100, 0));
    struct job affine, writes_them = job_on(rows_of(2, 1, 100, 800), rows_of(2, 1, 100, 800)),
                       writes_others = job_on(rows_of(2, 1, 100, 1200), rows_of(2, 1, 100, 1200));
    params.op = SCAND_OPERATOR_AFFINE;
    params.coefficients = rows_of(2, 1, 100, 800);
    CHECK_EQ(plan(&affine, &params, 4096), 0);
    job_find_reach(&affine);
    CHECK(job_conflicts(&writes_them, &affine) && job_conflicts(&affine, &writes_them));
    CHECK(!job_conflicts(&writes_others, &affine) && !job_conflicts(&affine, &writes_others));
}

/* Coefficients are read, as the input is. */
static void conflicts_of_coefficients(void)
{
    struct msg_job_submit_params params = scan_of(rows_of(1, 1, 100, 0), rows_of(1, 1, 100, 0));
    struct job affine, writes_them = job_on(rows_of(1, 1, 100, 1000), rows_of(2, 1, 100, 396)),
                       beside = job_on(rows_of(1, 1, 100, 1000), rows_of(2, 1, 100, 400)),
                       reads_them = job_on(rows_of(2, 1, 100, 0), rows_of(1, 1, 100, 2000));
    params.op = SCAND_OPERATOR_AFFINE;
    params.coefficients = rows_of(2, 1, 100, 0);
    CHECK_EQ(plan(&affine, &params, 4096), 0);
    job_find_reach(&affine);
    CHECK(job_conflicts(&writes_them, &affine));
    CHECK(job_conflicts(&affine, &writes_them));
    CHECK(!job_conflicts(&beside, &affine));
    CHECK(!job_conflicts(&reads_them, &affine));
    params.coefficients = rows_of(1, 1, 100, 1000); /* in one buffer: what lies between is not read */
    struct job between = job_on(rows_of(2, 1, 100, 0), rows_of(1, 1, 100, 500));
    CHECK_EQ(plan(&affine, &params, 4096), 0);
    job_find_reach(&affine);
    CHECK(!job_conflicts(&between, &affine));
    CHECK(job_conflicts(&writes_them, &reads_them));
}

/* Bytes at the same place of different buffers are different bytes. */
static void conflicts_are_within_a_buffer(void)
{
    struct job a = job_on(rows_of(1, 1, 100, 0), rows_of(1, 1, 100, 0));
    struct job b = job_on(rows_of(2, 1, 100, 0), rows_of(2, 1, 100, 0));
    CHECK(!job_conflicts(&a, &b));
    CHECK(job_conflicts(&a, &a));
}

static const struct test tests[] = {
    TEST(plan_finds_the_addresses),
    TEST(plan_fills_chunks),
    TEST(plan_counts_work),
    TEST(plan_counts_short_rows),
    TEST(plan_counts_rows_in_tiles),
    TEST(plan_counts_lines),
    TEST(plan_counts_lines_of_short_rows),
    TEST(plan_counts_rows_one_by_one),
    TEST(plan_counts_samples_that_are_one),
    TEST(plan_refuses),
    TEST(plan_compares_input_and_output),
    TEST(plan_with_coefficients),
    TEST(plan_with_steps),
    TEST(plan_refuses_a_step),
    TEST(plan_bounds_values_between_steps),
    TEST(plan_of_nothing),
    TEST(what_is_small),
    TEST(chunks_cover_the_rows_once),
    TEST(first_failure_is_the_outcome),
    TEST(failure_of_a_rule),
    TEST(failure_for_want_of_pinned_memory),
    TEST(failure_of_an_algorithm),
    TEST(failure_of_the_last_chunk),
    TEST(stop_while_queued),
    TEST(stop_while_running),
    TEST(stop_between_chunks),
    TEST(conflicts),
    TEST(conflicts_in_one_buffer),
    TEST(conflicts_of_several_buffers),
    TEST(conflicts_of_coefficients),
    TEST(conflicts_are_within_a_buffer),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

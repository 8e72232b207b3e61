/* The offsets of ragged rows: which tensors can be read, which values are taken, and how a job's chunks follow them. */
#include "daemon/core/jobs/offsets.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/core/jobs/job.h"
#include "kernels/order1/order.h"
#include "tests/check.h"

#define SAMPLES 100

static struct error error;
static unsigned char memory[1024];
static struct span span;
static struct buffer buffer;
static struct extent extent;

/* A scan of 100 samples of f32, with offsets of i64 after them. */
static struct msg_job_run_params scan_of(const int64_t *offsets, uint64_t count)
{
    struct msg_tensor line = {.buffer = 1,
                              .shape = {SAMPLES},
                              .shape_count = 1,
                              .strides = {4},
                              .strides_count = 1,
                              .dtype = SCAND_DTYPE_F32};
    struct msg_job_run_params params = {.input = line, .output = line, .offsets = line, .steps_count = 1};
    params.steps[0].scan.passes_count = 1;
    params.offsets.offset = 4 * SAMPLES;
    params.offsets.dtype = SCAND_DTYPE_I64;
    params.offsets.shape[0] = count;
    params.offsets.strides[0] = 8;
    memcpy(memory + 4 * SAMPLES, offsets, count * sizeof *offsets);
    span = (struct span){SCAND_PLACE_HOST, memory, sizeof memory, sizeof memory, false, false};
    buffer = (struct buffer){.span = span, .id = 1, .holds = 1};
    return params;
}

#define SCAN(...) scan_of((int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* A whole copy, by units of one. */
static int offsets_copy_all(const struct msg_job_run_params *params, struct offsets_copy *copy)
{
    int r = offsets_begin(params, &span, copy, &error);
    while (!r && offsets_left(copy) > 0)
        r = offsets_continue(copy, 1, &error);
    if (r)
        free(copy->values);
    return r;
}

static const char *refused(const struct msg_job_run_params *params)
{
    error.message[0] = '\0';
    CHECK_EQ(offsets_check(params, &span, &extent, &error), -EINVAL);
    return error.message;
}

static const char *values_refused(struct msg_job_run_params params)
{
    struct offsets_copy copy;
    CHECK_EQ(offsets_check(&params, &span, &extent, &error), 0);
    CHECK_EQ(offsets_copy_all(&params, &copy), -EINVAL);
    return error.message;
}

static void values_are_copied(void)
{
    struct offsets_copy copy;
    struct msg_job_run_params params = SCAN(3, 3, 10, 50, 50, 100);
    CHECK_EQ(offsets_check(&params, &span, &extent, &error), 0);
    CHECK(extent.begin == 400 && extent.end == 448);
    CHECK_EQ(offsets_copy_all(&params, &copy), 0);
    memset(memory, 0xff, sizeof memory);
    const uint64_t *offsets = copy.values;
    CHECK(offsets[0] == 3 && offsets[1] == 3 && offsets[2] == 10 && offsets[3] == 50 && offsets[5] == 100);
    CHECK_EQ(copy.longest, 50);
    free(copy.values);
}

/* Offsets are read from the last one backwards, and in half as many bytes. */
static void any_stride_and_dtype(void)
{
    struct offsets_copy copy;
    struct msg_job_run_params params = SCAN(0);
    const uint32_t values[] = {90, 20, 0};
    memcpy(memory + 401, values, sizeof values);
    params.offsets = (struct msg_tensor){.offset = 409, .shape_count = 1, .shape = {3}, .strides_count = 1};
    params.offsets.strides[0] = -4;
    for (int i = 0; i < 2; i++) {
        params.offsets.dtype = i ? SCAND_DTYPE_U32 : SCAND_DTYPE_I32;
        CHECK_EQ(offsets_check(&params, &span, &extent, &error), 0);
        CHECK_EQ(offsets_copy_all(&params, &copy), 0);
        CHECK(copy.values[0] == 0 && copy.values[1] == 20 && copy.values[2] == 90 && copy.longest == 70);
        free(copy.values);
    }
}

static void values_that_make_no_rows(void)
{
    CHECK_CONTAINS(values_refused(SCAN(0, 50, 49)),
                   "\"offsets\"[2] is 49; allowed: 50, the one before it, to 100, the samples of \"input\"");
    CHECK_CONTAINS(values_refused(SCAN(0, 101)), "\"offsets\"[1] is 101; allowed: 0, the one before it, to 100");
    CHECK_CONTAINS(values_refused(SCAN(-5, 50)), "\"offsets\"[0] is -5; allowed: 0 to 100");
    CHECK_CONTAINS(values_refused(SCAN(0, INT64_MIN)), "\"offsets\"[1] is -9223372036854775808; allowed: 0, the one");
    struct msg_job_run_params params = SCAN(0, -1);
    params.offsets.dtype = SCAND_DTYPE_U64;
    CHECK_CONTAINS(values_refused(params), "\"offsets\"[1] is 18446744073709551615; allowed");
}

/* A unit is bounded in offsets, and in pages that they may lie on. */
static void units_are_bounded(void)
{
    struct offsets_copy copy = {.stride = 0};
    CHECK_EQ(offsets_unit(&copy), LIMIT_UNIT_OFFSETS);
    copy.stride = -8;
    CHECK_EQ(offsets_unit(&copy), LIMIT_UNIT_OFFSETS);
    copy.stride = 4096;
    CHECK_EQ(offsets_unit(&copy), 1024);
    copy.stride = INT64_MIN;
    CHECK_EQ(offsets_unit(&copy), 1);
}

static void tensors_that_cannot_be_read(void)
{
    struct msg_job_run_params good = SCAN(0, 100), bad = good;
    bad.offsets.dtype = SCAND_DTYPE_F64;
    CHECK_CONTAINS(refused(&bad), "\"offsets.dtype\" is \"f64\"; allowed: i32, i64, u32, u64");
    bad.offsets.dtype = SCAND_DTYPE_I64BE;
    CHECK_CONTAINS(refused(&bad), "\"offsets.dtype\" is \"i64be\"; allowed: i32, i64, u32, u64");
    bad = good, bad.offsets.shape_count = 2;
    CHECK_CONTAINS(refused(&bad), "\"offsets\" has 2 dimensions and 1 strides");
    bad = good, bad.offsets.shape[0] = 0;
    CHECK_CONTAINS(refused(&bad), "\"offsets\" has 0 elements; allowed: 1 to 1048577");
    bad = good, bad.offsets.shape[0] = LIMIT_RAGGED_ROWS + 2, bad.offsets.strides[0] = 0;
    CHECK_CONTAINS(refused(&bad), "\"offsets\" has 1048578 elements");
    bad = good, bad.offsets.offset = 1020;
    CHECK_CONTAINS(refused(&bad), "\"offsets\" ends at byte 1036, but its buffer has 1024");
    bad = good, bad.offsets.strides[0] = -408;
    CHECK_CONTAINS(refused(&bad), "\"offsets\" begins 8 bytes before its buffer");
    bad = good, bad.input.shape_count = 2;
    CHECK_CONTAINS(refused(&bad), "\"input\" has 2 dimensions; allowed with \"offsets\": 1");
    bad = good, strcpy(bad.algorithm, "serial-cpu");
    CHECK_CONTAINS(refused(&bad), "\"offsets\" and \"algorithm\" exclude each other");
    span.place = SCAND_PLACE_DEVICE;
    CHECK_CONTAINS(refused(&good), "\"offsets.buffer\" is device memory; give a host buffer");
}

static struct job *planned(const struct msg_job_run_params *params, uint64_t chunk_bytes)
{
    struct job *job = calloc(1, sizeof *job);
    struct request request;
    struct msg_job_run_params repeated;
    CHECK_EQ(request_init(&request, params, &repeated, &error), 0);
    for (int i = OPERAND_INPUT; i <= OPERAND_OFFSETS; i++)
        job->operands[i].buffer = &buffer;
    CHECK_EQ(job_plan(job, &request, &(struct job_chunks){.bytes = chunk_bytes}, &error), 0);
    struct offsets_copy copy;
    CHECK_EQ(offsets_copy_all(params, &copy), 0);
    job_make_ragged(job, &copy);
    return job;
}

/* Rows that take time however short they are count beside their samples. */
static void chunks_follow_the_work(void)
{
    struct msg_job_run_params params = SCAN(1, 1, 6, 11, 11, 40, 42, 45, 45);
    struct job *job = planned(&params, 40);
    const uint64_t counts[] = {2, 2, 1, 2, 1};
    uint64_t bytes = 0;
    job->row_bytes = 10;
    for (unsigned i = 0; i < 5; i++) {
        struct chunk chunk;
        const uint64_t left = job_left_bytes(job);
        job_next_chunk(job, &chunk, 0);
        CHECK_EQ(chunk.count, counts[i]);
        bytes += left - job_left_bytes(job);
        job_return(job, &chunk);
    }
    CHECK(!job_has_rows(job));
    CHECK_EQ(bytes, 44 * 4 + 8 * 10);
    job_destroy(NULL, job);
}

/* A chunk is as many rows as fit, and a longer row alone. */
static void chunks_follow_the_rows(void)
{
    struct msg_job_run_params params = SCAN(1, 1, 6, 11, 11, 40, 42, 45, 45);
    struct job *job = planned(&params, 40);
    const uint64_t firsts[] = {0, 4, 5}, counts[] = {4, 1, 3}, samples[] = {10, 29, 5};
    struct chunk chunks[3];
    CHECK_EQ(job->rows.row_count, 8);
    for (int i = 0; i < 3; i++) {
        job_next_chunk(job, &chunks[i], 0);
        CHECK_EQ(chunks[i].first, firsts[i]);
        CHECK_EQ(chunks[i].count, counts[i]);
        CHECK_EQ(job_chunk_samples(job, &chunks[i]), samples[i]);
    }
    CHECK(!job_has_rows(job));
    for (int i = 0; i < 3; i++)
        job_return(job, &chunks[i]);
    CHECK_EQ(job->rows_done, 8);
    job_destroy(NULL, job);
}

static void rows_of_nothing(void)
{
    struct msg_job_run_params params = SCAN(7, 7, 7);
    struct job *job = planned(&params, 40);
    CHECK(job->rows.row_count == 2 && job->rows.length == 0);
    job_destroy(NULL, job);
    params = SCAN(7, 7, 7);
    job = planned(&params, 40);
    struct chunk chunk;
    job->plain = false;
    job->between_bytes = 4;
    job_next_chunk(job, &chunk, 0);
    CHECK_EQ(chunk.between_bytes, 4);
    job_return(job, &chunk);
    job_destroy(NULL, job);
    params = SCAN(7);
    job = planned(&params, 40);
    CHECK(job->rows.row_count == 0 && !job_has_rows(job));
    job_destroy(NULL, job);
}

/* Few short rows are small where the device says so, and are one chunk then. */
static void few_short_rows_are_small(void)
{
    struct msg_job_run_params params = SCAN(1, 1, 6, 11, 11, 40, 42, 45, 45);
    struct job *job = planned(&params, 4096);
    struct chunk chunk;
    CHECK(job_is_small(job, 4096, true));
    CHECK(!job_is_small(job, 4096, false));
    CHECK(!job_is_small(job, 44 * job->sample_bytes - 1, true));
    job->rows.length = ORDER_BLOCK + 1;
    CHECK(!job_is_small(job, 4096, true));
    job->rows.length = 29;
    job->rows.row_count = LIMIT_SMALL_RAGGED_ROWS + 1;
    CHECK(!job_is_small(job, 4096, true));
    job->rows.row_count = 8;
    job_next_chunk(job, &chunk, 0);
    CHECK_EQ(chunk.count, 8);
    job_return(job, &chunk);
    job_destroy(NULL, job);
}

static const struct test tests[] = {
    TEST(values_are_copied),           TEST(any_stride_and_dtype),
    TEST(units_are_bounded),           TEST(values_that_make_no_rows),
    TEST(tensors_that_cannot_be_read), TEST(chunks_follow_the_rows),
    TEST(chunks_follow_the_work),      TEST(rows_of_nothing),
    TEST(few_short_rows_are_small),    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

/*
 * Checks which jobs a variant of the tutorials takes, and that others are refused by name, value and what is allowed.
 */
#include <errno.h>

#include "kernels/tutorial/reduce/reduce.h"
#include "kernels/tutorial/scan/variants.h"
#include "tests/check.h"
#include "tests/unit/submitted.h"

static struct error error;
static struct scan_rows rows;

static struct msg_tensor tensor_of(uint64_t count, uint64_t length)
{
    return (struct msg_tensor){.buffer = 1,
                               .shape = {count, length},
                               .shape_count = 2,
                               .strides = {(int64_t)length * 4, 4},
                               .strides_count = 2};
}

static struct msg_job_submit_params scan_of(const char *algorithm, uint64_t count, uint64_t length)
{
    struct msg_job_submit_params params = {
        .input = tensor_of(count, length), .output = tensor_of(count, length), .axis = 1, .passes_count = 1};
    snprintf(params.algorithm, sizeof params.algorithm, "%s", algorithm);
    return params;
}

static const char *refused(const struct msg_job_submit_params *params)
{
    error.message[0] = '\0';
    CHECK_EQ(submitted_rows(params, &rows, &error), -EINVAL);
    return error.message;
}

static void every_name(void)
{
    struct msg_job_submit_params params = scan_of("", 3, 5);
    CHECK_EQ(submitted_rows(&params, &rows, &error), 0);
    CHECK_EQ(rows.rule.algorithm, 0);
    for (uint32_t i = 0; i < VARIANT_COUNT; i++) {
        params = scan_of(variant_list[i].name, 3, 5);
        CHECK_EQ(submitted_rows(&params, &rows, &error), 0);
        CHECK_EQ(rows.rule.algorithm, i + 1);
        CHECK_EQ(rows.rule.accumulator, SCAND_ACCUMULATOR_F32);
    }
}

static void unknown_names(void)
{
    struct msg_job_submit_params params = scan_of("fast\n", 3, 5);
    CHECK_CONTAINS(refused(&params), "\"algorithm\" is \"fast?\"; there are: serial-cpu, smem-v0-pad0, ");
    CHECK_CONTAINS(error.message, variant_list[VARIANT_COUNT - 1].name); /* the longest name leaves room for all */
    memset(params.algorithm, 'x', sizeof params.algorithm - 1);
    CHECK_CONTAINS(refused(&params), variant_list[VARIANT_COUNT - 1].name);
}

static void rules(void)
{
    struct msg_job_submit_params good = scan_of("kogge-stone", 3, 5), bad = good;
    bad.op = SCAND_OPERATOR_MAX;
    CHECK_CONTAINS(refused(&bad), "\"op\" is \"max\"; allowed with \"algorithm\" \"kogge-stone\": sum");
    bad = good, bad.kind = SCAND_KIND_EXCLUSIVE;
    CHECK_CONTAINS(refused(&bad), "\"kind\" is \"exclusive\"; allowed with \"algorithm\" \"kogge-stone\": inclusive");
    bad = good, bad.input.dtype = SCAND_DTYPE_F32BE;
    CHECK_CONTAINS(refused(&bad), "\"input.dtype\" is \"f32be\"; allowed with \"algorithm\" \"kogge-stone\": f32");
    bad = good, bad.output.dtype = SCAND_DTYPE_F64;
    CHECK_CONTAINS(refused(&bad), "\"output.dtype\" is \"f64\"; allowed with \"algorithm\" \"kogge-stone\": f32");
    bad = good, bad.intermediate = SCAND_DTYPE_F64;
    CHECK_CONTAINS(refused(&bad), "\"intermediate\" is \"f64\"; allowed with \"algorithm\" \"kogge-stone\": f32");
    bad = good, bad.demean = 1;
    CHECK_CONTAINS(refused(&bad), "\"demean\" is 1; allowed with \"algorithm\" \"kogge-stone\": 0");
    bad = good, bad.accumulator = SCAND_ACCUMULATOR_F64;
    CHECK_CONTAINS(refused(&bad), "\"accumulator\" is \"f64\"; allowed with \"algorithm\" \"kogge-stone\": auto, f32");
    struct msg_job_submit_params wide = scan_of("warp-v0", 3, 5);
    wide.accumulator = SCAND_ACCUMULATOR_F2;
    CHECK_EQ(submitted_rows(&wide, &rows, &error), 0);
    bad = good, bad.input.shape[0] = bad.output.shape[0] = 0, bad.op = SCAND_OPERATOR_MIN;
    CHECK_CONTAINS(refused(&bad), "\"op\" is \"min\""); /* of no rows, too */
}

static void layouts(void)
{
    struct msg_job_submit_params good = scan_of("smem-v1", 3, 5), bad = good;
    bad.axis = 0;
    CHECK_CONTAINS(refused(&bad),
                   "the stride of \"input\" along the axis is 20; allowed with \"algorithm\" \"smem-v1\": 4");
    bad = good, bad.output.strides[1] = -4;
    CHECK_CONTAINS(refused(&bad), "the stride of \"output\" along the axis is -4");
    bad = good, bad.input.offset = 2;
    CHECK_CONTAINS(refused(&bad), "\"input\" has the offset 2 and a row every 20 bytes; allowed with \"algorithm\" "
                                  "\"smem-v1\": multiples of 4");
    bad = good, bad.output.strides[0] = 22;
    CHECK_CONTAINS(refused(&bad), "\"output\" has the offset 0 and a row every 22 bytes");
    bad = scan_of("smem-v1", 1, LIMIT_ALGORITHM_SAMPLES + 1);
    CHECK_CONTAINS(refused(&bad), "rows of 8388609 samples; allowed with \"algorithm\" \"smem-v1\": 0 to 8388608");
    struct msg_tensor cube = {
        .shape = {2, 3, 5}, .shape_count = 3, .strides = {60, 20, 4}, .strides_count = 3, .buffer = 1};
    bad = good, bad.input = bad.output = cube, bad.axis = 2;
    CHECK_EQ(submitted_rows(&bad, &rows, &error), 0); /* rows that lie one stride apart, whatever the rank */
    CHECK_EQ(rows.outer_rank, 1);
    bad.input.strides[0] = 80;
    CHECK_CONTAINS(refused(&bad), "beside the axis there are 2 dimensions whose strides do not make them one");
    bad = scan_of("smem-v1", 3, 1);
    bad.input.strides[1] = 7; /* between one sample and none */
    CHECK_EQ(submitted_rows(&bad, &rows, &error), 0);
}

/* Chunks as variants see them. */
static void rows_of_variants(void)
{
    float samples[4][8] = {{0}};
    struct msg_job_submit_params params = scan_of("serial-cpu", 4, 6);
    params.input.strides[0] = params.output.strides[0] = 32;
    params.passes_count = 2, params.passes[1] = SCAND_PASS_BACKWARD;
    CHECK_EQ(submitted_rows(&params, &rows, &error), 0);
    rows.input = rows.output = samples;
    for (int i = 0; i < 6; i++)
        samples[2][i] = 1;
    struct variant_scan scan = variant_scan_from(&rows, 2, 1);
    CHECK(scan.input == samples[2] && scan.output == samples[2]);
    CHECK(scan.rows == 1 && scan.length == 6 && scan.input_pitch == 32 && scan.output_pitch == 32);
    variant_run_cpu(VARIANT_serial_cpu, &scan);
    CHECK(samples[2][0] == 21 && samples[2][4] == 11 && samples[2][5] == 6);
    CHECK(samples[1][5] == 0 && samples[2][6] == 0 && samples[3][0] == 0);
}

static void reductions(void)
{
    struct msg_job_submit_params good = scan_of("", 3, 5);
    good.passes_count = 0;
    good.operation = SCAND_OPERATION_REDUCE;
    good.reduction = SCAND_REDUCTION_NORM;
    good.output = (struct msg_tensor){.buffer = 2,
                                      .dtype = SCAND_DTYPE_F64,
                                      .shape = {3, 1},
                                      .shape_count = 2,
                                      .strides = {8, 8},
                                      .strides_count = 2};
    for (uint32_t i = 0; i < REDUCTION_COUNT; i++) {
        snprintf(good.algorithm, sizeof good.algorithm, "%s", reduction_list[i].name);
        CHECK_EQ(submitted_rows(&good, &rows, &error), 0);
        CHECK_EQ(rows.rule.algorithm, i + 1);
    }
    struct msg_job_submit_params bad = good;
    bad.reduction = SCAND_REDUCTION_MAX;
    CHECK_CONTAINS(refused(&bad), "\"reduction\" is \"max\"; allowed with \"algorithm\" \"tensor-norm-5\": norm");
    bad = good, bad.output.strides[0] = 16;
    CHECK_CONTAINS(refused(&bad), "results lie 16 bytes apart; allowed with \"algorithm\" \"tensor-norm-5\": 8");
    snprintf(bad.algorithm, sizeof bad.algorithm, "kogge-stone");
    CHECK_CONTAINS(refused(&bad), "\"algorithm\" is \"kogge-stone\"; there are: reduce-v0, ");
}

static const struct test tests[] = {
    TEST(every_name),       TEST(unknown_names), TEST(rules), TEST(layouts),
    TEST(rows_of_variants), TEST(reductions),    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

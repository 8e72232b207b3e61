/*
 * Types, accumulators and options, each combination against a table of what is allowed.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "tests/check.h"
#include "tests/unit/submitted.h"

static struct error error;
static struct scan_rule rule;

/* Checks all steps and keeps the rule of one. */
static int check_steps(const struct msg_job_submit_params *params, uint32_t step)
{
    struct submitted submitted;
    int r = submitted_steps(&submitted, params, &error);
    if (!r)
        rule = submitted.steps[step].rule;
    return r;
}

static struct msg_job_submit_params params_of(enum scand_dtype input, enum scand_dtype output)
{
    return (struct msg_job_submit_params){
        .input.dtype = input, .output.dtype = output, .passes = {SCAND_PASS_FORWARD}, .passes_count = 1};
}

static const char *refused(const struct msg_job_submit_params *params)
{
    error.message[0] = '\0';
    CHECK_EQ(check_steps(params, 0), -EINVAL);
    return error.message;
}

#define FLOATS   "f32, f64, f16, bf16, f32be, i16be, i32be, ibm32, i8, u8, i16, u16, u16be, i32le, ibm32le, f64be"
#define INTEGERS "i32, i64, u32, u64, i64be, u32be, u64be"

static bool is_whole(enum scand_dtype dtype)
{
    return dtype_class(dtype) == SCAND_CLASS_SIGNED || dtype_class(dtype) == SCAND_CLASS_UNSIGNED;
}

static void outputs(void)
{
    for (enum scand_dtype input = 0; input < SCAND_DTYPE_COUNT; input++)
        for (enum scand_dtype output = 0; output < SCAND_DTYPE_COUNT; output++) {
            struct msg_job_submit_params params = params_of(input, output);
            bool whole = is_whole(input), long_input = whole && dtype_size_bytes(input) == 8;
            bool allowed = whole == is_whole(output) && !(long_input && dtype_size_bytes(output) == 4);
            if (!allowed) {
                CHECK_CONTAINS(refused(&params), long_input ? "i64, u64, i64be, u64be" : whole ? INTEGERS : FLOATS);
                CHECK_CONTAINS(error.message, dtype_words.words[input]);
                CHECK_CONTAINS(error.message, dtype_words.words[output]);
                continue;
            }
            CHECK_EQ(check_steps(&params, 0), 0);
            CHECK(rule.input == input && rule.output == output);
        }
    struct msg_job_submit_params params = params_of(SCAND_DTYPE_I64, SCAND_DTYPE_I32);
    CHECK_CONTAINS(refused(&params),
                   "\"output.dtype\" is \"i32\"; allowed with \"input.dtype\" \"i64\": i64, u64, i64be, u64be");
}

static void accumulators(void)
{
    static const struct {
        enum scand_dtype input;
        enum scand_accumulator given, taken; /* AUTO: refused */
        const char *message;
    } list[] = {
        {SCAND_DTYPE_F32, SCAND_ACCUMULATOR_AUTO, SCAND_ACCUMULATOR_F64, NULL},
        {SCAND_DTYPE_IBM32, SCAND_ACCUMULATOR_AUTO, SCAND_ACCUMULATOR_F64, NULL},
        {SCAND_DTYPE_F64, SCAND_ACCUMULATOR_AUTO, SCAND_ACCUMULATOR_F64, NULL},
        {SCAND_DTYPE_U32, SCAND_ACCUMULATOR_AUTO, SCAND_ACCUMULATOR_EXACT, NULL},
        {SCAND_DTYPE_F16, SCAND_ACCUMULATOR_F2, SCAND_ACCUMULATOR_F2, NULL},
        {SCAND_DTYPE_F64, SCAND_ACCUMULATOR_F2, SCAND_ACCUMULATOR_F2, NULL},
        {SCAND_DTYPE_I64, SCAND_ACCUMULATOR_EXACT, SCAND_ACCUMULATOR_EXACT, NULL},
        {SCAND_DTYPE_I32BE, SCAND_ACCUMULATOR_AUTO, SCAND_ACCUMULATOR_F64, NULL},
        {SCAND_DTYPE_I32BE, SCAND_ACCUMULATOR_F32, 0, "allowed with \"input.dtype\" \"i32be\": auto, f64, f2"},
        {SCAND_DTYPE_F64, SCAND_ACCUMULATOR_F32, 0, "is \"f32\"; allowed with \"input.dtype\" \"f64\": auto, f64, f2"},
        {SCAND_DTYPE_F64, SCAND_ACCUMULATOR_EXACT, 0, "auto, f64, f2"},
        {SCAND_DTYPE_BF16, SCAND_ACCUMULATOR_EXACT, 0,
         "is \"exact\"; allowed with \"input.dtype\" \"bf16\": auto, f32, f64, f2"},
        {SCAND_DTYPE_I32, SCAND_ACCUMULATOR_F32, 0, "is \"f32\"; allowed with \"input.dtype\" \"i32\": auto, exact"},
        {SCAND_DTYPE_I32, SCAND_ACCUMULATOR_F64, 0, "auto, exact"},
        {SCAND_DTYPE_U64, SCAND_ACCUMULATOR_F2, 0, "auto, exact"},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        struct msg_job_submit_params params = params_of(list[i].input, list[i].input);
        params.accumulator = list[i].given;
        if (list[i].message) {
            CHECK_CONTAINS(refused(&params), list[i].message);
            continue;
        }
        CHECK_EQ(check_steps(&params, 0), 0);
        CHECK_EQ(rule.accumulator, list[i].taken);
    }
    struct msg_job_submit_params named = params_of(SCAND_DTYPE_F32, SCAND_DTYPE_F32);
    strcpy(named.algorithm, "kogge-stone");
    CHECK_EQ(check_steps(&named, 0), 0);
    CHECK_EQ(rule.accumulator, SCAND_ACCUMULATOR_F32);
}

static void intermediates(void)
{
    static const struct {
        enum scand_dtype input;
        enum scand_intermediate given;
        enum scand_dtype taken;
    } list[] = {
        {SCAND_DTYPE_F32, SCAND_INTERMEDIATE_AUTO, SCAND_DTYPE_F32},
        {SCAND_DTYPE_BF16, SCAND_INTERMEDIATE_AUTO, SCAND_DTYPE_F32},
        {SCAND_DTYPE_I16BE, SCAND_INTERMEDIATE_AUTO, SCAND_DTYPE_F32},
        {SCAND_DTYPE_F64, SCAND_INTERMEDIATE_AUTO, SCAND_DTYPE_F64},
        {SCAND_DTYPE_F32, SCAND_INTERMEDIATE_F64, SCAND_DTYPE_F64},
        {SCAND_DTYPE_F64, SCAND_INTERMEDIATE_F32, SCAND_DTYPE_F32},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        struct msg_job_submit_params params = params_of(list[i].input, SCAND_DTYPE_F32);
        params.intermediate = list[i].given;
        CHECK_EQ(check_steps(&params, 0), 0);
        CHECK_EQ(rule.intermediate, list[i].taken);
    }
    struct msg_job_submit_params params = params_of(SCAND_DTYPE_I32, SCAND_DTYPE_I64);
    CHECK_EQ(check_steps(&params, 0), 0);
    params.intermediate = SCAND_INTERMEDIATE_F32;
    CHECK_CONTAINS(refused(&params), "\"intermediate\" is \"f32\", but \"input.dtype\" \"i32\" is of integers");
    params.intermediate = SCAND_INTERMEDIATE_F64;
    CHECK_CONTAINS(refused(&params), "\"intermediate\" is \"f64\", but \"input.dtype\" \"i32\" is of integers");
}

static void kinds(void)
{
    static const struct {
        enum scand_kind kind;
        const char *of_max, *of_integers;
    } list[] = {
        {SCAND_KIND_HALF, "\"kind\" is \"half\", which is for \"op\" \"sum\"; allowed with \"max\": inclusive",
         "\"kind\" is \"half\", but \"input.dtype\" \"u32\" is of integers"},
        {SCAND_KIND_TRAPEZOID,
         "\"kind\" is \"trapezoid\", which is for \"op\" \"sum\"; allowed with \"max\": inclusive, exclusive",
         "\"kind\" is \"trapezoid\", but \"input.dtype\" \"u32\" is of integers; allowed: inclusive, exclusive"},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        struct msg_job_submit_params params = params_of(SCAND_DTYPE_F16, SCAND_DTYPE_F16);
        params.kind = list[i].kind;
        CHECK_EQ(check_steps(&params, 0), 0);
        CHECK_EQ(rule.kind, list[i].kind);
        params.op = SCAND_OPERATOR_MAX;
        CHECK_CONTAINS(refused(&params), list[i].of_max);
        params = params_of(SCAND_DTYPE_U32, SCAND_DTYPE_U32);
        params.kind = list[i].kind;
        CHECK_CONTAINS(refused(&params), list[i].of_integers);
    }
}

static void demeans(void)
{
    struct msg_job_submit_params params = params_of(SCAND_DTYPE_F64, SCAND_DTYPE_F32);
    CHECK_EQ(check_steps(&params, 0), 0);
    CHECK(!rule.demean);
    params.demean = 1;
    params.op = SCAND_OPERATOR_MIN;
    CHECK_EQ(check_steps(&params, 0), 0);
    CHECK(rule.demean);
    params = params_of(SCAND_DTYPE_I32, SCAND_DTYPE_I32);
    params.demean = 1;
    CHECK_CONTAINS(refused(&params), "\"demean\" is 1, but \"input.dtype\" \"i32\" is of integers");
}

static void coefficients(void)
{
    struct msg_job_submit_params params = params_of(SCAND_DTYPE_F32, SCAND_DTYPE_F32);
    params.coefficient = 0.5;
    CHECK_CONTAINS(refused(&params), "\"coefficient\" is for \"op\" \"affine\", but \"op\" is \"sum\"; leave it out");
    params.op = SCAND_OPERATOR_AFFINE;
    CHECK_EQ(check_steps(&params, 0), 0);
    CHECK(rule.op == SCAND_OPERATOR_AFFINE && rule.coefficient == 0.5);
    params.coefficient = NAN;
    CHECK_EQ(check_steps(&params, 0), 0);
    params.coefficient = 0.5;
    params.coefficients = (struct msg_tensor){.dtype = SCAND_DTYPE_BF16, .shape_count = 1, .strides_count = 1};
    CHECK_CONTAINS(refused(&params), "\"coefficient\" is 0.5, and there are \"coefficients\", too; give one of them");
    params.coefficient = 0;
    CHECK_EQ(check_steps(&params, 0), 0);
    CHECK_EQ(rule.coefficients, SCAND_DTYPE_BF16);
    params.coefficients.dtype = SCAND_DTYPE_F64;
    CHECK_CONTAINS(refused(&params),
                   "\"coefficients.dtype\" is \"f64\"; allowed with \"input.dtype\" \"f32\": f32, f16, "
                   "bf16, f32be, i16be, ibm32, i8, u8, i16, u16, u16be, ibm32le");
    params.op = SCAND_OPERATOR_MAX;
    CHECK_CONTAINS(refused(&params), "\"coefficients\" is for \"op\" \"affine\", but \"op\" is \"max\"");
    params.op = SCAND_OPERATOR_AFFINE;
    params.coefficients.shape_count = 0;
    CHECK_CONTAINS(refused(&params), "\"op\" is \"affine\", but there is no \"coefficient\"");
    params.coefficient = 2;
    params.kind = SCAND_KIND_HALF;
    CHECK_CONTAINS(refused(&params), "allowed with \"affine\": inclusive, exclusive");
}

static void coefficients_of_integers(void)
{
    static const double good[] = {-1, 3, 0x1p53, -0x1p53};
    static const double bad[] = {0.5, 0x1p53 + 2, -0x1p80, INFINITY, NAN};
    struct msg_job_submit_params params = params_of(SCAND_DTYPE_I32, SCAND_DTYPE_I64);
    params.op = SCAND_OPERATOR_AFFINE;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        params.coefficient = good[i];
        CHECK_EQ(check_steps(&params, 0), 0);
        CHECK(rule.coefficient == good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        params.coefficient = bad[i];
        CHECK_CONTAINS(refused(&params), "is of integers; allowed: whole numbers from -2^53 to 2^53");
    }
    params.coefficient = 0;
    params.coefficients = (struct msg_tensor){.dtype = SCAND_DTYPE_U32, .shape_count = 1, .strides_count = 1};
    CHECK_CONTAINS(refused(&params), "is \"u32\"; allowed with \"input.dtype\" \"i32\": i32, i64, i64be");
}

static void reductions(void)
{
    for (enum scand_dtype input = 0; input < SCAND_DTYPE_COUNT; input++)
        for (enum scand_reduction reduction = SCAND_REDUCTION_SUM; reduction < SCAND_REDUCTION_COUNT; reduction++) {
            struct msg_job_submit_params params = params_of(input, input);
            bool whole = is_whole(input);
            params.passes_count = 0;
            params.operation = SCAND_OPERATION_REDUCE;
            params.reduction = reduction;
            if (whole && reduction > SCAND_REDUCTION_MAX) {
                CHECK_CONTAINS(refused(&params), "is of integers; allowed: sum, min, max; or give f32 or f64");
                continue;
            }
            CHECK_EQ(check_steps(&params, 0), 0);
            CHECK(rule.operation == SCAND_OPERATION_REDUCE && rule.reduction == reduction && rule.pass_count == 1);
            CHECK_EQ(rule.accumulator, whole ? SCAND_ACCUMULATOR_EXACT : SCAND_ACCUMULATOR_F64);
        }
    struct msg_job_submit_params params = params_of(SCAND_DTYPE_F32, SCAND_DTYPE_F64);
    params.reduction = SCAND_REDUCTION_RMS;
    CHECK_CONTAINS(refused(&params), "\"reduction\" is \"rms\", which is for \"operation\" \"reduce\"");
    params.operation = SCAND_OPERATION_REDUCE;
    CHECK_CONTAINS(refused(&params), "\"passes\" is for \"operation\" \"scan\", but \"operation\" is \"reduce\"");
    params.passes_count = 0;
    params.reduction = SCAND_REDUCTION_NONE;
    CHECK_CONTAINS(refused(&params), "there is no \"reduction\"; give one of sum, min, max, mean, rms, norm");
    params.operation = SCAND_OPERATION_SCAN;
    CHECK_CONTAINS(refused(&params), "field \"passes\" is missing");
}

static const char *step_refused(const struct msg_job_submit_params *params)
{
    error.message[0] = '\0';
    CHECK_EQ(check_steps(params, 2), -EINVAL);
    return error.message;
}

/* Steps take the values that the step before has left, of the output's dtype. */
static void steps(void)
{
    struct msg_job_submit_params params = params_of(SCAND_DTYPE_F32, SCAND_DTYPE_F64);
    struct msg_then_step *step = &params.then[1];
    *step = (struct msg_then_step){.passes = {SCAND_PASS_BACKWARD, SCAND_PASS_FORWARD},
                                   .passes_count = 2,
                                   .kind = SCAND_KIND_EXCLUSIVE,
                                   .demean = 1};
    params.then_count = 2;
    CHECK_EQ(check_steps(&params, 2), 0);
    CHECK(rule.input == SCAND_DTYPE_F64 && rule.output == SCAND_DTYPE_F64 && rule.accumulator == SCAND_ACCUMULATOR_F64);
    CHECK_EQ(rule.intermediate, SCAND_DTYPE_F64);
    CHECK(rule.pass_count == 2 && rule.passes[0] == SCAND_PASS_BACKWARD && rule.passes[1] == SCAND_PASS_FORWARD);
    CHECK(rule.kind == SCAND_KIND_EXCLUSIVE && rule.op == SCAND_OPERATOR_SUM && rule.demean && !rule.algorithm);
    step->accumulator = SCAND_ACCUMULATOR_F32;
    CHECK_CONTAINS(step_refused(&params), "\"then[1].accumulator\" is \"f32\"; allowed with \"output.dtype\" "
                                          "\"f64\": auto, f64, f2");
    *step = (struct msg_then_step){.passes_count = 1, .op = SCAND_OPERATOR_AFFINE, .coefficient = 0.5};
    CHECK_EQ(check_steps(&params, 2), 0);
    CHECK(rule.op == SCAND_OPERATOR_AFFINE && rule.coefficient == 0.5);
    params.op = SCAND_OPERATOR_AFFINE;
    params.coefficients = (struct msg_tensor){.shape_count = 1, .strides_count = 1}; /* those of the first step */
    CHECK_EQ(check_steps(&params, 2), 0);
    step->coefficient = 0;
    CHECK_CONTAINS(step_refused(&params), "\"then[1].op\" is \"affine\", but there is no \"coefficient\"");
    CHECK_CONTAINS(error.message, "submit this step, with \"coefficients\", as a job");
}

static void steps_refused(void)
{
    struct msg_job_submit_params params = params_of(SCAND_DTYPE_F32, SCAND_DTYPE_F32);
    struct msg_then_step *step = &params.then[1];
    params.then_count = 2;
    *step = (struct msg_then_step){.passes_count = 1, .kind = SCAND_KIND_HALF, .op = SCAND_OPERATOR_MAX};
    CHECK_CONTAINS(step_refused(&params), "\"then[1].kind\" is \"half\", which is for \"op\" \"sum\"");
    *step = (struct msg_then_step){.passes_count = 1, .coefficient = 2};
    CHECK_CONTAINS(step_refused(&params), "\"then[1].coefficient\" is for \"op\" \"affine\", but \"op\" is \"sum\"");
    params.input.dtype = params.output.dtype = SCAND_DTYPE_U64;
    *step = (struct msg_then_step){.passes_count = 1, .demean = 1};
    CHECK_CONTAINS(step_refused(&params), "\"then[1].demean\" is 1, but \"output.dtype\" \"u64\" is of integers");
    *step = (struct msg_then_step){.passes_count = 1, .kind = SCAND_KIND_HALF};
    CHECK_CONTAINS(step_refused(&params), "\"then[1].kind\" is \"half\", but \"output.dtype\" \"u64\" is of integers");
    *step = (struct msg_then_step){.passes_count = 1, .intermediate = SCAND_INTERMEDIATE_F64};
    CHECK_CONTAINS(step_refused(&params), "\"then[1].intermediate\" is \"f64\", but \"output.dtype\" \"u64\"");
    *step = (struct msg_then_step){.passes_count = 1, .op = SCAND_OPERATOR_AFFINE, .coefficient = 0.5};
    CHECK_CONTAINS(step_refused(&params),
                   "\"then[1].coefficient\" is 0.5, but \"output.dtype\" \"u64\" is of integers");
    params.operation = SCAND_OPERATION_REDUCE;
    params.passes_count = 0;
    params.reduction = SCAND_REDUCTION_SUM;
    CHECK_CONTAINS(refused(&params), "\"then\" is for \"operation\" \"scan\", but \"operation\" is \"reduce\"");
}

static const struct test tests[] = {
    TEST(outputs),
    TEST(accumulators),
    TEST(intermediates),
    TEST(kinds),
    TEST(demeans),
    TEST(coefficients),
    TEST(coefficients_of_integers),
    TEST(reductions),
    TEST(steps),
    TEST(steps_refused),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

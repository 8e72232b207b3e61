#include "rule.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "kernels/reduce.h"

#define LIST_BYTES 128

static const char *dtype_word(uint32_t dtype)
{
    return dtype_words.words[dtype];
}

static bool is_integer(uint32_t dtype)
{
    return dtype_class(dtype) == SCAND_CLASS_SIGNED || dtype_class(dtype) == SCAND_CLASS_UNSIGNED;
}

/* Integers stay integers and lose no width; floats stay floats. */
static bool may_become(uint32_t input, uint32_t output)
{
    if (is_integer(input) != is_integer(output))
        return false;
    return !is_integer(input) || dtype_size_bytes(output) >= dtype_size_bytes(input);
}

static int check_output(uint32_t input, uint32_t output, struct error *error)
{
    char allowed[LIST_BYTES] = "";
    int length = 0;
    if (may_become(input, output))
        return 0;
    for (uint32_t dtype = 0; dtype < SCAND_DTYPE_COUNT; dtype++)
        if (may_become(input, dtype))
            length += snprintf(allowed + length, sizeof allowed - (size_t)length, "%s%s", length ? ", " : "",
                               dtype_word(dtype));
    return error_set(error, -EINVAL, "job.submit: \"output.dtype\" is \"%s\"; allowed with \"input.dtype\" \"%s\": %s",
                     dtype_word(output), dtype_word(input), allowed);
}

static int check_accumulator(uint32_t input, uint32_t accumulator, struct error *error)
{
    bool exact = accumulator == SCAND_ACCUMULATOR_EXACT;
    const char *allowed = NULL;
    if (accumulator == SCAND_ACCUMULATOR_AUTO)
        return 0;
    if (is_integer(input))
        allowed = exact ? NULL : "exact";
    else if (dtype_class(input) == SCAND_CLASS_F64)
        allowed = exact || accumulator == SCAND_ACCUMULATOR_F32 ? "f64, f2" : NULL;
    else
        allowed = exact ? "f32, f64, f2" : NULL;
    if (!allowed)
        return 0;
    return error_set(error, -EINVAL,
                     "job.submit: \"accumulator\" is \"%s\"; allowed with \"input.dtype\" \"%s\": auto, %s",
                     accumulator_words.words[accumulator], dtype_word(input), allowed);
}

/* Of one pass too, so that a mistake does not wait for the second one. f32, the first word, is what is left out. */
static int check_intermediate(uint32_t input, uint32_t intermediate, struct error *error)
{
    if (intermediate == SCAND_DTYPE_F32 || (intermediate == SCAND_DTYPE_F64 && !is_integer(input)))
        return 0;
    if (is_integer(input))
        return error_set(error, -EINVAL,
                         "job.submit: \"intermediate\" is \"%s\", but \"input.dtype\" \"%s\" is of integers, which are "
                         "not rounded between passes; leave it out",
                         dtype_word(intermediate), dtype_word(input));
    return error_set(error, -EINVAL, "job.submit: \"intermediate\" is \"%s\"; allowed: f32, f64",
                     dtype_word(intermediate));
}

static int check_kind(const struct msg_job_submit_params *params, struct error *error)
{
    if (params->kind != SCAND_KIND_HALF)
        return 0;
    if (is_integer(params->input.dtype))
        return error_set(error, -EINVAL,
                         "job.submit: \"kind\" is \"half\", but \"input.dtype\" \"%s\" is of integers; allowed: "
                         "inclusive, exclusive",
                         dtype_word(params->input.dtype));
    if (params->op != SCAND_OPERATOR_SUM)
        return error_set(error, -EINVAL,
                         "job.submit: \"kind\" is \"half\", which is for \"op\" \"sum\"; allowed with \"%s\": "
                         "inclusive, exclusive",
                         operator_words.words[params->op]);
    return 0;
}

/* Which of the two is there goes by 0 and by no dimensions, which are what is left out. */
static int check_coefficients(const struct msg_job_submit_params *params, struct error *error)
{
    bool one = params->coefficient != 0, each = params->coefficients.shape_count > 0;
    if (params->op != SCAND_OPERATOR_AFFINE && (one || each))
        return error_set(error, -EINVAL,
                         "job.submit: \"%s\" is for \"op\" \"affine\", but \"op\" is \"%s\"; leave it out, or give "
                         "\"op\" \"affine\"",
                         one ? "coefficient" : "coefficients", operator_words.words[params->op]);
    if (params->op != SCAND_OPERATOR_AFFINE || one != each)
        return 0;
    if (one)
        return error_set(error, -EINVAL,
                         "job.submit: \"coefficient\" is %.17g, and there are \"coefficients\", too; give one of them",
                         params->coefficient);
    return error_set(error, -EINVAL,
                     "job.submit: \"op\" is \"affine\", but there is no \"coefficient\" (or it is 0, which would leave "
                     "samples as they are) and no \"coefficients\"; give a number for all samples, or a tensor like "
                     "\"input\"");
}

/* Coefficients are of the input's class, and a single one is exact for integers. */
static int check_coefficient_type(const struct msg_job_submit_params *params, struct error *error)
{
    const double exact = 0x1p53;
    uint32_t input = params->input.dtype, dtype = params->coefficients.dtype;
    bool whole = params->coefficient >= -exact && params->coefficient <= exact &&
                 params->coefficient == (double)(int64_t)params->coefficient;
    char allowed[LIST_BYTES] = "";
    int length = 0;
    if (params->coefficients.shape_count == 0) {
        if (!is_integer(input) || whole)
            return 0;
        return error_set(error, -EINVAL,
                         "job.submit: \"coefficient\" is %.17g, but \"input.dtype\" \"%s\" is of integers; allowed: "
                         "whole numbers from -2^53 to 2^53",
                         params->coefficient, dtype_word(input));
    }
    if (dtype_class(dtype) == dtype_class(input))
        return 0;
    for (uint32_t other = 0; other < SCAND_DTYPE_COUNT; other++)
        if (dtype_class(other) == dtype_class(input))
            length += snprintf(allowed + length, sizeof allowed - (size_t)length, "%s%s", length ? ", " : "",
                               dtype_word(other));
    return error_set(error, -EINVAL,
                     "job.submit: \"coefficients.dtype\" is \"%s\"; allowed with \"input.dtype\" \"%s\": %s",
                     dtype_word(dtype), dtype_word(input), allowed);
}

static int check_demean(const struct msg_job_submit_params *params, struct error *error)
{
    if (!params->demean || !is_integer(params->input.dtype))
        return 0;
    return error_set(error, -EINVAL,
                     "job.submit: \"demean\" is 1, but \"input.dtype\" \"%s\" is of integers, whose mean is none; "
                     "leave it out, or give 0",
                     dtype_word(params->input.dtype));
}

static enum scand_accumulator accumulator_of(const struct msg_job_submit_params *params)
{
    static const enum scand_accumulator usual[] = {
        [SCAND_CLASS_F32] = SCAND_ACCUMULATOR_F32,
        [SCAND_CLASS_F64] = SCAND_ACCUMULATOR_F64,
        [SCAND_CLASS_SIGNED] = SCAND_ACCUMULATOR_EXACT,
        [SCAND_CLASS_UNSIGNED] = SCAND_ACCUMULATOR_EXACT,
    };
    return params->accumulator ? params->accumulator : usual[dtype_class(params->input.dtype)];
}

/* What a scan needs and a reduction has not, and the other way. */
static int check_operation(const struct msg_job_submit_params *params, struct error *error)
{
    if (params->reduction != SCAND_REDUCTION_NONE)
        return error_set(
            error, -EINVAL,
            "job.submit: \"reduction\" is \"%s\", which is for \"operation\" \"reduce\", but \"operation\" "
            "is \"scan\"; leave it out, or give \"operation\" \"reduce\"",
            reduction_words.words[params->reduction]);
    if (params->passes_count == 0)
        return error_set(error, -EINVAL,
                         "job.submit: field \"passes\" is missing; give a list of one or two of forward, backward");
    return 0;
}

static int scan_take(const struct msg_job_submit_params *params, struct scan_rule *rule, struct error *error)
{
    uint32_t input = params->input.dtype;
    int r = check_operation(params, error);
    if (!r)
        r = check_output(input, params->output.dtype, error);
    if (!r)
        r = check_accumulator(input, params->accumulator, error);
    if (!r)
        r = check_intermediate(input, params->intermediate, error);
    if (!r)
        r = check_kind(params, error);
    if (!r)
        r = check_coefficients(params, error);
    if (!r)
        r = check_coefficient_type(params, error);
    if (!r)
        r = check_demean(params, error);
    if (r)
        return r;
    *rule = (struct scan_rule){
        .pass_count = params->passes_count,
        .kind = params->kind,
        .op = params->op,
        .accumulator = accumulator_of(params),
        .intermediate = params->intermediate,
        .input = input,
        .output = params->output.dtype,
        .demean = params->demean,
        .coefficients = params->coefficients.dtype,
        .coefficient = params->coefficient,
    };
    for (uint32_t i = 0; i < params->passes_count; i++)
        rule->passes[i] = params->passes[i];
    return 0;
}

/* Fields that say how a scan is done; what is left out is zero. */
static int check_scan_fields(const struct msg_job_submit_params *params, struct error *error)
{
    const struct {
        const char *name;
        bool given;
    } fields[] = {
        {"passes", params->passes_count > 0},
        {"kind", params->kind},
        {"op", params->op},
        {"accumulator", params->accumulator},
        {"intermediate", params->intermediate},
        {"demean", params->demean},
        {"coefficient", params->coefficient != 0},
        {"coefficients", params->coefficients.shape_count > 0},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i].given)
            return error_set(error, -EINVAL,
                             "job.submit: \"%s\" is for \"operation\" \"scan\", but \"operation\" is \"reduce\"; leave "
                             "it out",
                             fields[i].name);
    return 0;
}

static int check_reduction(const struct msg_job_submit_params *params, struct error *error)
{
    if (params->reduction == SCAND_REDUCTION_NONE)
        return error_set(
            error, -EINVAL,
            "job.submit: \"operation\" is \"reduce\", but there is no \"reduction\"; give one of sum, min, "
            "max, mean, rms, norm");
    if (!is_integer(params->input.dtype) || params->reduction <= SCAND_REDUCTION_MAX)
        return 0;
    return error_set(
        error, -EINVAL,
        "job.submit: \"reduction\" is \"%s\", but \"input.dtype\" \"%s\" is of integers; allowed: sum, min, "
        "max; or convert the samples to f32 or f64 first",
        reduction_words.words[params->reduction], dtype_word(params->input.dtype));
}

static int reduction_take(const struct msg_job_submit_params *params, struct scan_rule *rule, struct error *error)
{
    int r = check_scan_fields(params, error);
    if (!r)
        r = check_reduction(params, error);
    if (!r)
        r = check_output(params->input.dtype, params->output.dtype, error);
    if (!r)
        *rule = reduce_rule(params->reduction, params->input.dtype, params->output.dtype);
    return r;
}

int rule_take(const struct msg_job_submit_params *params, struct scan_rule *rule, struct error *error)
{
    return params->operation == SCAND_OPERATION_REDUCE ? reduction_take(params, rule, error)
                                                       : scan_take(params, rule, error);
}

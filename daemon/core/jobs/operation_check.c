#include "operation_check.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "kernels/order1/reduce.h"

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

/* A scan as it is asked for: the job's own fields, or those of one of its further steps. */
struct request {
    char at[20];         /* before the names of its fields in messages: "", or "then[0]." */
    const char *samples; /* the field that says of what dtype its samples are */
    bool by_name;        /* `algorithm` names it */
    enum scand_dtype input, output;
    struct msg_then_step step;
    const struct msg_tensor *coefficients; /* NULL: it can have none */
};

static bool has_coefficients(const struct request *request)
{
    return request->coefficients && request->coefficients->shape_count > 0;
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

static int check_accumulator(const struct request *request, struct error *error)
{
    uint32_t input = request->input, accumulator = request->step.accumulator;
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
    return error_set(error, -EINVAL, "job.submit: \"%saccumulator\" is \"%s\"; allowed with \"%s\" \"%s\": auto, %s",
                     request->at, accumulator_words.words[accumulator], request->samples, dtype_word(input), allowed);
}

/* Of one pass too, so that a mistake does not wait for the second one. */
static int check_intermediate(const struct request *request, struct error *error)
{
    uint32_t input = request->input, intermediate = request->step.intermediate;
    if (intermediate == SCAND_INTERMEDIATE_AUTO || !is_integer(input))
        return 0;
    return error_set(error, -EINVAL,
                     "job.submit: \"%sintermediate\" is \"%s\", but \"%s\" \"%s\" is of integers, which are "
                     "not rounded between passes; leave it out",
                     request->at, intermediate_words.words[intermediate], request->samples, dtype_word(input));
}

static int check_kind(const struct request *request, struct error *error)
{
    if (request->step.kind != SCAND_KIND_HALF)
        return 0;
    if (is_integer(request->input))
        return error_set(error, -EINVAL,
                         "job.submit: \"%skind\" is \"half\", but \"%s\" \"%s\" is of integers; allowed: "
                         "inclusive, exclusive",
                         request->at, request->samples, dtype_word(request->input));
    if (request->step.op != SCAND_OPERATOR_SUM)
        return error_set(error, -EINVAL,
                         "job.submit: \"%skind\" is \"half\", which is for \"op\" \"sum\"; allowed with \"%s\": "
                         "inclusive, exclusive",
                         request->at, operator_words.words[request->step.op]);
    return 0;
}

/* Which of the two is there goes by 0 and by no dimensions, which are what is left out. */
static int check_coefficients(const struct request *request, struct error *error)
{
    uint32_t op = request->step.op;
    bool one = request->step.coefficient != 0, each = has_coefficients(request);
    if (op != SCAND_OPERATOR_AFFINE && (one || each))
        return error_set(error, -EINVAL,
                         "job.submit: \"%s%s\" is for \"op\" \"affine\", but \"op\" is \"%s\"; leave it out, or give "
                         "\"op\" \"affine\"",
                         request->at, one ? "coefficient" : "coefficients", operator_words.words[op]);
    if (op != SCAND_OPERATOR_AFFINE || one != each)
        return 0;
    if (one)
        return error_set(error, -EINVAL,
                         "job.submit: \"coefficient\" is %.17g, and there are \"coefficients\", too; give one of them",
                         request->step.coefficient);
    return error_set(
        error, -EINVAL,
        "job.submit: \"%sop\" is \"affine\", but there is no \"coefficient\" (or it is 0, which would leave "
        "samples as they are)%s",
        request->at,
        request->coefficients
            ? " and no \"coefficients\"; give a number for all samples, or a tensor like \"input\""
            : "; give a number for all samples, or submit this step, with \"coefficients\", as a job");
}

/* Coefficients are of the input's class, and a single one is exact for integers. */
static int check_coefficient_type(const struct request *request, struct error *error)
{
    const double exact = 0x1p53, coefficient = request->step.coefficient;
    uint32_t input = request->input;
    bool whole = coefficient >= -exact && coefficient <= exact && coefficient == (double)(int64_t)coefficient;
    char allowed[LIST_BYTES] = "";
    int length = 0;
    if (!has_coefficients(request)) {
        if (!is_integer(input) || whole)
            return 0;
        return error_set(error, -EINVAL,
                         "job.submit: \"%scoefficient\" is %.17g, but \"%s\" \"%s\" is of integers; allowed: "
                         "whole numbers from -2^53 to 2^53",
                         request->at, coefficient, request->samples, dtype_word(input));
    }
    uint32_t dtype = request->coefficients->dtype;
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

static int check_demean(const struct request *request, struct error *error)
{
    if (!request->step.demean || !is_integer(request->input))
        return 0;
    return error_set(error, -EINVAL,
                     "job.submit: \"%sdemean\" is 1, but \"%s\" \"%s\" is of integers, whose mean is none; "
                     "leave it out, or give 0",
                     request->at, request->samples, dtype_word(request->input));
}

static int request_check(const struct request *request, struct scan_rule *rule, struct error *error)
{
    const struct msg_then_step *step = &request->step;
    int r;
    if ((r = check_accumulator(request, error)) || (r = check_intermediate(request, error)) ||
        (r = check_kind(request, error)) || (r = check_coefficients(request, error)) ||
        (r = check_coefficient_type(request, error)) || (r = check_demean(request, error)))
        return r;
    *rule = (struct scan_rule){
        .pass_count = step->passes_count,
        .kind = step->kind,
        .op = step->op,
        .accumulator = accumulator_of(step->accumulator, request->input, request->by_name),
        .intermediate = intermediate_of(step->intermediate, request->input),
        .input = request->input,
        .output = request->output,
        .demean = step->demean,
        .coefficients = request->coefficients ? request->coefficients->dtype : 0,
        .coefficient = step->coefficient,
    };
    for (uint32_t i = 0; i < step->passes_count; i++)
        rule->passes[i] = step->passes[i];
    return 0;
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

static int scan_check(const struct msg_job_submit_params *params, struct scan_rule *rule, struct error *error)
{
    struct request request = {
        .samples = "input.dtype",
        .by_name = params->algorithm[0] != '\0',
        .input = params->input.dtype,
        .output = params->output.dtype,
        .step = {.passes_count = params->passes_count,
                 .kind = params->kind,
                 .op = params->op,
                 .accumulator = params->accumulator,
                 .intermediate = params->intermediate,
                 .demean = params->demean,
                 .coefficient = params->coefficient},
        .coefficients = &params->coefficients,
    };
    for (uint32_t i = 0; i < params->passes_count; i++)
        request.step.passes[i] = params->passes[i];
    int r;
    if ((r = check_operation(params, error)) || (r = check_output(params->input.dtype, params->output.dtype, error)))
        return r;
    return request_check(&request, rule, error);
}

int operation_check_step(const struct msg_job_submit_params *params, uint32_t k, struct scan_rule *rule,
                         struct error *error)
{
    struct request request = {
        .samples = "output.dtype",
        .input = params->output.dtype,
        .output = params->output.dtype,
        .step = params->then[k],
    };
    snprintf(request.at, sizeof request.at, "then[%u].", (unsigned)k);
    return request_check(&request, rule, error);
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
        {"then", params->then_count > 0},
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

static int reduction_check(const struct msg_job_submit_params *params, struct scan_rule *rule, struct error *error)
{
    int r;
    if ((r = check_scan_fields(params, error)) || (r = check_reduction(params, error)) ||
        (r = check_output(params->input.dtype, params->output.dtype, error)))
        return r;
    *rule = reduce_rule(params->reduction, params->input.dtype, params->output.dtype);
    return 0;
}

int operation_check(const struct msg_job_submit_params *params, struct scan_rule *rule, struct error *error)
{
    return params->operation == SCAND_OPERATION_REDUCE ? reduction_check(params, rule, error)
                                                       : scan_check(params, rule, error);
}

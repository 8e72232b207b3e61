/* Checks which types, accumulators and operators of a scan go together, and fills in fields that were left out. */
#include <errno.h>
#include <string.h>

#include "scan.h"

static const struct msg_scan *step_of(const struct asked *asked)
{
    return &asked->request->params->steps[asked->step].scan;
}

static bool has_coefficients(const struct msg_scan *step)
{
    return step->coefficients.shape_count > 0;
}

static int check_accumulator(const struct asked *asked, struct error *error)
{
    uint32_t input = asked->in.dtype, accumulator = step_of(asked)->accumulator;
    bool exact = accumulator == SCAND_ACCUMULATOR_EXACT;
    const char *allowed = NULL;
    char field[FIELD_NAME_BYTES];
    if (accumulator == SCAND_ACCUMULATOR_AUTO)
        return 0;
    if (dtype_is_integer(input))
        allowed = exact ? NULL : "exact";
    else if (dtype_class(input) == SCAND_CLASS_F64)
        allowed = exact || accumulator == SCAND_ACCUMULATOR_F32 ? "f64, f2" : NULL;
    else
        allowed = exact ? "f32, f64, f2" : NULL;
    if (!allowed)
        return 0;
    return error_set(error, -EINVAL, "\"%s\" is \"%s\"; allowed with \"%s\" \"%s\": auto, %s",
                     request_field(asked->request, asked->step, "accumulator", field),
                     accumulator_words.words[accumulator], asked_samples(asked), dtype_word(input), allowed);
}

/* Checks the intermediate, also of one pass, so that a mistake does not wait for the second one. */
static int check_intermediate(const struct asked *asked, struct error *error)
{
    uint32_t input = asked->in.dtype, intermediate = step_of(asked)->intermediate;
    char field[FIELD_NAME_BYTES];
    if (intermediate == SCAND_INTERMEDIATE_AUTO || !dtype_is_integer(input))
        return 0;
    return error_set(error, -EINVAL,
                     "\"%s\" is \"%s\", but \"%s\" \"%s\" is of integers, which are not rounded between passes; leave "
                     "it out",
                     request_field(asked->request, asked->step, "intermediate", field),
                     intermediate_words.words[intermediate], asked_samples(asked), dtype_word(input));
}

static int check_kind(const struct asked *asked, struct error *error)
{
    const struct msg_scan *step = step_of(asked);
    char field[FIELD_NAME_BYTES];
    if (step->kind != SCAND_KIND_HALF && step->kind != SCAND_KIND_TRAPEZOID)
        return 0;
    if (dtype_is_integer(asked->in.dtype))
        return error_set(error, -EINVAL,
                         "\"%s\" is \"%s\", but \"%s\" \"%s\" is of integers; allowed: inclusive, exclusive",
                         request_field(asked->request, asked->step, "kind", field), kind_words.words[step->kind],
                         asked_samples(asked), dtype_word(asked->in.dtype));
    if (step->op != SCAND_OPERATOR_SUM)
        return error_set(error, -EINVAL,
                         "\"%s\" is \"%s\", which is for \"op\" \"sum\"; allowed with \"%s\": inclusive, exclusive",
                         request_field(asked->request, asked->step, "kind", field), kind_words.words[step->kind],
                         operator_words.words[step->op]);
    return 0;
}

static int refuse_no_coefficient(const struct asked *asked, struct error *error)
{
    char field[FIELD_NAME_BYTES];
    return error_set(
        error, -EINVAL,
        "\"%s\" is \"affine\", but there is no \"coefficient\" (or it is 0, which would leave samples as they are)%s",
        request_field(asked->request, asked->step, "op", field),
        asked->request->submitted && asked->step > 0
            ? "; give a number for all samples, or submit this step, with \"coefficients\", as a job"
            : " and no \"coefficients\"; give a number for all samples, or a tensor like \"input\"");
}

/* Checks that one of coefficient and coefficients is given: 0, and no dimensions, mean that a field was left out. */
static int check_coefficients(const struct asked *asked, struct error *error)
{
    const struct msg_scan *step = step_of(asked);
    const bool one = step->coefficient != 0, each = has_coefficients(step), affine = step->op == SCAND_OPERATOR_AFFINE;
    char field[FIELD_NAME_BYTES];
    if (!affine && (one || each))
        return error_set(error, -EINVAL,
                         "\"%s\" is for \"op\" \"affine\", but \"op\" is \"%s\"; leave it out, or give \"op\" "
                         "\"affine\"",
                         request_field(asked->request, asked->step, one ? "coefficient" : "coefficients", field),
                         operator_words.words[step->op]);
    if (!affine || one != each)
        return 0;
    if (!one)
        return refuse_no_coefficient(asked, error);
    return error_set(error, -EINVAL, "\"%s\" is %.17g, and there are \"coefficients\", too; give one of them",
                     request_field(asked->request, asked->step, "coefficient", field), step->coefficient);
}

/* A single coefficient is exact for integers. */
static int check_coefficient(const struct asked *asked, struct error *error)
{
    const double exact = 0x1p53, coefficient = step_of(asked)->coefficient;
    bool whole = coefficient >= -exact && coefficient <= exact && coefficient == (double)(int64_t)coefficient;
    char field[FIELD_NAME_BYTES];
    if (has_coefficients(step_of(asked)) || !dtype_is_integer(asked->in.dtype) || whole)
        return 0;
    return error_set(error, -EINVAL,
                     "\"%s\" is %.17g, but \"%s\" \"%s\" is of integers; allowed: whole numbers from -2^53 to 2^53",
                     request_field(asked->request, asked->step, "coefficient", field), coefficient,
                     asked_samples(asked), dtype_word(asked->in.dtype));
}

static int check_demean(const struct asked *asked, struct error *error)
{
    char field[FIELD_NAME_BYTES];
    if (!step_of(asked)->demean || !dtype_is_integer(asked->in.dtype))
        return 0;
    return error_set(
        error, -EINVAL, "\"%s\" is 1, but \"%s\" \"%s\" is of integers, whose mean is none; leave it out, or give 0",
        request_field(asked->request, asked->step, "demean", field), asked_samples(asked), dtype_word(asked->in.dtype));
}

int scan_check(const struct asked *asked, struct step *out, struct error *error)
{
    const struct msg_scan *step = step_of(asked);
    struct scan_rule *rule = &out->rule;
    const bool by_name = asked->step == 0 && asked->request->params->algorithm[0] != '\0';
    int r;
    if ((r = check_output_dtype(asked->in.dtype, asked->output, error)) || (r = check_accumulator(asked, error)) ||
        (r = check_intermediate(asked, error)) || (r = check_kind(asked, error)) ||
        (r = check_coefficients(asked, error)) || (r = check_coefficient(asked, error)) ||
        (r = check_demean(asked, error)))
        return r;
    *rule = (struct scan_rule){
        .operation = SCAND_OPERATION_SCAN,
        .pass_count = step->passes_count,
        .kind = step->kind,
        .op = step->op,
        .accumulator = accumulator_of(step->accumulator, asked->in.dtype, by_name),
        .intermediate = intermediate_of(step->intermediate, asked->in.dtype),
        .input = asked->in.dtype,
        .output = asked->output,
        .demean = step->demean,
        .coefficients = step->coefficients.dtype,
        .coefficient = step->coefficient,
    };
    for (uint32_t i = 0; i < step->passes_count; i++)
        rule->passes[i] = step->passes[i];
    return 0;
}

/* scan: which types, accumulators and operators go together, where fields that were left out are filled in; and the
 * variants of the tutorials (kernels/tutorial) in place of order 1. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "daemon/core/operations/operation.h"
#include "kernels/tutorial/scan/variants.h"

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

static int scan_check(const struct asked *asked, struct step *out, struct error *error)
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

/* The field `algorithm`. A variant does less than a scan, so its limits are checked here. */

static int refuse_name(const char *name, struct error *error)
{
    struct word_list names = {.length = 0};
    for (int i = 0; i < VARIANT_COUNT; i++)
        word_list_add(&names, variant_list[i].name);
    return refuse_algorithm_name(name, &names, error);
}

static int check_variant_accumulator(const struct variant *variant, enum scand_accumulator accumulator,
                                     struct error *error)
{
    struct word_list allowed = {.length = 0};
    if (variant->accumulators >> accumulator & 1)
        return 0;
    word_list_add(&allowed, accumulator_words.words[SCAND_ACCUMULATOR_AUTO]);
    for (uint32_t i = 0; i < accumulator_words.count; i++)
        if (variant->accumulators >> i & 1)
            word_list_add(&allowed, accumulator_words.words[i]);
    return refuse_with_algorithm(variant->name, "accumulator", accumulator_words.words[accumulator], allowed.text,
                                 error);
}

static int check_variant(const struct variant *variant, const struct scan_rule *rule, struct error *error)
{
    const char *name = variant->name;
    if (rule->input != SCAND_DTYPE_F32)
        return refuse_with_algorithm(name, "input.dtype", dtype_word(rule->input), "f32", error);
    if (rule->output != SCAND_DTYPE_F32)
        return refuse_with_algorithm(name, "output.dtype", dtype_word(rule->output), "f32", error);
    if (rule->op != SCAND_OPERATOR_SUM)
        return refuse_with_algorithm(name, "op", operator_words.words[rule->op], "sum", error);
    if (rule->kind != SCAND_KIND_INCLUSIVE)
        return refuse_with_algorithm(name, "kind", kind_words.words[rule->kind], "inclusive", error);
    if (rule->intermediate != SCAND_DTYPE_F32)
        return refuse_with_algorithm(name, "intermediate", dtype_word(rule->intermediate), "f32", error);
    if (rule->demean)
        return error_set(error, -EINVAL, "\"demean\" is 1; allowed with \"algorithm\" \"%s\": 0", name);
    return check_variant_accumulator(variant, rule->accumulator, error);
}

static int check_side(const char *name, const char *what, const struct msg_tensor *tensor,
                      const struct operand *operand, const struct scan_rows *rows, struct error *error)
{
    int r = check_algorithm_stride(name, what, rows, operand->stride, error);
    return r ? r
             : check_algorithm_place(name, what, tensor, rows->outer_rank > 0 ? operand->outer_strides[0] : 0, 4,
                                     error);
}

static int check_rows(const struct variant *variant, const struct request *request, const struct operand *operands,
                      const struct scan_rows *rows, struct error *error)
{
    const char *name = variant->name;
    const struct msg_job_run_params *params = request->params;
    int r;
    if (rows->row_count == 0)
        return 0;
    if (rows->length > LIMIT_ALGORITHM_SAMPLES)
        return error_set(error, -EINVAL,
                         "rows of %" PRIu64 " samples; allowed with \"algorithm\" \"%s\": 0 to %" PRIu64
                         "; leave \"algorithm\" out for longer ones",
                         rows->length, name, LIMIT_ALGORITHM_SAMPLES);
    if ((r = check_algorithm_rank(name, rows, error)) ||
        (r = check_side(name, "input", &params->input, &operands[OPERAND_INPUT], rows, error)))
        return r;
    return check_side(name, "output", &params->output, &operands[OPERAND_OUTPUT], rows, error);
}

static int scan_check_algorithm(const struct request *request, const struct operand *operands,
                                const struct scan_rows *rows, struct scan_rule *rule, struct error *error)
{
    int id = variant_find(request->params->algorithm), r;
    if (id < 0)
        return refuse_name(request->params->algorithm, error);
    if ((r = check_variant(&variant_list[id], rule, error)) ||
        (r = check_rows(&variant_list[id], request, operands, rows, error)))
        return r;
    rule->algorithm = (uint32_t)id + 1;
    return 0;
}

/* Returns the work of a scan, as measured, in powers of two. A variant's work is that of one thread that goes along the
 * row. */
static uint64_t scan_work(const struct step *step)
{
    const struct scan_rule *rule = &step->rule;
    const bool f2 = rule->accumulator == SCAND_ACCUMULATOR_F2, affine = rule->op == SCAND_OPERATOR_AFFINE;
    return rule->pass_count * (f2 ? 4 : 1) * (affine ? 8 : 1) * (rule->algorithm ? 4 : 1) + rule->demean;
}

static void scan_describe(const struct step *step, char *out, size_t size)
{
    const struct scan_rule *rule = &step->rule;
    snprintf(out, size, "%s %s%s%s", operator_words.words[rule->op], pass_words.words[rule->passes[0]],
             rule->pass_count > 1 ? "," : "", rule->pass_count > 1 ? pass_words.words[rule->passes[1]] : "");
}

static void scan_refuse(const struct step *step, int code, struct error *error)
{
    const struct scan_rule *rule = &step->rule;
    const struct variant *variant = rule->algorithm ? &variant_list[rule->algorithm - 1] : NULL;
    if (variant)
        error_set(error, code,
                  "\"algorithm\" is \"%s\", which this daemon's device cannot run; a daemon started with --device %s "
                  "can%s",
                  variant->name, variant->on_cpu ? "cpu" : "cuda",
                  variant->on_cpu ? "" : ", if built with SCAND_TUTORIAL");
    else
        error_set(error, code,
                  "this daemon's device cannot do this scan (\"op\" is \"%s\", \"kind\" \"%s\", \"input.dtype\" "
                  "\"%s\", \"output.dtype\" \"%s\", \"demean\" %d); a daemon started with --device cpu can",
                  operator_words.words[rule->op], kind_words.words[rule->kind], dtype_word(rule->input),
                  dtype_word(rule->output), rule->demean);
}

const struct operation operation_scan = {
    .check = scan_check,
    .check_algorithm = scan_check_algorithm,
    .work = scan_work,
    .describe = scan_describe,
    .refuse = scan_refuse,
};

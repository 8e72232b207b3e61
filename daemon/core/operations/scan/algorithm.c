/* The field `algorithm` of a scan: a variant of the tutorials (kernels/tutorial) in place of order 1. A variant does
 * less, so its limits are checked here. */
#include <errno.h>
#include <inttypes.h>

#include "kernels/tutorial/scan/variants.h"
#include "scan.h"

static int refuse_name(const char *name, struct error *error)
{
    struct word_list names = {.length = 0};
    for (int i = 0; i < VARIANT_COUNT; i++)
        word_list_add(&names, variant_list[i].name);
    return refuse_algorithm_name(name, &names, error);
}

static int check_accumulator(const struct variant *variant, enum scand_accumulator accumulator, struct error *error)
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

static int check_rule(const struct variant *variant, const struct scan_rule *rule, struct error *error)
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
    return check_accumulator(variant, rule->accumulator, error);
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

int scan_check_algorithm(const struct request *request, const struct operand *operands, const struct scan_rows *rows,
                         struct scan_rule *rule, struct error *error)
{
    int id = variant_find(request->params->algorithm), r;
    if (id < 0)
        return refuse_name(request->params->algorithm, error);
    if ((r = check_rule(&variant_list[id], rule, error)) ||
        (r = check_rows(&variant_list[id], request, operands, rows, error)))
        return r;
    rule->algorithm = (uint32_t)id + 1;
    return 0;
}

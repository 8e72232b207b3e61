/* reduce: which reductions integers have; and the variants of the tutorials (kernels/tutorial) in place of order 1. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "daemon/core/operations/operation.h"
#include "kernels/order1/reduce.h"
#include "kernels/tutorial/reduce/reduce.h"

static enum scand_reduction reduction_of(const struct asked *asked)
{
    return asked->request->params->steps[asked->step].reduce.reduction + SCAND_REDUCTION_NONE + 1;
}

static int check_reduction(const struct asked *asked, struct error *error)
{
    const enum scand_reduction reduction = reduction_of(asked);
    char field[FIELD_NAME_BYTES];
    if (!dtype_is_integer(asked->in.dtype) || reduction <= SCAND_REDUCTION_MAX)
        return 0;
    return error_set(error, -EINVAL,
                     "\"%s\" is \"%s\", but \"%s\" \"%s\" is of integers; allowed: sum, min, max; or give f32 or "
                     "f64 as \"output.dtype\", and " STEP_THAT_CASTS,
                     request_field(asked->request, asked->step, "reduction", field), reduction_words.words[reduction],
                     asked_samples(asked), dtype_word(asked->in.dtype));
}

static int reduce_check(const struct asked *asked, struct step *step, struct error *error)
{
    int r;
    if ((r = check_reduction(asked, error)) || (r = check_output_dtype(asked->in.dtype, asked->output, error)))
        return r;
    step->rule = reduce_rule(reduction_of(asked), asked->in.dtype, asked->output);
    return 0;
}

/*
 * The field `algorithm`: a reduction of the tutorials.
 */

static int refuse_name(const char *name, struct error *error)
{
    struct word_list names = {.length = 0};
    for (int i = 0; i < REDUCTION_COUNT; i++)
        word_list_add(&names, reduction_list[i].name);
    return refuse_algorithm_name(name, &names, error);
}

static int check_rule(const struct reduction *reduction, const struct scan_rule *rule, struct error *error)
{
    struct word_list allowed = {.length = 0};
    if (rule->input != SCAND_DTYPE_F32)
        return refuse_with_algorithm(reduction->name, "input.dtype", dtype_word(rule->input), "f32", error);
    if (rule->output != SCAND_DTYPE_F64)
        return refuse_with_algorithm(reduction->name, "output.dtype", dtype_word(rule->output), "f64", error);
    if (reduction->ops >> rule->reduction & 1)
        return 0;
    for (uint32_t i = 0; i < reduction_words.count; i++)
        if (reduction->ops >> i & 1)
            word_list_add(&allowed, reduction_words.words[i]);
    return refuse_with_algorithm(reduction->name, "reduction", reduction_words.words[rule->reduction], allowed.text,
                                 error);
}

/* Results are f64 and lie side by side. */
static int check_results(const char *name, const struct request *request, const struct operand *output,
                         const struct scan_rows *rows, struct error *error)
{
    if (rows->outer_rank > 0 && output->outer_strides[0] != sizeof(double))
        return error_set(error, -EINVAL, "results lie %" PRId64 " bytes apart; allowed with \"algorithm\" \"%s\": 8",
                         output->outer_strides[0], name);
    return check_algorithm_place(name, "output", &request->params->output, sizeof(double), sizeof(double), error);
}

static int reduce_check_algorithm(const struct request *request, const struct operand *operands,
                                  const struct scan_rows *rows, struct scan_rule *rule, struct error *error)
{
    const struct operand *input = &operands[OPERAND_INPUT];
    int id = reduction_find(request->params->algorithm), r;
    if (id < 0)
        return refuse_name(request->params->algorithm, error);
    const char *name = reduction_list[id].name;
    int64_t pitch = rows->outer_rank > 0 ? input->outer_strides[0] : 0;
    if ((r = check_rule(&reduction_list[id], rule, error)) || (r = check_algorithm_rank(name, rows, error)) ||
        (r = check_algorithm_stride(name, "input", rows, input->stride, error)) ||
        (r = check_algorithm_place(name, "input", &request->params->input, pitch, sizeof(float), error)) ||
        (r = check_results(name, request, &operands[OPERAND_OUTPUT], rows, error)))
        return r;
    rule->algorithm = (uint32_t)id + 1;
    return 0;
}

static uint64_t reduce_work(const struct step *step)
{
    return step->rule.pass_count * (step->rule.algorithm ? 4 : 1);
}

/* Each row has a number of its own to be made and rounded, some 150 ns. */
static uint64_t reduce_row_work(const struct step *step)
{
    (void)step;
    return 500;
}

static void reduce_describe(const struct step *step, char *out, size_t size)
{
    snprintf(out, size, "%s", reduction_words.words[step->rule.reduction]);
}

static void reduce_refuse(const struct step *step, int code, struct error *error)
{
    const struct scan_rule *rule = &step->rule;
    if (rule->algorithm)
        error_set(error, code,
                  "\"algorithm\" is \"%s\", which this daemon's device cannot run; a daemon started with --device cuda "
                  "can, if built with SCAND_TUTORIAL",
                  reduction_list[rule->algorithm - 1].name);
    else
        error_set(error, code,
                  "this daemon's device cannot do this reduction (\"reduction\" is \"%s\", \"input.dtype\" \"%s\", "
                  "\"output.dtype\" \"%s\"); a daemon started with --device cpu can",
                  reduction_words.words[rule->reduction], dtype_word(rule->input), dtype_word(rule->output));
}

const struct operation operation_reduce = {
    .check = reduce_check,
    .check_algorithm = reduce_check_algorithm,
    .work = reduce_work,
    .row_work = reduce_row_work,
    .describe = reduce_describe,
    .refuse = reduce_refuse,
};

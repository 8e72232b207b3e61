#include "algorithm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernels/tutorial/reduce/reduce.h"
#include "kernels/tutorial/scan/variants.h"

#define LIST_BYTES 384

/* A list under construction, "a, b"; cut where it is longer than its room. */
struct list {
    char text[LIST_BYTES];
    size_t length;
};

static void list_add(struct list *list, const char *word)
{
    size_t room = sizeof list->text - list->length;
    int n = snprintf(list->text + list->length, room, "%s%s", list->length ? ", " : "", word);
    list->length += (size_t)n < room ? (size_t)n : room - 1;
}

/* The name is shown as one line of ASCII, whatever was sent. */
static int refuse_name(const char *name, const char *there_are, struct error *error)
{
    char shown[LIMIT_NAME_BYTES];
    size_t length = strlen(name);
    for (size_t i = 0; i <= length; i++)
        shown[i] = i == length || (name[i] >= ' ' && name[i] <= '~' && name[i] != '"') ? name[i] : '?';
    return error_set(error, -EINVAL, "job.submit: \"algorithm\" is \"%s\"; there are: %s", shown, there_are);
}

static int refuse_variant_name(const char *name, struct error *error)
{
    struct list names = {.length = 0};
    for (int i = 0; i < VARIANT_COUNT; i++)
        list_add(&names, variant_list[i].name);
    return refuse_name(name, names.text, error);
}

static int refuse_reduction_name(const char *name, struct error *error)
{
    struct list names = {.length = 0};
    for (int i = 0; i < REDUCTION_COUNT; i++)
        list_add(&names, reduction_list[i].name);
    return refuse_name(name, names.text, error);
}

static int refuse(const char *algorithm, const char *field, const char *value, const char *allowed, struct error *error)
{
    return error_set(error, -EINVAL, "job.submit: \"%s\" is \"%s\"; allowed with \"algorithm\" \"%s\": %s", field,
                     value, algorithm, allowed);
}

static int check_accumulator(const struct variant *variant, enum scand_accumulator accumulator, struct error *error)
{
    struct list allowed = {.length = 0};
    if (variant->accumulators >> accumulator & 1)
        return 0;
    list_add(&allowed, accumulator_words.words[SCAND_ACCUMULATOR_AUTO]);
    for (uint32_t i = 0; i < accumulator_words.count; i++)
        if (variant->accumulators >> i & 1)
            list_add(&allowed, accumulator_words.words[i]);
    return refuse(variant->name, "accumulator", accumulator_words.words[accumulator], allowed.text, error);
}

static int check_rule(const struct variant *variant, const struct scan_rule *rule, struct error *error)
{
    if (rule->input != SCAND_DTYPE_F32)
        return refuse(variant->name, "input.dtype", dtype_words.words[rule->input], "f32", error);
    if (rule->output != SCAND_DTYPE_F32)
        return refuse(variant->name, "output.dtype", dtype_words.words[rule->output], "f32", error);
    if (rule->op != SCAND_OPERATOR_SUM)
        return refuse(variant->name, "op", operator_words.words[rule->op], "sum", error);
    if (rule->kind != SCAND_KIND_INCLUSIVE)
        return refuse(variant->name, "kind", kind_words.words[rule->kind], "inclusive", error);
    if (rule->intermediate != SCAND_DTYPE_F32)
        return refuse(variant->name, "intermediate", dtype_words.words[rule->intermediate], "f32", error);
    if (rule->demean)
        return error_set(error, -EINVAL, "job.submit: \"demean\" is 1; allowed with \"algorithm\" \"%s\": 0",
                         variant->name);
    return check_accumulator(variant, rule->accumulator, error);
}

static int check_side(const char *algorithm, const char *what, const struct msg_tensor *tensor, int64_t pitch,
                      int64_t bytes, struct error *error)
{
    if ((int64_t)(tensor->offset % (uint64_t)bytes) == 0 && pitch % bytes == 0)
        return 0;
    return error_set(error, -EINVAL,
                     "job.submit: \"%s\" has the offset %" PRIu64 " and a row every %" PRId64
                     " bytes; allowed with \"algorithm\" \"%s\": multiples of %" PRId64,
                     what, tensor->offset, pitch, algorithm, bytes);
}

static int check_stride(const char *algorithm, const char *what, const struct scan_rows *rows, int64_t stride,
                        struct error *error)
{
    if (rows->length <= 1 || stride == sizeof(float))
        return 0;
    return error_set(error, -EINVAL,
                     "job.submit: the stride of \"%s\" along the axis is %" PRId64
                     "; allowed with \"algorithm\" \"%s\": 4",
                     what, stride, algorithm);
}

static int check_rank(const char *algorithm, const struct scan_rows *rows, struct error *error)
{
    if (rows->outer_rank <= 1)
        return 0;
    return error_set(error, -EINVAL,
                     "job.submit: beside the axis there are %u dimensions whose strides do not make them one; "
                     "allowed with \"algorithm\" \"%s\": rows that all lie one stride apart; submit the others in "
                     "jobs of their own",
                     rows->outer_rank, algorithm);
}

static int check_rows(const struct variant *variant, const struct msg_job_submit_params *params,
                      const struct scan_rows *rows, struct error *error)
{
    const char *name = variant->name;
    bool many = rows->outer_rank > 0;
    if (rows->row_count == 0)
        return 0;
    if (rows->length > LIMIT_ALGORITHM_SAMPLES)
        return error_set(error, -EINVAL,
                         "job.submit: rows of %" PRIu64 " samples; allowed with \"algorithm\" \"%s\": 0 to %" PRIu64
                         "; leave \"algorithm\" out for longer ones",
                         rows->length, name, LIMIT_ALGORITHM_SAMPLES);
    int r;
    if ((r = check_rank(name, rows, error)) || (r = check_stride(name, "input", rows, rows->input_stride, error)) ||
        (r = check_side(name, "input", &params->input, many ? rows->input_outer_strides[0] : 0, 4, error)) ||
        (r = check_stride(name, "output", rows, rows->output_stride, error)))
        return r;
    return check_side(name, "output", &params->output, many ? rows->output_outer_strides[0] : 0, 4, error);
}

static int variant_check(const struct msg_job_submit_params *params, struct scan_rows *rows, struct error *error)
{
    int id = variant_find(params->algorithm), r;
    if (id < 0)
        return refuse_variant_name(params->algorithm, error);
    if ((r = check_rule(&variant_list[id], &rows->rule, error)) ||
        (r = check_rows(&variant_list[id], params, rows, error)))
        return r;
    rows->rule.algorithm = (uint32_t)id + 1;
    return 0;
}

static int check_reduction(const struct reduction *reduction, const struct scan_rule *rule, struct error *error)
{
    struct list allowed = {.length = 0};
    if (rule->input != SCAND_DTYPE_F32)
        return refuse(reduction->name, "input.dtype", dtype_words.words[rule->input], "f32", error);
    if (rule->output != SCAND_DTYPE_F64)
        return refuse(reduction->name, "output.dtype", dtype_words.words[rule->output], "f64", error);
    if (reduction->ops >> rule->reduction & 1)
        return 0;
    for (uint32_t i = 0; i < reduction_words.count; i++)
        if (reduction->ops >> i & 1)
            list_add(&allowed, reduction_words.words[i]);
    return refuse(reduction->name, "reduction", reduction_words.words[rule->reduction], allowed.text, error);
}

/* Results are f64 and lie side by side. */
static int check_results(const char *name, const struct msg_job_submit_params *params, const struct scan_rows *rows,
                         struct error *error)
{
    if (rows->outer_rank > 0 && rows->output_outer_strides[0] != sizeof(double))
        return error_set(error, -EINVAL,
                         "job.submit: results lie %" PRId64 " bytes apart; allowed with \"algorithm\" \"%s\": 8",
                         rows->output_outer_strides[0], name);
    return check_side(name, "output", &params->output, sizeof(double), sizeof(double), error);
}

static int reduction_check(const struct msg_job_submit_params *params, struct scan_rows *rows, struct error *error)
{
    int id = reduction_find(params->algorithm), r;
    if (id < 0)
        return refuse_reduction_name(params->algorithm, error);
    const char *name = reduction_list[id].name;
    int64_t pitch = rows->outer_rank > 0 ? rows->input_outer_strides[0] : 0;
    if ((r = check_reduction(&reduction_list[id], &rows->rule, error)) || (r = check_rank(name, rows, error)) ||
        (r = check_stride(name, "input", rows, rows->input_stride, error)) ||
        (r = check_side(name, "input", &params->input, pitch, sizeof(float), error)) ||
        (r = check_results(name, params, rows, error)))
        return r;
    rows->rule.algorithm = (uint32_t)id + 1;
    return 0;
}

int algorithm_check(const struct msg_job_submit_params *params, struct scan_rows *rows, struct error *error)
{
    if (params->algorithm[0] == '\0')
        return 0;
    return (rows->rule.operation == SCAND_OPERATION_REDUCE ? reduction_check : variant_check)(params, rows, error);
}

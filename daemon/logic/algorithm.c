#include "algorithm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernels/variants/variants.h"

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
static int refuse_name(const char *name, struct error *error)
{
    struct list names = {.length = 0};
    char shown[LIMIT_NAME_BYTES];
    size_t length = strlen(name);
    for (size_t i = 0; i <= length; i++)
        shown[i] = i == length || (name[i] >= ' ' && name[i] <= '~' && name[i] != '"') ? name[i] : '?';
    for (int i = 0; i < VARIANT_COUNT; i++)
        list_add(&names, variant_list[i].name);
    return error_set(error, -EINVAL, "job.submit: \"algorithm\" is \"%s\"; there are: %s", shown, names.text);
}

static int refuse(const struct variant *variant, const char *field, const char *value, const char *allowed,
                  struct error *error)
{
    return error_set(error, -EINVAL, "job.submit: \"%s\" is \"%s\"; allowed with \"algorithm\" \"%s\": %s", field,
                     value, variant->name, allowed);
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
    return refuse(variant, "accumulator", accumulator_words.words[accumulator], allowed.text, error);
}

static int check_rule(const struct variant *variant, const struct scan_rule *rule, struct error *error)
{
    if (rule->input != SCAND_DTYPE_F32)
        return refuse(variant, "input.dtype", dtype_words.words[rule->input], "f32", error);
    if (rule->output != SCAND_DTYPE_F32)
        return refuse(variant, "output.dtype", dtype_words.words[rule->output], "f32", error);
    if (rule->op != SCAND_OPERATOR_SUM)
        return refuse(variant, "op", operator_words.words[rule->op], "sum", error);
    if (rule->kind != SCAND_KIND_INCLUSIVE)
        return refuse(variant, "kind", kind_words.words[rule->kind], "inclusive", error);
    if (rule->intermediate != SCAND_DTYPE_F32)
        return refuse(variant, "intermediate", dtype_words.words[rule->intermediate], "f32", error);
    if (rule->demean)
        return error_set(error, -EINVAL, "job.submit: \"demean\" is 1; allowed with \"algorithm\" \"%s\": 0",
                         variant->name);
    return check_accumulator(variant, rule->accumulator, error);
}

static int check_side(const struct variant *variant, const struct scan_rows *rows, const char *what,
                      const struct msg_tensor *tensor, int64_t stride, int64_t pitch, struct error *error)
{
    const int64_t sample_bytes = sizeof(float);
    if (rows->length > 1 && stride != sample_bytes)
        return error_set(error, -EINVAL,
                         "job.submit: the stride of \"%s\" along the axis is %" PRId64
                         "; allowed with \"algorithm\" \"%s\": 4",
                         what, stride, variant->name);
    if (tensor->offset % sizeof(float) == 0 && pitch % sample_bytes == 0)
        return 0;
    return error_set(error, -EINVAL,
                     "job.submit: \"%s\" has the offset %" PRIu64 " and a row every %" PRId64
                     " bytes; allowed with \"algorithm\" \"%s\": multiples of 4",
                     what, tensor->offset, pitch, variant->name);
}

static int check_rows(const struct variant *variant, const struct msg_job_submit_params *params,
                      const struct scan_rows *rows, struct error *error)
{
    bool many = rows->outer_rank > 0;
    if (rows->row_count == 0)
        return 0;
    if (rows->length > VARIANT_LENGTH_MAX)
        return error_set(error, -EINVAL,
                         "job.submit: rows of %" PRIu64 " samples; allowed with \"algorithm\" \"%s\": 0 to %" PRIu64,
                         rows->length, variant->name, VARIANT_LENGTH_MAX);
    if (rows->outer_rank > 1)
        return error_set(error, -EINVAL,
                         "job.submit: beside the axis there are %u dimensions whose strides do not make them one; "
                         "allowed with \"algorithm\" \"%s\": rows that all lie one stride apart; submit the others in "
                         "jobs of their own",
                         rows->outer_rank, variant->name);
    int r = check_side(variant, rows, "input", &params->input, rows->input_stride,
                       many ? rows->input_outer_strides[0] : 0, error);
    return r ? r
             : check_side(variant, rows, "output", &params->output, rows->output_stride,
                          many ? rows->output_outer_strides[0] : 0, error);
}

int algorithm_take(const struct msg_job_submit_params *params, struct scan_rows *rows, struct error *error)
{
    int id = variant_find(params->algorithm), r;
    if (params->algorithm[0] == '\0')
        return 0;
    if (id < 0)
        return refuse_name(params->algorithm, error);
    r = check_rule(&variant_list[id], &rows->rule, error);
    if (!r)
        r = check_rows(&variant_list[id], params, rows, error);
    if (!r)
        rows->rule.algorithm = (uint32_t)id + 1;
    return r;
}

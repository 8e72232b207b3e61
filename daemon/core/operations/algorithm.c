/* The field `algorithm` of an operation in tiles: a variant of the tutorials (kernels/tutorial/steps) in place of its
 * kernel. */
#include <errno.h>
#include <stdio.h>

#include "daemon/core/operations/operation.h"
#include "kernels/tutorial/steps/steps.h"

static int refuse_name(const struct step *step, const char *name, struct error *error)
{
    struct word_list names = {.length = 0};
    for (int i = 0; i < STEP_VARIANT_COUNT; i++)
        if (step_variant_list[i].operation == (enum operation_id)step->operation)
            word_list_add(&names, step_variant_list[i].name);
    if (names.length > 0)
        return refuse_algorithm_name(name, &names, error);
    return error_set(error, -EINVAL, "\"algorithm\" is given, and \"%s\" has none; leave it out",
                     step_words.words[step->operation]);
}

static const char *field_of(const struct request *request, uint32_t number, char field[FIELD_NAME_BYTES])
{
    if (number == OPERAND_INPUT || number == OPERAND_OUTPUT)
        return number == OPERAND_INPUT ? "input" : "output";
    return request_operand_name(request, number, field);
}

/* A variant writes its output alone. */
static int refuse_written(const struct step_variant *variant, const char *name, struct error *error)
{
    return error_set(error, -EINVAL, "\"%s\" is given; allowed with \"algorithm\" \"%s\": none; leave one of them out",
                     name, variant->name);
}

static int check_operands(const struct step_variant *variant, const struct request *request,
                          const struct operand *operands, struct error *error)
{
    char field[FIELD_NAME_BYTES], dtype[FIELD_NAME_BYTES + sizeof ".dtype"];
    for (uint32_t i = 0; i < request->operand_count; i++) {
        const struct request_operand *asked = &request->operands[i];
        const bool is_further = i >= OPERAND_FURTHER;
        if (is_further && asked->access == ACCESS_WRITE)
            return refuse_written(variant, field_of(request, i, field), error);
        if (i == OPERAND_OFFSETS || operands[i].dtype == variant->dtype || (is_further && asked->class == CLASS_INDEX))
            continue;
        snprintf(dtype, sizeof dtype, "%s.dtype", field_of(request, i, field));
        return refuse_with_algorithm(variant->name, dtype, dtype_word(operands[i].dtype), dtype_word(variant->dtype),
                                     error);
    }
    return 0;
}

/* Results are multiples of their size apart, and begin at one. */
static int check_results(const struct step_variant *variant, const struct request *request,
                         const struct operand *output, uint32_t outer_rank, struct error *error)
{
    const int64_t bytes = (int64_t)output->item_bytes;
    int r = check_algorithm_place(variant->name, "output", &request->params->output, output->stride, bytes, error);
    for (uint32_t k = 0; k < outer_rank && !r; k++)
        r = check_algorithm_place(variant->name, "output", &request->params->output, output->outer_strides[k], bytes,
                                  error);
    return r;
}

int step_check_algorithm(const struct request *request, const struct operand *operands, const struct scan_rows *rows,
                         struct step *step, struct error *error)
{
    const int id = step_variant_find(request->params->algorithm);
    int r;
    if (id < 0 || step_variant_list[id].operation != (enum operation_id)step->operation)
        return refuse_name(step, request->params->algorithm, error);
    if ((r = check_operands(&step_variant_list[id], request, operands, error)) ||
        (r = check_results(&step_variant_list[id], request, &operands[OPERAND_OUTPUT], rows->outer_rank, error)))
        return r;
    step->algorithm = (uint32_t)id + 1;
    return 0;
}

void step_refuse_algorithm(const struct step *step, int code, struct error *error)
{
    error_set(
        error, code,
        "\"algorithm\" is \"%s\", which this daemon's device cannot run; a daemon started with --device cuda can, if "
        "built with SCAND_TUTORIAL",
        step_variant_list[step->algorithm - 1].name);
}

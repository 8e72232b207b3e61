#include "axes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "protocol/describe.h"
#include "protocol/lengths.h"

/* The axes that are merged: bit k of `mask` stands for dimension k. */
struct axes {
    const struct request *request;
    const struct msg_tensor *input;
    uint32_t mask, first; /* first: the lowest */
    char text[32];        /* "0, 2" */
};

static bool is_one_of(const struct axes *axes, uint32_t k)
{
    return (axes->mask >> k & 1) != 0;
}

/*
 * The axes that the request asks for.
 */

static int read_axes(struct axes *axes, const struct msg_job_run_params *params, struct error *error)
{
    const uint32_t rank = params->input.shape_count;
    axes->mask = 0;
    for (uint32_t i = 0; i < params->axes_count; i++) {
        const uint64_t axis = params->axes[i];
        if (axis >= rank)
            return error_set(error, -EINVAL, "\"axes\"[%u] is %" PRIu64 "; a tensor of %u dimensions has 0 to %u",
                             (unsigned)i, axis, rank, rank - 1);
        if (is_one_of(axes, (uint32_t)axis))
            return error_set(error, -EINVAL, "\"axes\" has %" PRIu64 " twice; give each dimension once", axis);
        axes->mask |= UINT32_C(1) << axis;
    }
    if (params->axis >= rank || !is_one_of(axes, (uint32_t)params->axis))
        return error_set(error, -EINVAL, "\"axis\" is %" PRIu64 "; with \"axes\" it is one of them", params->axis);
    size_t length = 0;
    axes->first = (uint32_t)__builtin_ctz(axes->mask);
    for (uint32_t k = 0; k < rank; k++)
        if (is_one_of(axes, k))
            length += (size_t)snprintf(axes->text + length, sizeof axes->text - length, "%s%u", length ? ", " : "", k);
    return 0;
}

/* A row of several dimensions has no length of its own that a step could change, and ends as a number. */
static int check_steps(const struct axes *axes, const struct msg_job_run_params *params, struct error *error)
{
    const uint32_t last = params->steps_count - 1;
    char field[FIELD_NAME_BYTES];
    if (params->offsets.shape_count > 0)
        return error_set(error, -EINVAL, "\"axes\" has %u items, but \"offsets\" makes rows along one; leave one out",
                         params->axes_count);
    for (uint32_t i = 0; i <= last; i++) {
        const uint32_t operation = params->steps[i].operation;
        const bool fits = i < last ? step_keeps_length(&params->steps[i], params->axis)
                                   : operation_leaves_rows((enum operation_id)operation);
        if (!fits)
            return error_set(error, -EINVAL,
                             "\"%s\" is \"%s\", but \"axes\" has %u items; allowed then: steps that leave rows as long "
                             "as they are and, last, one that leaves a number of each; name one axis otherwise",
                             request_field(axes->request, i, "operation", field), step_words.words[operation],
                             params->axes_count);
    }
    return 0;
}

/*
 * Tensors.
 */

static int check_form(const struct axes *axes, const char *name, const struct msg_tensor *tensor, struct error *error)
{
    if (tensor->strides_count != tensor->shape_count)
        return error_set(error, -EINVAL, "\"%s\" has %u dimensions but %u strides; give one stride for each", name,
                         tensor->shape_count, tensor->strides_count);
    if (tensor->shape_count != axes->input->shape_count)
        return error_set(error, -EINVAL, "\"input\" has %u dimensions and \"%s\" %u; they must be equal",
                         axes->input->shape_count, name, tensor->shape_count);
    return 0;
}

static int check_shape(const struct axes *axes, const char *name, const struct msg_tensor *tensor, bool of_rows,
                       struct error *error)
{
    for (uint32_t k = 0; k < tensor->shape_count; k++) {
        if (of_rows && is_one_of(axes, k) && tensor->shape[k] != 1)
            return error_set(error, -EINVAL,
                             "dimension %u of \"%s\", along which rows are reduced, is %" PRIu64 "; it must be 1", k,
                             name, tensor->shape[k]);
        if (!(of_rows && is_one_of(axes, k)) && tensor->shape[k] != axes->input->shape[k])
            return error_set(error, -EINVAL,
                             "dimension %u of \"input\" is %" PRIu64 " and of \"%s\" %" PRIu64 "; they must be equal",
                             k, axes->input->shape[k], name, tensor->shape[k]);
    }
    return 0;
}

/* Finds the shape and stride of the one dimension. From an element to the next one in C order it must always be the
 * same way. */
static int find_line(const struct axes *axes, const char *name, const struct msg_tensor *tensor, uint64_t *shape,
                     int64_t *stride, struct error *error)
{
    bool is_first = true;
    *shape = 1;
    *stride = (int64_t)dtype_size_bytes(tensor->dtype);
    for (uint32_t k = tensor->shape_count; k-- > 0;) {
        if (!is_one_of(axes, k) || tensor->shape[k] == 1)
            continue;
        int64_t run = 0;
        const bool fits = !is_first && *shape <= INT64_MAX && !__builtin_mul_overflow((int64_t)*shape, *stride, &run) &&
                          run == tensor->strides[k];
        if (!is_first && !fits && *shape > 0 && tensor->shape[k] > 0)
            return error_set(error, -EINVAL,
                             "the stride of \"%s\" along dimension %u is %" PRId64 ", but along \"axes\" (%s) an "
                             "element in C order is %" PRId64 " bytes after the %" PRIu64 " before it; copy the "
                             "tensor so that these dimensions lie side by side, or reduce along one after the other",
                             name, k, tensor->strides[k], axes->text, run, *shape);
        *stride = is_first ? tensor->strides[k] : *stride;
        is_first = false;
        if (__builtin_mul_overflow(*shape, tensor->shape[k], shape))
            return error_set(error, -EINVAL, "rows of more than 2^64 samples; at most %" PRIu64 " are allowed",
                             LIMIT_ROW_SAMPLES);
    }
    return 0;
}

/* Puts one dimension in the place of the first, and drops the others. */
static void put_line(const struct axes *axes, struct msg_tensor *tensor, uint64_t shape, int64_t stride)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < tensor->shape_count; k++) {
        if (is_one_of(axes, k) && k != axes->first)
            continue;
        tensor->shape[kept] = k == axes->first ? shape : tensor->shape[k];
        tensor->strides[kept++] = k == axes->first ? stride : tensor->strides[k];
    }
    tensor->shape_count = tensor->strides_count = kept;
}

static int merge_tensor(const struct axes *axes, const char *name, struct msg_tensor *tensor, bool of_rows,
                        struct error *error)
{
    uint64_t shape;
    int64_t stride;
    int r;
    if ((r = check_form(axes, name, tensor, error)) || (r = check_shape(axes, name, tensor, of_rows, error)) ||
        (r = find_line(axes, name, tensor, &shape, &stride, error)))
        return r;
    put_line(axes, tensor, shape, stride);
    return 0;
}

/* A vector for all rows stays what it is. */
static int merge_operand(const struct axes *axes, uint32_t step, const struct operand_row *row,
                         struct msg_tensor *tensor, struct error *error)
{
    char field[FIELD_NAME_BYTES];
    const char *name = request_field(axes->request, step, row->name, field);
    const bool is_vector = row->follows == FOLLOWS_VECTORS || row->follows == FOLLOWS_JOB;
    if (tensor->shape_count == 0 || (is_vector && tensor->shape_count == 1))
        return 0;
    if (is_vector)
        return error_set(error, -EINVAL,
                         "\"%s\" has %u dimensions; with several \"axes\" it must have one, a vector that all rows "
                         "share",
                         name, tensor->shape_count);
    return merge_tensor(axes, name, tensor, row->follows == FOLLOWS_ROWS, error);
}

static int merge_steps(const struct axes *axes, struct msg_job_run_params *params, struct error *error)
{
    int r = 0;
    for (uint32_t i = 0; i < params->steps_count && !r; i++)
        for (const struct operand_row *row = operand_rows[params->steps[i].operation]; row->name && !r; row++)
            r = merge_operand(axes, i, row, (void *)((char *)&params->steps[i] + row->offset), error);
    return r;
}

int axes_merge(const struct request *request, struct msg_job_run_params *params, struct error *error)
{
    const struct msg_tensor input = params->input;
    struct axes axes = {.request = request, .input = &input};
    int r;
    if ((r = read_axes(&axes, params, error)))
        return r;
    if (params->axes_count > 1 &&
        ((r = check_steps(&axes, params, error)) || (r = merge_tensor(&axes, "input", &params->input, false, error)) ||
         (r = merge_tensor(&axes, "output", &params->output, true, error)) || (r = merge_steps(&axes, params, error))))
        return r;
    params->axis = axes.first;
    params->axes_count = 0;
    return 0;
}

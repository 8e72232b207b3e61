#include "tensor_layout.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "algorithm.h"
#include "operation_check.h"

/* stride x (shape - 1): the way from a dimension's first element to its last. */
static bool dimension_reach(const struct msg_tensor *tensor, uint32_t k, int64_t *reach)
{
    uint64_t steps = tensor->shape[k] - 1;
    return steps <= INT64_MAX && !__builtin_mul_overflow((int64_t)steps, tensor->strides[k], reach);
}

static bool is_empty(const struct msg_tensor *tensor)
{
    for (uint32_t k = 0; k < tensor->shape_count; k++)
        if (tensor->shape[k] == 0)
            return true;
    return false;
}

/* Bytes below and above element (0, 0, ...) that the tensor reaches; false on overflow. */
static bool tensor_reach(const struct msg_tensor *tensor, int64_t *below, int64_t *above)
{
    *below = 0;
    *above = (int64_t)dtype_size_bytes(tensor->dtype);
    for (uint32_t k = 0; k < tensor->shape_count; k++) {
        int64_t reach;
        if (!dimension_reach(tensor, k, &reach))
            return false;
        int64_t *side = reach < 0 ? below : above;
        if (__builtin_add_overflow(*side, reach, side))
            return false;
    }
    return true;
}

int tensor_extent(const struct msg_tensor *tensor, const char *what, uint64_t buffer_bytes, struct extent *extent,
                  struct error *error)
{
    int64_t below, above;
    uint64_t before, end;
    if (is_empty(tensor)) {
        *extent = (struct extent){0, 0};
        return 0;
    }
    if (!tensor_reach(tensor, &below, &above) || __builtin_add_overflow(tensor->offset, (uint64_t)above, &end))
        return error_set(error, -EINVAL,
                         "job.submit: \"%s\" reaches past 2^63 bytes; check its shape, strides and offset", what);
    before = -(uint64_t)below; /* below may be INT64_MIN */
    if (before > tensor->offset)
        return error_set(error, -EINVAL,
                         "job.submit: \"%s\" begins %" PRIu64 " bytes before its buffer; its offset %" PRIu64
                         " must be at least %" PRIu64 " with these strides",
                         what, before - tensor->offset, tensor->offset, before);
    if (end > buffer_bytes)
        return error_set(error, -EINVAL,
                         "job.submit: \"%s\" ends at byte %" PRIu64 ", but its buffer has %" PRIu64
                         "; make the buffer larger, or the shape, strides or offset smaller",
                         what, end, buffer_bytes);
    *extent = (struct extent){tensor->offset - before, end};
    return 0;
}

struct dimension {
    uint64_t shape, step; /* step: the stride's size, bytes */
};

static int dimension_compare(const void *a, const void *b)
{
    const struct dimension *x = a, *y = b;
    return (x->step > y->step) - (x->step < y->step);
}

int tensor_disjoint(const struct msg_tensor *tensor, const char *what, struct error *error)
{
    struct dimension dimensions[SCAND_RANK_MAX];
    size_t count = 0;
    for (uint32_t k = 0; k < tensor->shape_count; k++) {
        int64_t stride = tensor->strides[k];
        uint64_t step = stride < 0 ? -(uint64_t)stride : (uint64_t)stride;
        if (tensor->shape[k] == 0)
            return 0;
        if (tensor->shape[k] > 1)
            dimensions[count++] = (struct dimension){tensor->shape[k], step};
    }
    qsort(dimensions, count, sizeof dimensions[0], dimension_compare);
    /* Each step must clear all that the smaller ones reach. tensor_extent has bounded the sum. */
    uint64_t reach = dtype_size_bytes(tensor->dtype);
    for (size_t i = 0; i < count; i++) {
        if (dimensions[i].step < reach)
            return error_set(error, -EINVAL,
                             "job.submit: elements of \"%s\" overlap: a stride of %" PRIu64
                             " bytes steps into the %" PRIu64 " bytes that one element or inner dimension takes",
                             what, dimensions[i].step, reach);
        reach += dimensions[i].step * (dimensions[i].shape - 1);
    }
    return 0;
}

bool tensor_same(const struct msg_tensor *a, const struct msg_tensor *b)
{
    if (a->buffer != b->buffer || a->offset != b->offset || dtype_size_bytes(a->dtype) != dtype_size_bytes(b->dtype) ||
        a->shape_count != b->shape_count)
        return false;
    for (uint32_t k = 0; k < a->shape_count; k++)
        if (a->shape[k] != b->shape[k] || (a->shape[k] > 1 && a->strides[k] != b->strides[k]))
            return false;
    return true;
}

static int check_ranks(const struct msg_tensor *tensor, const char *what, struct error *error)
{
    if (tensor->strides_count != tensor->shape_count)
        return error_set(error, -EINVAL,
                         "job.submit: \"%s\" has %u dimensions but %u strides; give one stride for each", what,
                         tensor->shape_count, tensor->strides_count);
    return 0;
}

static int check_shape(const struct msg_tensor *input, const struct msg_tensor *other, const char *what,
                       struct error *error)
{
    if (input->shape_count != other->shape_count)
        return error_set(error, -EINVAL, "job.submit: \"input\" has %u dimensions and \"%s\" %u; they must be equal",
                         input->shape_count, what, other->shape_count);
    for (uint32_t k = 0; k < input->shape_count; k++)
        if (input->shape[k] != other->shape[k])
            return error_set(error, -EINVAL,
                             "job.submit: dimension %u of \"input\" is %" PRIu64 " and of \"%s\" %" PRIu64
                             "; they must be equal",
                             k, input->shape[k], what, other->shape[k]);
    return 0;
}

static bool is_ragged_reduction(const struct msg_job_submit_params *params)
{
    return params->operation == SCAND_OPERATION_REDUCE && params->offsets.shape_count > 0;
}

static uint64_t ragged_rows(const struct msg_job_submit_params *params)
{
    return params->offsets.shape[0] > 0 ? params->offsets.shape[0] - 1 : 0;
}

/* A reduction leaves one element of the axis, or, of ragged rows, one for each of them. */
static int check_output_shape(const struct msg_job_submit_params *params, struct error *error)
{
    struct msg_tensor output = params->output;
    bool has_axis = params->axis < output.shape_count && params->axis < params->input.shape_count;
    if (params->operation == SCAND_OPERATION_REDUCE && has_axis) {
        uint64_t *extent = &output.shape[params->axis];
        if (is_ragged_reduction(params) && *extent != ragged_rows(params))
            return error_set(error, -EINVAL,
                             "job.submit: dimension %" PRIu64 " of \"output\" is %" PRIu64 "; it must be %" PRIu64
                             ", the rows that \"offsets\" makes",
                             params->axis, *extent, ragged_rows(params));
        if (!is_ragged_reduction(params) && *extent != 1)
            return error_set(error, -EINVAL,
                             "job.submit: dimension %" PRIu64
                             " of \"output\", along which rows are reduced, is %" PRIu64 "; it must be 1",
                             params->axis, *extent);
        *extent = params->input.shape[params->axis];
    }
    return check_shape(&params->input, &output, "output", error);
}

static int check_shapes(const struct msg_job_submit_params *params, struct error *error)
{
    const struct msg_tensor *input = &params->input;
    int r = check_output_shape(params, error);
    if (r)
        return r;
    if (params->coefficients.shape_count > 0 && (r = check_shape(input, &params->coefficients, "coefficients", error)))
        return r;
    if (params->axis >= input->shape_count)
        return error_set(error, -EINVAL, "job.submit: \"axis\" is %" PRIu64 "; a tensor of %u dimensions has 0 to %u",
                         params->axis, input->shape_count, input->shape_count - 1);
    return 0;
}

static int check_sizes(const struct msg_job_submit_params *params, struct error *error)
{
    uint64_t rows = 1, length = params->input.shape[params->axis];
    if (length > LIMIT_ROW_SAMPLES)
        return error_set(error, -EINVAL, "job.submit: rows of %" PRIu64 " samples; at most %" PRIu64 " are allowed",
                         length, LIMIT_ROW_SAMPLES);
    if (is_empty(&params->output))
        return 0;
    for (uint32_t k = 0; k < params->input.shape_count; k++)
        if (k != params->axis && (__builtin_mul_overflow(rows, params->input.shape[k], &rows) || rows > LIMIT_ROWS))
            return error_set(error, -EINVAL, "job.submit: more than %" PRIu64 " rows; submit them in several jobs",
                             LIMIT_ROWS);
    return 0;
}

/* Along a dimension of one element, or of a tensor without any, no step is taken, and tensor_extent has not looked at
 * the stride: kernels get the one that it would have in C order, since products with the client's may overflow. */
static int64_t stride_of(const struct msg_tensor *tensor, uint64_t k)
{
    if (k >= tensor->shape_count)
        return 0;
    return tensor->shape[k] > 1 && !is_empty(tensor) ? tensor->strides[k] : (int64_t)dtype_size_bytes(tensor->dtype);
}

/* A full run of a dimension, bytes. What wraps here is refused by tensor_extent. */
static int64_t run_bytes(uint64_t shape, int64_t stride)
{
    return (int64_t)((uint64_t)stride * shape);
}

/* Adds an outer dimension, or merges it into the last one when a step of that equals a full run of this. */
static void add_outer(struct scan_rows *rows, uint64_t shape, int64_t input_stride, int64_t output_stride,
                      int64_t coefficient_stride)
{
    if (shape == 1)
        return;
    uint32_t last = rows->outer_rank - 1;
    if (rows->outer_rank > 0 && rows->input_outer_strides[last] == run_bytes(shape, input_stride) &&
        rows->output_outer_strides[last] == run_bytes(shape, output_stride) &&
        rows->coefficient_outer_strides[last] == run_bytes(shape, coefficient_stride)) {
        rows->outer_shape[last] *= shape;
    } else {
        last = rows->outer_rank++;
        rows->outer_shape[last] = shape;
    }
    rows->input_outer_strides[last] = input_stride;
    rows->output_outer_strides[last] = output_stride;
    rows->coefficient_outer_strides[last] = coefficient_stride;
}

/* All axes but the scanned one. */
static void add_axes(struct scan_rows *rows, const struct msg_job_submit_params *params)
{
    if (is_empty(&params->output)) {
        rows->row_count = 0;
        return;
    }
    if (is_ragged_reduction(params))
        add_outer(rows, ragged_rows(params), 0, stride_of(&params->output, params->axis), 0);
    for (uint32_t k = 0; k < params->input.shape_count; k++) {
        if (k == params->axis)
            continue;
        rows->row_count *= params->input.shape[k];
        add_outer(rows, params->input.shape[k], stride_of(&params->input, k), stride_of(&params->output, k),
                  stride_of(&params->coefficients, k));
    }
}

int tensor_rows(const struct msg_job_submit_params *params, struct scan_rows *rows, struct error *error)
{
    struct scan_rule rule;
    int r;
    if ((r = check_ranks(&params->input, "input", error)) || (r = check_ranks(&params->output, "output", error)))
        return r;
    if (params->coefficients.shape_count > 0 && (r = check_ranks(&params->coefficients, "coefficients", error)))
        return r;
    if ((r = check_shapes(params, error)) || (r = check_sizes(params, error)) ||
        (r = operation_check(params, &rule, error)))
        return r;

    struct scan_rows made = {
        .rule = rule,
        .length = params->input.shape[params->axis],
        .row_count = 1,
        .input_stride = stride_of(&params->input, params->axis),
        .output_stride = stride_of(&params->output, params->axis),
        .coefficient_stride = stride_of(&params->coefficients, params->axis),
    };
    add_axes(&made, params);
    r = algorithm_check(params, &made, error);
    if (r)
        return r;
    *rows = made;
    return 0;
}

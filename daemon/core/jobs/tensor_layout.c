#include "tensor_layout.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* stride x (shape - 1): the way from a dimension's first element to its last. */
static bool dimension_reach(const struct msg_tensor *tensor, uint32_t k, int64_t *reach)
{
    uint64_t steps = tensor->shape[k] - 1;
    return steps <= INT64_MAX && !__builtin_mul_overflow((int64_t)steps, tensor->strides[k], reach);
}

bool tensor_is_empty(const struct msg_tensor *tensor)
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
    if (tensor_is_empty(tensor)) {
        *extent = (struct extent){0, 0};
        return 0;
    }
    if (!tensor_reach(tensor, &below, &above) || __builtin_add_overflow(tensor->offset, (uint64_t)above, &end))
        return error_set(error, -EINVAL, "\"%s\" reaches past 2^63 bytes; check its shape, strides and offset", what);
    before = -(uint64_t)below; /* below may be INT64_MIN */
    if (before > tensor->offset)
        return error_set(error, -EINVAL,
                         "\"%s\" begins %" PRIu64 " bytes before its buffer; its offset %" PRIu64
                         " must be at least %" PRIu64 " with these strides",
                         what, before - tensor->offset, tensor->offset, before);
    if (end > buffer_bytes)
        return error_set(error, -EINVAL,
                         "\"%s\" ends at byte %" PRIu64 ", but its buffer has %" PRIu64
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
                             "elements of \"%s\" overlap: a stride of %" PRIu64 " bytes steps into the %" PRIu64
                             " bytes that one element or inner dimension takes",
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

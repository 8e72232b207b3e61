/* Extents: the bytes of some memory that tensors span. */
#include "client/lib/internal.h"

struct extent extent_of(const struct scand_tensor *tensor)
{
    struct extent all = {.device = tensor->buffer->device, .inode = tensor->buffer->inode, .end = UINT64_MAX},
                  extent = all;
    int64_t size_bytes = (int64_t)dtype_size_bytes(tensor->dtype), low = 0, high = size_bytes;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        int64_t reach;
        if (tensor->shape[i] == 0 || __builtin_mul_overflow(tensor->shape[i] - 1, tensor->strides[i], &reach))
            return all;
        if (__builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high))
            return all;
    }
    /* Device memory counts from the beginning of its allocation, of which other buffers may be other parts. */
    uint64_t origin;
    if (__builtin_add_overflow(tensor->buffer->offset, tensor->offset, &origin) ||
        __builtin_add_overflow(origin, low, &extent.begin) || __builtin_add_overflow(origin, high, &extent.end))
        return all;
    return extent;
}

bool extents_overlap(const struct extent *a, const struct extent *b)
{
    return a->device == b->device && a->inode == b->inode && a->begin < b->end && b->begin < a->end;
}

bool operand_is_dense(const struct operand *operand)
{
    const struct msg_tensor *tensor = operand->params;
    uint64_t bytes = dtype_size_bytes(tensor->dtype);
    for (uint32_t i = 0; i < tensor->shape_count; i++)
        if (__builtin_mul_overflow(bytes, tensor->shape[i], &bytes))
            return false;
    return bytes == operand->extent.end - operand->extent.begin; /* elements of results do not overlap */
}

bool operands_coincide(const struct operand *a, const struct operand *b)
{
    const struct msg_tensor *one = a->params, *other = b->params;
    if (!extents_overlap(&a->extent, &b->extent) || a->extent.begin != b->extent.begin ||
        a->extent.end != b->extent.end || one->shape_count != other->shape_count ||
        dtype_size_bytes(one->dtype) != dtype_size_bytes(other->dtype))
        return false;
    for (uint32_t i = 0; i < one->shape_count; i++)
        if (one->shape[i] != other->shape[i] || one->strides[i] != other->strides[i])
            return false;
    return true;
}

#include "footprint.h"

/* Offsets from the origin: of the lowest sample and of the highest. */
struct ends {
    int64_t low, high;
};

/* Adds a dimension, along which there are the indices `from` to `to`. */
static void ends_widen(struct ends *ends, int64_t stride, uint64_t from, uint64_t to)
{
    int64_t a = stride * (int64_t)from, b = stride * (int64_t)to;
    ends->low += a < b ? a : b;
    ends->high += a < b ? b : a;
}

/* Ragged rows lie on one line. */
static struct ends line_ends(const struct operand *operand, const struct scan_rows *rows, uint64_t first, uint64_t last)
{
    struct ends ends = {0, 0};
    ends_widen(&ends, operand->stride, rows->offsets[first], rows->offsets[last + 1] - 1);
    return ends;
}

static struct ends rows_ends(const struct operand *operand, const struct scan_rows *rows, uint64_t first, uint64_t last)
{
    struct ends ends = {0, 0};
    /* Indices inside one that changes take all their values. */
    for (uint64_t k = rows->outer_rank; k-- > 0;) {
        uint64_t values = rows->outer_shape[k], from = first % values, to = last % values;
        first /= values;
        last /= values;
        ends_widen(&ends, operand->outer_strides[k], first == last ? from : 0, first == last ? to : values - 1);
    }
    ends_widen(&ends, operand->stride, 0, operand->length - 1);
    return ends;
}

struct extent operand_footprint(const struct operand *operand, const struct scan_rows *rows, uint64_t first,
                                uint64_t count)
{
    const bool ragged = operand->follows == FOLLOWS_SAMPLES && rows->offsets;
    if (operand->follows == FOLLOWS_JOB)
        return operand->extent;
    if (count == 0 || (ragged ? rows->offsets[first] == rows->offsets[first + count] : operand->length == 0))
        return (struct extent){0, 0};
    const struct ends ends = (ragged ? line_ends : rows_ends)(operand, rows, first, first + count - 1);
    const uint64_t origin = (uint64_t)(operand->origin - (unsigned char *)operand->buffer->span.base);
    return (struct extent){origin + (uint64_t)ends.low, origin + (uint64_t)ends.high + operand->item_bytes};
}

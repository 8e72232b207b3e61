#include "footprint.h"

/* How an array of some rows lies. */
struct lines {
    const void *origin; /* sample 0 of row 0 */
    const int64_t *outer_strides;
    int64_t stride;
    uint64_t length, item_bytes;
};

/* Offsets from the origin: of the lowest sample and of the highest. */
struct ends {
    int64_t low, high;
};

static bool is_reduction(const struct scan_rows *rows)
{
    return rows->rule.operation == SCAND_OPERATION_REDUCE;
}

static struct lines lines_of(const struct scan_rows *rows, enum array array)
{
    switch (array) {
    case ARRAY_INPUT:
        return (struct lines){rows->input, rows->input_outer_strides, rows->input_stride, rows->length,
                              dtype_size_bytes(rows->rule.input)};
    case ARRAY_OUTPUT:
        return (struct lines){rows->output, rows->output_outer_strides, rows->output_stride,
                              is_reduction(rows) ? 1 : rows->length, dtype_size_bytes(rows->rule.output)};
    default:
        return (struct lines){rows->coefficients, rows->coefficient_outer_strides, rows->coefficient_stride,
                              rows->length, dtype_size_bytes(rows->rule.coefficients)};
    }
}

/* Adds a dimension, along which there are the indices `from` to `to`. */
static void ends_widen(struct ends *ends, int64_t stride, uint64_t from, uint64_t to)
{
    int64_t a = stride * (int64_t)from, b = stride * (int64_t)to;
    ends->low += a < b ? a : b;
    ends->high += a < b ? b : a;
}

struct extent rows_footprint(const struct scan_rows *rows, enum array array, const void *base, uint64_t first,
                             uint64_t count)
{
    struct scan_rows joined;
    struct ends ends = {0, 0};
    if (rows->offsets && !(array == ARRAY_OUTPUT && is_reduction(rows))) {
        joined = scan_rows_joined(rows, first, count);
        rows = &joined;
        first = 0;
        count = 1;
    }
    const struct lines lines = lines_of(rows, array);
    if (count == 0 || lines.length == 0)
        return (struct extent){0, 0};
    /* Where an index changes, the ones inside it take all their values. */
    for (uint64_t k = rows->outer_rank, last = first + count - 1; k-- > 0;) {
        uint64_t values = rows->outer_shape[k], from = first % values, to = last % values;
        first /= values;
        last /= values;
        ends_widen(&ends, lines.outer_strides[k], first == last ? from : 0, first == last ? to : values - 1);
    }
    ends_widen(&ends, lines.stride, 0, lines.length - 1);
    uint64_t origin = (uint64_t)((uintptr_t)lines.origin - (uintptr_t)base);
    return (struct extent){origin + (uint64_t)ends.low, origin + (uint64_t)ends.high + lines.item_bytes};
}

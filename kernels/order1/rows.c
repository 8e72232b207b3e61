/*
 * The places of rows in memory.
 */
#include "kernels/scan.h"

int64_t scan_row_offset(const struct scan_rows *rows, const int64_t outer_strides[SCAN_OUTER_MAX], uint64_t row)
{
    int64_t offset = 0;
    for (uint32_t axis = rows->outer_rank; axis-- > 0;) {
        offset += (int64_t)(row % rows->outer_shape[axis]) * outer_strides[axis];
        row /= rows->outer_shape[axis];
    }
    return offset;
}

struct scan_rows scan_rows_joined(const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    struct scan_rows joined = *rows;
    int64_t begin = (int64_t)rows->offsets[first];
    bool reduces = rows->rule.operation == SCAND_OPERATION_REDUCE;
    int64_t output = reduces ? scan_row_offset(rows, rows->output_outer_strides, first) : begin * rows->output_stride;
    joined.length = rows->offsets[first + count] - rows->offsets[first];
    joined.row_count = 1;
    joined.offsets = joined.device_offsets = NULL;
    joined.input = (const char *)rows->input + begin * rows->input_stride;
    joined.output = (char *)rows->output + output;
    joined.outer_rank = 0;
    if (rows->coefficients)
        joined.coefficients = (const char *)rows->coefficients + begin * rows->coefficient_stride;
    return joined;
}

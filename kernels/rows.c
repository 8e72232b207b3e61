/*
 * Where rows lie.
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

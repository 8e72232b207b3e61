/*
 * The list of reductions, for builds with and without CUDA.
 */
#include "kernels/tutorial/reduce/reduce.h"

#include <assert.h>
#include <string.h>

#include "kernels/scan.h"

enum { VARIES = false, FIXED = true };

#define X(SYMBOL, NAME, OPS, SPAN, ORDER, TEACHES) {NAME, TEACHES, OPS, SPAN, ORDER},
const struct reduction reduction_list[REDUCTION_COUNT] = {REDUCTIONS(X)};
#undef X

int reduction_find(const char *name)
{
    for (int i = 0; i < REDUCTION_COUNT; i++)
        if (strcmp(reduction_list[i].name, name) == 0)
            return i;
    return -1;
}

struct reduce_rows reduce_rows_from(const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    int64_t row_bytes = (int64_t)(rows->length * sizeof(float));
    assert(rows->outer_rank <= 1);
    struct reduce_rows reduce = {
        .input = (const float *)((const char *)rows->input + scan_row_offset(rows, rows->input_outer_strides, first)),
        .output = (double *)((char *)rows->output + scan_row_offset(rows, rows->output_outer_strides, first)),
        .rows = count,
        .length = rows->length,
        .pitch = rows->outer_rank ? rows->input_outer_strides[0] : row_bytes,
        .op = rows->rule.reduction,
    };
    return reduce;
}

static uint64_t parts_of(uint64_t length, uint64_t span)
{
    return (length + span - 1) / span;
}

/* Results of two launches: one reads what the one before wrote. */
uint64_t reduction_workspace_bytes(enum reduction_id id, const struct reduce_rows *rows)
{
    uint64_t span = reduction_list[id].span;
    if (span == 0 || rows->length <= span)
        return 0;
    uint64_t parts = parts_of(rows->length, span);
    return rows->rows * (parts + parts_of(parts, span)) * sizeof(double);
}

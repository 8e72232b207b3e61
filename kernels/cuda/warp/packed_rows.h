/*
 * Rows of at most a tile, one right after the other in memory, of which a warp takes several at a time
 * (packed_rows.cuh): what a launcher says of them.
 */
#ifndef KERNELS_CUDA_WARP_PACKED_ROWS_H
#define KERNELS_CUDA_WARP_PACKED_ROWS_H

#include <string.h>

#include "kernels/cuda/select/plan.h"
#include "kernels/order1/order.h"

struct work_queue;

struct packed_rows {
    const char *input;
    char *output;
    uint64_t rows;
    int length, leaves; /* samples and leaves of a row */
    int rows_at_once;   /* by a warp */
    int inverse;        /* PACKED_INVERSE, which spares divisions */
    int pass_count;
    bool backward[SCAND_PASSES_MAX];
    bool intermediate_f32;
    struct work_queue *queue; /* not of thread_per_row.cuh */
};

/* Times a number of a few tiles' leaves, this is 2^16 times the number of its row, or a bit more. */
#define PACKED_INVERSE(LEAVES) ((1 << 16) / (LEAVES) + 1)

/* The rows of a plan whose outer axis is one. */
static inline struct packed_rows packed_rows_of(const struct scan_plan *scan)
{
    struct packed_rows plan = {};
    plan.input = scan->input.base + (int64_t)scan->first_row * scan->input.outer_strides[0];
    plan.output = scan->output.base + (int64_t)scan->first_row * scan->output.outer_strides[0];
    plan.rows = scan->items;
    plan.length = (int)scan->length;
    plan.leaves = (int)scan_parts(scan->length, ORDER_LEAF);
    plan.inverse = PACKED_INVERSE(plan.leaves);
    plan.pass_count = scan->pass_count;
    memcpy(plan.backward, scan->backward, sizeof(plan.backward));
    plan.intermediate_f32 = scan->intermediate_f32;
    return plan;
}

#endif

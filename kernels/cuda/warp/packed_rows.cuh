/*
 * Rows of at most a tile, one right after the other in memory, of which a warp takes several at a time.
 */
#ifndef KERNELS_CUDA_WARP_PACKED_ROWS_CUH
#define KERNELS_CUDA_WARP_PACKED_ROWS_CUH

#include <string.h>

#include "kernels/cuda/lane/lane.cuh"
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

/* A lane's leaf. */
struct packed_leaf {
    int first;   /* first sample of the leaf in the stretch */
    int number;  /* in its row */
    int samples; /* 0 to 16 */
};

/* The lane's leaf in a tile of a stretch. Where no rows are left it begins as the first one does. */
DEVICE struct packed_leaf packed_leaf_of(const struct packed_rows &plan, int tile, int rows)
{
    const int index = tile * WARP + lane_index(), row = index * plan.inverse >> 16;
    struct packed_leaf leaf = {0, index - row * plan.leaves, 0};
    if (row < rows) {
        leaf.first = row * plan.length + leaf.number * ORDER_LEAF;
        leaf.samples = min(plan.length - leaf.number * ORDER_LEAF, ORDER_LEAF);
    }
    return leaf;
}

/* The rows that a warp's iteration begins with are iteration * rows_at_once. */
DEVICE int packed_count(const struct packed_rows &plan, uint64_t iteration)
{
    uint64_t first = iteration * plan.rows_at_once;
    return first < plan.rows ? (int)min(plan.rows - first, (uint64_t)plan.rows_at_once) : 0;
}

DEVICE uint64_t packed_offset(const struct packed_rows &plan, uint64_t iteration)
{
    return iteration * plan.rows_at_once * plan.length * sizeof(float);
}

#endif

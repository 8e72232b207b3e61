/*
 * Rows of at most a tile, one right after the other in memory, of which a warp takes several at a time.
 */
#ifndef KERNELS_CUDA_WARP_PACKED_ROWS_CUH
#define KERNELS_CUDA_WARP_PACKED_ROWS_CUH

#include "kernels/cuda/lane/lane.cuh"
#include "kernels/cuda/warp/packed_rows.h"

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

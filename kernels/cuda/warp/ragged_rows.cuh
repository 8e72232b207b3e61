/*
 * Ragged rows of at most a tile, one right after the other in memory, of which a warp takes as many at a time as have
 * leaves for its lanes.
 */
#ifndef KERNELS_CUDA_WARP_RAGGED_ROWS_CUH
#define KERNELS_CUDA_WARP_RAGGED_ROWS_CUH

#include "kernels/cuda/warp/kogge_stone.cuh"

DEVICE int ragged_leaves(int samples)
{
    return (samples + ORDER_LEAF - 1) / ORDER_LEAF;
}

/* The end of the group that would begin with this lane's row, of `leaves`; more than WARP for a row that is not short,
 * and on its own. `begins`: one does. */
DEVICE int ragged_group_end(int leaves, bool *begins)
{
    const int lane = lane_index(), upto = sum_upto_lane(leaves), most = upto - leaves + WARP;
    int next = 0;
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2)
        if (__shfl_sync(~0u, upto, next + step - 1) <= most)
            next += step;
    next += __shfl_sync(~0u, upto, next) <= most;
    next = max(next, lane + 1);
    *begins = __all_sync(~0u, next == lane + 1); /* nothing fits together */
    for (int begin = *begins ? WARP : 0; begin < WARP; begin = __shfl_sync(~0u, next, begin))
        *begins |= begin == lane;
    return next;
}

/* This lane's part of a tile. */
struct ragged_leaf {
    int first;          /* sample in the tile */
    int number, leaves; /* in its row, or in the tile of it */
    int samples;        /* 0 to 16 */
};

DEVICE struct ragged_leaf ragged_leaf_of(int tile_samples)
{
    const int first = lane_index() * ORDER_LEAF;
    return {first, lane_index(), ragged_leaves(tile_samples), max(min(tile_samples - first, ORDER_LEAF), 0)};
}

/* A lane's leaf among those of `number` rows from `first_row` on, of `rows` in all, that begin with sample `first`. */
DEVICE struct ragged_leaf ragged_leaf_among(const uint64_t *offsets, uint64_t rows, uint64_t first_row, int number,
                                            uint64_t first)
{
    const int lane = lane_index();
    const uint64_t row = min(first_row + min(lane, number), rows);
    const uint64_t begin = offsets[row];
    const int length = lane < number && row < rows ? (int)(offsets[row + 1] - begin) : 0;
    const int upto = sum_upto_lane(ragged_leaves(length));
    int own = 0; /* the first row that ends after this lane's leaf */
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2)
        if (__shfl_sync(~0u, upto, own + step - 1) <= lane)
            own += step;
    struct ragged_leaf leaf;
    const int own_length = __shfl_sync(~0u, length, own);
    leaf.leaves = ragged_leaves(own_length);
    leaf.number = lane - (__shfl_sync(~0u, upto, own) - leaf.leaves);
    leaf.first = __shfl_sync(~0u, (int)(begin - first), own) + leaf.number * ORDER_LEAF;
    leaf.samples = min(own_length - leaf.number * ORDER_LEAF, ORDER_LEAF);
    if (lane >= __shfl_sync(~0u, upto, WARP - 1))
        leaf = {};
    return leaf;
}

#endif

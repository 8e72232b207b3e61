/*
 * An order block to work on, and where its samples lie.
 */
#ifndef KERNELS_CUDA_WARP_ITEM_CUH
#define KERNELS_CUDA_WARP_ITEM_CUH

#include "kernels/cuda/lane/lane.cuh"
#include "kernels/cuda/select/plan.h"

/* An order block to work on. One thread finds out, for all. */
struct scan_item {
    char *input, *output;         /* addresses of the item's first sample */
    uint64_t sum;                 /* index in plan.sums */
    int length;                   /* 0 where there is no more work */
    bool outer[SCAND_PASSES_MAX]; /* true for passes with a carry from other blocks of the row */
};

DEVICE char *side_at(const struct scan_plan &plan, const struct scan_side &side, uint64_t row, uint64_t block,
                     unsigned part = ORDER_BLOCK)
{
    int64_t offset = (int64_t)(block * part) * side.stride;
#pragma unroll
    for (int axis = SCAN_OUTER_MAX - 1; axis > 0; axis--)
        if (axis < plan.outer_rank) {
            offset += (int64_t)(row % plan.outer_shape[axis]) * side.outer_strides[axis];
            row /= plan.outer_shape[axis];
        }
    return side.base + offset + (int64_t)row * side.outer_strides[0];
}

/* `part`: samples of a row in each of its blocks. */
DEVICE struct scan_item scan_item_at(const struct scan_plan &plan, uint64_t index, unsigned part = ORDER_BLOCK)
{
    struct scan_item item = {};
    if (index >= plan.items)
        return item;
    index += plan.first_item;
    uint64_t row = index, block = 0;
    if (plan.blocks > 1) {
        row = index / plan.blocks;
        block = index % plan.blocks;
    }
    item.input = side_at(plan, plan.input, plan.first_row + row, block, part);
    item.output = side_at(plan, plan.output, plan.first_row + row, block, part);
    item.sum = row * plan.sums_per_row + block;
    item.length = (int)min(plan.length - block * part, (uint64_t)part);
    for (int pass = 0; pass < SCAND_PASSES_MAX; pass++)
        item.outer[pass] = pass != plan.totals_pass && block != (plan.backward[pass] ? plan.blocks - 1 : 0);
    return item;
}

#endif

/*
 * Reductions of rows, by the same order (order.h) as scans: the total of a leaf in a lane, of a tile in a warp. A warp,
 * or a team of a few, takes the tiles of an order block one after the other, the next one being on its way to shared
 * memory meanwhile; no other warps meet. Of short rows a warp takes as many at a time as it has lanes for their leaves.
 *
 * Rows of several order blocks leave the totals of their blocks; a second launch makes the results of them.
 */
#ifndef KERNELS_CUDA_REDUCE_CUH
#define KERNELS_CUDA_REDUCE_CUH

#include "kernels/cuda/carries.cuh"
#include "kernels/cuda/general.cuh"
#include "kernels/cuda/short.cuh"
#include "kernels/reduce.h"

#define REDUCE_WARPS 8 /* of a thread block */

struct reduce_plan {
    struct scan_plan scan; /* rows and their order blocks */
    struct short_plan rows_at_once;
    enum scand_reduction reduction;
    enum scand_dtype output;
    bool output_aligned;
    int team;     /* warps that work on an order block: 1 to REDUCE_WARPS, a power of 2 */
    void *totals; /* of order blocks, sums_per_row for each row; NULL where a block is a row */
};

/* Squares of samples; those of f32 are exact. */
struct sum_squares : sum_f64 {
    DEVICE sample from_f32(float x)
    {
        return (double)x * (double)x;
    }
};

/* Of 2, 4 or 8 bytes. */
DEVICE void result_store(char *to, uint64_t bits, uint32_t bytes, bool aligned)
{
    if (!aligned)
        for (uint32_t i = 0; i < bytes; i++)
            to[i] = (char)(bits >> 8 * i);
    else if (bytes == 2)
        *(uint16_t *)to = (uint16_t)bits;
    else if (bytes == 4)
        *(uint32_t *)to = (uint32_t)bits;
    else
        *(uint64_t *)to = bits;
}

template <class Sum> DEVICE void reduce_write(const struct reduce_plan &plan, uint64_t row, typename Sum::sum total)
{
    uint64_t bits = 0;
    double result = reduce_finish(plan.reduction, (double)total, plan.scan.length);
    if (codec_class(plan.output) == SCAND_CLASS_F64)
        codec_encode_f64(result, &bits);
    else
        bits = codec_encoded_f32(plan.output, (float)result);
    result_store(side_at(plan.scan, plan.scan.output, row, 0), bits, codec_bytes(plan.output), plan.output_aligned);
}

/* The total of this lane's leaf, of which `there` samples exist. */
template <class Sum> DEVICE typename Sum::sum reduce_leaf(const float samples[ORDER_LEAF], int there)
{
    typename Sum::sample x[ORDER_LEAF];
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        x[i] = Sum::from_f32(samples[i]);
    if (there < ORDER_LEAF)
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            if (i >= there)
                x[i] = Sum::absent();
    return leaf_total<Sum, false, false>(x, ORDER_LEAF - 1);
}

/*
 * Kogge-Stone over the members of a group, one per lane, of which only the prefix of member `last` is wanted: it is
 * right in that lane, whatever the others have. Nobody listens to lanes without a predecessor where the group is whole.
 */
template <class Sum> DEVICE typename Sum::sum reduce_group(typename Sum::sum total, int last)
{
    const int lane = threadIdx.x % WARP;
    if (last == WARP - 1) {
#pragma unroll
        for (int distance = 1; distance < ORDER_FAN; distance *= 2)
            total = Sum::add(__shfl_up_sync(~0u, total, distance), total);
    } else {
#pragma unroll
        for (int distance = 1; distance < ORDER_FAN; distance *= 2) {
            typename Sum::sum before = __shfl_up_sync(~0u, total, distance);
            total = Sum::add(lane < distance ? Sum::identity() : before, total);
        }
    }
    return total;
}

/* Which warps of a thread block work on one order block together, and which of them this is. */
struct reduce_team {
    int size, member, number;
};

DEVICE struct reduce_team reduce_team_of(const struct reduce_plan &plan)
{
    const int warp = warp_index();
    return {plan.team, warp % plan.team, warp / plan.team};
}

DEVICE void team_meet(struct reduce_team team)
{
    asm volatile("bar.sync %0, %1;" : : "r"(1 + team.number), "r"(team.size * WARP) : "memory");
}

/* Where a warp is: at a tile of an order block, or at a block of which it has none. */
struct reduce_step {
    uint64_t item;
    const char *source; /* the tile's first sample */
    int tile;           /* in the block */
    int left;           /* samples of the block from there on; may be negative */
};

DEVICE struct reduce_step step_into(const struct reduce_plan &plan, struct reduce_team team, uint64_t item)
{
    struct reduce_step step = {item, NULL, team.member, 0};
    uint64_t row = item, block = 0;
    if (item >= plan.scan.items)
        return step;
    if (plan.scan.blocks > 1) {
        row = item / plan.scan.blocks;
        block = item % plan.scan.blocks;
    }
    const int first = team.member * ORDER_TILE;
    step.source =
        side_at(plan.scan, plan.scan.input, plan.scan.first_row + row, block) + first * plan.scan.input.stride;
    step.left = (int)min(plan.scan.length - block * ORDER_BLOCK, (uint64_t)ORDER_BLOCK) - first;
    return step;
}

DEVICE struct reduce_step step_after(const struct reduce_plan &plan, struct reduce_team team, struct reduce_step step)
{
    const int samples = team.size * ORDER_TILE;
    if (step.left <= samples)
        return step_into(plan, team, step.item + (uint64_t)gridDim.x * (REDUCE_WARPS / team.size));
    return {step.item, step.source + samples * plan.scan.input.stride, step.tile + team.size, step.left - samples};
}

DEVICE void step_fetch(const struct reduce_plan &plan, struct reduce_step step, uint4 *stage)
{
    if (step.left > 0)
        tile_fetch<false>(stage, step.source, plan.scan.input, step.left, 0);
    __pipeline_commit();
}

/* The total of the step's tile to *result. */
template <class Sum>
DEVICE void step_reduce(const struct reduce_plan &plan, struct reduce_step step, const uint4 *stage,
                        typename Sum::sum *result)
{
    const int lane = threadIdx.x % WARP, count = min(step.left, ORDER_TILE), last = (count - 1) / ORDER_LEAF;
    const int shift = plan.scan.input.access == ACCESS_SLOTS ? shift_of<float>(step.source) : 0;
    float samples[ORDER_LEAF];
    leaf_read(stage, shift, samples);
    leaf_decode(plan.scan.input_form, samples);
    typename Sum::sum total = reduce_leaf<Sum>(samples, count - lane * ORDER_LEAF);
    total = reduce_group<Sum>(total, last);
    if (lane == last)
        *result = total;
}

/* An order block's result, or its total, from those of its tiles. */
template <class Sum>
DEVICE void reduce_end(const struct reduce_plan &plan, uint64_t item, const typename Sum::sum *tiles)
{
    const uint64_t block = plan.scan.blocks > 1 ? item % plan.scan.blocks : 0;
    const int last = (int)(min(plan.scan.length - block * ORDER_BLOCK, (uint64_t)ORDER_BLOCK) - 1) / ORDER_TILE;
    const int lane = threadIdx.x % WARP;
    typename Sum::sum total = lane <= last ? tiles[lane] : Sum::identity();
    if (last > 0)
        total = reduce_group<Sum>(total, last);
    if (lane != last)
        return;
    if (plan.totals)
        ((typename Sum::sum *)plan.totals)[item / plan.scan.blocks * plan.scan.sums_per_row + block] = total;
    else
        reduce_write<Sum>(plan, plan.scan.first_row + item, total);
}

/*
 * The totals of a team's tiles lie in one of two places in turn: when the members meet after a block, each has written
 * its own, and the first of them has read those of the block before.
 */
template <class Sum>
__global__ void __launch_bounds__(REDUCE_WARPS *WARP) reduce_kernel(const __grid_constant__ struct reduce_plan plan)
{
    __shared__ uint4 stages[REDUCE_WARPS][2][TILE_ROOM];
    __shared__ typename Sum::sum totals[REDUCE_WARPS][2][ORDER_FAN];
    const struct reduce_team team = reduce_team_of(plan);
    const int warp = warp_index();
    struct reduce_step next = step_into(plan, team, blockIdx.x + (uint64_t)team.number * gridDim.x);
    step_fetch(plan, next, stages[warp][0]);
    for (int stage = 0, side = 0; next.item < plan.scan.items; stage ^= 1) {
        const struct reduce_step step = next;
        next = step_after(plan, team, step);
        step_fetch(plan, next, stages[warp][stage ^ 1]);
        __pipeline_wait_prior(1);
        __syncwarp();
        if (step.left > 0)
            step_reduce<Sum>(plan, step, stages[warp][stage], &totals[team.number][side][step.tile]);
        __syncwarp();
        if (next.item == step.item)
            continue;
        if (team.size > 1)
            team_meet(team);
        if (team.member == 0)
            reduce_end<Sum>(plan, step.item, totals[team.number][side]);
        side ^= 1;
    }
}

/* Short rows, one right after the other. */
template <class Sum>
__global__ void __launch_bounds__(REDUCE_WARPS *WARP)
    reduce_short_kernel(const __grid_constant__ struct reduce_plan plan)
{
    __shared__ uint4 stages[REDUCE_WARPS][2][TILE_ROOM];
    const struct short_plan &rows = plan.rows_at_once;
    const int warp = warp_index();
    const uint64_t stride = (uint64_t)gridDim.x * REDUCE_WARPS;
    uint64_t turn = blockIdx.x + (uint64_t)warp * gridDim.x;
    short_fetch(rows, turn, stages[warp][0]);
    for (int stage = 0; short_rows(rows, turn) > 0; turn += stride, stage ^= 1) {
        const struct short_leaf leaf = short_leaf_of(rows, short_rows(rows, turn));
        const int shift = shift_of<float>(rows.input + short_offset(rows, turn));
        float samples[ORDER_LEAF];
        short_fetch(rows, turn + stride, stages[warp][stage ^ 1]);
        __pipeline_wait_prior(1);
        __syncwarp();
        short_read(stages[warp][stage], shift + leaf.first, (shift | rows.length) % 4 == 0, samples);
        __syncwarp();
        leaf_decode(plan.scan.input_form, samples);
        typename Sum::sum total = reduce_leaf<Sum>(samples, leaf.samples);
        total = short_scan<Sum, false>(total, leaf.number, rows.leaves);
        if (leaf.samples > 0 && leaf.number == rows.leaves - 1)
            reduce_write<Sum>(plan, plan.scan.first_row + turn * rows.rows_at_once + lane_index() / rows.leaves, total);
    }
}

/* The results from the totals of order blocks. A thread block takes rows one after the other, or, where they have one
 * block or no samples, each thread one. */
template <class Sum>
__global__ void reduce_finish_kernel(const __grid_constant__ struct reduce_plan plan, uint64_t rows)
{
    typename Sum::sum *totals = (typename Sum::sum *)plan.totals;
    const bool blocks = plan.scan.blocks > 1;
    const uint64_t first = blocks ? blockIdx.x : blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
    const uint64_t step = blocks ? gridDim.x : gridDim.x * (uint64_t)blockDim.x;
    for (uint64_t row = first; row < rows; row += step) {
        typename Sum::sum *level = totals + row * plan.scan.sums_per_row;
        for (uint64_t members = plan.scan.blocks; members > 1; members = (members + ORDER_FAN - 1) / ORDER_FAN) {
            level_up<Sum, false>(level, members, level + members);
            level += members;
            __syncthreads();
        }
        if (!blocks || threadIdx.x == 0)
            reduce_write<Sum>(plan, plan.scan.first_row + row, plan.scan.length ? *level : Sum::zero());
    }
}

#endif

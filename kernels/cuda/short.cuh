/*
 * Rows of at most a tile, sums of f32 samples, one row right after the other in memory. A warp takes as many rows
 * as it has lanes for their leaves, on its own: nothing is shared with other warps. The samples of all of them are one
 * stretch, which travels as a tile does (samples.cuh), those of the next rows while these are computed.
 */
#ifndef KERNELS_CUDA_SHORT_CUH
#define KERNELS_CUDA_SHORT_CUH

#include "kernels/cuda/scan.cuh"

#define SHORT_WARPS 8 /* of a thread block */

struct short_plan {
    const char *input;
    char *output;
    uint64_t rows;
    int length, leaves; /* of a row */
    int rows_at_once;   /* by a warp */
    int pass_count;
    bool backward[SCAND_PASSES_MAX];
    bool intermediate_f32;
    bool ahead; /* of lanes.cuh: fetch the next rows while some are computed */
};

/* This lane's leaf. */
struct short_leaf {
    int first;   /* its first sample in the stretch */
    int number;  /* in its row */
    int samples; /* 0 to 16 */
};

DEVICE struct short_leaf short_leaf_of(const struct short_plan &plan, int rows)
{
    int lane = lane_index(), row = lane / plan.leaves;
    struct short_leaf leaf = {0, lane - row * plan.leaves, 0};
    if (row < rows) {
        leaf.first = row * plan.length + leaf.number * ORDER_LEAF;
        leaf.samples = min(plan.length - leaf.number * ORDER_LEAF, ORDER_LEAF);
    }
    return leaf;
}

/* The rows that a warp's turn begins with are turn * rows_at_once. */
DEVICE int short_rows(const struct short_plan &plan, uint64_t turn)
{
    uint64_t first = turn * plan.rows_at_once;
    return first < plan.rows ? (int)min(plan.rows - first, (uint64_t)plan.rows_at_once) : 0;
}

DEVICE uint64_t short_offset(const struct short_plan &plan, uint64_t turn)
{
    return turn * plan.rows_at_once * plan.length * sizeof(float);
}

/* Writes the results of a stretch in slots that it begins or ends in the middle of, which are those of others too. */
DEVICE void stretch_drain_edges(float *slots, int shift, int count, const float *first, const float *last)
{
    const int lane = lane_index(), begin = shift > 0, end = (unsigned)(shift + count) / 4;
    const bool head = begin > 0 && lane < 4, tail = lane >= 4 && lane < 8 && end >= begin;
    const int k = head ? lane : end * 4 + lane - 4;
    if ((head || tail) && k >= shift && k < shift + count)
        slots[k] = head ? first[lane] : last[lane - 4];
}

/* Writes a stretch of `count` results, the first of them `shift` results from the start of the tile. */
DEVICE void stretch_drain(const uint4 *tile, char *target, int shift, int count)
{
    const int end = (unsigned)(shift + count) / 4;
    target -= shift * 4;
    drain_slots<float, TILE_SLOTS>(tile, target, shift > 0, end, 0);
    if (shift > 0 || (shift + count) % 4 > 0)
        stretch_drain_edges((float *)target, shift, count, (const float *)tile,
                            (const float *)(tile + slot_place<float>(end)));
}

DEVICE void short_fetch(const struct short_plan &plan, uint64_t turn, uint4 *tile)
{
    const int samples = short_rows(plan, turn) * plan.length;
    const char *source = plan.input + short_offset(plan, turn);
    if (samples > 0)
        fetch_slots(tile, source, shift_of<float>(source), samples);
    __pipeline_commit();
}

/* `whole_slots`: all leaves begin with a slot. */
DEVICE void short_read(uint4 *tile, int first, bool whole_slots, float x[ORDER_LEAF])
{
    if (whole_slots) {
#pragma unroll
        for (int j = 0; j < ORDER_LEAF / 4; j++)
            slot_get(&tile[slot_place<float>(first / 4 + j)], &x[4 * j]);
    } else {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = *staged_sample<float>(tile, first + i);
    }
}

DEVICE void short_write(uint4 *tile, int first, int samples, bool whole_slots, const float x[ORDER_LEAF])
{
    if (whole_slots) {
#pragma unroll
        for (int j = 0; j < ORDER_LEAF / 4; j++)
            if (4 * j < samples)
                slot_put(&tile[slot_place<float>(first / 4 + j)], &x[4 * j]);
    } else {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            if (i < samples)
                *staged_sample<float>(tile, first + i) = x[i];
    }
}

/* Kogge-Stone over the leaves of each row: totals to inclusive prefixes. */
template <class Sum, bool Backward>
DEVICE typename Sum::sum short_scan(typename Sum::sum total, int position, int leaves)
{
#pragma unroll
    for (int distance = 1; distance < ORDER_FAN; distance *= 2) {
        if (distance >= leaves)
            break;
        typename Sum::sum before;
        lane_before<Backward>(total, &before, distance, WARP - 1);
        total = sum_choose<Sum>(position >= distance, Sum::add(before, total), total);
    }
    return total;
}

template <class Sum, bool Backward, int Kind>
DEVICE void short_pass(typename Sum::sample x[ORDER_LEAF], const struct short_plan &plan, struct short_leaf leaf)
{
    const bool partial = !Sum::has_identity && Backward && plan.length % ORDER_LEAF != 0;
    const int position = Backward ? plan.leaves - 1 - leaf.number : leaf.number, last = leaf.samples - 1;
    if (Sum::has_identity && Backward && plan.length % ORDER_LEAF != 0) /* forward, nobody listens to them */
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            if (i >= leaf.samples)
                x[i] = Sum::absent();
    typename Sum::sum sum = partial ? leaf_total<Sum, Backward, Backward>(x, last)
                                    : leaf_total<Sum, Backward, false>(x, last),
                      before;
    sum = short_scan<Sum, Backward>(sum, position, plan.leaves);
    lane_before<Backward>(sum, &before, 1, WARP - 1);
    carry<Sum> carry = carry_of<Sum>(before, position > 0);
    if (partial)
        leaf_values<Sum, Backward, Kind, Backward>(x, carry, last, Kind);
    else
        leaf_values<Sum, Backward, Kind, false>(x, carry, last, Kind);
    if (Kind == SCAND_KIND_EXCLUSIVE && Sum::has_identity && position == 0)
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            if (i == (Backward ? last : 0))
                x[i] = Sum::value(Sum::zero());
}

template <class Sum, int Kind>
DEVICE void short_passes(typename Sum::sample x[ORDER_LEAF], const struct short_plan &plan, struct short_leaf leaf)
{
#pragma unroll 1
    for (int pass = 0;; pass++) {
        if (plan.backward[pass])
            short_pass<Sum, true, Kind>(x, plan, leaf);
        else
            short_pass<Sum, false, Kind>(x, plan, leaf);
        if (pass + 1 == plan.pass_count)
            return;
        leaf_between_passes<Sum>(x, plan.intermediate_f32);
    }
}

/* With 64 a processor holds 4 thread blocks, with 48 5: that pays for f64 alone, and needs no spilling only where
 * passes are inclusive. */
template <class Sum, int Kind> constexpr int short_registers()
{
    const bool wide = sizeof(typename Sum::sample) == 8;
    return !wide ? 64 : Kind == SCAND_KIND_INCLUSIVE ? 48 : 80;
}

template <class Sum, int Kind>
__global__ void REGISTERS((short_registers<Sum, Kind>())) short_kernel(const __grid_constant__ struct short_plan plan)
{
    __shared__ uint4 tiles[SHORT_WARPS][2][TILE_ROOM];
    const int warp = warp_index();
    const uint64_t stride = (uint64_t)gridDim.x * SHORT_WARPS;
    uint64_t turn = (uint64_t)blockIdx.x * SHORT_WARPS + warp;
    short_fetch(plan, turn, tiles[warp][0]);
    for (int side = 0; short_rows(plan, turn) > 0; turn += stride, side ^= 1) {
        uint4 *tile = tiles[warp][side];
        const int rows = short_rows(plan, turn);
        struct short_leaf leaf = short_leaf_of(plan, rows);
        short_fetch(plan, turn + stride, tiles[warp][side ^ 1]);
        __pipeline_wait_prior(1);
        __syncwarp();
        float samples[ORDER_LEAF];
        typename Sum::sample x[ORDER_LEAF];
        const int shift = shift_of<float>(plan.input + short_offset(plan, turn));
        short_read(tile, shift + leaf.first, (shift | plan.length) % 4 == 0, samples);
        __syncwarp();
        leaf_pin(samples);
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = Sum::from_f32(samples[i]);
        short_passes<Sum, Kind>(x, plan, leaf);
        leaf_results<Sum, float>(x, samples);
        char *target = plan.output + short_offset(plan, turn);
        const int shift_out = shift_of<float>(target);
        leaf = short_leaf_of(plan, rows); /* anew, to hold no registers */
        short_write(tile, shift_out + leaf.first, leaf.samples, (shift_out | plan.length) % 4 == 0, samples);
        __syncwarp();
        stretch_drain(tile, target, shift_out, rows * plan.length);
        __syncwarp();
    }
}

#endif

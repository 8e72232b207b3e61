/*
 * Rows of at most four leaves, sums of f32 samples, one row right after the other in memory. A lane takes a row, a warp
 * 32 of them: no lane meets another, and all have the same to do whatever the length, where lanes that took a leaf
 * each would often have a short one. A row stays in shared memory and passes through registers leaf by leaf; one that
 * is a leaf stays in registers.
 */
#ifndef KERNELS_CUDA_KERNELS_THREAD_PER_ROW_CUH
#define KERNELS_CUDA_KERNELS_THREAD_PER_ROW_CUH

#include "kernels/cuda/lane/leaf.cuh"
#include "kernels/cuda/warp/packed_rows.cuh"
#include "kernels/cuda/warp/tile_io.cuh"

#define SHORT_WARPS 8 /* of a thread block */

/* Rows of a warp's turn: 2 of the shortest for a lane, so that there is as much to do as there is to be found out. */
#define LANES_ROWS(LENGTH) ((LENGTH) <= ORDER_LEAF ? 2 * WARP : WARP)

/* Slots of shared memory for them, which begin within a slot. */
#define LANES_ROOM(LENGTH) (((LANES_ROWS(LENGTH) * (LENGTH) + 3 + 3) / 4 + 7) / 8 * 8)

/* Where the rows of a turn lie. */
struct lanes_stretch {
    char *slots; /* in device memory, from the one on that they begin in */
    int shift;   /* samples before the first */
    int count;   /* samples */
};

DEVICE struct lanes_stretch lanes_stretch_of(const struct short_plan &plan, const char *base, uint64_t turn)
{
    const char *first = base + short_offset(plan, turn);
    const int shift = shift_of<float>(first);
    return {(char *)first - shift * 4, shift, short_rows(plan, turn) * plan.length};
}

DEVICE void lanes_fetch(const struct short_plan &plan, uint64_t turn, uint4 *tile)
{
    const struct lanes_stretch stretch = lanes_stretch_of(plan, plan.input, turn);
    const int end = stretch.count > 0 ? stretch.shift + stretch.count : 0, lane = lane_index();
#pragma unroll 4
    for (int k = lane; k < end / 4; k += WARP)
        __pipeline_memcpy_async(tile + k, stretch.slots + k * SLOT_BYTES, SLOT_BYTES);
    if (end % 4 > 0 && lane == 0)
        slot_fetch(tile + end / 4, stretch.slots + end / 4 * SLOT_BYTES, end % 4 * 4);
    __pipeline_commit();
}

DEVICE void lanes_drain(const uint4 *tile, struct lanes_stretch stretch)
{
    const int end = (unsigned)(stretch.shift + stretch.count) / 4, begin = stretch.shift > 0;
    __builtin_assume(__isGlobal(stretch.slots));
#pragma unroll 4
    for (int k = begin + lane_index(); k < end; k += WARP)
        *(uint4 *)(stretch.slots + k * SLOT_BYTES) = tile[k];
    if (stretch.shift > 0 || (stretch.shift + stretch.count) % 4 > 0)
        stretch_drain_edges((float *)stretch.slots, stretch.shift, stretch.count, (const float *)tile,
                            (const float *)(tile + end));
}

/* A leaf of `samples` samples. What x has beyond them is not said. */
DEVICE void lane_read(const float *leaf, int samples, bool whole_slots, float x[ORDER_LEAF])
{
#pragma unroll
    for (int j = 0; j < ORDER_LEAF; j += 4) {
        if (j >= samples)
            break;
        if (whole_slots)
            slot_get((const uint4 *)(leaf + j), &x[j]);
        else
#pragma unroll
            for (int i = j; i < j + 4; i++)
                x[i] = i < samples ? leaf[i] : 0.0f;
    }
}

DEVICE void lane_write(float *leaf, int samples, bool whole_slots, const float x[ORDER_LEAF])
{
#pragma unroll
    for (int j = 0; j < ORDER_LEAF; j += 4) {
        if (j >= samples)
            break;
        if (whole_slots) {
            slot_put((uint4 *)(leaf + j), &x[j]);
        } else {
#pragma unroll
            for (int i = j; i < j + 4; i++)
                if (i < samples)
                    leaf[i] = x[i];
        }
    }
}

/*
 * Replaces the samples of a leaf by their values, by adding them to `sum`, and finds the leaf's total. First: of the
 * leaves of its row it is met first, and has perhaps not all samples; then there is nothing to add to. Others that lack
 * samples are met last, and what is made of those does not matter.
 */
template <class Sum, bool Backward, int Kind, bool First, bool Total>
DEVICE void lane_leaf(float x[ORDER_LEAF], int samples, typename Sum::sum &sum, typename Sum::sum &total)
{
    if (First && Sum::has_identity)
        sum = Sum::identity();
#pragma unroll
    for (int j = 0; j < ORDER_LEAF; j++) {
        const int k = Backward ? ORDER_LEAF - 1 - j : j;
        if (k / 4 * 4 >= samples)
            continue;
        const bool start = First && k == (Backward ? samples - 1 : 0);
        typename Sum::sample sample = Sum::from_f32(x[k]);
        if (First && Backward && Sum::has_identity && k >= samples)
            sample = Sum::absent();
        typename Sum::sum before = sum;
        if (Sum::has_identity || !start)
            sum = Sum::add_sample(sum, sample);
        else
            sum = Sum::first(sample);
        if (Total)
            total = j == 0 ? Sum::first(sample) : Sum::add_sample(total, sample);
        if (Kind == SCAND_KIND_EXCLUSIVE)
            sample = start ? Sum::value(Sum::zero()) : Sum::value(before);
        else
            sample = Sum::value(sum);
        x[k] = Sum::as_f32(sample);
    }
}

/* NaN in a leaf are also in the sum after it. */
template <class Sum> DEVICE void lane_quiet_nan(float x[ORDER_LEAF], typename Sum::sum sum)
{
    float last = Sum::as_f32(Sum::value(sum));
    if (last != last) {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            quiet_nan(&x[i]);
    }
}

/* One pass over a row. */
template <class Sum, bool Backward, int Kind>
DEVICE void lane_pass(const struct short_plan &plan, float *row, bool whole_slots)
{
    typename Sum::sum sum = {}, totals[2] = {}, total = {};
#pragma unroll 1
    for (int met = 0; met < plan.leaves; met++) {
        const int leaf = Backward ? plan.leaves - 1 - met : met;
        const int samples = min(plan.length - leaf * ORDER_LEAF, ORDER_LEAF);
        float *begin = row + leaf * ORDER_LEAF;
        float x[ORDER_LEAF];
        lane_read(begin, samples, whole_slots, x);
        if (met == 0)
            lane_leaf<Sum, Backward, Kind, true, false>(x, samples, sum, total);
        else if (met + 1 < plan.leaves)
            lane_leaf<Sum, Backward, Kind, false, true>(x, samples, sum, total);
        else
            lane_leaf<Sum, Backward, Kind, false, false>(x, samples, sum, total);
        lane_quiet_nan<Sum>(x, sum);
        lane_write(begin, samples, whole_slots, x);
        /* The carry into the next leaf, from the Kogge-Stone network over up to three totals. */
        if (met == 0) {
            totals[0] = sum;
        } else if (met == 1) {
            totals[1] = total;
            sum = Sum::add(totals[0], total);
        } else {
            sum = Sum::add(totals[0], Sum::add(totals[1], total));
        }
    }
}

/* All passes over a row that is a leaf of so many slots. */
template <class Sum, int Kind, int Slots>
DEVICE void lane_row(const struct short_plan &plan, float *row, bool whole_slots)
{
    const int samples = plan.length;
    float x[ORDER_LEAF];
    typename Sum::sum sum = {}, total = {};
    __builtin_assume(samples > 4 * (Slots - 1) && samples <= 4 * Slots);
    lane_read(row, samples, whole_slots, x);
#pragma unroll 1
    for (int pass = 0; pass < plan.pass_count; pass++)
        if (plan.backward[pass])
            lane_leaf<Sum, true, Kind, true, false>(x, samples, sum, total);
        else
            lane_leaf<Sum, false, Kind, true, false>(x, samples, sum, total);
    lane_quiet_nan<Sum>(x, sum);
    lane_write(row, samples, whole_slots, x);
}

/* All passes over a row. `Leaf`: it is one, and stays in registers. */
template <class Sum, int Kind, bool Leaf>
DEVICE void lane_passes(const struct short_plan &plan, float *row, bool whole_slots)
{
    if constexpr (Leaf) {
        if (plan.length <= 4)
            lane_row<Sum, Kind, 1>(plan, row, whole_slots);
        else if (plan.length <= 8)
            lane_row<Sum, Kind, 2>(plan, row, whole_slots);
        else if (plan.length <= 12)
            lane_row<Sum, Kind, 3>(plan, row, whole_slots);
        else
            lane_row<Sum, Kind, 4>(plan, row, whole_slots);
    } else {
#pragma unroll 1
        for (int pass = 0; pass < plan.pass_count; pass++)
            if (plan.backward[pass])
                lane_pass<Sum, true, Kind>(plan, row, whole_slots);
            else
                lane_pass<Sum, false, Kind>(plan, row, whole_slots);
    }
}

/* As many as suffice without spilling any. */
template <bool Leaf> constexpr int lanes_registers = Leaf ? 56 : 48;

template <class Sum, int Kind, bool Leaf>
__global__ void REGISTERS(lanes_registers<Leaf>) lanes_kernel(const __grid_constant__ struct short_plan plan)
{
    extern __shared__ uint4 lanes_tiles[];
    const int warp = warp_index(), room = LANES_ROOM(plan.length);
    const uint64_t stride = (uint64_t)gridDim.x * SHORT_WARPS;
    uint4 *tile = lanes_tiles + (1 + plan.ahead) * warp * room, *other = tile + plan.ahead * room;
    uint64_t turn = (uint64_t)blockIdx.x * SHORT_WARPS + warp;
    lanes_fetch(plan, turn, tile);
    for (; short_rows(plan, turn) > 0; turn += stride) {
        if (plan.ahead) {
            lanes_fetch(plan, turn + stride, other);
            __pipeline_wait_prior(1);
        } else {
            __pipeline_wait_prior(0);
        }
        __syncwarp();
        const struct lanes_stretch stretch = lanes_stretch_of(plan, plan.output, turn);
        const bool whole_slots = (stretch.shift | plan.length) % 4 == 0;
#pragma unroll 1
        for (int row = lane_index(); row < plan.rows_at_once; row += WARP)
            lane_passes<Sum, Kind, Leaf>(plan, (float *)tile + stretch.shift + row * plan.length, whole_slots);
        __syncwarp();
        lanes_drain(tile, stretch);
        __syncwarp();
        if (!plan.ahead)
            lanes_fetch(plan, turn + stride, tile);
        uint4 *done = tile;
        tile = other;
        other = done;
    }
}

#endif

/*
 * Rows of at most two tiles, one right after the other in memory, sums of f32 samples of which a lane has one leaf at a
 * time. As in warp_per_row.cuh a warp takes as many rows as fill some tiles of lanes, but one tile after the other:
 * samples stay in shared memory where they came to, and each pass goes through them once. A row may go on in the next
 * tile of lanes, so that few lanes have none: of 300 samples, 19 leaves, 5 rows take 95 of 96 lanes.
 *
 * What limits f2 is how many instructions warps that meet nobody find in the cache. So a backward pass is a forward one
 * over what it reads mirrored: lanes have leaves in the order in which the pass meets them, and of a leaf first what it
 * meets first.
 */
#ifndef KERNELS_CUDA_KERNELS_WARP_PER_ROWS_SERIAL_CUH
#define KERNELS_CUDA_KERNELS_WARP_PER_ROWS_SERIAL_CUH

#include "kernels/cuda/exchange/work_queue.cuh"
#include "kernels/cuda/lane/convert32.cuh"
#include "kernels/cuda/warp/kogge_stone.cuh"
#include "kernels/cuda/warp/packed_rows.cuh"
#include "kernels/cuda/warp/stretch_io.cuh"

#define WARP_PER_ROWS_SERIAL_WARPS 4                 /* warps of a thread block */
#define WARP_PER_ROWS_SERIAL_TILES SCAN_SERIAL_TILES /* of lanes, that a warp's rows fill at most */

/* Shared memory of a warp, in vectors: a sum for each lane that the next tile's lanes may join, then samples. */
#define SERIAL_LEVELS (ORDER_FAN / 2)
#define SERIAL_SMEM   (SERIAL_LEVELS + LINES_SMEM(WARP_PER_ROWS_SERIAL_TILES))

#define WARP_PER_ROWS_SERIAL_BYTES (WARP_PER_ROWS_SERIAL_WARPS * SERIAL_SMEM * VEC16_BYTES)

/* A lane's leaf. */
struct serial_leaf {
    int samples;  /* 0 where there is none */
    int begin;    /* the sample in shared memory that the pass meets first */
    int number;   /* leaves of its row that the pass meets before it; */
    int position; /* of these, those in its tile of order 1 */
};

/* What a pass has met in the tiles of lanes before: the inclusive prefixes of the last one, and whether all have come
 * by way of f64. Then, the range of all. */
template <class Sum> struct serial_met {
    typename Sum::sum prefix;
    struct by_f64_range range;
    bool exact;
};

/* Leaves of a row before its second tile of order 1, in the order of a pass. */
DEVICE int serial_split(const struct packed_rows &plan, bool backward)
{
    const int beyond = plan.leaves - ORDER_FAN;
    return beyond <= 0 ? plan.leaves : backward ? beyond : ORDER_FAN;
}

DEVICE struct serial_leaf serial_leaf_of(const struct packed_rows &plan, const struct stretch &pass, int tile)
{
    const int index = tile * WARP + lane_index(), met = index * plan.inverse >> 16,
              split = serial_split(plan, pass.backward);
    struct serial_leaf leaf = {0, pass.first + (pass.backward ? ORDER_LEAF - 1 : 0), index - met * plan.leaves, 0};
    leaf.position = leaf.number - (leaf.number >= split ? split : 0);
    if (met < plan.rows_at_once) {
        const int row = pass.backward ? plan.rows_at_once - 1 - met : met;
        const int number = pass.backward ? plan.leaves - 1 - leaf.number : leaf.number;
        leaf.samples = min(plan.length - number * ORDER_LEAF, ORDER_LEAF);
        leaf.begin = pass.first + row * plan.length + number * ORDER_LEAF + (pass.backward ? leaf.samples - 1 : 0);
    }
    return leaf;
}

/* The place of what lane `lane` of a tile has before the step of a distance, if the next tile's lanes join it. */
template <class T> DEVICE T *serial_level(T *levels, int lane, int distance)
{
    return &levels[distance - 1 + lane - (WARP - distance)];
}

/* The network, where leaves of the tile of lanes before go on. */
template <class Sum>
DEVICE typename Sum::sum serial_network(typename Sum::sum sum, int position, typename Sum::sum *levels)
{
    const int lane = lane_index();
#pragma unroll
    for (int distance = 1; distance < ORDER_FAN; distance *= 2) {
        typename Sum::sum before = lane_value(sum, lane - distance);
        if (lane < distance)
            before = *serial_level(levels, lane + WARP - distance, distance);
        __syncwarp();
        if (lane >= WARP - distance)
            *serial_level(levels, lane, distance) = sum;
        if (!Sum::has_identity)
            sum = sum_choose<Sum>(position >= distance, Sum::add(before, sum), sum);
        else if (position >= distance)
            sum = Sum::add(before, sum);
    }
    return sum;
}

/* Makes what the network would have left of a tile whose prefixes came by way of f64. */
DEVICE void serial_levels_make(struct f2 prefix, int position, struct f2 *levels)
{
    const int lane = lane_index();
    const double upto = f2_to_f64(prefix);
#pragma unroll
    for (int distance = 1; distance < ORDER_FAN; distance *= 2) {
        const double before = lane_value(upto, lane - distance);
        if (lane >= WARP - distance)
            *serial_level(levels, lane, distance) = by_f64_f2(position >= distance ? upto - before : upto);
    }
    __syncwarp();
}

/* Makes prefixes as serial_prefixes does, if that is exact in f64; returns the same in all lanes. No sum rounds, so one
 * carry from the tile of lanes before does instead of all that the network met there. */
DEVICE bool serial_prefixes_by_f64(const float x[ORDER_LEAF], int leaves, int position, struct serial_met<sum_f2> *met)
{
    const int here = min(position, lane_index());
    double sum = by_f64_total(x, &met->range);
    const float limit = by_f64_limit(met->range.least);
    bool exact = met->range.most * BY_F64_MARGIN <= limit;
    sum = segmented_scan<sum_f64, false>(sum, here, leaves);
    const double outer = lane_value(f2_to_f64(met->prefix), WARP - 1);
    if (position > here)
        sum += outer;
    const struct f2 prefix = by_f64_f2(sum);
    exact &= fabsf(prefix.high) <= limit;
    if (!__all_sync(~0u, exact))
        return false;
    met->range.most = fmaxf(met->range.most, fabsf(prefix.high));
    met->prefix = prefix;
    return true;
}

/* The inclusive prefixes of the totals of a tile's leaves, each in its own tile of order 1, go to met->prefix. */
template <class Sum>
DEVICE void serial_prefixes(const typename Sum::sample x[ORDER_LEAF], const struct packed_rows &plan,
                            const struct stretch &pass, int tile, const struct serial_leaf &leaf,
                            typename Sum::sum *levels, struct serial_met<Sum> *met)
{
    if constexpr (sum_by_f64<Sum>)
        if (met->exact) {
            if (serial_prefixes_by_f64(x, plan.leaves, leaf.position, met))
                return;
            met->exact = false;
            if (tile > 0)
                serial_levels_make(met->prefix, serial_leaf_of(plan, pass, tile - 1).position, levels);
        }
    typename Sum::sum sum = leaf_total<Sum, false, false>(x, ORDER_LEAF - 1);
    if (!Sum::has_identity && leaf.samples == 1)
        sum = Sum::first(x[0]);
    met->prefix = serial_network<Sum>(sum, leaf.position, levels);
}

/* The carry into a leaf; `before` are the prefixes of the tile of lanes before. */
template <class Sum>
DEVICE carry<Sum> serial_carry(const struct packed_rows &plan, const struct serial_leaf &leaf, typename Sum::sum prefix,
                               typename Sum::sum before)
{
    const int lane = lane_index();
    const typename Sum::sum sum = lane == WARP - 1 ? before : prefix;
    const carry<Sum> inner = carry_of<Sum>(lane_value(sum, lane - 1), leaf.position > 0);
    if (plan.leaves <= ORDER_FAN)
        return inner;
    /* The total of the row's other tile is the prefix of the last leaf that the pass meets there. */
    const int last = lane - leaf.position - 1;
    const typename Sum::sum here = lane_value(prefix, last), there = lane_value(before, last);
    return carry_join<Sum>(carry_of<Sum>(last < 0 ? there : here, leaf.number > leaf.position), inner);
}

template <class Sum, int Kind>
DEVICE void serial_tile(const struct packed_rows &plan, const struct stretch &pass, int tile, typename Sum::sum *levels,
                        struct serial_met<Sum> *met)
{
    const struct serial_leaf leaf = serial_leaf_of(plan, pass, tile);
    float samples[ORDER_LEAF];
    typename Sum::sample x[ORDER_LEAF];
    stretch_read(pass, leaf.begin, samples);
    leaf_pin(samples);
    __syncwarp();
#pragma unroll
    for (int i = ORDER_LEAF - 1; i > 0; i--) {
        if (i < plan.length % ORDER_LEAF || plan.length % ORDER_LEAF == 0)
            break;
        samples[i] = i >= leaf.samples ? Sum::as_f32(Sum::absent()) : samples[i];
    }
    leaf_from_f32<Sum>(samples, x);
    const typename Sum::sum before = met->prefix;
    serial_prefixes<Sum>(x, plan, pass, tile, leaf, levels, met);
    leaf_values<Sum, false, Kind, false>(x, serial_carry<Sum>(plan, leaf, met->prefix, before), ORDER_LEAF - 1);
    if (Kind == SCAND_KIND_EXCLUSIVE && Sum::has_identity && leaf.number == 0)
        x[0] = Sum::value(Sum::zero());
    leaf_results<Sum>(x, samples);
    stretch_write<true>(pass, leaf.begin, leaf.samples, samples);
    __syncwarp();
}

/* The passes over a warp's rows. A leaf of one sample, which a backward pass begins with, is no sum. */
template <class Sum, int Kind>
DEVICE void serial_passes(const struct packed_rows &plan, uint4 *vectors, int first, typename Sum::sum *levels)
{
    const int tiles = (plan.rows_at_once * plan.leaves + WARP - 1) / WARP;
#pragma unroll 1
    for (int i = 0; i < plan.pass_count; i++) {
        const struct stretch pass = {vectors, first, plan.backward[i], (first | plan.length) % 4 == 0};
        struct serial_met<Sum> met = {
            Sum::zero(), {~0u, 0.0f}, !pass.backward || plan.length % ORDER_LEAF != 1
        };
#pragma unroll 1
        for (int t = 0; t < tiles; t++)
            serial_tile<Sum, Kind>(plan, pass, t, levels, &met);
    }
}

/* Registers: as few as suffice without spilling any. An SM holds 28 warps then in f2, and 24 in f64. */
template <class Sum> constexpr int serial_registers = sizeof(typename Sum::sample) == 8 ? 80 : 72;

template <class Sum, int Kind>
__global__ void REGISTERS((serial_registers<Sum>))
    warp_per_rows_serial_kernel(const __grid_constant__ struct packed_rows plan)
{
    extern __shared__ uint4 serial_vectors[];
    const int warp = warp_index();
    uint4 *levels = serial_vectors + warp * SERIAL_SMEM, *vectors = levels + SERIAL_LEVELS;
    uint64_t iteration = work_queue_first(WARP_PER_ROWS_SERIAL_WARPS, warp),
             next = iteration + work_queue_stride(WARP_PER_ROWS_SERIAL_WARPS);
#pragma unroll 1
    while (packed_count(plan, iteration) > 0) {
        const int samples = packed_count(plan, iteration) * plan.length;
        const uint64_t offset = packed_offset(plan, iteration);
        const unsigned long long taken = work_queue_take(plan.queue);
        fetch_lines<WARP_PER_ROWS_SERIAL_TILES, 0>(vectors, plan.input + offset, samples);
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncwarp();
        serial_passes<Sum, Kind>(plan, vectors, word_in_line(plan.input + offset), (typename Sum::sum *)levels);
        drain_lines_at<WARP_PER_ROWS_SERIAL_TILES, 0>(vectors, plan.output + offset,
                                                      line_vectors_of(plan.input + offset, samples), samples);
        __syncwarp();
        iteration = next;
        next = work_queue_taken(taken, WARP_PER_ROWS_SERIAL_WARPS);
    }
    work_queue_finish(plan.queue, WARP_PER_ROWS_SERIAL_WARPS);
}

#endif

/*
 * Rows of at most three tiles, one right after the other in memory, sums of f32 samples of which a lane has one leaf at
 * a time. As in warp_per_row.cuh a warp takes as many rows as fill some tiles of lanes, but one tile after the other:
 * samples stay in shared memory where they came to, and each pass goes through them once. A row may go on in the next
 * tile of lanes, so that few lanes have none: of 300 samples, 19 leaves, 5 rows take 95 of 96 lanes.
 *
 * What limits f2 is how many instructions there are, and how many of them warps that meet nobody find in the cache. So
 * a tile is one in f64 wherever f2 has the same sums (f2_in_f64.cuh). Of sums that do not round no order counts: a leaf
 * is read in the order of memory, whichever way the pass goes. Else a backward pass is a forward one over what it reads
 * mirrored: lanes have leaves in the order in which the pass meets them, and of a leaf first what it meets first.
 */
#ifndef KERNELS_CUDA_KERNELS_WARP_PER_ROWS_SERIAL_CUH
#define KERNELS_CUDA_KERNELS_WARP_PER_ROWS_SERIAL_CUH

#include "kernels/cuda/exchange/work_queue.cuh"
#include "kernels/cuda/lane/convert32.cuh"
#include "kernels/cuda/lane/f2_in_f64.cuh"
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
    int samples; /* 0 where there is none */
    int first;   /* sample in shared memory */
    int number;  /* leaves of its row that the pass meets before it */
};

/* What a pass has met in the tiles of lanes before: the inclusive prefixes of the last one. As long as all values have
 * come in f64, its words are those of what rows add up to with the last one's leaves, and there is the range of all
 * samples. */
template <class Sum> struct serial_met {
    typename Sum::sum prefix;
    struct by_f64_range range;
    bool exact;
};

DEVICE double serial_upto(const struct serial_met<sum_f2> *met)
{
    return __hiloint2double(__float_as_int(met->prefix.high), __float_as_int(met->prefix.low));
}

DEVICE void serial_upto_set(struct serial_met<sum_f2> *met, double upto)
{
    met->prefix = {__int_as_float(__double2hiint(upto)), __int_as_float(__double2loint(upto))};
}

DEVICE struct serial_leaf serial_leaf_of(const struct packed_rows &plan, const struct stretch &pass, int tile)
{
    const int count = plan.rows_at_once * plan.leaves, index = tile * WARP + lane_index();
    const int place = pass.backward ? count - 1 - index : index, row = place * plan.inverse >> 16;
    const int number = place - row * plan.leaves;
    struct serial_leaf leaf = {0, pass.first, pass.backward ? plan.leaves - 1 - number : number};
    if (index < count) {
        leaf.samples = min(plan.length - number * ORDER_LEAF, ORDER_LEAF);
        leaf.first = pass.first + row * plan.length + number * ORDER_LEAF;
    }
    return leaf;
}

/* Leaves that a pass meets in the first tile of order 1 of a row. */
DEVICE int serial_split(const struct packed_rows &plan, bool backward)
{
    return backward ? (plan.leaves - 1) % ORDER_FAN + 1 : min(plan.leaves, ORDER_FAN);
}

/* Leaves that the pass meets before one in its tile of order 1. */
DEVICE int serial_position(const struct packed_rows &plan, bool backward, const struct serial_leaf &leaf)
{
    const int beyond = leaf.number - serial_split(plan, backward);
    return beyond < 0 ? leaf.number : beyond % ORDER_FAN;
}

/* The sample that a pass meets first, also of a leaf that there is not. */
DEVICE int serial_begin(const struct stretch &pass, const struct serial_leaf &leaf)
{
    return leaf.first + (pass.backward ? (leaf.samples > 0 ? leaf.samples : ORDER_LEAF) - 1 : 0);
}

/* Makes absent what the last leaves of rows lack. */
DEVICE void serial_fill(const struct packed_rows &plan, const struct serial_leaf &leaf, float samples[ORDER_LEAF],
                        float absent)
{
    const int there = (plan.length - 1) % ORDER_LEAF + 1; /* in such a leaf */
#pragma unroll
    for (int i = ORDER_LEAF - 1; i > 0; i--) {
        if (i % 4 == 3 && i < there)
            break;
        samples[i] = i >= leaf.samples ? absent : samples[i];
    }
}

/* The place of what lane `lane` of a tile has before the step of a distance, if the next tile's lanes join it. */
template <class T> DEVICE T *serial_level(T *levels, int lane, int distance)
{
    return &levels[distance - 1 + lane - (WARP - distance)];
}

/* The total of the first tile of order 1 of a row of more than two, which the third one needs. */
template <class T> DEVICE T *serial_first(T *levels)
{
    return &levels[ORDER_FAN - 1];
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

/* Makes what the network would have left of a tile whose values came in f64, from its leaves. */
template <bool Long>
DEVICE void serial_levels_make(int number, int position, struct serial_met<sum_f2> *met, struct f2 *levels)
{
    const int lane = lane_index(), last = lane - position - 1; /* of the tile of order 1 before */
    const double row = serial_upto(met), here = lane_value(row, last);
    const double upto = number > position ? row - (Long && last < 0 ? f2_to_f64(*serial_first(levels)) : here) : row;
    met->prefix = by_f64_f2(upto);
#pragma unroll
    for (int distance = 1; distance < ORDER_FAN; distance *= 2) {
        const double before = lane_value(upto, lane - distance);
        if (lane >= WARP - distance)
            *serial_level(levels, lane, distance) = by_f64_f2(position >= distance ? upto - before : upto);
    }
    __syncwarp();
}

/* Replaces the samples of a tile by their values as serial_tile does, if that is exact in f64 and no row begins with
 * -0, which a sum would lose; returns the same in all lanes. What all lanes add up to is no more than the magnitudes of
 * 32 leaves, so that a sum over lanes serves for all rows. */
template <int Kind, bool Long>
DEVICE bool serial_tile_in_f64(const struct packed_rows &plan, const struct stretch &pass, int tile,
                               const struct serial_leaf &leaf, struct f2 *levels, struct serial_met<sum_f2> *met)
{
    const struct stretch here = {pass.vectors, pass.first, false, false};
    const int lane = lane_index(), row_before = lane - leaf.number - 1;
    float samples[ORDER_LEAF];
    double x[ORDER_LEAF];
    unsigned places[ORDER_LEAF / 4]; /* of whole vectors, in bytes: else they would be found anew */
#pragma unroll
    for (int j = 0; j < ORDER_LEAF / 4; j++) {
        places[j] = swizzle(leaf.first / 4 + j) * VEC16_BYTES;
        pin(places[j]);
    }
    if (pass.whole_vectors)
#pragma unroll
        for (int j = 0; j < ORDER_LEAF / 4; j++)
            vec16_get((const uint4 *)((const char *)pass.vectors + places[j]), &samples[4 * j]);
    else
        stretch_read(here, leaf.first, samples);
    float begin = samples[0];
    if (pass.backward)
        begin = *staged_sample(pass.vectors, serial_begin(pass, leaf));
    const bool zero = leaf.number == 0 && __float_as_int(begin) == INT_MIN;
    serial_fill(plan, leaf, samples, 0.0f);
    leaf_from_f32<sum_f64>(samples, x);
    const double total = by_f64_total(samples, &met->range), open = lane_value(serial_upto(met), WARP - 1);
    double upto = group_scan<sum_f64, false>(total + (lane == 0 && leaf.number > 0 ? open : 0.0), WARP - 1);
    const double others = lane_value(upto, row_before);
    upto -= row_before >= 0 ? others : 0.0;
    const float limit = by_f64_limit(met->range.least), high = fabsf((float)upto);
    if (!__all_sync(~0u, met->range.most * BY_F64_MARGIN <= limit && high <= limit && !zero))
        return false;
    met->range.most = fmaxf(met->range.most, high);
    serial_upto_set(met, upto);
    if (Long && tile == 0 && lane == serial_split(plan, pass.backward) - 1)
        *serial_first(levels) = by_f64_f2(upto);
    leaf_values_in_f64<Kind>(pass.backward, x, upto, total, samples);
    __syncwarp();
    if (pass.whole_vectors) {
#pragma unroll
        for (int j = 0; j < ORDER_LEAF / 4; j++)
            if (4 * j < leaf.samples)
                vec16_put((uint4 *)((char *)pass.vectors + places[j]), &samples[4 * j]);
    } else {
        stretch_write_across<true>(here, leaf.first, leaf.samples, samples, pass.backward ? 0 : WARP - 1);
    }
    __syncwarp();
    return true;
}

/* The carry into a leaf; `before` are the prefixes of the tile of lanes before. */
template <class Sum, bool Long>
DEVICE carry<Sum> serial_carry(const struct packed_rows &plan, int number, int position, typename Sum::sum prefix,
                               typename Sum::sum before, typename Sum::sum *levels)
{
    const int lane = lane_index();
    const typename Sum::sum sum = lane == WARP - 1 ? before : prefix;
    const carry<Sum> inner = carry_of<Sum>(lane_value(sum, lane - 1), position > 0);
    if (plan.leaves <= ORDER_FAN)
        return inner;
    /* The total of the row's tile before is the prefix of the last leaf that the pass meets there. */
    const int last = lane - position - 1;
    const typename Sum::sum here = lane_value(prefix, last), there = lane_value(before, last);
    typename Sum::sum outer = last < 0 ? there : here;
    if (Long && number - position > ORDER_FAN)
        outer = Sum::add(*serial_first(levels), outer);
    return carry_join<Sum>(carry_of<Sum>(outer, number > position), inner);
}

template <class Sum, int Kind, bool Long>
DEVICE void serial_tile(const struct packed_rows &plan, const struct stretch &pass, int tile, typename Sum::sum *levels,
                        struct serial_met<Sum> *met)
{
    const struct serial_leaf leaf = serial_leaf_of(plan, pass, tile);
    if constexpr (std::is_same<held_sum<Sum>, sum_f64_as_f2>::value)
        if (met->exact) {
            if (serial_tile_in_f64<Kind, Long>(plan, pass, tile, leaf, levels, met))
                return;
            met->exact = false;
            if (tile > 0) {
                const struct serial_leaf before = serial_leaf_of(plan, pass, tile - 1);
                serial_levels_make<Long>(before.number, serial_position(plan, pass.backward, before), met, levels);
            }
        }
    const int begin = serial_begin(pass, leaf), position = serial_position(plan, pass.backward, leaf);
    float samples[ORDER_LEAF];
    typename Sum::sample x[ORDER_LEAF];
    stretch_read(pass, begin, samples);
    leaf_pin(samples);
    __syncwarp();
    serial_fill(plan, leaf, samples, Sum::as_f32(Sum::absent()));
    leaf_from_f32<Sum>(samples, x);
    typename Sum::sum prefix = leaf_total<Sum, false, false>(x, ORDER_LEAF - 1);
    if (!Sum::has_identity && leaf.samples == 1)
        prefix = Sum::first(x[0]);
    prefix = serial_network<Sum>(prefix, position, levels);
    if (Long && tile == 0 && lane_index() == serial_split(plan, pass.backward) - 1)
        *serial_first(levels) = prefix;
    leaf_values<Sum, false, Kind, false>(
        x, serial_carry<Sum, Long>(plan, leaf.number, position, prefix, met->prefix, levels), ORDER_LEAF - 1);
    met->prefix = prefix;
    if (Kind == SCAND_KIND_EXCLUSIVE && Sum::has_identity && leaf.number == 0)
        x[0] = Sum::value(Sum::zero());
    leaf_results<Sum>(x, samples);
    stretch_write<true>(pass, begin, leaf.samples, samples);
    __syncwarp();
}

/* The passes over a warp's rows. Of rows that take a tile of lanes each, none has to do with the one before. */
template <class Sum, int Kind, bool Long>
DEVICE void serial_passes(const struct packed_rows &plan, uint4 *vectors, int first, typename Sum::sum *levels)
{
    const int tiles = (plan.rows_at_once * plan.leaves + WARP - 1) / WARP;
#pragma unroll 1
    for (int i = 0; i < plan.pass_count; i++) {
        const struct stretch pass = {vectors, first, plan.backward[i], (first | plan.length) % 4 == 0};
        struct serial_met<Sum> met = {
            Sum::zero(), {~0u, 0.0f}, true
        };
#pragma unroll 1
        for (int t = 0; t < tiles; t++) {
            serial_tile<Sum, Kind, Long>(plan, pass, t, levels, &met);
            if (plan.leaves == ORDER_FAN) {
                met.range = {~0u, 0.0f};
                met.exact = true;
            }
        }
    }
}

/* Its addresses are made anew, as passes leave no registers for them. */
DEVICE void serial_drain(const struct packed_rows &plan, uint64_t iteration, const uint4 *vectors)
{
    pin(iteration);
    const uint64_t offset = packed_offset(plan, iteration);
    const int samples = packed_count(plan, iteration) * plan.length;
    drain_lines_at<WARP_PER_ROWS_SERIAL_TILES, 0>(vectors, plan.output + offset,
                                                  line_vectors_of(plan.input + offset, samples), samples);
}

/* Registers: as few as suffice without spilling any. An SM holds 28 warps then in f2, and 24 in f64. */
template <class Sum> constexpr int serial_registers = sizeof(typename Sum::sample) == 8 ? 80 : 72;

/* `Long`: for rows of three tiles, too. */
template <class Sum, int Kind, bool Long>
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
        const unsigned long long taken = work_queue_take(plan.queue);
        const char *source = plan.input + packed_offset(plan, iteration);
        fetch_lines<WARP_PER_ROWS_SERIAL_TILES, 0>(vectors, source, packed_count(plan, iteration) * plan.length);
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncwarp();
        serial_passes<Sum, Kind, Long>(plan, vectors, word_in_line(source), (typename Sum::sum *)levels);
        serial_drain(plan, iteration, vectors);
        __syncwarp();
        iteration = next;
        next = work_queue_taken(taken, WARP_PER_ROWS_SERIAL_WARPS);
    }
    work_queue_finish(plan.queue, WARP_PER_ROWS_SERIAL_WARPS);
}

#endif

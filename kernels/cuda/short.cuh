/*
 * Rows of at most a tile, sums of f32 samples, one row right after the other in memory. A warp takes as many rows
 * as it has lanes for their leaves, on its own: nothing is shared with other warps. The samples of all of them are one
 * stretch, which travels as a tile does (samples.cuh), those of the next rows while these are computed. It takes two
 * stretches at a time, where registers suffice: while one waits for what it has begun, there are the other's
 * instructions.
 */
#ifndef KERNELS_CUDA_SHORT_CUH
#define KERNELS_CUDA_SHORT_CUH

#include "kernels/cuda/scan.cuh"
#include "kernels/cuda/shares.cuh"

#define SHORT_WARPS   8 /* of a thread block of lanes.cuh */
#define STRETCH_WARPS 4 /* and here */

struct short_plan {
    const char *input;
    char *output;
    uint64_t rows;
    int length, leaves; /* of a row */
    int rows_at_once;   /* by a warp */
    int pass_count;
    bool backward[SCAND_PASSES_MAX];
    bool intermediate_f32;
    struct shares *shares; /* not of lanes.cuh */
    bool ahead;            /* of lanes.cuh: fetch the next rows while some are computed */
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

/* Starts the copies of the stretches of a warp's turn. */
template <int Tiles> DEVICE void short_fetch(const struct short_plan &plan, uint64_t turn, uint4 *tiles)
{
#pragma unroll
    for (int t = 0; t < Tiles; t++) {
        const uint64_t stretch = turn * Tiles + t;
        const int samples = short_rows(plan, stretch) * plan.length;
        const char *source = plan.input + short_offset(plan, stretch);
        if (samples > 0)
            fetch_slots(tiles + t * TILE_ROOM, source, shift_of<float>(source), samples);
    }
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

/* What a lane has of a stretch. */
template <class T> struct held_leaf {
    T x[ORDER_LEAF];
};

/* Kogge-Stone over the leaves of each row: totals to inclusive prefixes. */
template <class Sum, int Tiles, bool Backward>
DEVICE void short_scans(typename Sum::sum sums[Tiles], int position, int leaves)
{
#pragma unroll
    for (int distance = 1; distance < ORDER_FAN; distance *= 2) {
        if (distance >= leaves)
            break;
#pragma unroll
        for (int t = 0; t < Tiles; t++) {
            typename Sum::sum before;
            lane_before<Backward>(sums[t], &before, distance, WARP - 1);
            sums[t] = sum_choose<Sum>(position >= distance, Sum::add(before, sums[t]), sums[t]);
        }
    }
}

template <class Sum, bool Backward>
DEVICE typename Sum::sum short_scan(typename Sum::sum total, int position, int leaves)
{
    short_scans<Sum, 1, Backward>(&total, position, leaves);
    return total;
}

/* As short_prefixes, if that is exact: the same for all lanes. */
template <int Tiles, bool Backward>
DEVICE bool short_prefixes_exact(const struct held_leaf<float> stretches[Tiles], int position, int leaves,
                                 struct f2 prefixes[Tiles])
{
    struct exact_range range = {~0u, 0.0f};
    double sums[Tiles];
#pragma unroll
    for (int t = 0; t < Tiles; t++)
        sums[t] = exact_total(stretches[t].x, &range);
    const float limit = exact_limit(range.least);
    bool exact = range.most * EXACT_MARGIN <= limit;
    short_scans<sum_f64, Tiles, Backward>(sums, position, leaves);
#pragma unroll
    for (int t = 0; t < Tiles; t++) {
        prefixes[t] = exact_f2(sums[t]);
        exact &= fabsf(prefixes[t].high) <= limit;
    }
    return __all_sync(~0u, exact);
}

/* The inclusive prefixes of the totals of each row's leaves. */
template <class Sum, int Tiles, bool Backward>
DEVICE void short_prefixes(const struct held_leaf<typename Sum::sample> stretches[Tiles], const struct short_plan &plan,
                           bool partial, int position, int last, typename Sum::sum sums[Tiles])
{
    if constexpr (sum_is_exact<Sum>)
        if ((!Backward || plan.length % ORDER_LEAF != 1) &&
            short_prefixes_exact<Tiles, Backward>(stretches, position, plan.leaves, sums))
            return;
#pragma unroll
    for (int t = 0; t < Tiles; t++)
        sums[t] = partial ? leaf_total<Sum, Backward, Backward>(stretches[t].x, last)
                          : leaf_total<Sum, Backward, false>(stretches[t].x, last);
    short_scans<Sum, Tiles, Backward>(sums, position, plan.leaves);
}

template <class Sum, bool Backward, int Kind>
DEVICE void short_values(typename Sum::sample x[ORDER_LEAF], typename Sum::sum sum, bool partial, int position,
                         int last)
{
    typename Sum::sum before;
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

template <class Sum, int Tiles, bool Backward, int Kind>
DEVICE void short_pass(struct held_leaf<typename Sum::sample> stretches[Tiles], const struct short_plan &plan,
                       struct short_leaf leaf)
{
    const bool partial = !Sum::has_identity && Backward && plan.length % ORDER_LEAF != 0;
    const int position = Backward ? plan.leaves - 1 - leaf.number : leaf.number, last = leaf.samples - 1;
    typename Sum::sum sums[Tiles];
    /* Forward, nobody listens to them. */
    if (Backward && plan.length % ORDER_LEAF != 0 && (Sum::has_identity || sum_is_exact<Sum>))
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
#pragma unroll
            for (int t = 0; t < Tiles; t++)
                if (i >= leaf.samples)
                    stretches[t].x[i] = Sum::absent();
    short_prefixes<Sum, Tiles, Backward>(stretches, plan, partial, position, last, sums);
#pragma unroll
    for (int t = 0; t < Tiles; t++)
        short_values<Sum, Backward, Kind>(stretches[t].x, sums[t], partial, position, last);
}

template <class Sum, int Tiles, int Kind>
DEVICE void short_passes(struct held_leaf<typename Sum::sample> stretches[Tiles], const struct short_plan &plan,
                         struct short_leaf leaf)
{
#pragma unroll 1
    for (int pass = 0;; pass++) {
        if (plan.backward[pass])
            short_pass<Sum, Tiles, true, Kind>(stretches, plan, leaf);
        else
            short_pass<Sum, Tiles, false, Kind>(stretches, plan, leaf);
        if (pass + 1 == plan.pass_count)
            return;
#pragma unroll
        for (int t = 0; t < Tiles; t++)
            leaf_between_passes<Sum>(stretches[t].x, plan.intermediate_f32);
    }
}

/* Stretches at a time. f2 has instructions enough, and more than the cache holds if there are two. */
template <class Sum, int Kind>
constexpr int short_tiles = !Sum::has_identity                                                  ? 1
                            : Kind == SCAND_KIND_EXCLUSIVE && sizeof(typename Sum::sample) == 8 ? 1
                                                                                                : 2;

/* Shared memory of a thread block. */
#define SHORT_BYTES(TILES) (STRETCH_WARPS * 2 * (TILES)*TILE_ROOM * SLOT_BYTES)

/* With 80 a processor holds 24 warps, as many as its shared memory suffices for with two stretches; with 64 32. */
template <class Sum, int Tiles>
constexpr int short_registers = Tiles == 1 && sizeof(typename Sum::sample) == 4 ? 64 : 80;

template <class Sum, int Kind>
__global__ void REGISTERS((short_registers<Sum, short_tiles<Sum, Kind>>))
    short_kernel(const __grid_constant__ struct short_plan plan)
{
    extern __shared__ uint4 short_slots[];
    const int count = short_tiles<Sum, Kind>, warp = warp_index();
    uint4 *tiles = short_slots + 2 * warp * count * TILE_ROOM, *other = tiles + count * TILE_ROOM;
    uint64_t turn = shares_first(STRETCH_WARPS, warp), next = turn + shares_stride(STRETCH_WARPS);
    short_fetch<count>(plan, turn, tiles);
#pragma unroll 1
    while (short_rows(plan, turn * count) > 0) {
        const unsigned long long taken = shares_take(plan.shares);
        short_fetch<count>(plan, next, other);
        __pipeline_wait_prior(1);
        __syncwarp();
        struct short_leaf leaf = short_leaf_of(plan, plan.rows_at_once);
        struct held_leaf<float> samples[count];
        struct held_leaf<typename Sum::sample> stretches[count];
#pragma unroll
        for (int t = 0; t < count; t++) {
            const int shift = shift_of<float>(plan.input + short_offset(plan, turn * count + t));
            short_read(tiles + t * TILE_ROOM, shift + leaf.first, (shift | plan.length) % 4 == 0, samples[t].x);
        }
        __syncwarp();
#pragma unroll
        for (int t = 0; t < count; t++) {
            leaf_pin(samples[t].x);
#pragma unroll
            for (int i = 0; i < ORDER_LEAF; i++)
                stretches[t].x[i] = Sum::from_f32(samples[t].x[i]);
        }
        short_passes<Sum, count, Kind>(stretches, plan, leaf);
        leaf = short_leaf_of(plan, plan.rows_at_once); /* anew, to hold no registers */
#pragma unroll
        for (int t = 0; t < count; t++) {
            leaf_results<Sum, float>(stretches[t].x, samples[t].x);
            const int shift = shift_of<float>(plan.output + short_offset(plan, turn * count + t));
            short_write(tiles + t * TILE_ROOM, shift + leaf.first, leaf.samples, (shift | plan.length) % 4 == 0,
                        samples[t].x);
        }
        __syncwarp();
#pragma unroll
        for (int t = 0; t < count; t++) {
            char *target = plan.output + short_offset(plan, turn * count + t);
            stretch_drain(tiles + t * TILE_ROOM, target, shift_of<float>(target),
                          short_rows(plan, turn * count + t) * plan.length);
        }
        __syncwarp();
        uint4 *done = tiles;
        tiles = other;
        other = done;
        turn = next;
        next = shares_taken(taken, STRETCH_WARPS);
    }
    shares_finish(plan.shares, STRETCH_WARPS);
}

#endif

/*
 * Rows of at most a tile, sums of f32 samples, one row right after the other in memory. A warp takes as many rows
 * as it has room for their leaves, on its own: nothing is shared with other warps. The samples of all of them are one
 * stretch, which travels from line to line of device memory (tile_io.cuh), those of the next rows while these are
 * computed. Where registers suffice, a stretch is three tiles, of which a lane has a leaf each: while one waits for
 * what it has begun, there are the others' instructions; and a row may lie in two of them, so that fewer lanes have
 * none. Of 300 samples, 19 leaves, 5 rows take 95 of 96 lanes, where alone each would leave 13 of 32 idle.
 */
#ifndef KERNELS_CUDA_KERNELS_WARP_PER_ROWS_CUH
#define KERNELS_CUDA_KERNELS_WARP_PER_ROWS_CUH

#include "kernels/cuda/exchange/work_queue.cuh"
#include "kernels/cuda/lane/convert32.cuh"
#include "kernels/cuda/lane/leaf.cuh"
#include "kernels/cuda/warp/kogge_stone.cuh"
#include "kernels/cuda/warp/packed_rows.cuh"
#include "kernels/cuda/warp/tile_io.cuh"

#define WARP_PER_ROWS_WARPS 4 /* warps of a thread block */

/* True when stretches lie in shared memory from the start of a line on. f2 has no instructions to spare. */
template <class Sum> constexpr bool warp_per_rows_has_lines = Sum::has_identity;

/* Samples before a stretch there. */
template <class Sum> DEVICE int warp_per_rows_shift(const char *leaves_held)
{
    return warp_per_rows_has_lines<Sum> ? word_in_line(leaves_held) : shift_of<float>(leaves_held);
}

/* Starts the copies of the stretch of a warp's iteration. */
template <class Sum, int Tiles>
DEVICE void warp_per_rows_fetch(const struct packed_rows &plan, uint64_t iteration, uint4 *vectors)
{
    const int samples = packed_count(plan, iteration) * plan.length;
    const char *source = plan.input + packed_offset(plan, iteration);
    if (samples > 0 && warp_per_rows_has_lines<Sum>)
        fetch_lines<Tiles, 0>(vectors, source, samples);
    else if (samples > 0)
        fetch_vectors(vectors, source, shift_of<float>(source), samples);
    __pipeline_commit();
}

template <class Sum, int Tiles>
DEVICE void warp_per_rows_drain(const struct packed_rows &plan, uint64_t iteration, const uint4 *vectors)
{
    const int samples = packed_count(plan, iteration) * plan.length;
    char *target = plan.output + packed_offset(plan, iteration);
    if (warp_per_rows_has_lines<Sum>)
        drain_lines<Tiles, 0>(vectors, target, samples);
    else
        packed_drain(vectors, target, shift_of<float>(target), samples);
}

/* A leaf that begins anywhere, in each lane differently. It is moved there from the vectors that it lies in. */
DEVICE void warp_per_rows_read_across(const uint4 *vectors, int first, float x[ORDER_LEAF])
{
    const bool by_one = first & 1, by_two = first & 2;
    float from[ORDER_LEAF + 4];
#pragma unroll
    for (int j = 0; j <= ORDER_LEAF / 4; j++)
        vec16_get(&vectors[swizzle<float>(first / 4 + j)], &from[4 * j]);
#pragma unroll
    for (int i = 0; i < ORDER_LEAF + 2; i++)
        from[i] = by_one ? from[i + 1] : from[i];
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        x[i] = by_two ? from[i + 2] : from[i];
}

/* First all lanes write whole vectors, also those in which the next leaf begins, but not their first ones. Of these
 * they write their samples then. */
DEVICE void warp_per_rows_write_across(uint4 *vectors, int first, int samples, const float x[ORDER_LEAF])
{
    const bool by_one = first & 1, by_two = first & 2;
    const int begin = first % 4, end = begin + samples, last = ORDER_LEAF - 1;
    float once[ORDER_LEAF + 1], to[ORDER_LEAF + 4];
#pragma unroll
    for (int i = 0; i <= last + 1; i++)
        once[i] = by_one ? x[max(i - 1, 0)] : x[min(i, last)];
#pragma unroll
    for (int i = 0; i < ORDER_LEAF + 4; i++)
        to[i] = by_two ? once[min(max(i - 2, 0), last + 1)] : once[min(i, last + 1)];
#pragma unroll
    for (int j = 1; j <= ORDER_LEAF / 4; j++)
        if (4 * j < end)
            vec16_put(&vectors[swizzle<float>(first / 4 + j)], &to[4 * j]);
    __syncwarp();
    float *vec16 = (float *)&vectors[swizzle<float>(first / 4)];
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (i >= begin && i < end)
            vec16[i] = to[i];
}

DEVICE void warp_per_rows_read(uint4 *vectors, int first, bool whole_vectors, float x[ORDER_LEAF])
{
    if (whole_vectors)
        packed_read_vectors(vectors, first, x);
    else
        warp_per_rows_read_across(vectors, first, x);
}

DEVICE void warp_per_rows_write(uint4 *vectors, int first, int samples, bool whole_vectors, const float x[ORDER_LEAF])
{
    if (whole_vectors)
        packed_write_vectors(vectors, first, samples, x);
    else
        warp_per_rows_write_across(vectors, first, samples, x);
}

/* True when a pass begins with leaves that are not full, and must know. */
template <class Sum, bool Backward> DEVICE bool warp_per_rows_is_partial(const struct packed_rows &plan)
{
    return !Sum::has_identity && Backward && plan.length % ORDER_LEAF != 0;
}

/* Makes prefixes as warp_per_rows_prefixes does, if that is exact in f64; returns the same in all lanes. */
template <int Tiles, bool Backward>
DEVICE bool warp_per_rows_prefixes_by_f64(const struct held_leaf<float> leaves_held[Tiles], const int positions[Tiles],
                                          int leaves, struct f2 prefixes[Tiles])
{
    struct by_f64_range range = {~0u, 0.0f};
    double sums[Tiles];
#pragma unroll
    for (int t = 0; t < Tiles; t++)
        sums[t] = by_f64_total(leaves_held[t].x, &range);
    return by_f64_scan<Tiles>(sums, range, prefixes,
                              [&] { segmented_scans<sum_f64, Tiles, Backward>(sums, positions, leaves); });
}

/* The inclusive prefixes of the totals of each row's leaves, of which the last one has samples up to `last`. */
template <class Sum, int Tiles, bool Backward>
DEVICE void warp_per_rows_prefixes(const struct held_leaf<typename Sum::sample> leaves_held[Tiles],
                                   const struct packed_rows &plan, const int positions[Tiles], const int lasts[Tiles],
                                   typename Sum::sum sums[Tiles])
{
    if constexpr (sum_by_f64<Sum>)
        if ((!Backward || plan.length % ORDER_LEAF != 1) &&
            warp_per_rows_prefixes_by_f64<Tiles, Backward>(leaves_held, positions, plan.leaves, sums))
            return;
    const bool partial = warp_per_rows_is_partial<Sum, Backward>(plan);
#pragma unroll
    for (int t = 0; t < Tiles; t++)
        sums[t] = partial ? leaf_total<Sum, Backward, Backward>(leaves_held[t].x, lasts[t])
                          : leaf_total<Sum, Backward, false>(leaves_held[t].x, lasts[t]);
    segmented_scans<Sum, Tiles, Backward>(sums, positions, plan.leaves);
}

/* Replaces the samples of a leaf, to which `sum` is the carry. */
template <class Sum, bool Backward, int Kind>
DEVICE void warp_per_rows_values(typename Sum::sample x[ORDER_LEAF], typename Sum::sum sum, bool partial, int position,
                                 int last)
{
    carry<Sum> carry = carry_of<Sum>(sum, position > 0);
    if (partial)
        leaf_values<Sum, Backward, Kind, Backward>(x, carry, last, Kind);
    else
        leaf_values<Sum, Backward, Kind, false>(x, carry, last, Kind);
    if (Kind == SCAND_KIND_EXCLUSIVE && Sum::has_identity && position == 0)
        leaf_zero_at<Sum>(x, Backward ? last : 0, Sum::value(Sum::zero()));
}

/* Makes absent what last leaves lack. */
template <class Sum, int Tiles>
DEVICE void warp_per_rows_fill(struct held_leaf<typename Sum::sample> leaves_held[Tiles], const int lasts[Tiles],
                               int end)
{
#pragma unroll
    for (int i = ORDER_LEAF - 1; i > 0; i--) {
        if (i < end)
            break;
#pragma unroll
        for (int t = 0; t < Tiles; t++)
            leaves_held[t].x[i] = i > lasts[t] ? Sum::absent() : leaves_held[t].x[i];
    }
}

template <class Sum, int Tiles, bool Backward, int Kind>
DEVICE void warp_per_rows_pass(struct held_leaf<typename Sum::sample> leaves_held[Tiles],
                               const struct packed_rows &plan, const int numbers[Tiles])
{
    const int end = plan.length % ORDER_LEAF;
    int positions[Tiles], lasts[Tiles];
#pragma unroll
    for (int t = 0; t < Tiles; t++) {
        positions[t] = Backward ? plan.leaves - 1 - numbers[t] : numbers[t];
        lasts[t] = end > 0 && numbers[t] == plan.leaves - 1 ? end - 1 : ORDER_LEAF - 1;
    }
    /* Forward, nobody listens to them. */
    if (Backward && end > 0 && (Sum::has_identity || sum_by_f64<Sum>))
        warp_per_rows_fill<Sum, Tiles>(leaves_held, lasts, end);
    typename Sum::sum sums[Tiles];
    warp_per_rows_prefixes<Sum, Tiles, Backward>(leaves_held, plan, positions, lasts, sums);
#pragma unroll
    for (int t = 0; t < Tiles; t++)
        warp_per_rows_values<Sum, Backward, Kind>(
            leaves_held[t].x, segment_before<Tiles, Backward>(sums, t, lane_index(), 1),
            warp_per_rows_is_partial<Sum, Backward>(plan), positions[t], lasts[t]);
}

template <class Sum, int Tiles, int Kind>
DEVICE void warp_per_rows_passes(struct held_leaf<typename Sum::sample> leaves_held[Tiles],
                                 const struct packed_rows &plan)
{
    int numbers[Tiles];
#pragma unroll
    for (int t = 0; t < Tiles; t++)
        numbers[t] = packed_leaf_of(plan, t, 0).number;
#pragma unroll 1
    for (int pass = 0;; pass++) {
        if (plan.backward[pass])
            warp_per_rows_pass<Sum, Tiles, true, Kind>(leaves_held, plan, numbers);
        else
            warp_per_rows_pass<Sum, Tiles, false, Kind>(leaves_held, plan, numbers);
        if (pass + 1 == plan.pass_count)
            return;
#pragma unroll
        for (int t = 0; t < Tiles; t++)
            leaf_between_passes<Sum>(leaves_held[t].x, plan.intermediate_f32);
    }
}

/* Tiles of a stretch, as many as registers suffice for. f2 has instructions enough, and more than the cache holds if
 * there are two. */
template <class Sum, int Kind>
constexpr int warp_per_rows_tiles = !Sum::has_identity                                                  ? 1
                                    : Kind == SCAND_KIND_EXCLUSIVE && sizeof(typename Sum::sample) == 8 ? 1
                                                                                                        : 3;

/* Shared memory of a thread block. */
#define WARP_PER_ROWS_BYTES(TILES) (WARP_PER_ROWS_WARPS * 2 * LINES_SMEM(TILES) * VEC16_BYTES)

/* Registers: with 128 an SM holds 16 warps, as many as its shared memory suffices for with three tiles; with 64 it
 * holds 32. */
template <class Sum, int Tiles>
constexpr int warp_per_rows_registers = Tiles > 1                           ? 128
                                        : sizeof(typename Sum::sample) == 8 ? 80
                                                                            : 64;

template <class Sum, int Kind>
__global__ void REGISTERS((warp_per_rows_registers<Sum, warp_per_rows_tiles<Sum, Kind>>))
    warp_per_rows_kernel(const __grid_constant__ struct packed_rows plan)
{
    extern __shared__ uint4 warp_per_rows_vectors[];
    const int count = warp_per_rows_tiles<Sum, Kind>, warp = warp_index(), smem = LINES_SMEM(count);
    uint4 *vectors = warp_per_rows_vectors + 2 * warp * smem, *other = vectors + smem;
    uint64_t iteration = work_queue_first(WARP_PER_ROWS_WARPS, warp),
             next = iteration + work_queue_stride(WARP_PER_ROWS_WARPS);
    warp_per_rows_fetch<Sum, count>(plan, iteration, vectors);
#pragma unroll 1
    while (packed_count(plan, iteration) > 0) {
        const unsigned long long taken = work_queue_take(plan.queue);
        warp_per_rows_fetch<Sum, count>(plan, next, other);
        __pipeline_wait_prior(1);
        __syncwarp();
        struct held_leaf<float> samples[count];
        struct held_leaf<typename Sum::sample> leaves_held[count];
        int first = warp_per_rows_shift<Sum>(plan.input + packed_offset(plan, iteration));
#pragma unroll
        for (int t = 0; t < count; t++)
            warp_per_rows_read(vectors, first + packed_leaf_of(plan, t, plan.rows_at_once).first,
                               (first | plan.length) % 4 == 0, samples[t].x);
        __syncwarp();
#pragma unroll
        for (int t = 0; t < count; t++) {
            leaf_pin(samples[t].x);
            leaf_from_f32<Sum>(samples[t].x, leaves_held[t].x);
        }
        warp_per_rows_passes<Sum, count, Kind>(leaves_held, plan);
        first = warp_per_rows_shift<Sum>(plan.output + packed_offset(plan, iteration));
#pragma unroll
        for (int t = 0; t < count; t++) {
            const struct packed_leaf leaf = packed_leaf_of(plan, t, plan.rows_at_once);
            leaf_results<Sum>(leaves_held[t].x, samples[t].x);
            warp_per_rows_write(vectors, first + leaf.first, leaf.samples, (first | plan.length) % 4 == 0,
                                samples[t].x);
        }
        __syncwarp();
        warp_per_rows_drain<Sum, count>(plan, iteration, vectors);
        __syncwarp();
        uint4 *done = vectors;
        vectors = other;
        other = done;
        iteration = next;
        next = work_queue_taken(taken, WARP_PER_ROWS_WARPS);
    }
    work_queue_finish(plan.queue, WARP_PER_ROWS_WARPS);
}

#endif

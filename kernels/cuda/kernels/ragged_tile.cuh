/*
 * A tile of ragged rows: of one row, or of several short ones side by side in the lanes. How a warp reads, scans and
 * writes it.
 */
#ifndef KERNELS_CUDA_KERNELS_RAGGED_TILE_CUH
#define KERNELS_CUDA_KERNELS_RAGGED_TILE_CUH

#include "kernels/cuda/kernels/ragged_items.cuh"
#include "kernels/cuda/lane/convert32.cuh"
#include "kernels/cuda/lane/leaf.cuh"
#include "kernels/cuda/warp/tile_io.cuh"

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

/* A lane's leaf among those of several rows. */
DEVICE struct ragged_leaf ragged_leaf_among(const struct ragged_plan &plan, const struct ragged_item &item)
{
    const int lane = lane_index();
    const uint64_t row = min((uint64_t)item.row + min(lane, (int)item.number), plan.rows);
    const uint64_t begin = plan.offsets[row];
    const int length = lane < item.number && row < plan.rows ? (int)(plan.offsets[row + 1] - begin) : 0;
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
    leaf.first = __shfl_sync(~0u, (int)(begin - item.first), own) + leaf.number * ORDER_LEAF;
    leaf.samples = min(own_length - leaf.number * ORDER_LEAF, ORDER_LEAF);
    if (lane >= __shfl_sync(~0u, upto, WARP - 1))
        leaf = {};
    return leaf;
}

/* Samples that are not there become absent. Moves the samples. */
template <class Sum> DEVICE void ragged_decode(float samples[ORDER_LEAF], int there, typename Sum::sample x[ORDER_LEAF])
{
    if (there < ORDER_LEAF) {
        const unsigned missing = ~0u << there;
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            if (missing >> i & 1)
                samples[i] = Sum::as_f32(Sum::absent());
    }
    leaf_from_f32<Sum>(samples, x);
}

template <bool Backward> DEVICE int ragged_position(const struct ragged_leaf &leaf)
{
    return Backward ? leaf.leaves - 1 - leaf.number : leaf.number;
}

/* True when a leaf lacks samples that a backward pass would have met first, as in leaf_end_of. */
template <class Sum, bool Backward> DEVICE bool ragged_partial(const struct ragged_leaf &leaf)
{
    return !Sum::has_identity && Backward && __any_sync(~0u, leaf.samples % ORDER_LEAF != 0);
}

/* Makes the prefix as ragged_prefix does, if that is exact in f64; returns the same in all lanes. */
template <bool Backward>
DEVICE bool ragged_prefix_by_f64(const float x[ORDER_LEAF], const struct ragged_leaf &leaf, struct f2 *prefix)
{
    struct by_f64_range range = {~0u, 0.0f};
    const double total = by_f64_total(x, &range);
    const float limit = by_f64_limit(range.least);
    *prefix = by_f64_f2(segmented_scan<sum_f64, Backward>(total, ragged_position<Backward>(leaf), WARP));
    return __all_sync(~0u, range.most * BY_F64_MARGIN <= limit && fabsf(prefix->high) <= limit &&
                               !(Backward && leaf.samples == 1));
}

/* The inclusive prefix of this lane's leaf among those of its row in the tile. */
template <class Sum, bool Backward>
DEVICE typename Sum::sum ragged_prefix(const typename Sum::sample x[ORDER_LEAF], const struct ragged_leaf &leaf)
{
    if constexpr (sum_by_f64<Sum>) {
        typename Sum::sum prefix;
        if (ragged_prefix_by_f64<Backward>(x, leaf, &prefix))
            return prefix;
    }
    typename Sum::sum total = ragged_partial<Sum, Backward>(leaf)
                                  ? leaf_total<Sum, Backward, Backward>(x, leaf.samples - 1)
                                  : leaf_total<Sum, Backward, false>(x, ORDER_LEAF - 1);
    return segmented_scan<Sum, Backward>(total, ragged_position<Backward>(leaf), WARP);
}

/* Sets the value that an exclusive pass leaves of the sample that it meets first, if this leaf has it. A loop over
 * indexes would have the samples in memory. */
template <class Sum> DEVICE void leaf_zero_at(typename Sum::sample x[ORDER_LEAF], unsigned index)
{
    const unsigned zero = index < ORDER_LEAF ? 1u << index : 0;
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        if (zero >> i & 1)
            x[i] = Sum::value(Sum::zero());
}

/* Replaces the samples by their values. `outer` is the carry into the tile, unless the row begins there. */
template <class Sum, bool Backward, int Kind>
DEVICE void ragged_values(typename Sum::sample x[ORDER_LEAF], const struct ragged_leaf &leaf,
                          typename Sum::sum inclusive, bool begins, typename Sum::sum outer)
{
    const int position = ragged_position<Backward>(leaf);
    typename Sum::sum before;
    lane_before<Backward>(inclusive, &before, 1, WARP - 1);
    carry<Sum> carry = carry_of<Sum>(before, position > 0);
    if (!begins)
        carry = carry_join<Sum>({outer, true}, carry);
    if (ragged_partial<Sum, Backward>(leaf))
        leaf_values<Sum, Backward, Kind, Backward>(x, carry, leaf.samples - 1, Kind);
    else
        leaf_values<Sum, Backward, Kind, false>(x, carry, ORDER_LEAF - 1, Kind);
    if (Kind == SCAND_KIND_EXCLUSIVE && Sum::has_identity && begins)
        leaf_zero_at<Sum>(x, position > 0 ? ORDER_LEAF : Backward ? leaf.samples - 1 : 0);
}

/* Rows in shared memory. Between passes values lie, in f32, where the samples were. */

DEVICE void ragged_fetch(const struct ragged_plan &plan, const struct ragged_item &item, int tile, uint4 *vectors)
{
    const char *source = plan.input + (item.first + (uint64_t)tile * ORDER_TILE) * sizeof(float);
    fetch_vectors(vectors, source, shift_of<float>(source), tile_samples(item.samples, tile));
}

template <class Sum>
DEVICE void ragged_read(const struct ragged_plan &plan, const struct ragged_item &item, int pass, uint4 *vectors,
                        const struct ragged_leaf &leaf, bool together, typename Sum::sample x[ORDER_LEAF])
{
    const int shift = shift_of<float>(plan.input + item.first * sizeof(float));
    float samples[ORDER_LEAF];
    if (pass > 0)
        leaf_read<false>(vectors, samples);
    else if (together)
        packed_read(vectors, shift + leaf.first, samples);
    else
        leaf_read<false>(vectors, shift, samples);
    ragged_decode<Sum>(samples, leaf.samples, x);
}

/* Writes the results of a tile, when all lanes have read the tile. */
template <class Sum>
DEVICE void ragged_write(const struct ragged_plan &plan, const struct ragged_item &item, int tile, uint4 *vectors,
                         const struct ragged_leaf &leaf, bool together, const typename Sum::sample x[ORDER_LEAF])
{
    char *target = plan.output + (item.first + (uint64_t)tile * ORDER_TILE) * sizeof(float);
    const int shift = shift_of<float>(target);
    struct held_leaf<float> results;
    leaf_results<Sum>(x, results.x);
    if (together) {
        packed_write(vectors, shift + leaf.first, leaf.samples, results.x);
    } else {
        tiles_shift_up<1>(&results, shift, (float *)(vectors + TILE_VECTORS));
        leaf_write(vectors, lane_index(), results.x);
    }
    __syncwarp();
    packed_drain(vectors, target, shift, tile_samples(item.samples, tile));
    __syncwarp();
}

template <class Sum> DEVICE void ragged_keep(uint4 *vectors, const typename Sum::sample x[ORDER_LEAF])
{
    float values[ORDER_LEAF];
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        values[i] = Sum::as_f32(x[i]);
    leaf_write<false>(vectors, lane_index(), values);
}

#endif

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

/* Samples of a leaf that are not there become absent. */
template <class T> DEVICE void ragged_fill(T x[ORDER_LEAF], int there, T absent)
{
    const unsigned missing = ~0u << there;
    if (there < ORDER_LEAF)
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            if (missing >> i & 1)
                x[i] = absent;
}

template <bool Backward> DEVICE int ragged_position(const struct ragged_leaf &leaf)
{
    return Backward ? leaf.leaves - 1 - leaf.number : leaf.number;
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

/* The inclusive prefix of this lane's leaf among those of its row in the tile. Absent samples are zeros, which change
 * no sum in f2 but one sample alone. */
template <class Sum, bool Backward>
DEVICE typename Sum::sum ragged_prefix_by_sums(const typename Sum::sample x[ORDER_LEAF], int position, int samples)
{
    typename Sum::sum total = leaf_total<Sum, Backward, false>(x, ORDER_LEAF - 1);
    if (!Sum::has_identity && Backward && samples == 1)
        total = Sum::first(x[0]);
    return segmented_scan<Sum, Backward>(total, position, WARP);
}

/* The same in f2, where f64 is not exact: a function of its own, as it is seldom called and long. */
template <bool Backward>
static __device__ __noinline__ struct f2 ragged_prefix_apart(struct held_leaf<float> leaf, int position, int samples)
{
    return ragged_prefix_by_sums<sum_f2, Backward>(leaf.x, position, samples);
}

template <class Sum, bool Backward>
DEVICE typename Sum::sum ragged_prefix(const typename Sum::sample x[ORDER_LEAF], const struct ragged_leaf &leaf)
{
    if constexpr (sum_by_f64<Sum>) {
        typename Sum::sum prefix;
        if (ragged_prefix_by_f64<Backward>(x, leaf, &prefix))
            return prefix;
        struct held_leaf<float> held;
        memcpy(held.x, x, sizeof(held.x));
        return ragged_prefix_apart<Backward>(held, ragged_position<Backward>(leaf), leaf.samples);
    } else {
        return ragged_prefix_by_sums<Sum, Backward>(x, ragged_position<Backward>(leaf), leaf.samples);
    }
}

/* Gets, or sets, one sample of a leaf, if it has it. A loop over indexes would have the samples in memory. */
template <bool Set, class T> DEVICE void leaf_sample(T x[ORDER_LEAF], unsigned index, T *sample)
{
    const unsigned one = index < ORDER_LEAF ? 1u << index : 0;
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        if (one >> i & 1)
            (Set ? x[i] : *sample) = Set ? *sample : x[i];
}

/* Replaces the samples by their values. `outer` is the carry into the tile, unless the row begins there. In f2, a leaf
 * that lacks the samples which a backward pass would have met first begins with zeros: with them its first sample would
 * be a sum, which is another value if it is -0 or infinite. */
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
    const bool lacks = !Sum::has_identity && Backward && leaf.samples < ORDER_LEAF;
    typename Sum::sample first = Sum::value(Sum::zero());
    if (lacks)
        leaf_sample<false>(x, leaf.samples - 1, &first);
    leaf_values<Sum, Backward, Kind, false>(x, carry, ORDER_LEAF - 1);
    if (lacks)
        leaf_sample<true>(x, leaf.samples - (Kind == SCAND_KIND_EXCLUSIVE ? 2 : 1), &first);
    if (Kind == SCAND_KIND_EXCLUSIVE && Sum::has_identity && begins && position == 0)
        leaf_sample<true>(x, Backward ? leaf.samples - 1 : 0, &first);
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
        leaf_read<false, true>(vectors, shift, samples);
    if (!Sum::has_identity || plan.backward[pass]) /* a forward pass meets them last */
        ragged_fill(samples, leaf.samples, Sum::as_f32(Sum::absent()));
    leaf_from_f32<Sum>(samples, x);
}

/* As tiles_shift_up, in fewer instructions: results move to other registers only where they are written from. */
template <int By> DEVICE void leaf_shift_up(float x[ORDER_LEAF], float *beyond)
{
    float before[By];
#pragma unroll
    for (int i = 0; i < By; i++) {
        if (lane_index() == WARP - 1)
            beyond[i] = x[ORDER_LEAF - By + i];
        before[i] = __shfl_up_sync(~0u, x[ORDER_LEAF - By + i], 1);
    }
#pragma unroll
    for (int i = ORDER_LEAF - 1; i >= 0; i--)
        x[i] = i < By ? before[i] : x[i - By];
}

/* Writes a tile as packed_drain does, without a branch: of the vectors that it shares with others eight lanes write a
 * result each. */
DEVICE void ragged_drain(const uint4 *vectors, char *target, int shift, int count)
{
    const int lane = lane_index(), end = (unsigned)(shift + count) / 4, index = lane < 4 ? lane : 4 * end + lane - 4;
    target -= shift * 4;
    drain_vectors<TILE_VECTORS>(vectors, target, shift > 0, end);
    if (lane >= (shift > 0 ? 0 : 4) && lane < 8 && index >= shift && index < shift + count)
        ((float *)target)[index] = *staged_sample(vectors, index);
}

/* Writes the results of a tile, when all lanes have read the tile. Samples that are floats become them: the compiler
 * does not know that nobody needs these any more. */
template <class Sum>
DEVICE void ragged_write(const struct ragged_plan &plan, const struct ragged_item &item, int tile, uint4 *vectors,
                         const struct ragged_leaf &leaf, bool together, typename Sum::sample x[ORDER_LEAF])
{
    char *target = plan.output + (item.first + (uint64_t)tile * ORDER_TILE) * sizeof(float);
    const int shift = shift_of<float>(target);
    float apart[ORDER_LEAF], *results = apart;
    if constexpr (std::is_same<typename Sum::sample, float>::value)
        results = x;
    leaf_results<Sum>(x, results);
    if (together) {
        packed_write(vectors, shift + leaf.first, leaf.samples, results);
    } else {
        float *beyond = (float *)(vectors + TILE_VECTORS);
        if (shift == 1)
            leaf_shift_up<1>(results, beyond);
        else if (shift == 2)
            leaf_shift_up<2>(results, beyond);
        else if (shift == 3)
            leaf_shift_up<3>(results, beyond);
        leaf_write(vectors, lane_index(), results);
    }
    __syncwarp();
    ragged_drain(vectors, target, shift, tile_samples(item.samples, tile));
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

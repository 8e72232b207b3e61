/*
 * Order 1 (order.h) inside an order block, by one thread block: a lane holds a leaf in registers (leaf.cuh), a warp a
 * tile.
 */
#ifndef KERNELS_CUDA_EXCHANGE_BLOCK_CUH
#define KERNELS_CUDA_EXCHANGE_BLOCK_CUH

#include <scand/types.h>

#include "kernels/cuda/lane/leaf.cuh"
#include "kernels/cuda/warp/item.cuh"
#include "kernels/cuda/warp/tile_prefixes.cuh"

/* The totals of the tiles of an order block, and the carries into them, in shared memory. */
template <class Sum> struct tile_sums {
    typename Sum::sum totals[ORDER_FAN], carries[ORDER_FAN];
};

/*
 * The first warp turns the totals of the tiles into the carries into them. If every warp did that for itself, they
 * would meet once, but it takes longer.
 */
template <class Sum, bool Backward, class Outside, class Level = sum_level<Sum>>
DEVICE void tiles_scan(tile_sums<Sum> *shared, int tiles, Outside outside, Level level = {})
{
    int tile = lane_index(), last = tiles - 1;
    typename Sum::sum sum = shared->totals[tile];
    sum = level.template scan<Backward>(sum, last);
    if (outside.total_wanted() && tile == (Backward ? 0 : last))
        *outside.sum() = level.carry_out(sum);
    carry<Sum> before = group_before<Sum, Backward>(sum, last);
    if (outside.present())
        before = level.join({level.carry_in(*outside.sum()), true}, before, level.template factor<Backward>());
    shared->carries[tile] = before.sum;
}

/* True where rows consist of whole leaves, and another warp has something to do while the first one makes carries:
 * outside.meanwhile(warp). */
template <class Outside> constexpr bool whole_leaves = false;

/* Halves the first sample of a row, for the kind trapezoid. */
template <class Sum, bool Backward, class Outside>
DEVICE void block_halve(typename Sum::sample x[ORDER_LEAF], int length, int warp, Outside outside)
{
    if constexpr (Sum::has_half)
        if (outside.halves())
            leaf_halve_at<Sum>(x, leaf_first<Backward>(length, warp));
}

/*
 * One pass over an order block of `length` samples: replaces the samples by their values, unless only the total is
 * wanted. `outside` knows the rest: whether a carry from the row's other order blocks is present, whether the total is
 * wanted, and where the one lies and the other goes; of what kind the pass is, and its value of no samples; and, where
 * the kind is one that a launch finds out, whether the block has the sample of a row that is halved.
 */
template <class Sum, bool Backward, int Kind, class Outside>
DEVICE void block_pass(typename Sum::sample x[ORDER_LEAF], int length, int warp, tile_sums<Sum> *shared,
                       Outside outside)
{
    int samples = tile_samples(length, warp), leaves = (samples + ORDER_LEAF - 1u) / ORDER_LEAF;
    int tiles = (length + ORDER_TILE - 1u) / ORDER_TILE;
    /* Nobody listens to what a forward pass meets after the last sample, unless it is for the total. */
    if (samples < ORDER_TILE && (Sum::has_identity ? Backward || outside.total_wanted() : sum_by_f64<Sum>))
        leaf_fill<Sum>(x, samples);
    if constexpr (Kind == KIND_ANY)
        block_halve<Sum, Backward>(x, length, warp, outside);
    struct leaf_end end = {false, ORDER_LEAF - 1};
    if (!whole_leaves<Outside>)
        end = leaf_end_of<Sum, Backward>(samples);
    float most;
    typename Sum::sum sum = tile_prefixes<Sum, Backward, whole_leaves<Outside>>(
        x, end, whole_leaves<Outside> ? leaves * ORDER_LEAF : samples, &most);
    if (lane_index() == (Backward ? 0 : leaves - 1))
        shared->totals[warp] = sum;
    carry<Sum> leaf = group_before<Sum, Backward>(sum, group_last<Sum>(leaves));
    __syncthreads();
    if (warp == 0)
        tiles_scan<Sum, Backward>(shared, tiles, outside, sum_level<Sum, sum_by_f64<Sum>>());
    if constexpr (whole_leaves<Outside>)
        outside.meanwhile(warp);
    __syncthreads();
    if (outside.total_wanted())
        return;
    bool present = Sum::has_identity || outside.present() || warp != (Backward ? tiles - 1 : 0);
    leaf = carry_join<Sum>({shared->carries[warp], present}, leaf);
    leaf_values_of<Sum, Backward, Kind>(x, leaf, end, most, outside.kind());
    const int kind = Kind == KIND_ANY ? outside.kind() : Kind;
    const bool exclusive = kind == SCAND_KIND_EXCLUSIVE;
    if (kind == SCAND_KIND_INCLUSIVE)
        return;
    if (exclusive && Sum::has_identity && !outside.present())
        leaf_zero_first<Sum, Backward>(x, length, warp, outside.zero());
    if constexpr (Kind == KIND_ANY)
        if (outside.halves())
            leaf_zero_first<Sum, Backward>(x, length, warp, outside.zero());
}

/* The exchange of a pass over an item with the other blocks of its row; looked up when needed, to hold no registers. */
template <class Sum> struct scan_outside {
    const struct scan_plan &plan;
    const struct scan_item *item;
    int pass;

    __device__ __forceinline__ bool total_wanted() const { return plan.totals_pass == pass; }
    __device__ __forceinline__ bool present() const { return item->outer[pass]; }
    __device__ __forceinline__ typename Sum::sum *sum() const
    {
        return (typename Sum::sum *)plan.sums[pass] + item->sum;
    }
    __device__ __forceinline__ int kind() const { return KIND_ANY; }
    __device__ __forceinline__ typename Sum::sample zero() const { return Sum::value(Sum::zero()); }
};

#endif

/*
 * A tile of order 1 in a warp, a leaf in each lane: the inclusive prefixes of the leaves' totals.
 */
#ifndef KERNELS_CUDA_WARP_TILE_PREFIXES_CUH
#define KERNELS_CUDA_WARP_TILE_PREFIXES_CUH

#include "kernels/cuda/lane/leaf.cuh"
#include "kernels/cuda/warp/kogge_stone.cuh"

/* Makes prefixes as tile_prefixes does, if that is exact in f64; returns the same in all lanes. `Few`: in fewer steps.
 */
template <bool Backward, bool Few>
DEVICE bool tile_prefixes_by_f64(const float x[ORDER_LEAF], struct f2 *prefix, float *most)
{
    if constexpr (Few) {
        float limit;
        const double sum = group_scan<sum_f64, Backward>(by_f64_total(x, most, &limit), WARP - 1);
        *prefix = by_f64_f2(sum);
        return __all_sync(~0u, *most * BY_F64_MARGIN <= limit && fabsf(prefix->high) <= limit);
    }
    struct by_f64_range range = {~0u, 0.0f};
    double sum = by_f64_total(x, &range);
    *most = range.most;
    return by_f64_scan<1>(&sum, range, prefix, [&] { sum = group_scan<sum_f64, Backward>(sum, WARP - 1); });
}

/* The inclusive prefixes of the totals of a tile's leaves, of which the last one has `samples` % 16. What lies beyond
 * is absent, or nobody listens to it. `most`: what this lane's magnitudes add up to, or what leaf_values_of has. */
template <class Sum, bool Backward, bool Few = false>
DEVICE typename Sum::sum tile_prefixes(const typename Sum::sample x[ORDER_LEAF], struct leaf_end end, int samples,
                                       float *most)
{
    typename Sum::sum sum;
    if constexpr (sum_by_f64<Sum>)
        if ((!Backward || samples % ORDER_LEAF != 1) && tile_prefixes_by_f64<Backward, Few>(x, &sum, most))
            return sum;
    if constexpr (sum_has_plain<Sum>)
        if (leaf_is_plain(x)) {
            using Plain = typename sum_plain<Sum>::sum;
            *most = 0.0f;
            return group_scan<Plain, Backward>(leaf_total<Plain, Backward, false>(x, ORDER_LEAF - 1), WARP - 1);
        }
    *most = INFINITY;
    return group_scan<Sum, Backward>(leaf_total<Sum, Backward>(x, end),
                                     group_last<Sum>((int)((samples + ORDER_LEAF - 1u) / ORDER_LEAF)));
}

/* The same for some tiles side by side: end(t) is the end of tile t, scan(sum, totals) the network of an accumulator
 * over their leaves. `alone`: the last leaf of one of them is a sample alone. Returns `most`. */
template <class Sum, int Tiles, bool Backward, class End, class Scan>
DEVICE float tiles_prefixes(const struct held_leaf<typename Sum::sample> leaves[Tiles], End end, bool alone,
                            typename Sum::sum sums[Tiles], Scan scan)
{
    if constexpr (sum_by_f64<Sum>)
        if (!alone) {
            struct by_f64_range range = {~0u, 0.0f};
            double totals[Tiles];
#pragma unroll
            for (int t = 0; t < Tiles; t++)
                totals[t] = by_f64_total(leaves[t].x, &range);
            if (by_f64_scan<Tiles>(totals, range, sums, [&] { scan(sum_f64(), totals); }))
                return range.most;
        }
#pragma unroll
    for (int t = 0; t < Tiles; t++)
        sums[t] = leaf_total<Sum, Backward>(leaves[t].x, end(t));
    scan(Sum(), sums);
    return INFINITY;
}

#endif

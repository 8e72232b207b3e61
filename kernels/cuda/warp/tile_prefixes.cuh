/*
 * A tile of order 1 in a warp, a leaf in each lane: the inclusive prefixes of the leaves' totals.
 */
#ifndef KERNELS_CUDA_WARP_TILE_PREFIXES_CUH
#define KERNELS_CUDA_WARP_TILE_PREFIXES_CUH

#include "kernels/cuda/lane/leaf.cuh"
#include "kernels/cuda/warp/kogge_stone.cuh"

/* Makes prefixes as tile_prefixes does, if that is exact in f64; returns the same in all lanes. */
template <bool Backward> DEVICE bool tile_prefixes_by_f64(const float x[ORDER_LEAF], struct f2 *prefix, float *most)
{
    struct by_f64_range range = {~0u, 0.0f};
    double sum = by_f64_total(x, &range);
    *most = range.most;
    return by_f64_scan<1, Backward>(&sum, range, prefix);
}

/* The inclusive prefixes of the totals of a tile's leaves, of which the last one has `samples` % 16. What lies beyond
 * is absent, or nobody listens to it. `most`: what this lane's magnitudes add up to, or what leaf_values_of has. */
template <class Sum, bool Backward>
DEVICE typename Sum::sum tile_prefixes(const typename Sum::sample x[ORDER_LEAF], struct leaf_end end, int samples,
                                       float *most)
{
    typename Sum::sum sum;
    if constexpr (sum_by_f64<Sum>)
        if ((!Backward || samples % ORDER_LEAF != 1) && tile_prefixes_by_f64<Backward>(x, &sum, most))
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

#endif

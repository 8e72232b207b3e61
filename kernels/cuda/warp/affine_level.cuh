/*
 * Affine with one coefficient: what a map multiplies by depends only on how many samples it stands for. So terms alone
 * travel, and what they are multiplied by was made before.
 *
 * A map that stands for a leaf, tile or order block that is not full is the first that a pass meets, or the last one:
 * nothing is ever multiplied by what it multiplies by. So there are full ones alone, of which the network joins two of
 * a size.
 */
#ifndef KERNELS_CUDA_WARP_AFFINE_LEVEL_CUH
#define KERNELS_CUDA_WARP_AFFINE_LEVEL_CUH

#include <string.h>

#include "kernels/cuda/lane/affine_leaf.cuh"
#include "kernels/cuda/warp/kogge_stone.cuh"

template <class T> DEVICE affine_same<T> affine_coefficient(const struct affine_powers &powers)
{
    return {*(const T *)powers.words};
}

/* A level of the order, as sum_level: `squares` are what 1, 2, 4, ... members multiply by, up to a group, and `counted`
 * what 0 (any), 1, 2, ... do, in shared memory. */
template <class Term, bool Early = false> struct affine_level {
    using T = typename Term::sum;
    const T *squares, *counted;

    template <bool Backward> __device__ __forceinline__ T step(T term, int k, int last) const
    {
        T before;
        const bool there = lane_before<Backward>(term, &before, 1 << k, last);
        if constexpr (std::is_floating_point<T>::value) {
            add_where(there, &term, squares[k] * before);
            return term;
        } else {
            return sum_choose<Term>(there, affine_apply(squares[k], before, term), term);
        }
    }
    template <bool Backward> __device__ __forceinline__ T scan(T term, int last) const
    {
#pragma unroll
        for (int k = 0; k < AFFINE_STEPS; k++) {
            if (Early && k == 2 && last < 1 << k)
                break;
            term = step<Backward>(term, k, last);
        }
        return term;
    }
    template <bool Backward> __device__ __forceinline__ T scan_rolled(T term, int members) const
    {
#pragma unroll 1
        for (int k = 0; 1 << k < members; k++)
            term = step<Backward>(term, k, members - 1);
        return term;
    }
    template <bool Backward> __device__ __forceinline__ T factor() const
    {
        return counted[Backward ? WARP - 1 - lane_index() : lane_index()];
    }
    __device__ __forceinline__ carry<Term> join(carry<Term> outer, carry<Term> inner, T factor) const
    {
        const carry<Term> both = {
            sum_choose<Term>(inner.present, affine_apply(factor, outer.sum, inner.sum), outer.sum), true};
        return outer.present ? both : inner;
    }
    __device__ __forceinline__ affine_level above() const
    {
        return {squares + AFFINE_STEPS, counted + WARP};
    }
    __device__ __forceinline__ affine_map<T> carry_out(T term) const
    {
        return {term, squares[AFFINE_STEPS]};
    }
    __device__ __forceinline__ T carry_in(const affine_map<T> &map) const
    {
        return map.term;
    }
};

/* That of leaves; the one above it is that of tiles. */
template <class T> DEVICE T *affine_counted()
{
    __shared__ T counted[2 * WARP];
    return counted;
}

template <class Term, bool Early = false>
DEVICE affine_level<Term, Early> affine_leaves(const struct affine_powers &powers)
{
    using T = typename Term::sum;
    return {(const T *)powers.words + 1, affine_counted<T>()};
}

/* How leaves join, whatever the rule. */
template <class Sum> DEVICE auto level_of(const struct affine_powers &powers)
{
    if constexpr (sum_is_affine<Sum>)
        return affine_leaves<Sum>(powers);
    else
        return sum_level<Sum>();
}

/* A thread block begins with it: there are those of leaves and of tiles after its next barrier. */
template <class T> DEVICE void affine_begin(const struct affine_powers &powers)
{
    if (threadIdx.x >= WARP)
        return;
    affine_level<affine_term<T>> level = affine_leaves<affine_term<T>>(powers);
    for (int i = 0; i < 2; i++, level = level.above()) {
        const affine_map<T> all = group_scan<affine_sum<T>, false>({T{}, level.squares[0]}, WARP - 1);
        affine_counted<T>()[i * WARP + (threadIdx.x + 1) % WARP] = all.factor;
    }
}

#endif

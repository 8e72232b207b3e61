/*
 * A lane's leaf in an affine pass. `Factors` has the coefficients: at(i) is the one of sample i.
 */
#ifndef KERNELS_CUDA_LANE_AFFINE_LEAF_CUH
#define KERNELS_CUDA_LANE_AFFINE_LEAF_CUH

#include <scand/types.h>

#include "kernels/cuda/lane/affine_accumulator.cuh"
#include "kernels/cuda/lane/carry.cuh"
#include "kernels/cuda/lane/lane.cuh"
#include "kernels/cuda/lane/leaf.cuh"

/* Reading, writing and rounding between passes of samples of type T: as those of sums. */
template <class T> struct affine_samples {
    using sum = any_real<T, SCAND_OPERATOR_SUM>;
};
template <> struct affine_samples<struct f2> {
    using sum = any_f2<SCAND_OPERATOR_SUM, true>;
};
template <> struct affine_samples<uint64_t> {
    using sum = any_whole<SCAND_OPERATOR_SUM>;
};

/* The accumulator of terms alone, which join as affine_level.cuh says, and the same of samples that are held as those
 * of `Samples`. */
template <class T> struct affine_term {
    using sum = T;
    static const bool has_identity = false;

    DEVICE sum identity() { return {}; }
};

template <class Samples> struct affine_of : Samples {
    using number = typename Samples::sum;
    using sum = number;
    static const bool has_identity = false, has_half = false;

    DEVICE sum identity() { return {}; }
};
template <class Sum> constexpr bool sum_is_affine = false;
template <class Samples> constexpr bool sum_is_affine<affine_of<Samples>> = true;

/* One coefficient for all samples. */
template <class T> struct affine_same {
    T factor;

    __device__ __forceinline__ T at(int) const { return factor; }
};

/* The map that a leaf stands for. `Partial`: it may lack samples that the pass would have met first, and begins at
 * `last`. */
template <class T, bool Backward, bool Partial, class Sample, class Factors>
DEVICE affine_map<T> affine_leaf_total(const Sample x[ORDER_LEAF], const Factors &factors, int last)
{
    const int first = Backward ? ORDER_LEAF - 1 : 0;
    affine_map<T> sum = {number_of<T>(x[first]), factors.at(first)};
#pragma unroll
    for (int i = 1; i < ORDER_LEAF; i++) {
        const int k = Backward ? ORDER_LEAF - 1 - i : i;
        const T factor = factors.at(k);
        const affine_map<T> next = {affine_apply(factor, sum.term, x[k]), affine_mul(factor, sum.factor)};
        const bool start = Partial && k == last;
        sum.term = start ? number_of<T>(x[k]) : next.term;
        sum.factor = start ? factor : next.factor;
    }
    return sum;
}

template <class T, bool Backward, bool Partial, bool Exclusive, class Sample, class Factors>
DEVICE void affine_leaf_values(Sample x[ORDER_LEAF], const Factors &factors, carry<affine_term<T>> carry, int last)
{
    T y = carry.present ? carry.sum : T{};
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++) {
        const int k = Backward ? ORDER_LEAF - 1 - i : i;
        const bool start = Partial ? k == last : i == 0;
        const T before = Partial && start ? (carry.present ? carry.sum : T{}) : y;
        y = affine_apply(factors.at(k), before, x[k]);
        if (start && !carry.present)
            y = number_of<T>(x[k]);
        x[k] = number_of<Sample>(Exclusive ? before : y);
    }
}

/* The pins keep apart what the kinds have in common: computed before they part, it would not fit the registers. */
template <class T, bool Backward, bool Partial, class Sample, class Factors>
DEVICE void affine_leaf_values(Sample x[ORDER_LEAF], const Factors &factors, carry<affine_term<T>> carry, int last,
                               bool exclusive)
{
    if (exclusive) {
        pin(carry.sum);
        affine_leaf_values<T, Backward, Partial, true>(x, factors, carry, last);
    } else {
        pin(carry.sum);
        affine_leaf_values<T, Backward, Partial, false>(x, factors, carry, last);
    }
}

/* Both for a leaf of which some samples may be missing. `carry` is what a pass meets before it. */
template <class T, bool Backward, class Sample, class Factors>
DEVICE affine_map<T> affine_leaf_total(const Sample x[ORDER_LEAF], const Factors &factors, struct leaf_end end)
{
    return end.partial ? affine_leaf_total<T, Backward, Backward>(x, factors, end.last)
                       : affine_leaf_total<T, Backward, false>(x, factors, end.last);
}

template <class T, bool Backward, class Sample, class Factors>
DEVICE void affine_leaf_values(Sample x[ORDER_LEAF], const Factors &factors, carry<affine_term<T>> carry,
                               struct leaf_end end, bool exclusive)
{
    if (end.partial)
        affine_leaf_values<T, Backward, Backward>(x, factors, carry, end.last, exclusive);
    else
        affine_leaf_values<T, Backward, false>(x, factors, carry, end.last, exclusive);
}

#endif

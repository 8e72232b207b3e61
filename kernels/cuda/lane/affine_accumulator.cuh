/*
 * Accumulators of affine (scan.h): numbers of type T (float, double, struct f2 or uint64_t) and maps y -> factor y +
 * term, which block.cuh joins as it adds sums. Adding a map that changes nothing would change a zero's sign, so there
 * is no identity.
 */
#ifndef KERNELS_CUDA_LANE_AFFINE_ACCUMULATOR_CUH
#define KERNELS_CUDA_LANE_AFFINE_ACCUMULATOR_CUH

#include "kernels/cuda/lane/accumulator.cuh"
#include "kernels/cuda/lane/shuffle.cuh"

template <class T> struct affine_map {
    T term, factor;
};

template <class T> DEVICE void pin(affine_map<T> &map)
{
    pin(map.term);
    pin(map.factor);
}

template <class T> F2_INLINE T affine_mul(T left, T right)
{
    return left * right;
}

F2_INLINE struct f2 affine_mul(struct f2 left, struct f2 right)
{
    return f2_mul(left, right);
}

/* factor y + term */
template <class T> DEVICE T affine_apply(T factor, T y, T term)
{
    return factor * y + term;
}

DEVICE struct f2 affine_apply(struct f2 factor, struct f2 y, struct f2 term)
{
    return f2_add(f2_mul(factor, y), term);
}

/* The same of a term that is a float: what f2_add makes of it, in half as many steps. */
DEVICE struct f2 affine_apply(struct f2 factor, struct f2 y, float term)
{
    return f2_add_f32(f2_mul(factor, y), term);
}

/* A sample or a coefficient as a number, and a number as a sample. */
template <class T, class From> DEVICE T number_of(From x)
{
    const bool from_f2 = std::is_same<From, struct f2>::value;
    if constexpr (std::is_same<T, struct f2>::value == from_f2)
        return (T)x;
    else if constexpr (from_f2)
        return x.high;
    else if constexpr (std::is_same<From, float>::value)
        return f2_from_f32(x);
    else
        return f2_from_f64(x);
}

template <class T> struct affine_sum {
    using sum = affine_map<T>;
    using sample = T;
    static const bool has_identity = false;

    DEVICE sum add(sum left, sum right)
    {
        return {affine_apply(right.factor, left.term, right.term), affine_mul(right.factor, left.factor)};
    }
    DEVICE sum identity() { return {}; }
};

#endif

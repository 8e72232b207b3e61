/*
 * The totals of leaves, and their network, in f2 by way of f64, where neither rounds.
 *
 * Let all samples of a warp be multiples of a power of two q, and none of the sums that are formed exceed 2^47 q. Then
 * f64 holds them all, and so does f2: its high word is a sum rounded to f32, which leaves no more than 2^22 q to the
 * low word. Of two such sums the high words lose no more than 2^23 q when they are added, the low words come to as
 * much, and both to 2^24 q: multiples of q that an f32 holds. Such a word is the smaller one where f2.h takes that for
 * granted, or an f32 holds what both come to. Hence f2 comes to the same sum as f64, with 10 to 20 additions or with
 * one, and its words are those of by_f64_f2.
 *
 * The last place of the least sample that is not 0 serves as q. Sums inside a leaf are no more than those of
 * magnitudes, sums of leaves no more than two prefixes: where neither of these exceeds 2^46 q, the condition holds.
 *
 * A sum of zeros is +0 in f2, whatever their signs. Only a sample alone stays as it is: leave out leaves of one sample.
 */
#ifndef KERNELS_CUDA_LANE_F2_BY_F64_CUH
#define KERNELS_CUDA_LANE_F2_BY_F64_CUH

#include "kernels/cuda/lane/accumulator.cuh"
#include "kernels/order1/order.h"

/* A lane's knowledge of its samples. */
struct by_f64_range {
    unsigned least; /* magnitude: twice its bits, less 1, which is the largest number for 0 */
    float most;     /* the sum of magnitudes in a leaf, or more, but for rounding */
};

/* A factor above what rounding takes from a sum of ORDER_LEAF magnitudes, and from as many sums that add up to one. */
#define BY_F64_MARGIN 1.0001f

/* The sum of a leaf, and its range joined to `range`. Order is of no account. Magnitudes add up where their maximum
 * would do: floating-point units have more room than those of integers. */
DEVICE double by_f64_total(const float x[ORDER_LEAF], struct by_f64_range *range)
{
    double total = 0.0;
    float magnitudes = 0.0f;
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++) {
        range->least = min(range->least, 2 * __float_as_uint(x[i]) - 1);
        magnitudes += fabsf(x[i]);
    }
    range->most = fmaxf(range->most, magnitudes);
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        total += x[i];
    return total;
}

/* The bound on every prefix, and on the magnitudes of a leaf: 2^46 times the last place of the least sample of all
 * lanes, or a bit less, and far from infinity. With all bits of its significand a sample is 2^24 last places, less one.
 */
DEVICE float by_f64_limit_of(unsigned magnitude)
{
    return fminf(__uint_as_float(magnitude | 0x7fffff) * 0x1p22f, 0x1p120f);
}

DEVICE float by_f64_limit(unsigned least)
{
#if __CUDA_ARCH__ >= 800
    return by_f64_limit_of(__reduce_min_sync(~0u, least) >> 1);
#else
    return -1.0f;
#endif
}

/* The sum of a leaf, what its magnitudes add up to, and the bound, in fewer steps if no sample of the warp is 0. */
DEVICE double by_f64_total(const float x[ORDER_LEAF], float *most, float *limit)
{
#if __CUDA_ARCH__ >= 800
    double total = 0.0;
    float least = fabsf(x[0]);
    *most = fabsf(x[0]);
#pragma unroll
    for (int i = 1; i < ORDER_LEAF; i++) {
        least = fminf(least, fabsf(x[i]));
        *most += fabsf(x[i]);
    }
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        total += x[i];
    const unsigned magnitude = __reduce_min_sync(~0u, __float_as_uint(least));
    *limit = by_f64_limit_of(magnitude);
    if (magnitude > 0)
        return total;
#endif
    struct by_f64_range range = {~0u, 0.0f};
    const double sum = by_f64_total(x, &range);
    *most = range.most;
    *limit = by_f64_limit(range.least);
    return sum;
}

/* The same from upper halves of doubles. */
DEVICE double by_f64_limit_f64(unsigned least)
{
#if __CUDA_ARCH__ >= 800
    return fmin(__hiloint2double((int)((__reduce_min_sync(~0u, least) >> 1) | 0xfffff), -1) * 0x1p22, 0x1p120);
#else
    return -1.0;
#endif
}

DEVICE struct f2 by_f64_f2(double sum)
{
    const float high = (float)sum;
    return {high, (float)(sum - high)};
}

#endif

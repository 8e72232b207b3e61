/*
 * A leaf of one column, in a lane's registers: its total, and its values (columns_tma.cuh). Samples are in the order in
 * which the first pass meets them, so that what is missing is at the end; Reverse stands for a second pass the other
 * way.
 */
#ifndef KERNELS_CUDA_LANE_COLUMN_LEAF_CUH
#define KERNELS_CUDA_LANE_COLUMN_LEAF_CUH

#include "kernels/cuda/lane/carry.cuh"
#include "kernels/cuda/lane/convert32.cuh"

/* True when sums must be told which samples a leaf lacks; else missing samples change no sum. */
template <class Sum> DEVICE bool column_partial(int samples)
{
    return !Sum::has_identity && samples < ORDER_LEAF;
}

/* The total of a leaf of samples; Reverse: from the last one to the first one. */
template <class Sum, bool Reverse, bool Partial>
DEVICE typename Sum::sum column_total_of(float x[ORDER_LEAF], int samples)
{
    leaf_pin(x);
    typename Sum::sum sum = Sum::first(Sum::from_f32(x[Reverse ? ORDER_LEAF - 1 : 0]));
#pragma unroll
    for (int i = 1; i < ORDER_LEAF; i++) {
        const typename Sum::sample sample = Sum::from_f32(x[Reverse ? ORDER_LEAF - 1 - i : i]);
        const typename Sum::sum next = Sum::add_sample(sum, sample);
        if (Partial && Reverse)
            sum = ORDER_LEAF - 1 - i == samples - 1 ? Sum::first(sample) : next;
        else
            sum = Partial ? sum_choose<Sum>(i < samples, next, sum) : next;
    }
    return sum;
}

template <class Sum, bool Reverse> DEVICE typename Sum::sum column_total(float x[ORDER_LEAF], int samples)
{
    return column_partial<Sum>(samples) ? column_total_of<Sum, Reverse, !Sum::has_identity>(x, samples)
                                        : column_total_of<Sum, Reverse, false>(x, samples);
}

/* Replaces samples of a leaf, of which `samples` are there, by their values. `first`: the pass begins with this leaf.
 */
template <class Sum, bool Reverse, bool Partial>
DEVICE void column_values_of(float x[ORDER_LEAF], int samples, typename Sum::sum carry, bool first, bool exclusive)
{
    typename Sum::sum sum = carry;
    leaf_pin(x);
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++) {
        const int k = Reverse ? ORDER_LEAF - 1 - i : i;
        const bool start = Partial ? k == samples - 1 : i == 0;
        const typename Sum::sample sample = Sum::from_f32(x[k]);
        sum = Sum::add_sample(start ? carry : sum, sample);
        if (start && !Sum::has_identity)
            sum = sum_choose<Sum>(!first, sum, Sum::first(sample));
        x[k] = Sum::as_f32(Sum::value(sum));
    }
    if (exclusive)
        leaf_shift<Reverse>(x, samples, Sum::as_f32(Sum::value(first ? Sum::zero() : carry)));
}

template <class Sum, bool Reverse>
DEVICE void column_values(float x[ORDER_LEAF], int samples, typename Sum::sum carry, bool first, bool exclusive)
{
    if (Reverse && column_partial<Sum>(samples))
        column_values_of<Sum, Reverse, Reverse && !Sum::has_identity>(x, samples, carry, first, exclusive);
    else
        column_values_of<Sum, Reverse, false>(x, samples, carry, first, exclusive);
}

/* Makes absent what a leaf lacks. */
template <class Sum> DEVICE void column_fill(float x[ORDER_LEAF], int samples)
{
    if (Sum::has_identity && samples < ORDER_LEAF)
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = i < samples ? x[i] : Sum::as_f32(Sum::absent());
}

#endif

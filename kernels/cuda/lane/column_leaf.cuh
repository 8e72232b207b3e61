/*
 * Leaves of columns, whose samples a lane holds as f32: two of a form of 2 bytes side by side; and of one its total and
 * its values (columns_tma.cuh). There they are in the order in which the first pass meets them, so that what is missing
 * is at the end; Reverse stands for a second pass the other way.
 */
#ifndef KERNELS_CUDA_LANE_COLUMN_LEAF_CUH
#define KERNELS_CUDA_LANE_COLUMN_LEAF_CUH

#include "kernels/cuda/lane/carry.cuh"
#include "kernels/cuda/lane/convert16.cuh"
#include "kernels/cuda/lane/convert32.cuh"

/* Pairs of a sample of each column become samples; and back. */
template <bool Integers>
DEVICE void pairs_decode(enum scand_dtype form, const uint32_t pairs[ORDER_LEAF], float x[2][ORDER_LEAF])
{
    float samples[2 * ORDER_LEAF];
    convert16_decode<ORDER_LEAF, Integers>(form, pairs, samples);
#pragma unroll
    for (int i = 0; i < 2 * ORDER_LEAF; i++)
        x[i % 2][i / 2] = samples[i];
}

template <bool Integers>
DEVICE void pairs_encode(enum scand_dtype form, const float x[2][ORDER_LEAF], bool nan, uint32_t pairs[ORDER_LEAF])
{
    float samples[2 * ORDER_LEAF];
#pragma unroll
    for (int i = 0; i < 2 * ORDER_LEAF; i++)
        samples[i] = x[i % 2][i / 2];
    convert16_encode<ORDER_LEAF, Integers>(form, samples, nan, pairs);
}

/* True when sums must be told which samples a leaf lacks; else missing samples change no sum. */
template <class Sum> DEVICE bool column_partial(int samples)
{
    return !Sum::has_identity && samples < ORDER_LEAF;
}

/* The total of a leaf of samples; Reverse: from the last one to the first one. */
template <class Sum, bool Reverse> DEVICE typename Sum::sum column_total(float x[ORDER_LEAF], int samples)
{
    leaf_pin(x);
    if (!column_partial<Sum>(samples))
        return leaf_total<Sum, Reverse, false>(x, 0);
    if (Reverse)
        return leaf_total<Sum, Reverse, !Sum::has_identity>(x, samples - 1);
    typename Sum::sum sum = Sum::first(x[0]);
#pragma unroll
    for (int i = 1; i < ORDER_LEAF; i++)
        sum = sum_choose<Sum>(i < samples, Sum::add_sample(sum, x[i]), sum);
    return sum;
}

/* Replaces samples of a leaf, of which `samples` are there, by their values. `first`: the pass begins with this leaf.
 */
template <class Sum, bool Reverse>
DEVICE void column_values(float x[ORDER_LEAF], int samples, typename Sum::sum carry, bool first, bool exclusive)
{
    leaf_pin(x);
    leaf_values<Sum, Reverse, SCAND_KIND_INCLUSIVE>(x, {carry, !first},
                                                    leaf_end{Reverse && column_partial<Sum>(samples), samples - 1});
    if (exclusive)
        leaf_shift<Reverse>(x, samples, Sum::value(first ? Sum::zero() : carry));
}

/* Makes absent what a leaf lacks. */
template <class Sum> DEVICE void column_fill(float x[ORDER_LEAF], int samples)
{
    if (Sum::has_identity && samples < ORDER_LEAF)
        leaf_fill_beyond<Sum>(x, samples);
}

#endif

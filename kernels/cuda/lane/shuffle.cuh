/*
 * Values of other lanes, of every type that sums have.
 */
#ifndef KERNELS_CUDA_LANE_SHUFFLE_CUH
#define KERNELS_CUDA_LANE_SHUFFLE_CUH

#include <string.h>
#include <type_traits>

#include "kernels/cuda/lane/lane.cuh"
#include "kernels/order1/f2.h"

/* The value of the lane that a pass meets `distance` lanes earlier, and whether it is one of lanes 0 to `last`. */
template <bool Backward> DEVICE bool lane_before(unsigned value, unsigned *before, int distance, int last)
{
    return Backward ? shuffle_down(value, before, distance, last) : shuffle_up(value, before, distance);
}

template <bool Backward> DEVICE bool lane_before(float value, float *before, int distance, int last)
{
    unsigned bits;
    bool there = lane_before<Backward>(__float_as_uint(value), &bits, distance, last);
    *before = __uint_as_float(bits);
    return there;
}

template <bool Backward> DEVICE bool lane_before(double value, double *before, int distance, int last)
{
    unsigned low, high;
    lane_before<Backward>((unsigned)__double2loint(value), &low, distance, last);
    bool there = lane_before<Backward>((unsigned)__double2hiint(value), &high, distance, last);
    *before = __hiloint2double((int)high, (int)low);
    return there;
}

template <bool Backward> DEVICE bool lane_before(uint64_t value, uint64_t *before, int distance, int last)
{
    unsigned low, high;
    lane_before<Backward>((unsigned)value, &low, distance, last);
    bool there = lane_before<Backward>((unsigned)(value >> 32), &high, distance, last);
    *before = (uint64_t)high << 32 | low;
    return there;
}

template <bool Backward> DEVICE bool lane_before(struct f2 value, struct f2 *before, int distance, int last)
{
    lane_before<Backward>(value.high, &before->high, distance, last);
    return lane_before<Backward>(value.low, &before->low, distance, last);
}

/* The value of one lane, in all. */
template <class T> DEVICE T lane_get(T value, int lane)
{
    unsigned words[sizeof(T) / 4];
    memcpy(words, &value, sizeof(T));
#pragma unroll
    for (int i = 0; i < (int)(sizeof(T) / 4); i++)
        words[i] = __shfl_sync(~0u, words[i], lane);
    memcpy(&value, words, sizeof(T));
    return value;
}

/* The same; of an f64 by the function that CUDA has for it, which some kernels do better with. */
template <class T> DEVICE T lane_value(T value, int lane)
{
    if constexpr (std::is_same<T, double>::value)
        return __shfl_sync(~0u, value, lane);
    else
        return lane_get(value, lane);
}

#endif

/*
 * Values of other lanes, of every type that sums have.
 */
#ifndef KERNELS_CUDA_LANE_SHUFFLE_CUH
#define KERNELS_CUDA_LANE_SHUFFLE_CUH

#include <string.h>
#include <type_traits>

#include "kernels/cuda/lane/lane.cuh"

/* The value of the lane that a pass meets `distance` lanes earlier, and whether it is one of lanes 0 to `last`. */
template <bool Backward, class T> DEVICE bool lane_before(T value, T *before, int distance, int last)
{
    unsigned words[sizeof(T) / 4];
    bool there = true;
    memcpy(words, &value, sizeof(T));
#pragma unroll
    for (int i = 0; i < (int)(sizeof(T) / 4); i++)
        there =
            Backward ? shuffle_down(words[i], &words[i], distance, last) : shuffle_up(words[i], &words[i], distance);
    memcpy(before, words, sizeof(T));
    return there;
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

/*
 * Words of a leaf whose bytes lie in another order than this machine's: integers, and samples of class f64. What the
 * order is is asked once for a leaf, or costs nothing, as a permutation of bytes by a number in a register.
 */
#ifndef KERNELS_CUDA_LANE_CONVERT64_CUH
#define KERNELS_CUDA_LANE_CONVERT64_CUH

#include "kernels/cuda/lane/convert32.cuh"
#include "kernels/order1/dtypes.h"

/* Between the order of a dtype of 4 bytes and this machine's. */
DEVICE void words32_order(enum scand_dtype form, uint32_t words[ORDER_LEAF])
{
    if (!codec_is_swapped(form))
        return;
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        words[i] = codec_swap32(words[i]);
}

/* The same of 8 bytes; lower halves come first. */
DEVICE void words64_order(enum scand_dtype form, uint32_t words[2 * ORDER_LEAF])
{
    if (!codec_is_swapped(form))
        return;
#pragma unroll
    for (int i = 0; i < 2 * ORDER_LEAF; i += 2) {
        const uint32_t low = words[i];
        words[i] = codec_swap32(words[i + 1]);
        words[i + 1] = codec_swap32(low);
    }
}

/* How words are written. */
struct word_order {
    bool swapped;
    uint32_t bytes; /* of a word, as a permutation */

    __device__ __forceinline__ uint32_t of32(uint32_t word) const
    {
        return __byte_perm(word, 0, bytes);
    }
    /* Word i of those of a leaf, of a number with these halves. */
    __device__ __forceinline__ uint32_t of64(int i, uint32_t low, uint32_t high) const
    {
        return of32((i % 2 != 0) != swapped ? high : low);
    }
};

DEVICE struct word_order word_order_of(enum scand_dtype form)
{
    return {codec_is_swapped(form), order_bytes(form)};
}

#endif

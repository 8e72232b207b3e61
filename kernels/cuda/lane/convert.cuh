/*
 * The samples of a leaf, from its words in any form: of class f32, of class f64, and integers as 64 bits, of which some
 * are flipped. The words are overwritten.
 */
#ifndef KERNELS_CUDA_LANE_CONVERT_CUH
#define KERNELS_CUDA_LANE_CONVERT_CUH

#include "kernels/cuda/lane/convert16.cuh"
#include "kernels/cuda/lane/convert32.cuh"
#include "kernels/cuda/lane/convert64.cuh"

template <int Bytes> DEVICE void leaf_of_words(enum scand_dtype form, uint32_t words[4 * Bytes], float x[ORDER_LEAF])
{
    if constexpr (Bytes == 2) {
        convert16_decode(form, words, x);
    } else {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = __uint_as_float(words[i]);
        leaf_decode(form, x);
    }
}

template <int Bytes> DEVICE void leaf_of_words(enum scand_dtype form, uint32_t words[4 * Bytes], double x[ORDER_LEAF])
{
    if constexpr (Bytes == 8) {
        words64_order(form, words);
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = __hiloint2double((int)words[2 * i + 1], (int)words[2 * i]);
    } else {
        words32_order(form, words);
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = (double)(int32_t)words[i];
    }
}

template <int Bytes>
DEVICE void leaf_of_words(enum scand_dtype form, uint32_t words[4 * Bytes], uint64_t x[ORDER_LEAF], uint64_t flip)
{
    if constexpr (Bytes == 8) {
        words64_order(form, words);
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = ((uint64_t)words[2 * i + 1] << 32 | words[2 * i]) ^ flip;
    } else {
        words32_order(form, words);
        const uint32_t sign = codec_class(form) == SCAND_CLASS_SIGNED ? ~0u : 0;
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = ((uint64_t)((uint32_t)((int32_t)words[i] >> 31) & sign) << 32 | words[i]) ^ flip;
    }
}

#endif

/*
 * Leaves of the forms of 2 bytes, f16, bf16 and i16be, two samples to a word: what dtypes.h does to one sample, in the
 * few instructions that the hardware has for two.
 */
#ifndef KERNELS_CUDA_LANE_CONVERT16_CUH
#define KERNELS_CUDA_LANE_CONVERT16_CUH

#include "kernels/cuda/lane/lane.cuh"
#include "kernels/order1/dtypes.h"

#define WORDS16 (ORDER_LEAF / 2) /* words */

/* Bytes, as many as bits of 1.5 x 2^23 or 2^23 as an f32 leave free, in the last places of a number: exact both ways.
 */
#define FLOAT_2_23       0x4b000000u
#define FLOAT_1_5_X_2_23 12582912.0f

DEVICE void f16_decode(uint32_t word, float x[2])
{
    f32x2_of_f16x2(word, x);
}

DEVICE void bf16_decode(uint32_t word, float x[2])
{
    x[0] = __uint_as_float(word << 16);
    x[1] = __uint_as_float(word & 0xffff0000);
}

/* With its sign bit flipped an integer counts from -32768 on; so it comes to lie in the last places of 2^23. */
DEVICE void i16be_decode(uint32_t word, float x[2])
{
    word ^= 0x00800080;
    x[0] = __uint_as_float(__byte_perm(word, FLOAT_2_23, 0x7401)) - (0x1p23f + 32768.0f);
    x[1] = __uint_as_float(__byte_perm(word, FLOAT_2_23, 0x7423)) - (0x1p23f + 32768.0f);
}

#if __CUDA_ARCH__ >= 800
DEVICE uint32_t f16_encode(const float x[2])
{
    return f16x2_of_f32x2(x);
}

DEVICE uint32_t bf16_encode(const float x[2])
{
    return bf16x2_of_f32x2(x);
}
#else
DEVICE uint32_t f16_encode(const float x[2])
{
    return codec_encode_f16(x[0]) | (uint32_t)codec_encode_f16(x[1]) << 16;
}

DEVICE uint32_t bf16_encode(const float x[2])
{
    return codec_encode_bf16(x[0]) | (uint32_t)codec_encode_bf16(x[1]) << 16;
}
#endif

/* Adding 1.5 x 2^23 rounds to an integer, ties to even, and leaves it in the last places. */
DEVICE uint32_t i16be_encode(const float x[2])
{
    float low = fminf(fmaxf(x[0], -32768.0f), 32767.0f) + FLOAT_1_5_X_2_23;
    float high = fminf(fmaxf(x[1], -32768.0f), 32767.0f) + FLOAT_1_5_X_2_23;
    return __byte_perm(__float_as_uint(low), __float_as_uint(high), 0x4501);
}

/* A further form of 2 bytes has its lines in the functions below. */
#define X(NAME, WORD, BYTES, CLASS)                                                                                \
    static_assert(BYTES != 2 || SCAND_DTYPE_##NAME == SCAND_DTYPE_F16 || SCAND_DTYPE_##NAME == SCAND_DTYPE_BF16 || \
                      SCAND_DTYPE_##NAME == SCAND_DTYPE_I16BE,                                                     \
                  "leaves of " WORD " are converted here");
SCAND_DTYPES(X)
#undef X

DEVICE void convert16_decode(enum scand_dtype form, const uint32_t words[WORDS16], float x[ORDER_LEAF])
{
    if (form == SCAND_DTYPE_F16) {
#pragma unroll
        for (int i = 0; i < WORDS16; i++)
            f16_decode(words[i], &x[2 * i]);
    } else if (form == SCAND_DTYPE_BF16) {
#pragma unroll
        for (int i = 0; i < WORDS16; i++)
            bf16_decode(words[i], &x[2 * i]);
    } else {
#pragma unroll
        for (int i = 0; i < WORDS16; i++)
            i16be_decode(words[i], &x[2 * i]);
    }
}

/* What NaN are written as. */
DEVICE void convert16_encode_nan(enum scand_dtype form, const float x[ORDER_LEAF], uint32_t words[WORDS16])
{
    const uint32_t nan = form == SCAND_DTYPE_F16 ? 0x7e00 : form == SCAND_DTYPE_BF16 ? 0x7fc0 : 0;
#pragma unroll
    for (int i = 0; i < WORDS16; i++) {
        if (x[2 * i] != x[2 * i])
            words[i] = __byte_perm(words[i], nan, 0x3254);
        if (x[2 * i + 1] != x[2 * i + 1])
            words[i] = __byte_perm(words[i], nan, 0x5410);
    }
}

DEVICE void convert16_encode(enum scand_dtype form, const float x[ORDER_LEAF], bool nan, uint32_t words[WORDS16])
{
    if (form == SCAND_DTYPE_F16) {
#pragma unroll
        for (int i = 0; i < WORDS16; i++)
            words[i] = f16_encode(&x[2 * i]);
    } else if (form == SCAND_DTYPE_BF16) {
#pragma unroll
        for (int i = 0; i < WORDS16; i++)
            words[i] = bf16_encode(&x[2 * i]);
    } else {
#pragma unroll
        for (int i = 0; i < WORDS16; i++)
            words[i] = i16be_encode(&x[2 * i]);
    }
    if (nan)
        convert16_encode_nan(form, x, words);
}

#endif

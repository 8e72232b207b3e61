/*
 * Leaves of the forms of 2 bytes, f16, bf16 and integers, two samples to a word: what dtypes.h does to one sample, in
 * the few instructions that the hardware has for two. Integers of one byte travel as words of two (tile_words.cuh).
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

DEVICE void bf16_decode(uint32_t word, float x[2])
{
    x[0] = __uint_as_float(word << 16);
    x[1] = __uint_as_float(word & 0xffff0000);
}

/* The layout of integers in the halves of a word, one of a byte in the lower byte of a half, and the numbers between
 * which they are: made once for a leaf. */
struct integers16 {
    uint32_t flip, low, high; /* sign bits; each half as the last places of an f32, as permutations */
    float zero, least, most;  /* zero: what 0 becomes there */
    uint32_t both;            /* the halves of two numbers as a word */
};

DEVICE struct integers16 integers16_of(enum scand_dtype form)
{
    const bool swapped = codec_is_swapped(form), single = codec_bytes(form) == 1;
    const bool is_signed = form == SCAND_DTYPE_I8 || form == SCAND_DTYPE_I16 || form == SCAND_DTYPE_I16BE;
    const float count = single ? 256.0f : 65536.0f, below = is_signed ? count / 2 : 0.0f;
    struct integers16 integers;
    integers.flip = !is_signed ? 0 : swapped || single ? 0x00800080 : 0x80008000;
    integers.low = swapped ? 0x7401 : 0x7410;
    integers.high = swapped ? 0x7423 : 0x7432;
    integers.zero = 0x1p23f + below;
    integers.least = -below;
    integers.most = count - 1 - below;
    integers.both = swapped ? 0x4501 : 0x5410;
    return integers;
}

/* Decodes integers: with its sign bit flipped an integer counts from the least one on, so it comes to lie in the last
 * places of 2^23. */
DEVICE void integers16_decode(const struct integers16 &form, uint32_t word, float x[2])
{
    word ^= form.flip;
    x[0] = __uint_as_float(__byte_perm(word, FLOAT_2_23, form.low)) - form.zero;
    x[1] = __uint_as_float(__byte_perm(word, FLOAT_2_23, form.high)) - form.zero;
}

/* Adding 1.5 x 2^23 rounds to an integer, ties to even, and leaves it in the last places. */
DEVICE uint32_t integers16_encode(const struct integers16 &form, const float x[2])
{
    float low = fminf(fmaxf(x[0], form.least), form.most) + FLOAT_1_5_X_2_23;
    float high = fminf(fmaxf(x[1], form.least), form.most) + FLOAT_1_5_X_2_23;
    return __byte_perm(__float_as_uint(low), __float_as_uint(high), form.both);
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

/* A further form of 1 or 2 bytes that is no integer has its lines in the functions below. */
#define IS_INTEGER16(NAME)                                                             \
    (SCAND_DTYPE_##NAME == SCAND_DTYPE_I8 || SCAND_DTYPE_##NAME == SCAND_DTYPE_U8 ||   \
     SCAND_DTYPE_##NAME == SCAND_DTYPE_I16 || SCAND_DTYPE_##NAME == SCAND_DTYPE_U16 || \
     SCAND_DTYPE_##NAME == SCAND_DTYPE_I16BE || SCAND_DTYPE_##NAME == SCAND_DTYPE_U16BE)
#define X(NAME, WORD, BYTES, CLASS, ORDER)                                                                        \
    static_assert(BYTES > 2 || SCAND_DTYPE_##NAME == SCAND_DTYPE_F16 || SCAND_DTYPE_##NAME == SCAND_DTYPE_BF16 || \
                      IS_INTEGER16(NAME),                                                                         \
                  "leaves of " WORD " are converted here");
SCAND_DTYPES(X)
#undef X
#undef IS_INTEGER16

/* So many words. `Integers`: the form may be one of integers. */
template <int Words = WORDS16, bool Integers = true>
DEVICE void convert16_decode(enum scand_dtype form, const uint32_t words[Words], float x[2 * Words])
{
    if (form == SCAND_DTYPE_F16) {
#pragma unroll
        for (int i = 0; i < Words; i++)
            f32x2_of_f16x2(words[i], &x[2 * i]);
    } else if (!Integers || form == SCAND_DTYPE_BF16) {
#pragma unroll
        for (int i = 0; i < Words; i++)
            bf16_decode(words[i], &x[2 * i]);
    } else {
        const struct integers16 integers = integers16_of(form);
#pragma unroll
        for (int i = 0; i < Words; i++)
            integers16_decode(integers, words[i], &x[2 * i]);
    }
}

/* Encodes NaN: all of them become one. */
template <int Words>
DEVICE void convert16_encode_nan(enum scand_dtype form, const float x[2 * Words], uint32_t words[Words])
{
    const uint32_t nan = form == SCAND_DTYPE_F16 ? 0x7e00 : form == SCAND_DTYPE_BF16 ? 0x7fc0 : 0;
#pragma unroll
    for (int i = 0; i < Words; i++) {
        if (x[2 * i] != x[2 * i])
            words[i] = __byte_perm(words[i], nan, 0x3254);
        if (x[2 * i + 1] != x[2 * i + 1])
            words[i] = __byte_perm(words[i], nan, 0x5410);
    }
}

template <int Words = WORDS16, bool Integers = true>
DEVICE void convert16_encode(enum scand_dtype form, const float x[2 * Words], bool nan, uint32_t words[Words])
{
    if (form == SCAND_DTYPE_F16) {
#pragma unroll
        for (int i = 0; i < Words; i++)
            words[i] = f16_encode(&x[2 * i]);
    } else if (!Integers || form == SCAND_DTYPE_BF16) {
#pragma unroll
        for (int i = 0; i < Words; i++)
            words[i] = bf16_encode(&x[2 * i]);
    } else {
        const struct integers16 integers = integers16_of(form);
#pragma unroll
        for (int i = 0; i < Words; i++)
            words[i] = integers16_encode(integers, &x[2 * i]);
    }
    if (nan)
        convert16_encode_nan<Words>(form, x, words);
}

#endif

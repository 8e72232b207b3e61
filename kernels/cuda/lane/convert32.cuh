/*
 * A leaf's samples in the forms that files have them in, and f64 ones rounded to f32, by a warp: few steps for all
 * lanes, or more if one of them has unusual numbers. Conversions from and to f64 are the scarce unit on most GPUs.
 */
#ifndef KERNELS_CUDA_LANE_CONVERT32_CUH
#define KERNELS_CUDA_LANE_CONVERT32_CUH

#include <string.h>
#include <type_traits>

#include "kernels/cuda/lane/leaf.cuh"
#include "kernels/order1/dtypes.h"

/* Ends whatever the compiler would move past this point. */
template <class Sample> DEVICE void leaf_pin(Sample x[ORDER_LEAF])
{
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        pin(x[i]);
}

/* A further form of 4 bytes has its lines in leaf_decode and leaf_encode. */
#define X(NAME, WORD, BYTES, CLASS, ORDER)                                                                         \
    static_assert(BYTES != 4 || SCAND_CLASS_##CLASS != SCAND_CLASS_F32 || SCAND_DTYPE_##NAME == SCAND_DTYPE_F32 || \
                      SCAND_DTYPE_##NAME == SCAND_DTYPE_F32BE || SCAND_DTYPE_##NAME == SCAND_DTYPE_IBM32 ||        \
                      SCAND_DTYPE_##NAME == SCAND_DTYPE_IBM32LE,                                                   \
                  "leaves of " WORD " are converted here");
SCAND_DTYPES(X)
#undef X

DEVICE bool is_ibm32(enum scand_dtype form)
{
    return form == SCAND_DTYPE_IBM32 || form == SCAND_DTYPE_IBM32LE;
}

/* codec_ibm32_value without its conversion: the bits of a fraction, read as an f32, are 2^-149 times this integer,
 * denormal or not. */
DEVICE float ibm32_value(uint32_t power, uint32_t fraction)
{
    const float root = __uint_as_float(power);
    return __uint_as_float(fraction) * 0x1p123f * root * fabsf(root);
}

DEVICE void leaf_swap(float x[ORDER_LEAF])
{
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        x[i] = codec_f32_of_bits(codec_swap32(codec_bits(x[i])));
}

/* Samples as a file has them become f32. Little-endian IBM floats, which few have, are big-endian ones on their way: an
 * order that registers hold would be spilled by kernels that have no more of them. */
DEVICE void leaf_decode(enum scand_dtype form, float x[ORDER_LEAF])
{
    if (form == SCAND_DTYPE_F32BE) {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = codec_decode_f32(SCAND_DTYPE_F32BE, &x[i]);
    } else if (is_ibm32(form)) {
        if (form == SCAND_DTYPE_IBM32LE)
            leaf_swap(x);
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = ibm32_value(codec_bits(x[i]) << 24, codec_swap32(codec_bits(x[i])) & 0xffffff);
    }
}

/* Zeros, say, are not plain, and cost twice as much. `Whole`: all lanes of a warp are here, and go the same way. */
template <bool Whole> DEVICE void leaf_encode_ibm32(float x[ORDER_LEAF])
{
    bool plain = true;
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        plain &= codec_ibm32_is_plain(x[i]);
    if (Whole)
        plain = __all_sync(~0u, plain);
    if (plain) {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = codec_f32_of_bits(codec_encode_ibm32_plain(x[i]));
    } else {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = codec_f32_of_bits(codec_encode_ibm32(x[i]));
    }
}

/* The other way, of results whose NaN are one already. */
template <bool Whole = false> DEVICE void leaf_encode(enum scand_dtype form, float x[ORDER_LEAF])
{
    if (form == SCAND_DTYPE_F32)
        return;
    if (is_ibm32(form))
        leaf_encode_ibm32<Whole>(x);
    leaf_swap(x);
    if (form == SCAND_DTYPE_IBM32LE)
        leaf_swap(x);
}

/* A function of its own has registers for it, of which 32 leave none in the middle of a kernel. It also has samples in
 * registers that vectors of 16 bytes are loaded into and stored from: without them each is moved twice. */
template <bool Encode>
static __device__ __noinline__ held_leaf<float> leaf_converted(enum scand_dtype form, struct held_leaf<float> leaf)
{
    if constexpr (Encode)
        leaf_encode<true>(form, leaf.x);
    else
        leaf_decode(form, leaf.x);
    return leaf;
}

template <bool Encode> DEVICE void leaf_convert_apart(enum scand_dtype form, float x[ORDER_LEAF])
{
    struct held_leaf<float> leaf;
    if (form == SCAND_DTYPE_F32)
        return;
    memcpy(leaf.x, x, sizeof(leaf.x));
    leaf = leaf_converted<Encode>(form, leaf);
    memcpy(x, leaf.x, sizeof(leaf.x));
}

/*
 * Rounds f64 values to f32 without conversions. x - 2^29 x is rounded where an f32 of the size of x ends. What it then
 * lacks of 2^29 x is x rounded; half way between two numbers x is even where x - 2^29 x ends, so that is to even as
 * well. Denormal f32 end elsewhere, and f64 goes on where f32 overflows: a warp that has such values, or 0, converts.
 *
 * `bounded`: values of a pass none of which is denormal in f32 or too large for it. What is infinite or no number stays
 * so to the end of the leaf, and a -0, whose sign rounding would lose, has been one from its beginning, so that a look
 * at both ends suffices.
 */
DEVICE void leaf_round(double x[ORDER_LEAF], bool bounded)
{
    const unsigned least = (1023u - 126) << 21, end = (1023u + 127) << 21; /* of upper halves without their signs */
    const auto beyond = [&](double value) { return 2 * (unsigned)__double2hiint(value) - least; };
    unsigned furthest = 0;
    if (bounded)
        furthest = max(beyond(x[0]), beyond(x[ORDER_LEAF - 1]));
    else
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            furthest = max(furthest, beyond(x[i]));
    if (__all_sync(~0u, furthest < end - least)) {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = __fma_rn(x[i], 0x1p29, __fma_rn(x[i], -0x1p29, x[i]));
    } else {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = sum_f64::between_passes(x[i], true);
    }
}

/*
 * Values of f64 become IBM floats as big-endian files have them, rounded to f32 on the way, without conversions; false
 * if a warp has other numbers than those of at least 2^-28 and below 2^100. To what is rounded as in leaf_round a
 * number is added whose last place is that of an IBM float with this power of 16: that rounds once more, and leaves the
 * fraction in the lower half. Its exponent, which has to be 3 more than a multiple of 4, is that of the value with some
 * bits set.
 */
DEVICE bool leaf_ibm32_of_f64(const double x[ORDER_LEAF], float words[ORDER_LEAF])
{
    const int least = (1023 - 28) << 20;
    int beyond = 0;
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        beyond |= __double2hiint(x[i]) - least;
    if (!__all_sync(~0u, (beyond & 0x78000000) == 0))
        return false;
    unsigned by = 1 << 30;
    pin(by); /* else the compiler shifts, a half at a time */
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++) {
        const double rounded = __fma_rn(x[i], 0x1p29, __fma_rn(x[i], -0x1p29, x[i]));
        const int high = __double2hiint(rounded);
        const unsigned power = 4 * (unsigned)(high - least) + (58 << 24);
        const double place = __longlong_as_double((int64_t)((uint64_t)(power | 0xc00000) * by + ((uint64_t)198 << 54)));
        const uint32_t fraction = (uint32_t)__double2loint(fabs(rounded) + place);
        words[i] = __uint_as_float(__byte_perm(fraction, power | (high & 0x80000000), 0x0127));
    }
    return true;
}

/* Rounds values between passes. With values before and after rounding alive at once, registers do not suffice: hence
 * the pins. */
template <class Sum>
DEVICE void leaf_between_passes(typename Sum::sample x[ORDER_LEAF], bool to_f32, bool bounded = false)
{
    leaf_pin(x);
    if constexpr (std::is_same<typename Sum::sample, double>::value) {
        if (to_f32)
            leaf_round(x, bounded);
    } else if (to_f32) {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = Sum::between_passes(x[i], true);
    } else {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = Sum::between_passes(x[i], false);
    }
    leaf_pin(x);
}

#endif

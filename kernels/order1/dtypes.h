/*
 * Samples as they lie in memory, for C and CUDA: what the bytes of each dtype mean, and which bytes a value becomes.
 *
 * Dtypes of class f32 are codecs around f32: they are decoded to f32 before a scan and encoded from the f32 value after
 * it. i32be and i32le, whose numbers f32 cannot all hold, are codecs around f64. f32 and f64 are written with one quiet
 * NaN each, whatever NaN the value is. Integers of 64 bits and u32 are extended to 64 bits by their own signedness, and
 * their low bits are written. A dtype of files is another dtype with its bytes in a given order.
 *
 * Every rounding is to nearest, ties to even. Addresses need no alignment.
 */
#ifndef KERNELS_ORDER1_DTYPES_H
#define KERNELS_ORDER1_DTYPES_H

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <scand/types.h>

/* A switch over dtypes, operators, accumulators and the like names all of them, here and in what includes this: one
 * that is added later does not compile until each has a case. */
#pragma GCC diagnostic error "-Wswitch"

#ifdef __CUDACC__
#define CODEC_INLINE   static __host__ __device__ __forceinline__
#define CODEC_CONSTANT constexpr CODEC_INLINE
#else
#define CODEC_INLINE   static inline __attribute__((always_inline))
#define CODEC_CONSTANT CODEC_INLINE
#endif

CODEC_CONSTANT uint32_t codec_bytes(enum scand_dtype dtype)
{
    switch (dtype) {
#define X(NAME, WORD, BYTES, ...) \
    case SCAND_DTYPE_##NAME:      \
        return BYTES;
        SCAND_DTYPES(X)
#undef X
    default:
        return 0;
    }
}

CODEC_CONSTANT enum scand_class codec_class(enum scand_dtype dtype)
{
    switch (dtype) {
#define X(NAME, WORD, BYTES, CLASS, ORDER) \
    case SCAND_DTYPE_##NAME:               \
        return SCAND_CLASS_##CLASS;
        SCAND_DTYPES(X)
#undef X
    default:
        return SCAND_CLASS_F32;
    }
}

CODEC_INLINE enum scand_order codec_order(enum scand_dtype dtype)
{
    switch (dtype) {
#define X(NAME, WORD, BYTES, CLASS, ORDER) \
    case SCAND_DTYPE_##NAME:               \
        return SCAND_ORDER_##ORDER;
        SCAND_DTYPES(X)
#undef X
    default:
        return SCAND_ORDER_NATIVE;
    }
}

/* True when the dtype's bytes are in another order than this machine's. */
CODEC_INLINE bool codec_is_swapped(enum scand_dtype dtype)
{
    return codec_order(dtype) == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? SCAND_ORDER_LITTLE : SCAND_ORDER_BIG);
}

CODEC_INLINE bool codec_is_integer(enum scand_dtype dtype)
{
    return codec_class(dtype) == SCAND_CLASS_SIGNED || codec_class(dtype) == SCAND_CLASS_UNSIGNED;
}

/* True when the dtype's samples are f32, f64 or integers as this machine computes with them. */
CODEC_INLINE bool codec_is_plain(enum scand_dtype dtype)
{
    return codec_order(dtype) == SCAND_ORDER_NATIVE && codec_bytes(dtype) >= 4;
}

/* Bits of numbers. */

CODEC_INLINE uint32_t codec_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

CODEC_INLINE float codec_f32_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

CODEC_INLINE uint64_t codec_bits_f64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

CODEC_INLINE double codec_f64_of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

CODEC_INLINE uint16_t codec_load16(const void *from)
{
    uint16_t bits;
    memcpy(&bits, from, sizeof(bits));
    return bits;
}

CODEC_INLINE uint32_t codec_load32(const void *from)
{
    uint32_t bits;
    memcpy(&bits, from, sizeof(bits));
    return bits;
}

CODEC_INLINE uint64_t codec_load64(const void *from)
{
    uint64_t bits;
    memcpy(&bits, from, sizeof(bits));
    return bits;
}

/* Reverse the bytes of a word. */
CODEC_INLINE uint16_t codec_swap16(uint16_t x)
{
    return (uint16_t)(x >> 8 | x << 8);
}

CODEC_INLINE uint32_t codec_swap32(uint32_t x)
{
#ifdef __CUDA_ARCH__
    return __byte_perm(x, 0, 0x0123); /* an instruction that the compiler does not find */
#endif
    return x >> 24 | (x >> 8 & 0xff00) | (x << 8 & 0xff0000) | x << 24;
}

CODEC_INLINE uint64_t codec_swap64(uint64_t x)
{
    return (uint64_t)codec_swap32((uint32_t)x) << 32 | codec_swap32((uint32_t)(x >> 32));
}

/* Convert words between the byte order of a dtype and this machine's, either way. */
CODEC_INLINE uint16_t codec_ordered16(enum scand_dtype dtype, uint16_t x)
{
    return codec_is_swapped(dtype) ? codec_swap16(x) : x;
}

CODEC_INLINE uint32_t codec_ordered32(enum scand_dtype dtype, uint32_t x)
{
    return codec_is_swapped(dtype) ? codec_swap32(x) : x;
}

CODEC_INLINE uint64_t codec_ordered64(enum scand_dtype dtype, uint64_t x)
{
    return codec_is_swapped(dtype) ? codec_swap64(x) : x;
}

/* Returns the nearest integer, of at most 31 bits. */
CODEC_INLINE int32_t codec_nearest(float x)
{
#ifdef __CUDA_ARCH__
    return __float2int_rn(x);
#else
    return (int32_t)rintf(x);
#endif
}

/* f16: sign, 5 bits of exponent, 10 of fraction. Placed into an f32 its exponent is short of 112. */

CODEC_INLINE float codec_decode_f16(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, magnitude = (uint32_t)(bits & 0x7fff) << 13;
    uint32_t finite = codec_bits(codec_f32_of_bits(magnitude) * 0x1p112f);
    return codec_f32_of_bits(sign | (magnitude < 0x7c00 << 13 ? finite : 0x7f800000 | magnitude));
}

CODEC_INLINE uint16_t codec_encode_f16(float x)
{
    uint32_t sign = codec_bits(x) >> 16 & 0x8000, magnitude = codec_bits(x) & 0x7fffffff;
    /* The sum of 1/2 and so small a number has the unit of f16's denormals, 2^-24, as its last place: adding rounds to
     * that unit. */
    uint32_t denormal = codec_bits(codec_f32_of_bits(magnitude) + 0.5f) - 0x3f000000;
    uint32_t normal = (magnitude - (112 << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    uint32_t finite = magnitude < 0x38800000 ? denormal : normal;        /* 2^-14 */
    uint32_t number = sign | (magnitude < 0x477ff000 ? finite : 0x7c00); /* 65520, half way to a next number */
    return (uint16_t)(magnitude > 0x7f800000 ? 0x7e00 : number);
}

/* bf16: the upper half of an f32. */

CODEC_INLINE float codec_decode_bf16(uint16_t bits)
{
    return codec_f32_of_bits((uint32_t)bits << 16);
}

CODEC_INLINE uint16_t codec_encode_bf16(float x)
{
    uint32_t bits = codec_bits(x);
    return (uint16_t)(x != x ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Integers of up to 2 bytes, and integers of files: values saturate, and a NaN becomes 0. */

CODEC_INLINE int32_t codec_encode_small(float x, float least, float most)
{
    float inside = x >= most ? most : x <= least ? least : x;
    return x != x ? 0 : codec_nearest(inside);
}

CODEC_INLINE int32_t codec_encode_i32(double x)
{
    double inside = x >= INT32_MAX ? INT32_MAX : x <= INT32_MIN ? INT32_MIN : x;
#ifdef __CUDA_ARCH__
    return __double2int_rn(x != x ? 0.0 : inside);
#else
    return (int32_t)rint(x != x ? 0.0 : inside);
#endif
}

/*
 * IBM float: sign, a power of 16 plus 64 in 7 bits, 24 bits of fraction, which is below 1 and, written here, at least
 * 1/16. Its range holds all of f32, but has no infinity and no NaN: an infinity becomes the largest number, a NaN 0.
 */

/* Decodes sign and power, the upper byte of a word, and fraction. As an f32 the former is a power of 4, whose square is
 * the power of 16. Only the last product is rounded, unless it is 0 either way. */
CODEC_INLINE float codec_ibm32_value(uint32_t power, uint32_t fraction)
{
    float root = codec_f32_of_bits(power);
    return (float)(int32_t)fraction * 0x1p-26f * root * fabsf(root);
}

CODEC_INLINE float codec_decode_ibm32(uint32_t bits)
{
    return codec_ibm32_value(bits & 0xff000000, bits & 0xffffff);
}

/* True when codec_encode_ibm32_plain can encode x: x is finite and at least as far from 0 as 2^-123. */
CODEC_INLINE bool codec_ibm32_is_plain(float x)
{
    return fabsf(x) >= 0x1p-123f && fabsf(x) < INFINITY;
}

/* Encodes a number by its f32 exponent, biased so that each four exponents begin with a power of 16: the upper bits
 * count powers of 16, and the lower two bits say how far to shift the fraction. */
CODEC_INLINE uint32_t codec_encode_ibm32_plain(float x)
{
    uint32_t number = codec_bits(fabsf(x) * 0.125f);
    uint32_t fraction = (uint32_t)codec_nearest(codec_f32_of_bits((number & 0x1ffffff) + (147 << 23)));
    uint32_t power = ((number >> 1) + (34 << 24)) & 0x7f000000;
    return (codec_bits(x) & 0x80000000) | power | fraction;
}

CODEC_INLINE uint32_t codec_encode_ibm32(float x)
{
    uint32_t sign = codec_bits(x) & 0x80000000;
    bool small = fabsf(x) < 0x1p-123f;
    uint32_t number = codec_encode_ibm32_plain(small ? x * 0x1p32f : x) - (small ? 8 << 24 : 0);
    if (fabsf(x) == INFINITY)
        number = sign | 0x7fffffff;
    if (x == 0)
        number = sign;
    return x != x ? 0 : number;
}

CODEC_INLINE uint16_t codec_load_ordered16(enum scand_dtype dtype, const void *from)
{
    return codec_ordered16(dtype, codec_load16(from));
}

/*
 * Floats. SCAND_DTYPES(CODEC_NOT_F32) are the cases of a switch for the dtypes of all classes but f32; those of class
 * f32 have a case each, where their bytes are known.
 */

#define CODEC_NOT_F32(NAME, WORD, BYTES, CLASS, ORDER) CODEC_##CLASS##_NOT_F32(NAME)
#define CODEC_F32_NOT_F32(NAME)
#define CODEC_F64_NOT_F32(NAME)      case SCAND_DTYPE_##NAME:
#define CODEC_SIGNED_NOT_F32(NAME)   case SCAND_DTYPE_##NAME:
#define CODEC_UNSIGNED_NOT_F32(NAME) case SCAND_DTYPE_##NAME:

#define CODEC_NOT_F64(NAME, WORD, BYTES, CLASS, ORDER) CODEC_##CLASS##_NOT_F64(NAME)
#define CODEC_F64_NOT_F64(NAME)
#define CODEC_F32_NOT_F64(NAME)      case SCAND_DTYPE_##NAME:
#define CODEC_SIGNED_NOT_F64(NAME)   case SCAND_DTYPE_##NAME:
#define CODEC_UNSIGNED_NOT_F64(NAME) case SCAND_DTYPE_##NAME:

/* Decodes a sample of class f32. */
CODEC_INLINE float codec_decode_f32(enum scand_dtype dtype, const void *from)
{
    switch (dtype) {
    case SCAND_DTYPE_I8:
        return (float)*(const int8_t *)from;
    case SCAND_DTYPE_U8:
        return (float)*(const uint8_t *)from;
    case SCAND_DTYPE_F16:
        return codec_decode_f16(codec_load16(from));
    case SCAND_DTYPE_BF16:
        return codec_decode_bf16(codec_load16(from));
    case SCAND_DTYPE_I16:
    case SCAND_DTYPE_I16BE:
        return (float)(int16_t)codec_load_ordered16(dtype, from);
    case SCAND_DTYPE_U16:
    case SCAND_DTYPE_U16BE:
        return (float)codec_load_ordered16(dtype, from);
    case SCAND_DTYPE_IBM32:
    case SCAND_DTYPE_IBM32LE:
        return codec_decode_ibm32(codec_ordered32(dtype, codec_load32(from)));
    case SCAND_DTYPE_F32:
    case SCAND_DTYPE_F32BE:
        return codec_f32_of_bits(codec_ordered32(dtype, codec_load32(from)));
        SCAND_DTYPES(CODEC_NOT_F32)
    case SCAND_DTYPE_COUNT:
        break;
    }
    return codec_f32_of_bits(codec_load32(from));
}

CODEC_INLINE uint32_t codec_one_nan_f32(float x)
{
    return x != x ? 0x7fc00000 : codec_bits(x);
}

/* Returns the bits, as they lie in memory, that a value of class f32 is written as. */
CODEC_INLINE uint32_t codec_encoded_f32(enum scand_dtype dtype, float x)
{
    switch (dtype) {
    case SCAND_DTYPE_I8:
        return (uint8_t)codec_encode_small(x, -128.0f, 127.0f);
    case SCAND_DTYPE_U8:
        return (uint8_t)codec_encode_small(x, 0.0f, 255.0f);
    case SCAND_DTYPE_F16:
        return codec_encode_f16(x);
    case SCAND_DTYPE_BF16:
        return codec_encode_bf16(x);
    case SCAND_DTYPE_I16:
    case SCAND_DTYPE_I16BE:
        return codec_ordered16(dtype, (uint16_t)codec_encode_small(x, -32768.0f, 32767.0f));
    case SCAND_DTYPE_U16:
    case SCAND_DTYPE_U16BE:
        return codec_ordered16(dtype, (uint16_t)codec_encode_small(x, 0.0f, 65535.0f));
    case SCAND_DTYPE_IBM32:
    case SCAND_DTYPE_IBM32LE:
        return codec_ordered32(dtype, codec_encode_ibm32(x));
    case SCAND_DTYPE_F32:
    case SCAND_DTYPE_F32BE:
        return codec_ordered32(dtype, codec_one_nan_f32(x));
        SCAND_DTYPES(CODEC_NOT_F32)
    case SCAND_DTYPE_COUNT:
        break;
    }
    return codec_one_nan_f32(x);
}

CODEC_INLINE void codec_encode_f32(enum scand_dtype dtype, float x, void *to)
{
    uint32_t bits = codec_encoded_f32(dtype, x);
    uint16_t half = (uint16_t)bits;
    uint8_t quarter = (uint8_t)bits;
    if (codec_bytes(dtype) == sizeof(quarter))
        memcpy(to, &quarter, sizeof(quarter));
    else if (codec_bytes(dtype) == sizeof(half))
        memcpy(to, &half, sizeof(half));
    else
        memcpy(to, &bits, sizeof(bits));
}

/* Decodes a sample of class f64. */
CODEC_INLINE double codec_decode_f64(enum scand_dtype dtype, const void *from)
{
    switch (dtype) {
    case SCAND_DTYPE_I32BE:
    case SCAND_DTYPE_I32LE:
        return (double)(int32_t)codec_ordered32(dtype, codec_load32(from));
    case SCAND_DTYPE_F64:
    case SCAND_DTYPE_F64BE:
        return codec_f64_of_bits(codec_ordered64(dtype, codec_load64(from)));
        SCAND_DTYPES(CODEC_NOT_F64)
    case SCAND_DTYPE_COUNT:
        break;
    }
    return codec_f64_of_bits(codec_load64(from));
}

CODEC_INLINE uint64_t codec_one_nan_f64(double x)
{
    return x != x ? UINT64_C(0x7ff8000000000000) : codec_bits_f64(x);
}

/* Returns the bits, as they lie in memory, that a value of class f64 is written as. */
CODEC_INLINE uint64_t codec_encoded_f64(enum scand_dtype dtype, double x)
{
    switch (dtype) {
    case SCAND_DTYPE_I32BE:
    case SCAND_DTYPE_I32LE:
        return codec_ordered32(dtype, (uint32_t)codec_encode_i32(x));
    case SCAND_DTYPE_F64:
    case SCAND_DTYPE_F64BE:
        return codec_ordered64(dtype, codec_one_nan_f64(x));
        SCAND_DTYPES(CODEC_NOT_F64)
    case SCAND_DTYPE_COUNT:
        break;
    }
    return codec_one_nan_f64(x);
}

CODEC_INLINE void codec_encode_f64(enum scand_dtype dtype, double x, void *to)
{
    uint64_t bits = codec_encoded_f64(dtype, x);
    uint32_t low = (uint32_t)bits;
    if (codec_bytes(dtype) == sizeof(low))
        memcpy(to, &low, sizeof(low));
    else
        memcpy(to, &bits, sizeof(bits));
}

#define X(NAME, WORD, BYTES, CLASS, ORDER)                                                                          \
    static_assert(SCAND_CLASS_##CLASS == SCAND_CLASS_F32 || SCAND_CLASS_##CLASS == SCAND_CLASS_F64 || BYTES == 4 || \
                      BYTES == 8,                                                                                   \
                  "an integer of other sizes is loaded and stored here");
SCAND_DTYPES(X)
#undef X

CODEC_INLINE uint64_t codec_decode_integer(enum scand_dtype dtype, const void *from)
{
    if (codec_bytes(dtype) == 8)
        return codec_ordered64(dtype, codec_load64(from));
    uint32_t bits = codec_ordered32(dtype, codec_load32(from));
    return codec_class(dtype) == SCAND_CLASS_SIGNED ? (uint64_t)(int64_t)(int32_t)bits : bits;
}

CODEC_INLINE void codec_encode_integer(enum scand_dtype dtype, uint64_t x, void *to)
{
    uint64_t bits = codec_ordered64(dtype, x);
    uint32_t low = codec_ordered32(dtype, (uint32_t)x);
    if (codec_bytes(dtype) == sizeof(bits))
        memcpy(to, &bits, sizeof(bits));
    else
        memcpy(to, &low, sizeof(low));
}

#endif

/*
 * Packs are elements of one dtype, one after another, that a thread reads or writes at once: 16 bytes of floats
 * (pack), or a few elements of any dtype (pack_words).
 */
#ifndef KERNELS_STEPS_PACKS_CUH
#define KERNELS_STEPS_PACKS_CUH

#include <type_traits>

#include "kernels/steps/step.cuh"

#define PACK_BYTES 16
#define PACK_WORDS (PACK_BYTES / sizeof(uint32_t))

/*
 * What dtypes.h does, in the instructions that the hardware has for it.
 */

/* An f16 is an f32 as it is; what NaN it becomes does not matter, as all are written alike. */
static __device__ __forceinline__ float pack_f32_of_f16(uint16_t bits)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}

/* Two f16 or bf16, the first in the lower half. The hardware has another NaN than dtypes.h. */
static __device__ __forceinline__ uint32_t pack_halves(enum scand_dtype dtype, float low, float high)
{
#if __CUDA_ARCH__ >= 800
    const uint32_t nan = dtype == SCAND_DTYPE_F16 ? 0x7e00 : 0x7fc0;
    uint32_t word;
    if (dtype == SCAND_DTYPE_F16)
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    else
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    word = low != low ? (word & 0xffff0000) | nan : word;
    return high != high ? (word & 0xffff) | nan << 16 : word;
#else
    return codec_encoded_f32(dtype, low) | codec_encoded_f32(dtype, high) << 16;
#endif
}

static __host__ __device__ constexpr bool pack_has_halves(enum scand_dtype dtype)
{
    return dtype == SCAND_DTYPE_F16 || dtype == SCAND_DTYPE_BF16;
}

static __device__ __forceinline__ uint32_t pack_encoded_f32(enum scand_dtype dtype, float x)
{
    return pack_has_halves(dtype) ? pack_halves(dtype, x, 0.0f) : codec_encoded_f32(dtype, x);
}

/* The root of x, by the steps that the compiler has for numbers of usual size: an estimate and one correction, whose
 * rounding is the right one. Denormals and others below 2^-64 are brought there and back by powers of two, so that
 * there is no branch. */
static __device__ __forceinline__ float pack_sqrt(float x)
{
    const bool is_small = x < 0x1p-64f;
    const float number = is_small ? x * 0x1p64f : x;
    float inverse;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(number));
    const float root = number * inverse, rest = __fmaf_rn(-root, root, number);
    const float better = __fmaf_rn(rest, inverse * 0.5f, root);
    const float value = is_small ? better * 0x1p-32f : better;
    return x == 0 || x == INFINITY ? x : value;
}

/* True of numbers so far from the ends of the range that a quotient of two is, too. */
static __device__ __forceinline__ bool pack_is_usual(float x)
{
    return (codec_bits(x) >> 23 & 0xff) - (127 - 60) <= 120;
}

/* x / b of such numbers, or of a zero x, by the steps that the compiler has for them. Its own division asks for each
 * pair whether they are usual. */
static __device__ __forceinline__ float pack_quotient(float x, float b)
{
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(b));
    inverse = __fmaf_rn(inverse, __fmaf_rn(inverse, -b, 1.0f), inverse);
    const float near = x * inverse, rest = __fmaf_rn(near, -b, x);
    return x == 0 ? near : __fmaf_rn(inverse, rest, near);
}

template <enum scand_dtype DTYPE> struct alignas(PACK_BYTES) pack {
    static constexpr unsigned size = DTYPE == SCAND_DTYPE_F64 ? 8 : DTYPE == SCAND_DTYPE_F32 ? 4 : 2;
    static constexpr unsigned count = PACK_BYTES / size;
    typedef std::conditional_t<DTYPE == SCAND_DTYPE_F64, double, float> number;
    uint32_t words[PACK_WORDS];

    /* Element k; what is called with constants alone stays in registers. */
    __device__ __forceinline__ number get(unsigned k) const
    {
        if constexpr (size == 8) {
            const uint64_t bits = words[2 * k] | (uint64_t)words[2 * k + 1] << 32;
            return codec_decode_f64(DTYPE, &bits);
        } else if constexpr (size == 4) {
            return codec_decode_f32(DTYPE, &words[k]);
        } else {
            const uint16_t bits = (uint16_t)(words[k / 2] >> 16 * (k % 2));
            return DTYPE == SCAND_DTYPE_F16 ? pack_f32_of_f16(bits) : codec_decode_f32(DTYPE, &bits);
        }
    }
    /* Elements are put in ascending order. */
    __device__ __forceinline__ void put(unsigned k, number value)
    {
        if constexpr (size == 8) {
            const uint64_t bits = codec_encoded_f64(DTYPE, value);
            words[2 * k] = (uint32_t)bits;
            words[2 * k + 1] = (uint32_t)(bits >> 32);
        } else if constexpr (size == 4) {
            words[k] = codec_encoded_f32(DTYPE, value);
        } else {
            const uint32_t bits = pack_encoded_f32(DTYPE, value) & 0xffff;
            words[k / 2] = k % 2 ? words[k / 2] | bits << 16 : bits;
        }
    }
};

/*
 * EACH elements, 2, 4 or 8, of any dtype that a thread reads or writes at once: of 16 bytes or less, or, of four of 8
 * bytes, in two words of 16. One alone is element 0. Calls with constants alone keep elements in registers.
 */
template <unsigned EACH> struct pack_words {
    uint32_t words[EACH == 4 ? 8 : 4];

    template <unsigned BYTES> __device__ __forceinline__ uint64_t get(unsigned k) const
    {
        if constexpr (BYTES == 8)
            return words[2 * k] | (uint64_t)words[2 * k + 1] << 32;
        else
            return words[k * BYTES / 4] >> 8 * (k * BYTES % 4) & 0xffffffff >> (32 - 8 * BYTES);
    }
    /* Elements, whose upper bits are 0, are put in ascending order. */
    template <unsigned BYTES> __device__ __forceinline__ void put(unsigned k, uint64_t bits)
    {
        if constexpr (BYTES == 8) {
            words[2 * k] = (uint32_t)bits;
            words[2 * k + 1] = (uint32_t)(bits >> 32);
        } else {
            uint32_t &word = words[k * BYTES / 4];
            word = (k * BYTES % 4 ? word : 0) | (uint32_t)bits << 8 * (k * BYTES % 4);
        }
    }
    /* Two elements of 2 bytes, k and k + 1, k even. */
    __device__ __forceinline__ void put_pair(unsigned k, uint32_t word) { words[k / 2] = word; }
    __device__ __forceinline__ void load(const char *from, unsigned bytes)
    {
        with_bytes<EACH>(bytes, [&](auto word, unsigned count) {
            for (unsigned j = 0; j < count; j++) {
                word = ((const decltype(word) *)from)[j];
                memcpy(&words[j * sizeof word / 4], &word, sizeof word);
            }
        });
    }
    __device__ __forceinline__ void store(char *to, unsigned bytes) const
    {
        with_bytes<EACH>(bytes, [&](auto word, unsigned count) {
            for (unsigned j = 0; j < count; j++) {
                memcpy(&word, &words[j * sizeof word / 4], sizeof word);
                ((decltype(word) *)to)[j] = word;
            }
        });
    }
    __device__ __forceinline__ void load_one(const char *from, unsigned bytes)
    {
        with_bytes<1>(bytes, [&](auto word, unsigned) {
            word = *(const decltype(word) *)from;
            memcpy(words, &word, sizeof word);
        });
    }
    __device__ __forceinline__ void store_one(char *to, unsigned bytes) const
    {
        with_bytes<1>(bytes, [&](auto word, unsigned) {
            memcpy(&word, words, sizeof word);
            *(decltype(word) *)to = word;
        });
    }

  private:
    template <unsigned COUNT, unsigned BYTES, class Each> static __device__ __forceinline__ void as_words(Each each)
    {
        if constexpr (COUNT * BYTES == 1)
            each(uint8_t(), 1);
        else if constexpr (COUNT * BYTES == 2)
            each(uint16_t(), 1);
        else if constexpr (COUNT * BYTES == 4)
            each(uint32_t(), 1);
        else if constexpr (COUNT * BYTES == 8)
            each(uint2(), 1);
        else if constexpr (COUNT * BYTES == 16)
            each(uint4(), 1);
        else if constexpr (COUNT * BYTES == 32 && COUNT == 4)
            each(uint4(), 2);
    }
    /* Calls each(word, count) with the words that so many elements of so many bytes are. */
    template <unsigned COUNT, class Each> static __device__ __forceinline__ void with_bytes(unsigned bytes, Each each)
    {
        switch (bytes) {
        case 1:
            return as_words<COUNT, 1>(each);
        case 2:
            return as_words<COUNT, 2>(each);
        case 4:
            return as_words<COUNT, 4>(each);
        default:
            return as_words<COUNT, 8>(each);
        }
    }
};

#endif

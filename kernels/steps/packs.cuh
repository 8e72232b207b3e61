/*
 * Packs: 16 bytes of floats of one dtype, one after another, that a thread reads or writes at once.
 */
#ifndef KERNELS_STEPS_PACKS_CUH
#define KERNELS_STEPS_PACKS_CUH

#include <type_traits>

#include "kernels/steps/step.cuh"

#define PACK_BYTES 16
#define PACK_WORDS (PACK_BYTES / sizeof(uint32_t))

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
            return codec_decode_f32(DTYPE, &bits);
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
            const uint32_t bits = codec_encoded_f32(DTYPE, value) & 0xffff;
            words[k / 2] = k % 2 ? words[k / 2] | bits << 16 : bits;
        }
    }
};

/* True when rows can be read and written in packs of a dtype. */
static inline bool pack_has_dtype(enum scand_dtype dtype)
{
    return dtype == SCAND_DTYPE_F32 || dtype == SCAND_DTYPE_F64 || dtype == SCAND_DTYPE_F16 ||
           dtype == SCAND_DTYPE_BF16;
}

#endif

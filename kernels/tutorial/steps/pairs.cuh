/*
 * Pairs of neighbouring elements of a row, floats or halves, that are moved at once: 8 bytes or 4.
 */
#ifndef KERNELS_TUTORIAL_STEPS_PAIRS_CUH
#define KERNELS_TUTORIAL_STEPS_PAIRS_CUH

#include <type_traits>

#include "kernels/steps/step.cuh"
#include "kernels/tutorial/scan/launch.cuh"
#include "kernels/tutorial/steps/steps.h"

#define THREADS 256

/* The bits of an element. */
template <enum scand_dtype DTYPE> using element = std::conditional_t<DTYPE == SCAND_DTYPE_F32, uint32_t, uint16_t>;

template <enum scand_dtype DTYPE> struct alignas(2 * sizeof(element<DTYPE>)) pair {
    element<DTYPE> first, second;
};

/* An element as results have it: NaNs are one. */
template <enum scand_dtype DTYPE> GPU_INLINE element<DTYPE> copied(element<DTYPE> bits)
{
    return (element<DTYPE>)codec_encoded_f32(DTYPE, codec_decode_f32(DTYPE, &bits));
}

template <enum scand_dtype DTYPE> GPU_INLINE double number(element<DTYPE> bits)
{
    return (double)codec_decode_f32(DTYPE, &bits);
}

/* True when rows of an operand can be read or written by twos, and so also one by one. */
template <enum scand_dtype DTYPE>
static inline bool lies_in_pairs(const struct step_rows *rows, const struct step_operand *operand)
{
    return step_is_dense(rows, operand, DTYPE, sizeof(struct pair<DTYPE>));
}

/* Calls each(row, i) for all elements of a tile's rows from `skip` on, one for each thread. */
template <class Each> GPU_INLINE void each_element(const struct step_tile &tile, uint32_t skip, Each each)
{
    const uint32_t width = (uint32_t)(tile.end - tile.begin) - skip;
    for (uint32_t n = threadIdx.x; n < tile.row_count * width; n += THREADS)
        each(tile.first_row + n / width, tile.begin + skip + n % width);
}

#endif

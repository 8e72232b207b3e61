/*
 * The affine kernels for contiguous rows with a single coefficient. Compiled together with others, that for f2 gets
 * other registers and spills some: 10,000 x 10,000 takes 0.79 ms on an H200 instead of 0.70.
 */
#include "kernels/cuda/kernels/affine_uniform.cuh"

#define ONE(SAMPLES) (const void *)affine_ahead_kernel<SAMPLES, false>
const void *const affine_ones[AFFINE_ACCUMULATORS] = {
    ONE(affine_samples<float>::sum),
    ONE(affine_samples<double>::sum),
    ONE(affine_samples<struct f2>::sum),
    ONE(affine_samples<uint64_t>::sum),
    ONE(any_f2_of_f32),
};

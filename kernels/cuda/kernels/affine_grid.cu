/*
 * The affine kernels for contiguous rows of several order blocks in one launch, of those rules that are worth their
 * time to compile: f32 samples.
 */
#include "kernels/cuda/kernels/affine_uniform.cuh"
#include "kernels/cuda/kernels/affine_varying.cuh"

const void *const affine_longs[AFFINE_ACCUMULATORS][AFFINE_FACTORS] = {
    {(const void *)affine_ahead_kernel<affine_samples<float>::sum, true>,
     (const void *)affine_each_kernel<affine_samples<float>::sum, float, true>, NULL},
    {(const void *)affine_ahead_kernel<affine_samples<double>::sum, true>,
     (const void *)affine_each_kernel<affine_samples<double>::sum, float, true>, NULL},
};

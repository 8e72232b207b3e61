/*
 * The affine kernels for contiguous rows of several order blocks in one launch, of those rules that are worth their
 * time to compile: f32 samples.
 */
#include "kernels/cuda/affine_ahead.cuh"
#include "kernels/cuda/affine_each.cuh"
#include "kernels/scan_cuda_affine.h"

const void *const scan_affine_longs[SCAN_AFFINE_ACCUMULATORS][SCAN_AFFINE_FACTORS] = {
    {(const void *)affine_ahead_kernel<float, true>, (const void *)affine_each_kernel<float, float, true>, NULL},
    {(const void *)affine_ahead_kernel<double, true>, (const void *)affine_each_kernel<double, float, true>, NULL},
};

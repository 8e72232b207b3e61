/*
 * The affine kernels for contiguous rows with a single coefficient. Compiled together with others, that for f2 gets
 * other registers and spills some: 10,000 x 10,000 takes 0.79 ms on an H200 instead of 0.70.
 */
#include "kernels/cuda/kernels/affine.h"
#include "kernels/cuda/kernels/affine_uniform.cuh"

const void *const scan_affine_ones[SCAN_AFFINE_ACCUMULATORS] = {
    (const void *)affine_ahead_kernel<float, false>,
    (const void *)affine_ahead_kernel<double, false>,
    (const void *)affine_ahead_kernel<struct f2, false>,
    (const void *)affine_ahead_kernel<uint64_t, false>,
};

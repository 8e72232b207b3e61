/*
 * Common parts of the norms by thread blocks: rows, and the sum over a thread block.
 */
#ifndef KERNELS_TUTORIAL_NORM_NORM_CUH
#define KERNELS_TUTORIAL_NORM_NORM_CUH

#include "kernels/tutorial/reduce/reduce_tree.cuh"

GPU_INLINE const float *row_at(const struct reduce_rows &rows, uint64_t number)
{
    return (const float *)((const char *)rows.input + (int64_t)number * rows.pitch);
}

/* Thread 0 writes the root of the sum over the thread block. */
GPU_INLINE void norm_store(double *output, double sum, double *results)
{
    results[threadIdx.x] = sum;
    sum = block_tree<op_sum>(results);
    if (threadIdx.x == 0)
        *output = sqrt(sum);
    __syncthreads();
}

/* Loads four neighbouring samples, in one load where the row is aligned. */
GPU_INLINE float4 load_4(const float *x, bool aligned)
{
    if (aligned)
        return *(const float4 *)x;
    return {x[0], x[1], x[2], x[3]};
}

GPU_INLINE bool is_aligned(const float *x)
{
    return (uintptr_t)x % sizeof(float4) == 0;
}

GPU_INLINE double squares_4(float4 x)
{
    return (op_squares::of(x.x) + op_squares::of(x.y)) + (op_squares::of(x.z) + op_squares::of(x.w));
}

/* The last samples, which are no whole group of four: one per thread. */
GPU_INLINE double squares_rest(const float *x, uint64_t length)
{
    uint64_t i = length / 4 * 4 + threadIdx.x;
    return i < length ? op_squares::of(x[i]) : 0;
}

#endif

/*
 * Common parts of the dot products: results that begin as zeros, since an atomic addition adds to a value that is
 * there, and thread blocks that divide the rows of a tile.
 */
#ifndef KERNELS_TUTORIAL_STEPS_DOT_CUH
#define KERNELS_TUTORIAL_STEPS_DOT_CUH

#include <cuda_fp16.h>

#include "kernels/steps/dot/dot.h"
#include "kernels/steps/step.cuh"
#include "kernels/tutorial/scan/launch.cuh"
#include "kernels/tutorial/steps/steps.h"

#define THREADS    256
#define EACH       16 /* least samples that a thread adds, where rows are long enough */
#define BLOCKS_MAX 32 /* thread blocks along a row */

static __global__ void dot_zero(const __grid_constant__ struct step_rows rows,
                                const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    const struct step_tile tile = step_block_tile(tiles, begin);
    for (uint64_t r = threadIdx.x; r < tile.row_count; r += THREADS)
        step_put_f32(rows.output.dtype, 0, step_row(&rows, &rows.output, tile.first_row + r));
}

/* Return this thread's number among all that share a row, and the number of such threads. */
GPU_INLINE uint64_t dot_thread()
{
    return (uint64_t)blockIdx.y * THREADS + threadIdx.x;
}

GPU_INLINE uint64_t dot_threads()
{
    return (uint64_t)gridDim.y * THREADS;
}

/* The product of two samples of a row, wherever they lie. */
template <enum scand_dtype DTYPE>
GPU_INLINE float product(const struct step_rows &rows, const char *x, const char *y, uint64_t i)
{
    return step_get_f32(DTYPE, x + (int64_t)i * rows.input.stride) *
           step_get_f32(DTYPE, y + (int64_t)i * rows.further[DOT_OTHER].stride);
}

/* Returns the sum of 32 lanes, in lane 0. */
GPU_INLINE float warp_sum(float sum)
{
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        sum += __shfl_down_sync(ALL, sum, distance);
    return sum;
}

/* Zeros first, then launch(begin, grid) on the same tiles. */
template <class Launch>
static int dot_run(const struct step_rows *rows, const struct step_tiles *tiles, uint64_t begin, uint64_t end,
                   void *stream, Launch launch)
{
    const uint64_t blocks = parts_of(rows->input.length, THREADS * EACH);
    const unsigned along = (unsigned)(blocks < 1 ? 1 : blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX);
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        dot_zero<<<grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, *tiles, first);
        launch(first, dim3(grid, along));
    });
}

#endif

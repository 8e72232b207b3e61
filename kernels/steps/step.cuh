/*
 * Tiles on a GPU: a thread block for each, in launches of as many as a grid may have.
 */
#ifndef KERNELS_STEPS_STEP_CUH
#define KERNELS_STEPS_STEP_CUH

#include <cuda_runtime.h>

#include "kernels/steps/step.h"

#define STEP_GRID_MAX (UINT64_C(1) << 30)

/* The tile of this thread block. */
static __device__ __forceinline__ struct step_tile step_block_tile(const struct step_tiles &tiles, uint64_t begin)
{
    return step_tile_at(&tiles, begin + blockIdx.x);
}

/* True when all rows of an operand are elements of a dtype, one after another, that begin at multiples of so many
 * bytes. */
static inline bool step_is_dense(const struct step_rows *rows, const struct step_operand *operand,
                                 enum scand_dtype dtype, uint32_t bytes)
{
    uint64_t misaligned = (uint64_t)(uintptr_t)operand->origin;
    for (uint32_t k = 0; k < rows->outer_rank; k++)
        misaligned |= rows->outer_shape[k] > 1 ? (uint64_t)operand->outer_strides[k] : 0;
    return operand->dtype == dtype && operand->stride == (int64_t)codec_bytes(dtype) && (misaligned & (bytes - 1)) == 0;
}

/* True when all elements of an operand lie at multiples of their size. */
static inline bool step_is_aligned(const struct step_rows *rows, const struct step_operand *operand)
{
    uint64_t misaligned = (uint64_t)(uintptr_t)operand->origin | (uint64_t)operand->stride;
    for (uint32_t k = 0; k < rows->outer_rank; k++)
        misaligned |= rows->outer_shape[k] > 1 ? (uint64_t)operand->outer_strides[k] : 0;
    return (misaligned & (codec_bytes(operand->dtype) - 1)) == 0;
}

/* Has launch(begin, grid) start a thread block for each of the tiles. */
template <class Launch> static cudaError_t step_launch_each(uint64_t begin, uint64_t end, Launch launch)
{
    cudaError_t error = cudaSuccess;
    for (uint64_t grid; begin < end && !error; begin += grid) {
        grid = end - begin < STEP_GRID_MAX ? end - begin : STEP_GRID_MAX;
        launch(begin, (unsigned)grid);
        error = cudaGetLastError();
    }
    return error;
}

#endif

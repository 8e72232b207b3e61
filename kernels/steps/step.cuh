/*
 * How tiles are run on a GPU: a thread block for each, in launches of as many as a grid may have.
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

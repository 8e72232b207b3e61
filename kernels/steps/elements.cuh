/* The elements of a tile on a GPU. */
#ifndef KERNELS_STEPS_ELEMENTS_CUH
#define KERNELS_STEPS_ELEMENTS_CUH

#include "kernels/steps/elements.h"
#include "kernels/steps/step.cuh"

/* Calls each(row, i) for every element of the tile, neighbouring threads for neighbours in memory. */
template <class Each>
static __device__ __forceinline__ void elements_each(const struct step_rows &rows, const struct step_tile &tile,
                                                     Each each)
{
    const uint64_t last_row = tile.first_row + tile.row_count;
    if (elements_cross_rows(&rows)) {
        const uint64_t end = step_end(&rows, &tile, tile.first_row);
        for (uint64_t i = tile.begin; i < end; i++)
            for (uint64_t row = tile.first_row + threadIdx.x; row < last_row; row += blockDim.x)
                each(row, i);
        return;
    }
    for (uint64_t row = tile.first_row; row < last_row; row++) {
        const uint64_t end = step_end(&rows, &tile, row);
        for (uint64_t i = tile.begin + threadIdx.x; i < end; i += blockDim.x)
            each(row, i);
    }
}

#endif

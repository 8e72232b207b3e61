/* The elements of a tile on a GPU. */
#ifndef KERNELS_STEPS_ELEMENTS_CUH
#define KERNELS_STEPS_ELEMENTS_CUH

#include "kernels/steps/elements.h"
#include "kernels/steps/step.cuh"

/* Calls each(line_of(row), i) for every element of the tile, neighbouring threads for neighbours in memory: across
 * rows, along several short ones, or along one after the other. */
template <class LineOf, class Each>
static __device__ __forceinline__ void elements_each(const struct step_rows &rows, const struct step_tile &tile,
                                                     LineOf line_of, Each each)
{
    const uint64_t last_row = tile.first_row + tile.row_count;
    if (elements_cross_rows(&rows)) {
        const uint64_t end = step_end(&rows, &tile, tile.first_row);
        for (uint64_t row = tile.first_row + threadIdx.x; row < last_row; row += blockDim.x) {
            const auto line = line_of(row);
            for (uint64_t i = tile.begin; i < end; i++)
                each(line, i);
        }
        return;
    }
    const uint64_t width = rows.offsets ? UINT64_MAX : step_end(&rows, &tile, tile.first_row) - tile.begin;
    if (width < blockDim.x) {
        for (uint32_t n = threadIdx.x; n < tile.row_count * width; n += blockDim.x)
            each(line_of(tile.first_row + n / (uint32_t)width), tile.begin + n % (uint32_t)width);
        return;
    }
    for (uint64_t row = tile.first_row; row < last_row; row++) {
        const uint64_t end = step_end(&rows, &tile, row);
        const auto line = line_of(row);
        for (uint64_t i = tile.begin + threadIdx.x; i < end; i += blockDim.x)
            each(line, i);
    }
}

#endif

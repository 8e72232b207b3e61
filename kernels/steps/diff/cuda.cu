#include "diff.h"
#include "kernels/steps/elements.cuh"

#define THREADS 256

/* Samples are read up to three times, but once from memory. */
static __global__ void diff_tiles(const __grid_constant__ struct step_rows rows,
                                  const __grid_constant__ struct diff diff,
                                  const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    elements_each(rows, step_block_tile(tiles, begin),
                  [&](uint64_t row, uint64_t i) { diff_element(&rows, &diff, row, i); });
}

extern "C" int diff_launch(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                           uint64_t begin, uint64_t end, void *stream)
{
    const struct diff diff = *(const struct diff *)params;
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        diff_tiles<<<grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, diff, *tiles, first);
    });
}

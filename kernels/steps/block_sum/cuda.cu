#include "block_sum.h"
#include "kernels/steps/step.cuh"

#define THREADS 256

/* A thread for each block. Neighbouring threads read neighbouring blocks, so that all of a cache line is used while it
 * is there, as long as the factor is small. */
static __global__ void block_sum_tiles(const __grid_constant__ struct step_rows rows,
                                       const __grid_constant__ struct block_sum block_sum,
                                       const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    const struct step_tile tile = step_block_tile(tiles, begin);
    for (uint64_t row = tile.first_row; row < tile.first_row + tile.row_count; row++) {
        const uint64_t end = step_end(&rows, &tile, row);
        const char *from = step_row(&rows, &rows.input, row);
        char *to = step_row(&rows, &rows.output, row);
        for (uint64_t j = tile.begin + threadIdx.x; j < end; j += THREADS)
            block_sum_element(&rows, &block_sum, from, to, j);
    }
}

extern "C" int block_sum_launch(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                                uint64_t begin, uint64_t end, void *stream)
{
    const struct block_sum block_sum = *(const struct block_sum *)params;
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        block_sum_tiles<<<grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, block_sum, *tiles, first);
    });
}

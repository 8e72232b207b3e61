#include "kernels/steps/step.cuh"
#include "upsample.h"

#define THREADS 256

static __global__ void upsample_tiles(const __grid_constant__ struct step_rows rows,
                                      const __grid_constant__ struct upsample upsample,
                                      const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    const struct step_tile tile = step_block_tile(tiles, begin);
    for (uint64_t row = tile.first_row; row < tile.first_row + tile.row_count; row++) {
        const uint64_t end = step_end(&rows, &tile, row);
        const char *from = step_row(&rows, &rows.input, row);
        char *to = step_row(&rows, &rows.output, row);
        for (uint64_t i = tile.begin + threadIdx.x; i < end; i += THREADS)
            step_copy(rows.input.dtype, from + (int64_t)(i / upsample.factor) * rows.input.stride, rows.output.dtype,
                      to + (int64_t)i * rows.output.stride);
    }
}

extern "C" int upsample_launch(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                               uint64_t begin, uint64_t end, void *stream)
{
    const struct upsample upsample = *(const struct upsample *)params;
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        upsample_tiles<<<grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, upsample, *tiles, first);
    });
}

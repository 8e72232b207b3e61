/*
 * Common parts of the upsampling kernels: outputs one by one, and the pairs of rows that have pairs.
 */
#ifndef KERNELS_TUTORIAL_STEPS_UPSAMPLE_CUH
#define KERNELS_TUTORIAL_STEPS_UPSAMPLE_CUH

#include "kernels/steps/upsample/upsample.h"
#include "kernels/tutorial/steps/pairs.cuh"
#include "protocol/limits.h"

/* The outputs of a tile from `skip` on, of each of its rows, a thread for each. */
template <enum scand_dtype DTYPE>
GPU_INLINE void upsample_rest(const struct step_rows &rows, uint64_t factor, const struct step_tile &tile,
                              uint32_t skip)
{
    each_element(tile, skip, [&](uint64_t row, uint64_t i) {
        const char *x = step_row(&rows, &rows.input, row) + (int64_t)(i / factor) * rows.input.stride;
        char *y = step_row(&rows, &rows.output, row) + (int64_t)i * rows.output.stride;
        step_put_f32(DTYPE, step_get_f32(DTYPE, x), y);
    });
}

template <enum scand_dtype DTYPE>
static __global__ void __launch_bounds__(THREADS)
    upsample_one_by_one(const __grid_constant__ struct step_rows rows, uint64_t factor,
                        const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    upsample_rest<DTYPE>(rows, factor, step_block_tile(tiles, begin), 0);
}

/* Makes two outputs in each thread, stored at once; the last one of an odd row by itself. Outputs are numbered within
 * the tile in 32 bits, so that one division of 64 bits is left for all of them. */
template <enum scand_dtype DTYPE>
static __global__ void __launch_bounds__(THREADS)
    upsample_by_twos(const __grid_constant__ struct step_rows rows, uint32_t factor,
                     const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    const struct step_tile tile = step_block_tile(tiles, begin);
    const uint64_t source = tile.begin / factor;
    const uint32_t rest = (uint32_t)(tile.begin - source * factor), pairs = (uint32_t)(tile.end - tile.begin) / 2;
    for (uint64_t row = tile.first_row; row < tile.first_row + tile.row_count; row++) {
        const element<DTYPE> *x = (const element<DTYPE> *)step_row(&rows, &rows.input, row) + source;
        struct pair<DTYPE> *y = (struct pair<DTYPE> *)step_row(&rows, &rows.output, row) + tile.begin / 2;
        for (uint32_t p = threadIdx.x; p < pairs; p += THREADS) {
            const uint32_t i = rest + 2 * p;
            y[p] = {copied<DTYPE>(x[i / factor]), copied<DTYPE>(x[(i + 1) / factor])};
        }
    }
    upsample_rest<DTYPE>(rows, factor, tile, 2 * pairs);
}

template <enum scand_dtype DTYPE>
static int upsample_run(bool in_pairs, const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                        uint64_t begin, uint64_t end, void *stream)
{
    const uint64_t factor = ((const struct upsample *)params)->factor;
    const bool by_twos = in_pairs && factor <= LIMIT_FACTOR && tiles->tiling.elements % 2 == 0 &&
                         step_is_dense(rows, &rows->input, DTYPE, sizeof(element<DTYPE>)) &&
                         lies_in_pairs<DTYPE>(rows, &rows->output);
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        if (by_twos)
            upsample_by_twos<DTYPE><<<grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, (uint32_t)factor, *tiles, first);
        else
            upsample_one_by_one<DTYPE><<<grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, factor, *tiles, first);
    });
}

#endif

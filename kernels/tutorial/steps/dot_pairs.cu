/*
 * dot-pairs: pairs of halves, in and out.
 *
 * The changes from dot-atomic: samples are halves, of which a load brings two; the lanes of a warp add up their sums by
 * shuffles, so that there is an atomic addition per warp instead of per thread; and two neighbouring rows whose results
 * are neighbours in one aligned word share an atomicAdd of __half2, which costs as much as one of a half. Products and
 * sums are kept in f32: only what is added to the result is rounded to a half, and so is every result on the way.
 *
 * Association: products of two neighbours, then of pairs t, t + T, ... one by one; lanes i and i + 16, then i and i +
 * 8, and so on; the warps' sums, as halves, as they arrive.
 */
#include "kernels/tutorial/steps/dot_halves.cuh"

/* True when the result of a row and the result of the next row are an aligned pair. */
GPU_INLINE bool begins_pair(const struct step_rows &rows, const struct step_tile &tile, uint64_t row, const char *at)
{
    return row + 1 < tile.first_row + tile.row_count && (uintptr_t)at % sizeof(__half2) == 0 &&
           step_row(&rows, &rows.output, row + 1) == at + sizeof(__half);
}

static __global__ void __launch_bounds__(THREADS)
    dot_pairs_kernel(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct step_tiles tiles,
                     uint64_t begin)
{
    const struct step_tile tile = step_block_tile(tiles, begin);
    for (uint64_t row = tile.first_row, step; row < tile.first_row + tile.row_count; row += step) {
        char *at = step_row(&rows, &rows.output, row);
        const bool pair = begins_pair(rows, tile, row, at);
        const float first = row_sum(rows, row), second = pair ? row_sum(rows, row + 1) : 0;
        if (threadIdx.x % WARP == 0 && pair)
            atomicAdd((__half2 *)at, __floats2half2_rn(first, second));
        else if (threadIdx.x % WARP == 0)
            atomicAdd((__half *)at, __float2half_rn(first));
        step = pair ? 2 : 1;
    }
}

extern "C" int dot_pairs(const struct step_rows *rows, const void *, const struct step_tiles *tiles, uint64_t begin,
                         uint64_t end, void *stream)
{
    return dot_run(rows, tiles, begin, end, stream, [=](uint64_t first, dim3 grid) {
        dot_pairs_kernel<<<grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, *tiles, first);
    });
}

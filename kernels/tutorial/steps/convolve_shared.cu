/*
 * convolve-shared: samples staged in shared memory.
 *
 * The change from convolve-constant: the threads of a block, which make 256 neighbouring outputs, first bring all
 * samples that these need, 256 and one less than there are taps, into shared memory, neighbours reading neighbours.
 * Each is then read from global memory once for 256 outputs, but for the halo, those at the edges that the next outputs
 * read again, and the taps find them in shared memory, whose banks serve 32 neighbours at once. The halo is what it
 * costs: with 4,096 taps it is sixteen times as long as the rest. Two barriers separate one stretch of outputs
 * from the next; all threads reach them, also those that have no output.
 *
 * Association: as convolve-direct.
 */
#include "kernels/tutorial/steps/convolve.cuh"

/* Loads the samples from first + start on, as many as THREADS outputs need; samples outside the row are never read. */
GPU_INLINE void stage(const struct convolve_row &row, int64_t taps, int64_t first, float *staged)
{
    for (int64_t k = threadIdx.x; k < THREADS + taps - 1; k += THREADS) {
        const int64_t j = first + row.start + k;
        if (j >= 0 && j < row.samples)
            staged[k] = sample_at(row, j);
    }
}

template <class Sum>
static __global__ void __launch_bounds__(THREADS)
    convolve_shared_kernel(const __grid_constant__ struct step_rows rows,
                           const __grid_constant__ struct convolve convolve,
                           const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    __shared__ float staged[THREADS + LIMIT_TAPS - 1];
    const struct step_tile tile = step_block_tile(tiles, begin);
    const int64_t taps = (int64_t)convolve.taps;
    for (uint64_t r = tile.first_row; r < tile.first_row + tile.row_count; r++) {
        const struct convolve_row row = convolve_row_of(&rows, &convolve, &tile, r);
        for (int64_t first = row.begin; first < row.end; first += THREADS) {
            stage(row, taps, first, staged);
            __syncthreads();
            if (first + threadIdx.x < row.end)
                put_output<Sum>(
                    row, taps, first + threadIdx.x, [&](int64_t m) { return constant_filter[m]; },
                    [&](int64_t m) { return staged[threadIdx.x + m]; });
            __syncthreads();
        }
    }
}

extern "C" int convolve_shared(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                               uint64_t begin, uint64_t end, void *stream)
{
    const struct convolve *convolve = (const struct convolve *)params;
    if (!filter_is_shared(rows, convolve))
        return convolve_direct(rows, params, tiles, begin, end, stream);
    const cudaError_t error = filter_copy(rows, convolve, stream);
    if (error)
        return error;
    return convolve_run(convolve->wide ? convolve_shared_kernel<double> : convolve_shared_kernel<float>, rows, params,
                        tiles, begin, end, stream);
}

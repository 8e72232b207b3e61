/*
 * convolve-direct: a thread per output, everything from global memory.
 *
 * Each thread goes through the taps and reads one tap and one sample for each. All threads of a warp read the same tap,
 * which is one address, and neighbouring samples, which is 128 bytes; but each sample is read as many times as there
 * are taps, and each output takes two loads for one fused multiplication and addition. The caches bring most of them,
 * and the loads themselves are what it waits for.
 *
 * Association: taps in their order, one rounding for each, in f32 or f64.
 */
#include "kernels/tutorial/steps/convolve.cuh"

template <class Sum>
static __global__ void __launch_bounds__(THREADS)
    convolve_direct_kernel(const __grid_constant__ struct step_rows rows,
                           const __grid_constant__ struct convolve convolve,
                           const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    const struct step_tile tile = step_block_tile(tiles, begin);
    for (uint64_t r = tile.first_row; r < tile.first_row + tile.row_count; r++) {
        const struct convolve_row row = convolve_row_of(&rows, &convolve, &tile, r);
        for (int64_t i = row.begin + threadIdx.x; i < row.end; i += THREADS)
            put_output<Sum>(
                row, (int64_t)convolve.taps, i, [&](int64_t m) { return step_get_f32(F32, row.w + m * row.w_stride); },
                [&](int64_t m) { return sample_at(row, i + row.start + m); });
    }
}

extern "C" int convolve_direct(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                               uint64_t begin, uint64_t end, void *stream)
{
    const bool wide = ((const struct convolve *)params)->wide;
    return convolve_run(wide ? convolve_direct_kernel<double> : convolve_direct_kernel<float>, rows, params, tiles,
                        begin, end, stream);
}

/*
 * convolve-constant: the filter in constant memory.
 *
 * The change from convolve-direct: taps are copied to constant memory first. It has a cache of its own, which gives a
 * word to all lanes of a warp at once, as long as they ask for the same one: just what a filter needs, since lanes are
 * at different outputs but at the same tap. So half of the loads are gone from the path that samples take. The copy
 * comes before each launch on the stream, which a small job feels. A filter of its own for each row, or taps
 * that lie apart, fall back to convolve-direct.
 *
 * Association: as convolve-direct.
 */
#include "kernels/tutorial/steps/convolve.cuh"

template <class Sum>
static __global__ void __launch_bounds__(THREADS)
    convolve_constant_kernel(const __grid_constant__ struct step_rows rows,
                             const __grid_constant__ struct convolve convolve,
                             const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    const struct step_tile tile = step_block_tile(tiles, begin);
    for (uint64_t r = tile.first_row; r < tile.first_row + tile.row_count; r++) {
        const struct convolve_row row = convolve_row_of(&rows, &convolve, &tile, r);
        for (int64_t i = row.begin + threadIdx.x; i < row.end; i += THREADS)
            put_output<Sum>(
                row, (int64_t)convolve.taps, i, [&](int64_t m) { return constant_filter[m]; },
                [&](int64_t m) { return sample_at(row, i + row.start + m); });
    }
}

extern "C" int convolve_constant(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                                 uint64_t begin, uint64_t end, void *stream)
{
    const struct convolve *convolve = (const struct convolve *)params;
    if (!filter_is_shared(rows, convolve))
        return convolve_direct(rows, params, tiles, begin, end, stream);
    const cudaError_t error = filter_copy(rows, convolve, stream);
    if (error)
        return error;
    return convolve_run(convolve->wide ? convolve_constant_kernel<double> : convolve_constant_kernel<float>, rows,
                        params, tiles, begin, end, stream);
}

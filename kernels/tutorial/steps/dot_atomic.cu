/*
 * dot-atomic: a grid-stride loop, and one atomicAdd per thread.
 *
 * The threads of a grid take the samples of a row in turns, so that neighbours read neighbours, and any number of
 * threads serves any number of samples. Each keeps a sum of its own in a register; adding them up is left to the
 * memory, which does one atomic addition after the other at the one address of a row's result.
 *
 * Association: thread t adds products t, t + T, t + 2 T, ... one by one, in f32; the threads' sums as they arrive. So
 * bits differ from run to run, unless every sum is exact.
 */
#include "kernels/tutorial/steps/dot.cuh"

static __global__ void __launch_bounds__(THREADS)
    dot_atomic_kernel(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct step_tiles tiles,
                      uint64_t begin)
{
    const struct step_tile tile = step_block_tile(tiles, begin);
    for (uint64_t row = tile.first_row; row < tile.first_row + tile.row_count; row++) {
        const char *x = step_row(&rows, &rows.input, row), *y = step_row(&rows, &rows.further[DOT_OTHER], row);
        float sum = 0;
        for (uint64_t i = dot_thread(); i < rows.input.length; i += dot_threads())
            sum += product<SCAND_DTYPE_F32>(rows, x, y, i);
        atomicAdd((float *)step_row(&rows, &rows.output, row), sum);
    }
}

extern "C" int dot_atomic(const struct step_rows *rows, const void *, const struct step_tiles *tiles, uint64_t begin,
                          uint64_t end, void *stream)
{
    return dot_run(rows, tiles, begin, end, stream, [=](uint64_t first, dim3 grid) {
        dot_atomic_kernel<<<grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, *tiles, first);
    });
}

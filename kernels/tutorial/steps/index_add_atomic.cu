/*
 * index-add-atomic: a thread per sample, and atomicAdd.
 *
 * The threads of a grid count through the samples of all rows by one flat index, which a division takes apart into the
 * row and the place in it. Each reads the bin of its sample and adds the sample there; so neither the lengths of rows
 * nor what the index holds decide how the work is shared, and neighbours read neighbours. Memory does the rest: samples
 * that go to different bins are added at the same time, those of one bin one after another. With few bins, or an index
 * that names the same bin for many neighbours, the additions of a warp queue up at one address, which is where sorting
 * by bins, or a bin per thread as in the daemon's own kernel, begins to pay. Sums are rounded to f32 at each addition.
 *
 * Association: the bin's content, then its samples as they arrive, in f32. So bits differ from run to run, unless every
 * sum is exact.
 */
#include "kernels/steps/stack/stack.h"
#include "kernels/steps/step.cuh"
#include "kernels/tutorial/scan/launch.cuh"
#include "kernels/tutorial/steps/steps.h"

#define THREADS    256
#define EACH       16  /* least samples that a thread adds, where there are enough */
#define BLOCKS_MAX 256 /* thread blocks for a tile */
#define F32        SCAND_DTYPE_F32

/* Fills the output with what index-add adds to, or with zeros. */
static __global__ void __launch_bounds__(THREADS)
    index_add_begin(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct step_tiles tiles,
                    uint64_t begin)
{
    const struct step_tile tile = step_block_tile(tiles, begin);
    const struct step_operand &onto = rows.further[STACK_ONTO];
    const uint64_t bins = tile.end - tile.begin;
    for (uint64_t n = threadIdx.x; n < tile.row_count * bins; n += THREADS) {
        const uint64_t row = tile.first_row + n / bins;
        const int64_t bin = (int64_t)(tile.begin + n % bins);
        const float sum = onto.origin ? step_get_f32(F32, step_row(&rows, &onto, row) + bin * onto.stride) : 0;
        step_put_f32(F32, sum, step_row(&rows, &rows.output, row) + bin * rows.output.stride);
    }
}

static __global__ void __launch_bounds__(THREADS)
    index_add_kernel(const __grid_constant__ struct step_rows rows, float alpha,
                     const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    const struct step_tile tile = step_block_tile(tiles, begin);
    const struct step_operand &index = rows.further[STACK_INDEX];
    const uint64_t length = rows.input.length, threads = (uint64_t)gridDim.y * THREADS;
    for (uint64_t n = (uint64_t)blockIdx.y * THREADS + threadIdx.x; n < tile.row_count * length; n += threads) {
        const uint64_t row = tile.first_row + n / length;
        const int64_t i = (int64_t)(n % length);
        const uint64_t bin = step_decode_integer(index.dtype, step_row(&rows, &index, row) + i * index.stride);
        if (bin < tile.begin || bin >= tile.end)
            continue;
        const float x = step_get_f32(F32, step_row(&rows, &rows.input, row) + i * rows.input.stride);
        atomicAdd((float *)(step_row(&rows, &rows.output, row) + (int64_t)bin * rows.output.stride), alpha * x);
    }
}

extern "C" int index_add_atomic(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                                uint64_t begin, uint64_t end, void *stream)
{
    const struct stack *stack = (const struct stack *)params;
    const uint64_t blocks = parts_of(tiles->tiling.rows * rows->input.length, THREADS * EACH);
    const unsigned along = (unsigned)(blocks < 1 ? 1 : blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX);
    if (stack->norm != STACK_NORM_NONE || rows->further[STACK_FOLD].origin)
        return cudaErrorNotSupported;
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        index_add_begin<<<grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, *tiles, first);
        index_add_kernel<<<dim3(grid, along), THREADS, 0, (cudaStream_t)stream>>>(*rows, (float)stack->alpha, *tiles,
                                                                                  first);
    });
}

/* Samples are read up to three times, but once from memory. */
#include "diff.h"
#include "kernels/steps/elements.cuh"
#include "kernels/steps/packs.cuh"

#define THREADS 256

/* Floats of one dtype, one after another: a thread has a pack of samples and the one before it. */
template <enum scand_dtype DTYPE>
static __global__ void __launch_bounds__(THREADS, STEP_BLOCKS(THREADS, 6))
    diff_packs(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct diff diff,
               const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    typedef pack<DTYPE> pack;
    const struct step_tile tile = step_block_tile(tiles, begin);
    const uint32_t count = (uint32_t)(tile.end - tile.begin), packs = count / pack::count;
    for (uint64_t row = tile.first_row; row < tile.first_row + tile.row_count; row++) {
        struct diff_line line = diff_line_of(&rows, row);
        const pack *x = (const pack *)(line.x + tile.begin * pack::size);
        pack *y = (pack *)(line.y + tile.begin * pack::size);
#pragma unroll 2
        for (uint32_t p = threadIdx.x; p < packs; p += THREADS) {
            const pack here = x[p], before = tile.begin + p > 0 ? x[(int64_t)p - 1] : pack{};
            pack made;
#pragma unroll
            for (unsigned k = 0; k < pack::count; k++) {
                const auto last = k > 0 ? here.get(k - 1) : before.get(pack::count - 1);
                const auto second = k > 1 ? here.get(k - 2) : before.get(pack::count - 2 + k);
                if constexpr (DTYPE == SCAND_DTYPE_F64)
                    made.put(k, diff_f64(diff.kind, diff.dt, here.get(k), last, second));
                else
                    made.put(k, diff_f32(diff.kind, (float)diff.dt, here.get(k), last, second));
            }
            y[p] = made;
        }
        line.from = line.to = DTYPE;
        line.aligned = true;
#pragma unroll 1
        for (uint32_t i = packs * pack::count + threadIdx.x; i < count; i += THREADS)
            diff_element(&diff, &line, tile.begin + i);
    }
}

/* Called, not inlined: dtypes that nobody knows when this is compiled are most of a kernel's code. */
static __device__ __noinline__ void any_element(struct diff diff, struct diff_line line, uint64_t i)
{
    diff_element(&diff, &line, i);
}

/* Anything else. */
static __global__ void __launch_bounds__(THREADS)
    diff_tiles(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct diff diff,
               const __grid_constant__ struct step_tiles tiles, uint64_t begin)
{
    elements_each(
        rows, step_block_tile(tiles, begin), [&](uint64_t row) { return diff_line_of(&rows, row); },
        [&](const struct diff_line &line, uint64_t i) { any_element(diff, line, i); });
}

typedef void diff_kernel_function(struct step_rows rows, struct diff diff, struct step_tiles tiles, uint64_t begin);

static diff_kernel_function *choose_kernel(const struct step_rows *rows, const struct step_tiles *tiles)
{
    const enum scand_dtype dtype = rows->input.dtype;
    if (rows->offsets || elements_cross_rows(rows) || rows->output.length < THREADS ||
        tiles->tiling.elements % PACK_BYTES != 0 || !step_is_dense(rows, &rows->input, dtype, PACK_BYTES) ||
        !step_is_dense(rows, &rows->output, dtype, PACK_BYTES))
        return diff_tiles;
    return dtype == SCAND_DTYPE_F32    ? diff_packs<SCAND_DTYPE_F32>
           : dtype == SCAND_DTYPE_F64  ? diff_packs<SCAND_DTYPE_F64>
           : dtype == SCAND_DTYPE_F16  ? diff_packs<SCAND_DTYPE_F16>
           : dtype == SCAND_DTYPE_BF16 ? diff_packs<SCAND_DTYPE_BF16>
                                       : diff_tiles;
}

extern "C" int diff_launch(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                           uint64_t begin, uint64_t end, void *stream)
{
    const struct diff diff = *(const struct diff *)params;
    diff_kernel_function *const kernel = choose_kernel(rows, tiles);
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        kernel<<<grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, diff, *tiles, first);
    });
}

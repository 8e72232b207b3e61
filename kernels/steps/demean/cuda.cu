/*
 * A warp for each row, or a thread block where there are few: the row is read for its mean, and again to take that off.
 */
#include "demean.h"
#include "kernels/steps/totals.cuh"

struct samples {
    const struct step_operand *input;
    const char *x;
    __device__ double at(uint64_t i) const
    {
        return step_get_f64(input->dtype, x + (int64_t)i * input->stride);
    }
    __device__ void stage(uint64_t first, unsigned count, double *stage, unsigned lane) const
    {
        for (unsigned i = lane; i < count; i += WARP)
            stage[totals_place(i)] = at(first + i);
    }
};

static __global__ void __launch_bounds__(THREADS)
    demean_rows(const __grid_constant__ struct step_rows rows, const __grid_constant__ struct step_tiles tiles,
                uint64_t begin)
{
    __shared__ double stages[WARPS][STAGE], members[WARPS][LEVELS][ORDER_FAN], tile_totals[2][ORDER_FAN], shared_mean;
    const struct step_tile tile = step_block_tile(tiles, begin);
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const bool by_warp = tile.row_count >= WARPS;
    for (uint64_t i = by_warp ? warp : 0; i < tile.row_count; i += by_warp ? WARPS : 1) {
        const uint64_t row = tile.first_row + i, length = step_length(&rows, &rows.input, row);
        const struct samples samples = {&rows.input, step_row(&rows, &rows.input, row)};
        if (length == 0)
            continue;
        const double total = by_warp ? warp_total(samples, length, stages[warp], members[warp], lane)
                                     : block_total(samples, length, stages[warp], members[0], tile_totals, warp, lane);
        double mean = total / (double)length;
        if (!by_warp) { /* the total is the first warp's */
            if (threadIdx.x == 0)
                shared_mean = mean;
            __syncthreads();
            mean = shared_mean;
        }
        char *y = step_row(&rows, &rows.output, row);
        for (uint64_t k = by_warp ? lane : threadIdx.x; k < length; k += by_warp ? WARP : THREADS)
            step_put_f64(rows.output.dtype, demean_sample(rows.input.dtype, samples.at(k), mean),
                         y + (int64_t)k * rows.output.stride);
    }
}

extern "C" int demean_launch(const struct step_rows *rows, const void *params, const struct step_tiles *tiles,
                             uint64_t begin, uint64_t end, void *stream)
{
    (void)params;
    return step_launch_each(begin, end, [&](uint64_t first, unsigned grid) {
        demean_rows<<<grid, THREADS, 0, (cudaStream_t)stream>>>(*rows, *tiles, first);
    });
}

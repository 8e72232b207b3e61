/*
 * kogge-stone-double-buffered: one barrier per step.
 *
 * The change from kogge-stone: sums are written to a second buffer, which nobody reads in this step, and the buffers
 * change places. So the barrier between reading and writing goes, for twice the shared memory.
 *
 * Association: as kogge-stone.
 */
#include "kernels/tutorial/scan/common.cuh"

#define TILE 1024 /* samples, and threads */

/* Returns this thread's inclusive prefix; *last becomes that of the last thread. */
GPU_INLINE float tile_scan(float sum, float buffers[2][TILE], float *last)
{
    int i = threadIdx.x, from = 0;
    buffers[0][i] = sum;
    __syncthreads();
    for (int distance = 1; distance < TILE; distance *= 2) {
        if (i >= distance)
            sum = buffers[from][i - distance] + sum;
        from = 1 - from;
        buffers[from][i] = sum;
        __syncthreads();
    }
    *last = buffers[from][TILE - 1];
    return sum;
}

/* Scans a row. Ten steps end in the buffer that they began in: two barriers lie between its last use and its next. */
GPU_INLINE void row_scan(struct row x, struct row y, uint64_t length, float buffers[2][TILE])
{
    float carry = 0, last;
    for (uint64_t i = threadIdx.x; i - threadIdx.x < length; i += TILE) {
        float prefix = tile_scan(i < length ? x[i] : 0, buffers, &last);
        if (i < length)
            y[i] = carry + prefix;
        carry = carry + last;
        __syncthreads();
    }
}

static __global__ void __launch_bounds__(TILE) kogge_stone_double_buffered_kernel(struct pass pass)
{
    __shared__ float buffers[2][TILE];
    for (uint64_t number = blockIdx.x; number < pass.rows; number += gridDim.x)
        row_scan(pass.x[number], pass.y[number], pass.length, buffers);
}

extern "C" int kogge_stone_double_buffered(const struct variant_scan *scan, void *, cudaStream_t stream)
{
    return passes_run(scan, [=](const struct pass &pass) {
        kogge_stone_double_buffered_kernel<<<grid_of(pass.rows), TILE, 0, stream>>>(pass);
    });
}

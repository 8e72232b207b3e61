/*
 * hillis-steele-shared: the steps of hillis-steele-global inside a tile of shared memory.
 *
 * The change: a thread block takes a tile of 1,024 samples to shared memory, runs the ten steps there with barriers
 * instead of launches between them, and writes the tile once. A row of several tiles is walked through with a carry, so
 * global memory is read once and written once. All of the tile is copied from buffer to buffer in every step, also the
 * samples that are finished.
 *
 * Association: in each step x[i - d] + x[i], over a tile of 1,024; then carry + prefix, the carry being the last sum of
 * the tile before.
 */
#include "kernels/tutorial/scan/common.cuh"

#define TILE 1024 /* samples, and threads */

/* Scans a tile, one sample per thread. Returns the buffer that holds the result. */
GPU_INLINE float *tile_scan(float buffers[2][TILE])
{
    int i = threadIdx.x, from = 0;
    for (int distance = 1; distance < TILE; distance *= 2) {
        __syncthreads();
        float sample = buffers[from][i];
        buffers[1 - from][i] = i >= distance ? buffers[from][i - distance] + sample : sample;
        from = 1 - from;
    }
    __syncthreads();
    return buffers[from];
}

GPU_INLINE void row_scan(struct row x, struct row y, uint64_t length, float buffers[2][TILE])
{
    float carry = 0;
    for (uint64_t i = threadIdx.x; i - threadIdx.x < length; i += TILE) {
        buffers[0][threadIdx.x] = i < length ? x[i] : 0;
        float *prefixes = tile_scan(buffers);
        if (i < length)
            y[i] = carry + prefixes[threadIdx.x];
        carry = carry + prefixes[TILE - 1];
        __syncthreads();
    }
}

static __global__ void __launch_bounds__(TILE) hillis_steele_shared_kernel(struct pass pass)
{
    __shared__ float buffers[2][TILE];
    for (uint64_t number = blockIdx.x; number < pass.rows; number += gridDim.x)
        row_scan(pass.x[number], pass.y[number], pass.length, buffers);
}

extern "C" int hillis_steele_shared(const struct variant_scan *scan, void *, cudaStream_t stream)
{
    return passes_run(scan, [=](const struct pass &pass) {
        hillis_steele_shared_kernel<<<grid_of(pass.rows), TILE, 0, stream>>>(pass);
    });
}

/*
 * The three-phase scan of a tile, which coarsened, hierarchical and single-pass share.
 *
 * Phase 1: each thread adds the samples of its section of the tile one by one. Phase 2: the threads' totals are scanned
 * by the Kogge-Stone network. Phase 3: each thread adds the total of all sections before to its own sums. So n samples
 * take 2n additions and the network's steps are few, with every thread busy in the two phases that do the work.
 *
 * Association of a tile: sections of COARSE samples one by one; their totals by the Kogge-Stone network over THREADS
 * (left operand first); then total of the sections before + sum inside the section.
 */
#ifndef KERNELS_TUTORIAL_SCAN_TILE_CUH
#define KERNELS_TUTORIAL_SCAN_TILE_CUH

#include "kernels/tutorial/scan/common.cuh"

#define THREADS 256
#define COARSE  9 /* samples per thread; odd, so that threads begin in different banks */
#define TILE    (THREADS * COARSE)

struct tile {
    float samples[TILE];
    float totals[2][THREADS];
};

/* Phase 2 returns the inclusive prefix of this thread's total. All threads have stored their prefixes when it returns.
 */
GPU_INLINE float totals_scan(float sum, float buffers[2][THREADS])
{
    int i = threadIdx.x, from = 0;
    buffers[0][i] = sum;
    __syncthreads();
    for (int distance = 1; distance < THREADS; distance *= 2) {
        if (i >= distance)
            sum = buffers[from][i - distance] + sum;
        from = 1 - from;
        buffers[from][i] = sum;
        __syncthreads();
    }
    return sum;
}

/* Samples to inclusive prefixes; returns the tile's total. Begins and ends with all threads together. */
GPU_INLINE float tile_scan(struct tile *tile)
{
    static_assert(THREADS == 256, "eight steps end in the first buffer");
    float *section = tile->samples + threadIdx.x * COARSE;
    for (int i = 1; i < COARSE; i++)
        section[i] = section[i - 1] + section[i];
    totals_scan(section[COARSE - 1], tile->totals);
    if (threadIdx.x > 0)
        for (int i = 0; i < COARSE; i++)
            section[i] = tile->totals[0][threadIdx.x - 1] + section[i];
    float total = tile->totals[0][THREADS - 1];
    __syncthreads();
    return total;
}

/* Loads `count` samples of a row from `first` on, and zeros after them. */
GPU_INLINE void tile_load(struct tile *tile, struct row x, uint64_t first, int count)
{
    for (int i = threadIdx.x; i < TILE; i += THREADS)
        tile->samples[i] = i < count ? x[first + i] : 0;
    __syncthreads();
}

/* The prefixes, after the sum of all that lies before the tile. */
GPU_INLINE void tile_store(const struct tile *tile, struct row y, uint64_t first, int count, float carry)
{
    for (int i = threadIdx.x; i < count; i += THREADS)
        y[first + i] = carry + tile->samples[i];
    __syncthreads();
}

GPU_INLINE int tile_count(uint64_t first, uint64_t length)
{
    return (int)min(length - first, (uint64_t)TILE);
}

/* A whole row by one thread block, tile after tile. */
GPU_INLINE void row_scan(struct row x, struct row y, uint64_t length, struct tile *tile)
{
    float carry = 0;
    for (uint64_t first = 0; first < length; first += TILE) {
        int count = tile_count(first, length);
        tile_load(tile, x, first, count);
        float total = tile_scan(tile);
        tile_store(tile, y, first, count, carry);
        carry = carry + total;
    }
}

#endif

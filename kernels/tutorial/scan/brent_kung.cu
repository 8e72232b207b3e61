/*
 * brent-kung: up and down a tree, 2n additions instead of n log2(n).
 *
 * The change from kogge-stone: partial sums are shared. Going up, pairs, fours, eights, ... are added, each level with
 * half the additions of the one before; going down, the sums of finished prefixes are handed to the middles between
 * them. R. Brent and H. Kung, "A regular layout for parallel adders", 1982. Fewer additions, but twice as many steps,
 * in most of which most threads have nothing to do, and strides of powers of two, which meet in few banks. So it is
 * slower: on an H200 10,000 x 10,000 samples, forward and backward, take 2.15 ms, and 1.64 by kogge-stone. Additions
 * are what a GPU has most of.
 *
 * Association: 2,048 samples by the Brent-Kung network (left operand first); then carry + prefix, the carry being the
 * last sum of the tile before.
 */
#include "kernels/tutorial/scan/common.cuh"

#define THREADS 1024
#define TILE    (2 * THREADS) /* samples */

/* The last sum of each group of 2, 4, 8, ... samples. */
GPU_INLINE void tile_up(float tile[TILE])
{
    for (int stride = 1; stride < TILE; stride *= 2) {
        __syncthreads();
        int i = (threadIdx.x + 1) * 2 * stride - 1;
        if (i < TILE)
            tile[i] = tile[i - stride] + tile[i];
    }
}

/* A finished prefix, and the group after it of half the size before. */
GPU_INLINE void tile_down(float tile[TILE])
{
    for (int stride = TILE / 4; stride > 0; stride /= 2) {
        __syncthreads();
        int i = (threadIdx.x + 1) * 2 * stride - 1;
        if (i + stride < TILE)
            tile[i + stride] = tile[i] + tile[i + stride];
    }
    __syncthreads();
}

GPU_INLINE void row_scan(struct row x, struct row y, uint64_t length, float tile[TILE])
{
    float carry = 0;
    for (uint64_t first = 0; first < length; first += TILE) {
        int count = (int)min(length - first, (uint64_t)TILE);
        for (int i = threadIdx.x; i < TILE; i += THREADS)
            tile[i] = i < count ? x[first + i] : 0;
        tile_up(tile);
        tile_down(tile);
        for (int i = threadIdx.x; i < count; i += THREADS)
            y[first + i] = carry + tile[i];
        carry = carry + tile[TILE - 1];
        __syncthreads();
    }
}

static __global__ void __launch_bounds__(THREADS) brent_kung_kernel(struct pass pass)
{
    __shared__ float tile[TILE];
    for (uint64_t number = blockIdx.x; number < pass.rows; number += gridDim.x)
        row_scan(pass.x[number], pass.y[number], pass.length, tile);
}

extern "C" int brent_kung(const struct variant_scan *scan, void *, cudaStream_t stream)
{
    return passes_run(
        scan, [=](const struct pass &pass) { brent_kung_kernel<<<grid_of(pass.rows), THREADS, 0, stream>>>(pass); });
}

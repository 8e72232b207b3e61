/*
 * hierarchical: three kernels, so that one long row can use the whole GPU.
 *
 * The change from coarsened: the tiles of a row no longer wait for each other. The first kernel scans all tiles of all
 * rows at once and stores each tile's total; the second scans a row's totals as coarsened scans samples; the third adds
 * to every tile the sum of those before it. Samples are read twice and written twice.
 * On an H200 100 rows of a million samples, forward and backward, take 1.03 ms, and 2.19 by coarsened; 10,000 rows of
 * 10,000, which fill the GPU anyway, take 1.34, and 0.50 by coarsened.
 *
 * Association: that of tile.cuh for each 2,304 samples; that of coarsened for the totals of a row's tiles; then sum of
 * the tiles before + prefix.
 */
#include "kernels/tutorial/scan/tile.cuh"

/* A tile of a row, by a number below rows x tiles. */
struct place {
    uint64_t row, tile;
};

GPU_INLINE struct place place_of(uint64_t number, uint64_t tiles)
{
    return {number / tiles, number % tiles};
}

/* Kernel 1 scans every tile by itself. */
static __global__ void __launch_bounds__(THREADS) tiles_kernel(struct pass pass, uint64_t tiles, float *totals)
{
    __shared__ struct tile tile;
    for (uint64_t number = blockIdx.x; number < pass.rows * tiles; number += gridDim.x) {
        struct place place = place_of(number, tiles);
        uint64_t first = place.tile * TILE;
        int count = tile_count(first, pass.length);
        tile_load(&tile, pass.x[place.row], first, count);
        float total = tile_scan(&tile);
        tile_store(&tile, pass.y[place.row], first, count, 0);
        if (threadIdx.x == 0)
            totals[number] = total;
    }
}

/* Kernel 2 scans the totals of each row, as coarsened scans samples. */
static __global__ void __launch_bounds__(THREADS) totals_kernel(struct side totals, uint64_t rows, uint64_t tiles)
{
    __shared__ struct tile tile;
    for (uint64_t number = blockIdx.x; number < rows; number += gridDim.x)
        row_scan(totals[number], totals[number], tiles, &tile);
}

/* Kernel 3 adds to each tile the sum before it; the first tile of a row has nothing before it. */
static __global__ void __launch_bounds__(THREADS) carries_kernel(struct pass pass, uint64_t tiles, const float *sums)
{
    for (uint64_t number = blockIdx.x; number < pass.rows * tiles; number += gridDim.x) {
        struct place place = place_of(number, tiles);
        uint64_t first = place.tile * TILE;
        int count = place.tile == 0 ? 0 : tile_count(first, pass.length);
        struct row y = pass.y[place.row];
        for (int i = threadIdx.x; i < count; i += THREADS)
            y[first + i] = sums[number - 1] + y[first + i];
    }
}

static void pass_launch(const struct pass &pass, float *totals, cudaStream_t stream)
{
    uint64_t tiles = parts_of(pass.length, TILE);
    struct side side = {(char *)totals, (int64_t)(tiles * sizeof(float)), 1};
    unsigned grid = grid_of(pass.rows * tiles);
    tiles_kernel<<<grid, THREADS, 0, stream>>>(pass, tiles, totals);
    totals_kernel<<<grid_of(pass.rows), THREADS, 0, stream>>>(side, pass.rows, tiles);
    carries_kernel<<<grid, THREADS, 0, stream>>>(pass, tiles, totals);
}

extern "C" uint64_t hierarchical_workspace(const struct variant_scan *scan)
{
    return scan->rows * parts_of(scan->length, TILE) * sizeof(float);
}

extern "C" int hierarchical(const struct variant_scan *scan, void *workspace, cudaStream_t stream)
{
    return passes_run(scan, [=](const struct pass &pass) { pass_launch(pass, (float *)workspace, stream); });
}

/*
 * smem-v1: smem-v0-pad1 with the edges peeled.
 *
 * In smem-v0 every load, addition and store asks whether it is inside the row and the batch, although only the last
 * tile of a row and the last warp's rows can be outside. Asked once per tile instead, the full tiles run without
 * branches: the compiler unrolls them, and 32 loads are on their way at once instead of one after another.
 *
 * Association: as serial-cpu, ((x0 + x1) + x2) + ...
 */
#include "kernels/variants/common.cuh"

/* A tile of `rows` x `columns` samples; where Full is set both are WARP, known to the compiler. */
struct extent {
    int rows, columns;
};

template <bool Full> DEVICE struct extent extent_of(const struct pass &pass, uint64_t row, uint64_t first)
{
    if (Full)
        return {WARP, WARP};
    return {(int)min(pass.rows - row, (uint64_t)WARP), (int)min(pass.length - first, (uint64_t)WARP)};
}

DEVICE void tile_load(const struct pass &pass, uint64_t row, uint64_t column, struct extent extent,
                      float tile[][WARP + 1])
{
    if (threadIdx.x < extent.columns)
#pragma unroll
        for (int r = 0; r < extent.rows; r++)
            tile[r][threadIdx.x] = pass.x[row + r][column];
    __syncwarp();
}

DEVICE void tile_store(const struct pass &pass, uint64_t row, uint64_t column, struct extent extent,
                       const float tile[][WARP + 1])
{
    __syncwarp();
    if (threadIdx.x < extent.columns)
#pragma unroll
        for (int r = 0; r < extent.rows; r++)
            pass.y[row + r][column] = tile[r][threadIdx.x];
    __syncwarp();
}

/* Zero, to which every sum begins by adding its first sample, is exact: no branch for the first tile either. */
template <class Sum, bool Full>
DEVICE void tile_scan(const struct pass &pass, uint64_t row, uint64_t first, float tile[][WARP + 1],
                      typename Sum::type *sum)
{
    struct extent extent = extent_of<Full>(pass, row, first);
    tile_load(pass, row, first + threadIdx.x, extent, tile);
    if (threadIdx.x < extent.rows)
#pragma unroll
        for (int c = 0; c < extent.columns; c++) {
            *sum = Sum::add_sample(*sum, tile[threadIdx.x][c]);
            tile[threadIdx.x][c] = Sum::rounded(*sum);
        }
    tile_store(pass, row, first + threadIdx.x, extent, tile);
}

template <class Sum> static __global__ void smem_v1_kernel(struct pass pass)
{
    __shared__ float tile[WARP][WARP + 1];
    for (uint64_t row = (uint64_t)blockIdx.x * WARP; row < pass.rows; row += (uint64_t)gridDim.x * WARP) {
        typename Sum::type sum = Sum::of(0);
        uint64_t first = 0;
        if (row + WARP <= pass.rows)
            for (; first + WARP <= pass.length; first += WARP)
                tile_scan<Sum, true>(pass, row, first, tile, &sum);
        for (; first < pass.length; first += WARP)
            tile_scan<Sum, false>(pass, row, first, tile, &sum);
    }
}

extern "C" int smem_v1(const struct variant_scan *scan, void *, cudaStream_t stream)
{
    return passes_run(scan, [=](const struct pass &pass) {
        unsigned grid = grid_of(parts_of(pass.rows, WARP));
        with_accumulator(scan, [=](auto sum) { smem_v1_kernel<decltype(sum)><<<grid, WARP, 0, stream>>>(pass); });
    });
}

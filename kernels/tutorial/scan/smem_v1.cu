/*
 * smem-v1: smem-v0-pad1 with the edges peeled.
 *
 * In smem-v0 every load, addition and store asks whether it is inside the row and the batch, although only the last
 * tile of a row and the last warp's rows can be outside. Asked once per tile instead, the full tiles run without
 * branches: a lane loads all 32 samples of its column to registers before it stores the first to shared memory, so that
 * they are on their way at once instead of one after another, and the compiler unrolls the rest.
 *
 * Association: as serial-cpu, ((x0 + x1) + x2) + ...
 */
#include "kernels/tutorial/scan/common.cuh"

typedef float tile_rows[WARP][WARP + 1];

/* The column of a full tile that belongs to this lane. */
GPU_INLINE void full_load(const struct pass &pass, uint64_t row, uint64_t column, tile_rows tile)
{
    float loaded[WARP];
#pragma unroll
    for (int r = 0; r < WARP; r++)
        loaded[r] = pass.x[row + r][column];
#pragma unroll
    for (int r = 0; r < WARP; r++)
        tile[r][threadIdx.x] = loaded[r];
}

/* The same at the edges, where `rows` rows are left. */
GPU_INLINE void edge_load(const struct pass &pass, uint64_t row, uint64_t column, int rows, tile_rows tile)
{
    for (int r = 0; r < rows; r++)
        tile[r][threadIdx.x] = pass.x[row + r][column];
}

GPU_INLINE void tile_store(const struct pass &pass, uint64_t row, uint64_t column, int rows, const tile_rows tile)
{
#pragma unroll
    for (int r = 0; r < rows; r++)
        pass.y[row + r][column] = tile[r][threadIdx.x];
}

/* This lane's row. The first sample is the first sum: added to zero, -0 would be 0, and an infinity, in f2, a NaN.
 * Where `begins` is known to the compiler, that takes no branch. */
template <class Sum> GPU_INLINE void row_scan(float *tile, int columns, typename Sum::type *sum, bool begins)
{
#pragma unroll
    for (int c = 0; c < columns; c++) {
        *sum = begins && c == 0 ? Sum::of(tile[c]) : Sum::add_sample(*sum, tile[c]);
        tile[c] = Sum::rounded(*sum);
    }
}

template <class Sum, bool Begins>
GPU_INLINE void full_scan(const struct pass &pass, uint64_t row, uint64_t first, tile_rows tile,
                          typename Sum::type *sum)
{
    full_load(pass, row, first + threadIdx.x, tile);
    __syncwarp();
    row_scan<Sum>(tile[threadIdx.x], WARP, sum, Begins);
    __syncwarp();
    tile_store(pass, row, first + threadIdx.x, WARP, tile);
    __syncwarp();
}

template <class Sum>
GPU_INLINE void edge_scan(const struct pass &pass, uint64_t row, uint64_t first, tile_rows tile,
                          typename Sum::type *sum)
{
    int rows = (int)min(pass.rows - row, (uint64_t)WARP), columns = (int)min(pass.length - first, (uint64_t)WARP);
    if (threadIdx.x < columns)
        edge_load(pass, row, first + threadIdx.x, rows, tile);
    __syncwarp();
    if (threadIdx.x < rows)
        row_scan<Sum>(tile[threadIdx.x], columns, sum, first == 0);
    __syncwarp();
    if (threadIdx.x < columns)
        tile_store(pass, row, first + threadIdx.x, rows, tile);
    __syncwarp();
}

template <class Sum> static __global__ void __launch_bounds__(WARP) smem_v1_kernel(struct pass pass)
{
    __shared__ tile_rows tile;
    for (uint64_t row = (uint64_t)blockIdx.x * WARP; row < pass.rows; row += (uint64_t)gridDim.x * WARP) {
        typename Sum::type sum = Sum::of(0);
        uint64_t first = 0;
        if (row + WARP <= pass.rows && WARP <= pass.length) {
            full_scan<Sum, true>(pass, row, first, tile, &sum);
            for (first = WARP; first + WARP <= pass.length; first += WARP)
                full_scan<Sum, false>(pass, row, first, tile, &sum);
        }
        for (; first < pass.length; first += WARP)
            edge_scan<Sum>(pass, row, first, tile, &sum);
    }
}

extern "C" int smem_v1(const struct variant_scan *scan, void *, cudaStream_t stream)
{
    return passes_run(scan, [=](const struct pass &pass) {
        unsigned grid = grid_of(parts_of(pass.rows, WARP));
        with_accumulator(scan, [=](auto sum) { smem_v1_kernel<decltype(sum)><<<grid, WARP, 0, stream>>>(pass); });
    });
}

/*
 * smem-v1: smem-v0-pad1 with the edges peeled.
 *
 * In smem-v0 every load, addition and store asks whether it is inside the row and the batch, although only the last
 * tile of a row and the last warp's rows can be outside. Asked once per tile instead, the full tiles run without
 * branches. With PAD 0 they show what the banks cost where little else is left: 10,000 x 10,000 samples of f32, forward
 * and backward, take 3.2 ms on an H200 instead of 1.24, and longer than the 2.9 of smem-v0-pad0.
 *
 * Association: as serial-cpu, ((x0 + x1) + x2) + ...
 */
#include "kernels/tutorial/scan/common.cuh"

template <int PAD> using tile_rows = float[WARP][WARP + PAD];

/* Loads this lane's column of a full tile. */
template <int PAD>
GPU_INLINE void full_load(const struct pass &pass, uint64_t row, uint64_t column, tile_rows<PAD> &tile)
{
    float loaded[WARP];
#pragma unroll
    for (int r = 0; r < WARP; r++)
        loaded[r] = pass.x[row + r][column];
#pragma unroll
    for (int r = 0; r < WARP; r++)
        tile[r][threadIdx.x] = loaded[r];
}

/* Loads this lane's column of a tile at the edges, where `rows` rows are left. */
template <int PAD>
GPU_INLINE void edge_load(const struct pass &pass, uint64_t row, uint64_t column, int rows, tile_rows<PAD> &tile)
{
    for (int r = 0; r < rows; r++)
        tile[r][threadIdx.x] = pass.x[row + r][column];
}

template <int PAD>
GPU_INLINE void tile_store(const struct pass &pass, uint64_t row, uint64_t column, int rows, const tile_rows<PAD> &tile)
{
#pragma unroll
    for (int r = 0; r < rows; r++)
        pass.y[row + r][column] = tile[r][threadIdx.x];
}

/* Scans this lane's row. The first sample is the first sum: added to zero, -0 would be 0, and an infinity, in f2, a
 * NaN. Where `begins` is known to the compiler, that takes no branch. */
template <class Sum> GPU_INLINE void row_scan(float *tile, int columns, typename Sum::type *sum, bool begins)
{
#pragma unroll
    for (int c = 0; c < columns; c++) {
        *sum = begins && c == 0 ? Sum::of(tile[c]) : Sum::add_sample(*sum, tile[c]);
        tile[c] = Sum::rounded(*sum);
    }
}

template <class Sum, int PAD, bool Begins>
GPU_INLINE void full_scan(const struct pass &pass, uint64_t row, uint64_t first, tile_rows<PAD> &tile,
                          typename Sum::type *sum)
{
    full_load<PAD>(pass, row, first + threadIdx.x, tile);
    __syncwarp();
    row_scan<Sum>(tile[threadIdx.x], WARP, sum, Begins);
    __syncwarp();
    tile_store<PAD>(pass, row, first + threadIdx.x, WARP, tile);
    __syncwarp();
}

template <class Sum, int PAD>
GPU_INLINE void edge_scan(const struct pass &pass, uint64_t row, uint64_t first, tile_rows<PAD> &tile,
                          typename Sum::type *sum)
{
    int rows = (int)min(pass.rows - row, (uint64_t)WARP), columns = (int)min(pass.length - first, (uint64_t)WARP);
    if (threadIdx.x < columns)
        edge_load<PAD>(pass, row, first + threadIdx.x, rows, tile);
    __syncwarp();
    if (threadIdx.x < rows)
        row_scan<Sum>(tile[threadIdx.x], columns, sum, first == 0);
    __syncwarp();
    if (threadIdx.x < columns)
        tile_store<PAD>(pass, row, first + threadIdx.x, rows, tile);
    __syncwarp();
}

template <class Sum, int PAD> static __global__ void __launch_bounds__(WARP) smem_v1_kernel(struct pass pass)
{
    __shared__ tile_rows<PAD> tile;
    for (uint64_t row = (uint64_t)blockIdx.x * WARP; row < pass.rows; row += (uint64_t)gridDim.x * WARP) {
        typename Sum::type sum = Sum::of(0);
        uint64_t first = 0;
        if (row + WARP <= pass.rows && WARP <= pass.length) {
            full_scan<Sum, PAD, true>(pass, row, first, tile, &sum);
            for (first = WARP; first + WARP <= pass.length; first += WARP)
                full_scan<Sum, PAD, false>(pass, row, first, tile, &sum);
        }
        for (; first < pass.length; first += WARP)
            edge_scan<Sum, PAD>(pass, row, first, tile, &sum);
    }
}

template <int PAD> static int run(const struct variant_scan *scan, cudaStream_t stream)
{
    return passes_run(scan, [=](const struct pass &pass) {
        unsigned grid = grid_of(parts_of(pass.rows, WARP));
        with_accumulator(scan, [=](auto sum) { smem_v1_kernel<decltype(sum), PAD><<<grid, WARP, 0, stream>>>(pass); });
    });
}

extern "C" int smem_v1_pad0(const struct variant_scan *scan, void *, cudaStream_t stream)
{
    return run<0>(scan, stream);
}

extern "C" int smem_v1(const struct variant_scan *scan, void *, cudaStream_t stream)
{
    return run<1>(scan, stream);
}

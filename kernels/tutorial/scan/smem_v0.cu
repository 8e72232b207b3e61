/*
 * smem-v0-pad0 and smem-v0-pad1: a thread per row, tiles transposed through shared memory.
 *
 * A thread that scans a row alone needs no help from others, but 32 of them, each walking along its own row, would
 * touch 32 lines of memory for 32 samples. So a warp takes 32 rows in tiles of 32 x 32: it loads a tile row by row,
 * which is coalesced, scans it with a lane per row, in shared memory, and stores it row by row again. The sums stay in
 * registers from tile to tile.
 *
 * PAD is the lesson: with tile rows of 32 floats, the 32 lanes that read column c all read from bank c, one after the
 * other. One float of padding moves every row by a bank, and they read at once.
 *
 * Association: as serial-cpu, ((x0 + x1) + x2) + ...
 */
#include "kernels/tutorial/scan/common.cuh"

/* One tile of a warp's rows; `first` is its first column. */
template <int PAD>
GPU_INLINE void tile_load(const struct pass &pass, uint64_t row, uint64_t first, float tile[][WARP + PAD])
{
    for (int r = 0; r < WARP; r++)
        if (row + r < pass.rows && first + threadIdx.x < pass.length)
            tile[r][threadIdx.x] = pass.x[row + r][first + threadIdx.x];
    __syncwarp();
}

template <int PAD>
GPU_INLINE void tile_store(const struct pass &pass, uint64_t row, uint64_t first, float tile[][WARP + PAD])
{
    __syncwarp();
    for (int r = 0; r < WARP; r++)
        if (row + r < pass.rows && first + threadIdx.x < pass.length)
            pass.y[row + r][first + threadIdx.x] = tile[r][threadIdx.x];
    __syncwarp();
}

/* This lane's row of the tile. */
template <class Sum> GPU_INLINE void tile_scan(float *tile, int count, typename Sum::type *sum, bool begins)
{
    for (int c = 0; c < count; c++) {
        *sum = begins && c == 0 ? Sum::of(tile[c]) : Sum::add_sample(*sum, tile[c]);
        tile[c] = Sum::rounded(*sum);
    }
}

template <class Sum, int PAD> static __global__ void __launch_bounds__(WARP) smem_v0_kernel(struct pass pass)
{
    __shared__ float tile[WARP][WARP + PAD];
    for (uint64_t row = (uint64_t)blockIdx.x * WARP; row < pass.rows; row += (uint64_t)gridDim.x * WARP) {
        typename Sum::type sum = Sum::of(0);
        for (uint64_t first = 0; first < pass.length; first += WARP) {
            tile_load<PAD>(pass, row, first, tile);
            if (row + threadIdx.x < pass.rows)
                tile_scan<Sum>(tile[threadIdx.x], (int)min(pass.length - first, (uint64_t)WARP), &sum, first == 0);
            tile_store<PAD>(pass, row, first, tile);
        }
    }
}

template <int PAD> static int smem_v0(const struct variant_scan *scan, cudaStream_t stream)
{
    return passes_run(scan, [=](const struct pass &pass) {
        unsigned grid = grid_of(parts_of(pass.rows, WARP));
        with_accumulator(scan, [=](auto sum) { smem_v0_kernel<decltype(sum), PAD><<<grid, WARP, 0, stream>>>(pass); });
    });
}

extern "C" int smem_v0_pad0(const struct variant_scan *scan, void *, cudaStream_t stream)
{
    return smem_v0<0>(scan, stream);
}

extern "C" int smem_v0_pad1(const struct variant_scan *scan, void *, cudaStream_t stream)
{
    return smem_v0<1>(scan, stream);
}

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

/* Loads one tile of a warp's rows, of which `rows` are left; x is this lane's column in the first row. All loads are
 * issued before the first sample is stored. */
template <int PAD>
GPU_INLINE void tile_load(const float *x, int64_t pitch, int rows, bool inside, float tile[][WARP + PAD])
{
    float loaded[WARP];
#pragma unroll
    for (int r = 0; r < WARP; r++)
        loaded[r] = inside && r < rows ? *(const float *)((const char *)x + r * pitch) : 0;
#pragma unroll
    for (int r = 0; r < WARP; r++)
        tile[r][threadIdx.x] = loaded[r];
    __syncwarp();
}

template <int PAD> GPU_INLINE void tile_store(float *y, int64_t pitch, int rows, bool inside, float tile[][WARP + PAD])
{
    __syncwarp();
#pragma unroll
    for (int r = 0; r < WARP; r++)
        if (inside && r < rows)
            *(float *)((char *)y + r * pitch) = tile[r][threadIdx.x];
    __syncwarp();
}

/* Scans this lane's row of the tile. */
template <class Sum> GPU_INLINE void tile_scan(float *tile, int count, typename Sum::type *sum, bool begins)
{
#pragma unroll
    for (int c = 0; c < WARP; c++)
        if (c < count) {
            *sum = begins && c == 0 ? Sum::of(tile[c]) : Sum::add_sample(*sum, tile[c]);
            tile[c] = Sum::rounded(*sum);
        }
}

template <class Sum, int PAD> static __global__ void __launch_bounds__(WARP) smem_v0_kernel(struct pass pass)
{
    __shared__ float tile[WARP][WARP + PAD];
    const uint32_t length = (uint32_t)pass.length;
    for (uint64_t row = (uint64_t)blockIdx.x * WARP; row < pass.rows; row += (uint64_t)gridDim.x * WARP) {
        const int rows = (int)min(pass.rows - row, (uint64_t)WARP);
        const struct row x = pass.x[row], y = pass.y[row];
        typename Sum::type sum = Sum::of(0);
        for (uint32_t first = 0; first < length; first += WARP) {
            const int count = min(length - first, WARP);
            const bool inside = threadIdx.x < count;
            tile_load<PAD>(&x[first + threadIdx.x], pass.x.pitch, rows, inside, tile);
            tile_scan<Sum>(tile[threadIdx.x], count, &sum, first == 0);
            tile_store<PAD>(&y[first + threadIdx.x], pass.y.pitch, rows, inside, tile);
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

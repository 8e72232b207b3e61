/*
 * coarsened: several samples per thread, in three phases.
 *
 * The change from kogge-stone-double-buffered: a thread takes nine samples instead of one, and the network runs over
 * the threads' totals only (tile.cuh has the phases). Per sample that leaves two additions and a ninth of the network,
 * and a tile is more than twice as long with a quarter of the threads, so fewer threads wait at each barrier.
 *
 * Association: that of tile.cuh for 2,304 samples; then carry + prefix, the carry being the last sum of the tile
 * before.
 */
#include "kernels/tutorial/scan/tile.cuh"

static __global__ void __launch_bounds__(THREADS) coarsened_kernel(struct pass pass)
{
    __shared__ struct tile tile;
    for (uint64_t number = blockIdx.x; number < pass.rows; number += gridDim.x)
        row_scan(pass.x[number], pass.y[number], pass.length, &tile);
}

extern "C" int coarsened(const struct variant_scan *scan, void *, cudaStream_t stream)
{
    return passes_run(
        scan, [=](const struct pass &pass) { coarsened_kernel<<<grid_of(pass.rows), THREADS, 0, stream>>>(pass); });
}

/*
 * The sums that two passes over very long rows need before there are values: the carries into blocks in the first pass,
 * and the blocks' totals in the second. As in grid_per_row.cuh, which has all but this, but nothing is written: samples
 * come twice as fast, and items wait for each other twice as often. In iteration t a warp that computes
 *
 *   - makes the values of item t - 1, and from them its total in the second pass;
 *   - takes the samples of item t to registers, and sends for those of item t + 3;
 *   - makes the total of item t + 2 in the first pass.
 */
#ifndef KERNELS_CUDA_KERNELS_GRID_PER_ROW_SUMS_CUH
#define KERNELS_CUDA_KERNELS_GRID_PER_ROW_SUMS_CUH

#include "kernels/cuda/kernels/grid_per_row.cuh"

#define GRID_SUMS_WAITING \
    2 /* warps that wait for others, in turns; one publishes, and one stores totals of the second pass */
#define GRID_SUMS_THREADS ((GRID_WARPS + GRID_SUMS_WAITING + 2) * WARP)

/* The type in which values are rounded: f64 stays f64, as conversions are scarce. */
template <class Sum> struct grid_wide {
    using type = Sum;
};
template <> struct grid_wide<sum_f64_narrow> {
    using type = sum_f64;
};

/* The total of a tile in the second pass. */
template <class Sum, int Kind>
DEVICE void grid_sums_second(const struct scan_plan &plan, struct grid_shared<Sum> *shared, int number, int tile,
                             const float x[ORDER_LEAF], typename Sum::sum before)
{
    using Wide = typename grid_wide<Sum>::type;
    const struct grid_item *item = &shared->items[number % GRID_ITEMS];
    typename Wide::sample values[ORDER_LEAF];
    leaf_from_f32<Wide>(x, values);
    grid_values_of<Wide, Kind>(plan, 0, values, item, tile, shared->tiles[0][number % GRID_MBARRIERS].carries, before);
    leaf_between_passes<Wide>(values, true);
    grid_total_of<Wide>(plan, 1, values, item->length, tile, shared->tiles[1][number % GRID_MBARRIERS].totals);
}

/* The work of a computing warp. */
template <class Sum, int Kind, bool Aligned>
DEVICE void grid_sums(const struct scan_plan &plan, struct grid_shared<Sum> *shared, int warp, uint4 *buffers)
{
    typename Sum::sum *const befores = (typename Sum::sum *)(buffers + GRID_BUFFERS * GRID_BUFFER);
    typename Sum::sum before[GRID_TILES];
    float x[GRID_TILES][ORDER_LEAF]; /* values of item t - 1 */
    grid_begin<Sum, Aligned>(plan, shared, warp, buffers, befores);
#pragma unroll 1
    for (int iteration = 0, at = 0;; iteration++, at = grid_next(at)) {
        uint4 *buffer = buffers + at * GRID_BUFFER;
        if (iteration > 0) {
            grid_wait(shared->carries[0], iteration - 1);
            if (iteration > 2) /* then nobody needs the totals any more that others follow here */
                grid_wait(shared->carries[1], iteration - 3);
#pragma unroll
            for (int i = 0; i < GRID_TILES; i++)
                grid_sums_second<Sum, Kind>(plan, shared, iteration - 1, grid_tile(warp, i), x[i], before[i]);
            mbarrier_arrive(&shared->totals[1][(iteration - 1) % GRID_MBARRIERS]);
        }
        if (!grid_there(shared, iteration))
            return;
#pragma unroll
        for (int i = 0; i < GRID_TILES; i++) {
            leaf_read(buffer + grid_tile(warp, i) * TILE_SMEM, x[i]);
            before[i] = *grid_before(befores, iteration, grid_tile(warp, i));
        }
        __syncwarp();
        grid_fetch<Aligned>(&shared->items[(iteration + 3) % GRID_ITEMS], warp, buffer);
        __pipeline_wait_prior(1); /* the next item's may be on their way */
        if (grid_there(shared, iteration + 2))
            grid_first<Sum, Aligned>(plan, shared, iteration + 2, warp, buffers + grid_last(at) * GRID_BUFFER, befores);
    }
}

/* The work of the warp that stores the totals of items in the second pass. */
template <class Sum, bool Backward>
DEVICE void grid_sums_store(const struct grid_plan &plan, struct grid_shared<Sum> *shared)
{
    grid_tell<Sum, Backward>(shared, 1, [&](const struct grid_item *item, typename Sum::sum total) {
        *grid_stored<Sum>(plan, item, 1) = total;
    });
}

template <class Sum, int Kind, bool Aligned>
__global__ void __launch_bounds__(GRID_SUMS_THREADS, 1)
    grid_per_row_sums_kernel(const __grid_constant__ struct grid_plan plan)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ uint4 buffers[];
    __shared__ struct grid_shared<Sum> shared;
    grid_init<Sum>(plan, &shared);
    const int warp = warp_index(), server = warp - GRID_WARPS;
    if (server < 0)
        grid_sums<Sum, Kind, Aligned>(plan.scan, &shared, warp, buffers);
    else if (server <= GRID_SUMS_WAITING && plan.scan.backward[0])
        grid_serve<Sum, true, GRID_SUMS_WAITING>(plan, &shared, 0, server);
    else if (server <= GRID_SUMS_WAITING)
        grid_serve<Sum, false, GRID_SUMS_WAITING>(plan, &shared, 0, server);
    else if (plan.scan.backward[1])
        grid_sums_store<Sum, true>(plan, &shared);
    else
        grid_sums_store<Sum, false>(plan, &shared);
#endif
}

#endif

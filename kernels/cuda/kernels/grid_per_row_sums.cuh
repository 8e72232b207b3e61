/*
 * The sums that two passes over very long rows need before there are values: the carries into blocks in the first pass,
 * and the blocks' totals in the second. As in grid_per_row.cuh, which has all but this, but nothing is written: samples
 * come twice as fast, and items wait for each other twice as often. In turn t a warp that computes
 *
 *   - makes the values of item t - 1, and from them its total in the second pass;
 *   - takes the samples of item t to registers, and sends for those of item t + 3;
 *   - makes the total of item t + 2 in the first pass.
 */
#ifndef KERNELS_CUDA_KERNELS_GRID_PER_ROW_SUMS_CUH
#define KERNELS_CUDA_KERNELS_GRID_PER_ROW_SUMS_CUH

#include "kernels/cuda/kernels/grid_per_row.cuh"

#define LONG_SUMS_WAITING \
    2 /* warps that wait for others, in turns; one tells, and one stores totals of the second pass */
#define LONG_SUMS_THREADS ((LONG_WARPS + LONG_SUMS_WAITING + 2) * WARP)

/* What values are rounded in: f64 ones stay f64, as conversions are scarce. */
template <class Sum> struct long_wide {
    using type = Sum;
};
template <> struct long_wide<sum_f64_narrow> {
    using type = sum_f64;
};

/* The total of a tile in the second pass. */
template <class Sum, int Kind>
DEVICE void long_sums_second(const struct scan_plan &plan, struct long_shared<Sum> *shared, int number, int tile,
                             const float x[ORDER_LEAF], typename Sum::sum before)
{
    using Wide = typename long_wide<Sum>::type;
    const struct long_item *item = &shared->items[number % LONG_ITEMS];
    typename Wide::sample values[ORDER_LEAF];
#pragma unroll
    for (int k = 0; k < ORDER_LEAF; k++)
        values[k] = Wide::from_f32(x[k]);
    long_values_of<Wide, Kind>(plan, 0, values, item, tile, shared->tiles[0][number % LONG_GATES].carries, before);
    leaf_between_passes<Wide>(values, true);
    long_total_of<Wide>(plan, 1, values, item->length, tile, shared->tiles[1][number % LONG_GATES].totals);
}

/* What a warp that computes does. */
template <class Sum, int Kind, bool Aligned>
DEVICE void long_sums(const struct scan_plan &plan, struct long_shared<Sum> *shared, int warp, uint4 *buffers)
{
    typename Sum::sum *const befores = (typename Sum::sum *)(buffers + LONG_BUFFERS * LONG_BUFFER);
    typename Sum::sum before[LONG_TILES];
    float x[LONG_TILES][ORDER_LEAF]; /* of item t - 1 */
    long_begin<Sum, Aligned>(plan, shared, warp, buffers, befores);
#pragma unroll 1
    for (int turn = 0, at = 0;; turn++, at = long_next(at)) {
        uint4 *buffer = buffers + at * LONG_BUFFER;
        if (turn > 0) {
            gate_wait(&shared->carries[0][(turn - 1) % LONG_GATES], (turn - 1) / LONG_GATES % 2);
            if (turn > 2) /* then nobody needs the totals any more that others follow here */
                gate_wait(&shared->carries[1][(turn - 3) % LONG_GATES], (turn - 3) / LONG_GATES % 2);
#pragma unroll
            for (int i = 0; i < LONG_TILES; i++)
                long_sums_second<Sum, Kind>(plan, shared, turn - 1, long_tile(warp, i), x[i], before[i]);
            gate_arrive(&shared->totals[1][(turn - 1) % LONG_GATES]);
        }
        if (!long_there(shared, turn))
            return;
#pragma unroll
        for (int i = 0; i < LONG_TILES; i++) {
            leaf_read(buffer + long_tile(warp, i) * TILE_ROOM, x[i]);
            before[i] = *long_before(befores, turn, long_tile(warp, i));
        }
        __syncwarp();
        long_fetch<Aligned>(plan, &shared->items[(turn + 3) % LONG_ITEMS], warp, buffer);
        __pipeline_wait_prior(1); /* the next item's may be on their way */
        if (long_there(shared, turn + 2))
            long_first<Sum, Aligned>(plan, shared, turn + 2, warp, buffers + long_last(at) * LONG_BUFFER, befores);
    }
}

/* What the warp does that stores the totals of items in the second pass. */
template <class Sum, bool Backward>
DEVICE void long_sums_store(const struct long_plan &plan, struct long_shared<Sum> *shared)
{
    for (int number = 0; long_there(shared, number); number++) {
        const struct long_item *item = &shared->items[number % LONG_ITEMS];
        gate_wait(&shared->totals[1][number % LONG_GATES], number / LONG_GATES % 2);
        typename Sum::sum total;
        long_prefixes<Sum, Backward>(item, &shared->tiles[1][number % LONG_GATES], &total);
        if (lane_index() == 0)
            *long_stored<Sum>(plan, item, 1) = total;
        gate_arrive(&shared->carries[1][number % LONG_GATES]);
    }
}

template <class Sum, int Kind, bool Aligned>
__global__ void __launch_bounds__(LONG_SUMS_THREADS, 1) long_sums_kernel(const __grid_constant__ struct long_plan plan)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ uint4 buffers[];
    __shared__ struct long_shared<Sum> shared;
    long_init<Sum>(plan, &shared);
    const int warp = warp_index(), server = warp - LONG_WARPS;
    if (server < 0)
        long_sums<Sum, Kind, Aligned>(plan.scan, &shared, warp, buffers);
    else if (server <= LONG_SUMS_WAITING && plan.scan.backward[0])
        long_serve<Sum, true, LONG_SUMS_WAITING>(plan, &shared, 0, server);
    else if (server <= LONG_SUMS_WAITING)
        long_serve<Sum, false, LONG_SUMS_WAITING>(plan, &shared, 0, server);
    else if (plan.scan.backward[1])
        long_sums_store<Sum, true>(plan, &shared);
    else
        long_sums_store<Sum, false>(plan, &shared);
#endif
}

#endif

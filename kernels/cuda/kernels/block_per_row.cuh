/*
 * The scan kernel. Thread blocks stay for the whole launch and take one order block after another, each a row. The
 * samples of one are in registers while it is computed, and those of the next on their way to shared
 * memory.
 */
#ifndef KERNELS_CUDA_KERNELS_BLOCK_PER_ROW_CUH
#define KERNELS_CUDA_KERNELS_BLOCK_PER_ROW_CUH

#include "kernels/cuda/exchange/block.cuh"
#include "kernels/cuda/exchange/work_queue.cuh"
#include "kernels/cuda/warp/item_io.cuh"
#include "kernels/cuda/warp/short_io.cuh"

template <class Sum, int Kind>
DEVICE void scan_pass(const struct scan_plan &plan, const struct scan_item *item, int known, int pass, int warp,
                      tile_sums<Sum> *shared, typename Sum::sample x[ORDER_LEAF])
{
    const int length = Sum::has_identity ? known : item->length; /* f2 has no register for it */
    scan_outside<Sum> outside = {plan, item, pass};
    if (plan.backward[pass])
        block_pass<Sum, true, Kind>(x, length, warp, shared, outside);
    else
        block_pass<Sum, false, Kind>(x, length, warp, shared, outside);
}

template <class Sum, int Kind>
DEVICE void scan_passes(const struct scan_plan &plan, const struct scan_item *item, int warp, tile_sums<Sum> *shared,
                        typename Sum::sample x[ORDER_LEAF])
{
    const int length = warp_uniform(item->length);
#pragma unroll 1
    for (int pass = 0;; pass++) {
        scan_pass<Sum, Kind>(plan, item, length, pass, warp, shared, x);
        if (pass + 1 == plan.pass_count || pass == plan.totals_pass)
            return;
        leaf_between_passes<Sum>(x, plan.intermediate_f32, plan.input_form == SCAND_DTYPE_F16);
    }
}

/* `Io`: how warps move and convert samples, item_io or short_io. */
template <class Sum, int Kind, class Io>
__global__ void REGISTERS(Io::registers) block_per_row_kernel(const __grid_constant__ struct scan_plan plan)
{
    extern __shared__ __align__(128) uint4 tiles[];
    __shared__ struct scan_item items[ITEMS];
    __shared__ tile_sums<Sum> shared;
    if (threadIdx.x < ITEMS_AHEAD)
        items[threadIdx.x] = scan_item_at(plan, blockIdx.x + (uint64_t)threadIdx.x * gridDim.x);
    __syncthreads();
    const int warp = warp_index();
    uint4 *tile = tiles + warp * plan.smem;
    Io::fetch(&items[0], warp, tile);

    for (unsigned iteration = 0; items[iteration % ITEMS].length > 0; iteration++) {
        const struct scan_item *item = &items[iteration % ITEMS], *next = &items[(iteration + 1) % ITEMS];
        typename Io::words words;
        typename Sum::sample x[ORDER_LEAF];
        Io::read(item, tile, &words);
        if (plan.ahead)
            Io::fetch(next, warp, tile);
        Io::decode(plan.input_form, &words, x);

        scan_passes<Sum, Kind>(plan, item, warp, &shared, x);
        bool first_thread = warp == 0 && lane_index() == 0;
        unsigned taken = first_thread ? scan_take_number(plan) : 0; /* in one register, until it is known */
        if (plan.totals_pass < 0)
            Io::write(plan, item, warp, tile + (plan.ahead ? Io::tile_vectors : 0), x);
        if (!plan.ahead)
            Io::fetch(next, warp, tile);
        if (first_thread)
            items[(iteration + ITEMS_AHEAD) % ITEMS] = scan_item_at(plan, scan_taken(plan, taken, iteration));
    }
    if constexpr (Io::has_bulk) {
        bulk_wait_written();
        __syncwarp();
    }
    if (plan.progress && threadIdx.x == 0)
        scan_finish(plan.progress);
}

#endif

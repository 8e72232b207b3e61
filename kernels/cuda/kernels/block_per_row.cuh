/*
 * The scan kernel. Thread blocks stay for the whole launch and take one order block after another (a short row is one
 * order block). The samples of one are in registers while it is computed, and those of the next on their way to shared
 * memory.
 */
#ifndef KERNELS_CUDA_KERNELS_BLOCK_PER_ROW_CUH
#define KERNELS_CUDA_KERNELS_BLOCK_PER_ROW_CUH

#include <type_traits>

#include "kernels/cuda/exchange/block.cuh"
#include "kernels/cuda/exchange/work_queue.cuh"
#include "kernels/cuda/lane/convert32.cuh"
#include "kernels/cuda/warp/item_io.cuh"

template <class Sum, int Kind>
DEVICE void scan_pass(const struct scan_plan &plan, const struct scan_item *item, int pass, int warp,
                      tile_sums<Sum> *shared, typename Sum::sample x[ORDER_LEAF])
{
    scan_outside<Sum> outside = {plan, item, pass};
    if (plan.backward[pass])
        block_pass<Sum, true, Kind>(x, item->length, warp, shared, outside);
    else
        block_pass<Sum, false, Kind>(x, item->length, warp, shared, outside);
}

/* All passes that this launch needs. First is the accumulator of the first one, Later that of a second, of one size. */
template <class First, class Later, int Kind>
DEVICE void scan_passes(const struct scan_plan &plan, const struct scan_item *item, int warp, tile_sums<First> *shared,
                        typename First::sample x[ORDER_LEAF])
{
#pragma unroll 1
    for (int pass = 0;; pass++) {
        if (std::is_same<First, Later>::value || pass == 0 || plan.intermediate_f32)
            scan_pass<First, Kind>(plan, item, pass, warp, shared, x);
        else
            scan_pass<Later, Kind>(plan, item, pass, warp, (tile_sums<Later> *)shared, x);
        if (pass + 1 == plan.pass_count || pass == plan.totals_pass)
            return;
        leaf_between_passes<First>(x, plan.intermediate_f32);
    }
}

template <class First, class Later, class Out, int Kind, bool Aligned>
__global__ void REGISTERS((scan_registers<First, Out, Aligned>))
    block_per_row_kernel(const __grid_constant__ struct scan_plan plan)
{
    extern __shared__ uint4 tiles[];
    __shared__ struct scan_item items[ITEMS];
    __shared__ tile_sums<First> shared;
    if (threadIdx.x < ITEMS_AHEAD)
        items[threadIdx.x] = scan_item_at(plan, blockIdx.x + (uint64_t)threadIdx.x * gridDim.x);
    __syncthreads();
    const bool lines = !Aligned && First::has_identity; /* f2 has no instructions to spare, aligned rows need it less */
    const int warp = warp_index();
    uint4 *tile = tiles + warp * plan.smem;
    scan_fetch<Aligned, lines>(plan, &items[0], warp, tile);

    for (unsigned iteration = 0; items[iteration % ITEMS].length > 0; iteration++) {
        const struct scan_item *item = &items[iteration % ITEMS], *next = &items[(iteration + 1) % ITEMS];
        float samples[ORDER_LEAF];
        typename First::sample x[ORDER_LEAF];
        scan_read<Aligned, lines>(plan, item, tile, samples);
        if (plan.ahead)
            scan_fetch<Aligned, lines>(plan, next, warp, tile);
        leaf_pin(samples); /* else sums are spilled */
        if constexpr (scan_registers<First, Out, Aligned> == 32)
            leaf_convert_apart<false>(plan.input_form, samples);
        else
            leaf_decode(plan.input_form, samples);
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = First::from_f32(samples[i]);

        scan_passes<First, Later, Kind>(plan, item, warp, &shared, x);
        bool first_thread = warp == 0 && lane_index() == 0;
        unsigned taken = first_thread ? scan_take_number(plan) : 0; /* in one register, until it is known */
        if (plan.totals_pass < 0)
            scan_write<First, Out, Aligned>(plan, item, warp, tile + (plan.ahead ? TILE_SMEM : 0), x);
        if (!plan.ahead)
            scan_fetch<Aligned, lines>(plan, next, warp, tile);
        if (first_thread)
            items[(iteration + ITEMS_AHEAD) % ITEMS] = scan_item_at(plan, scan_taken(plan, taken, iteration));
    }
    if (scan_has_bulk<First, Out, Aligned>)
        bulk_await<true>();
    if (plan.progress && threadIdx.x == 0)
        scan_finish(plan.progress);
}

#endif

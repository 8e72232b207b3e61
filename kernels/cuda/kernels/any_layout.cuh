/*
 * The any_layout kernel: every operator, dtype and kind, at any stride and alignment, by the same order (block.cuh) as
 * the kernel for sums of f32 samples (block_per_row.cuh) and, where rows are contiguous, in the same manner.
 */
#ifndef KERNELS_CUDA_KERNELS_ANY_LAYOUT_CUH
#define KERNELS_CUDA_KERNELS_ANY_LAYOUT_CUH

#include "kernels/cuda/exchange/any_items.cuh"
#include "kernels/cuda/exchange/batch.cuh"
#include "kernels/cuda/exchange/work_queue.cuh"

template <class Sum>
DEVICE void any_pass(const struct any_plan &plan, const struct scan_item *item, int pass, int warp,
                     tile_sums<Sum> *shared, typename Sum::sample x[ORDER_LEAF])
{
    any_outside<Sum> outside = {plan, item, pass};
    if (plan.scan.backward[pass])
        block_pass<Sum, true, KIND_ANY>(x, item->length, warp, shared, outside);
    else
        block_pass<Sum, false, KIND_ANY>(x, item->length, warp, shared, outside);
}

/* Narrow and Wide: what passes over f32 and over f64 samples keep, of one size. Returns whether there are results: no
 * total was wanted. */
template <class Narrow, class Wide>
DEVICE bool any_passes(const struct any_plan &plan, const struct scan_item *item, int warp, tile_sums<Narrow> *shared,
                       typename Narrow::sample x[ORDER_LEAF])
{
#pragma unroll 1
    for (int pass = 0;; pass++) {
        if (std::is_same<Narrow, Wide>::value || !plan.wide[pass])
            any_pass<Narrow>(plan, item, pass, warp, shared, x);
        else
            any_pass<Wide>(plan, item, pass, warp, (tile_sums<Wide> *)shared, x);
        if (pass == plan.scan.totals_pass)
            return false;
        if (pass + 1 == plan.scan.pass_count)
            return true;
        leaf_between_passes<Narrow>(x, !plan.wide[pass + 1], any_is_bounded<Narrow>(plan));
    }
}

/* Takes items as block_per_row_kernel does, from one on. Shared memory: plan.scan.smem vectors for each warp. */
template <class Narrow, class Wide, bool Ahead> DEVICE void any_items(const struct any_plan &plan, uint64_t first)
{
    extern __shared__ __align__(128) uint4 any_tiles[];
    __shared__ struct scan_item items[ITEMS];
    __shared__ any_shared<Narrow> shared;
    __shared__ uint64_t taken;
    const auto item_at = [&](uint64_t index) { return Ahead ? any_item_at(plan, index) : any_item_apart(plan, index); };
    if (threadIdx.x < ITEMS_AHEAD)
        items[threadIdx.x] = item_at(first + (uint64_t)threadIdx.x * gridDim.x);
    __syncthreads();
    const int warp = warp_index();
    uint4 *tile = any_tiles + warp * plan.scan.smem;
    if (Ahead)
        any_fetch_first(plan, &items[0], warp, tile);

    for (unsigned iteration = 0; items[iteration % ITEMS].length >= 0; iteration++) {
        const int number = warp_uniform(iteration % ITEMS);
        const struct scan_item *item = &items[number], *next = &items[(number + 1) % ITEMS];
        typename Narrow::sample x[ORDER_LEAF];
        if (warp == 0 && lane_index() == 0)
            taken = scan_take(plan.scan, iteration); /* while the samples are on their way */
        any_read<Narrow, Ahead ? FETCH_AHEAD : FETCH_NOW>(plan, item, next, warp, tile, &shared, x);
        leaf_turn<Narrow>(x, plan.flip);
        if (any_passes<Narrow, Wide>(plan, item, warp, &shared.pass, x)) {
            leaf_turn<Narrow>(x, plan.flip);
            any_write<Narrow, !Ahead>(
                plan, any_tile_target<Ahead>{plan, item, warp, tile + (Ahead ? WORDS_VECTORS(plan.input_bytes) : 0)},
                x);
        }
        if (warp == 0 && lane_index() == 0)
            items[(iteration + ITEMS_AHEAD) % ITEMS] = item_at(taken);
    }
    if (plan.scan.progress && threadIdx.x == 0)
        scan_finish(plan.scan.progress);
}

template <class Narrow, class Wide>
__global__ void REGISTERS(Narrow::registers) any_layout_prefetch_kernel(const __grid_constant__ struct any_plan plan)
{
    any_items<Narrow, Wide, true>(plan, blockIdx.x);
}

template <class Narrow, class Wide>
__global__ void REGISTERS(64) any_layout_kernel(const __grid_constant__ struct batch<struct any_plan> batch)
{
    const int number = batch_job(batch);
    any_items<Narrow, Wide, false>(batch.plans[number], blockIdx.x - batch_begin(batch, number));
}

#endif

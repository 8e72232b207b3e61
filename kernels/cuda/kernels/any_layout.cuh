/*
 * The general kernel: every operator, dtype and kind, at any stride and alignment, by the same order (block.cuh) as the
 * kernel for sums of f32 samples (block_per_row.cuh) and, where rows are contiguous, in the same manner.
 */
#ifndef KERNELS_CUDA_KERNELS_ANY_LAYOUT_CUH
#define KERNELS_CUDA_KERNELS_ANY_LAYOUT_CUH

#include "kernels/cuda/exchange/batch.cuh"
#include "kernels/cuda/lane/any_accumulator.cuh"
#include "kernels/cuda/warp/any_leaf.cuh"

/* Where warps tell each other their totals; a pass and the making of a mean take turns. */
template <class Sum> union general_shared {
    tile_sums<Sum> pass;
    tile_sums<general_total<double>> mean;
};

/* What a mean has to do with other blocks: nothing. Its total is all that is wanted. */
struct general_mean_outside {
    double *total;

    __device__ __forceinline__ bool total_wanted() const
    {
        return true;
    }
    __device__ __forceinline__ bool present() const
    {
        return false;
    }
    __device__ __forceinline__ double *sum() const
    {
        return total;
    }
    __device__ __forceinline__ int kind() const
    {
        return SCAND_KIND_INCLUSIVE;
    }
    __device__ __forceinline__ double zero() const
    {
        return 0;
    }
};

/* The mean of the row whose samples these are: of totals that there are, or else of all of its samples, which are those
 * of one order block then. */
template <class Sum, class T>
DEVICE double general_mean(const struct general_plan &plan, const struct scan_item *item, int warp,
                           general_shared<Sum> *shared, T x[ORDER_LEAF])
{
    __shared__ double block_total;
    const double *total = &block_total;
    if (plan.totals) {
        uint64_t row = item->sum / plan.scan.sums_per_row;
        total = &plan.totals[(row + 1) * plan.scan.sums_per_row - 1];
    } else {
        struct general_mean_outside outside = {&block_total};
        block_pass<general_total<T>, false, SCAND_KIND_INCLUSIVE>(
            x, item->length, warp, (tile_sums<general_total<T>> *)&shared->mean, outside);
    }
    return *total / (double)(plan.totals ? plan.scan.length : (uint64_t)item->length);
}

/* Takes the mean of the row from f32 or f64 samples, if that is wanted. */
template <class Sum, class T>
DEVICE void general_demean(const struct general_plan &plan, const struct scan_item *item, int warp,
                           general_shared<Sum> *shared, T x[ORDER_LEAF])
{
    if (!plan.demean)
        return;
    const double mean = general_mean<Sum>(plan, item, warp, shared, x);
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        x[i] = (T)((double)x[i] - mean);
}

/* The samples of this lane's leaf. Its tile is free then, and the next one is on its way. */
template <class Sum, enum general_fetching Fetching, bool Tight = false>
DEVICE void general_read(const struct general_plan &plan, const struct scan_item *item, const struct scan_item *next,
                         int warp, uint4 *tile, general_shared<Sum> *shared, typename Sum::sample x[ORDER_LEAF])
{
    if constexpr (!Sum::is_real) {
        general_samples<Fetching, Tight>(plan, item, next, warp, tile, x);
    } else if (sizeof(typename Sum::sample) == 8 && plan.wide[0]) {
        double reals[ORDER_LEAF];
        general_samples<Fetching, Tight>(plan, item, next, warp, tile, reals);
        general_demean<Sum>(plan, item, warp, shared, reals);
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = Sum::from_f64(reals[i]);
    } else {
        float reals[ORDER_LEAF];
        general_samples<Fetching, Tight>(plan, item, next, warp, tile, reals);
        if (Tight && Fetching == FETCH_AHEAD && std::is_same<typename Sum::sample, double>::value)
            leaf_pin(reals); /* else the forms of samples are told apart where they are doubles, and spilled */
        general_demean<Sum>(plan, item, warp, shared, reals);
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = Sum::from_f32(reals[i]);
    }
}

/* What scan_outside knows, and the kind. The index of the pass is made a new one for each use, so that addresses are
 * computed anew: kept for the next use, they would be spilled. */
template <class Sum> struct general_outside {
    const struct general_plan &plan;
    const struct scan_item *item;
    int pass;

    __device__ __forceinline__ scan_outside<Sum> outside() const
    {
        int again = pass;
        pin(again);
        return {plan.scan, item, again};
    }
    __device__ __forceinline__ bool total_wanted() const
    {
        return outside().total_wanted();
    }
    __device__ __forceinline__ bool present() const
    {
        return outside().present();
    }
    __device__ __forceinline__ typename Sum::sum *sum() const
    {
        return outside().sum();
    }
    __device__ __forceinline__ int kind() const
    {
        return plan.kind;
    }
    __device__ __forceinline__ typename Sum::sample zero() const
    {
        if constexpr (Sum::is_real)
            return Sum::value(Sum::zero());
        else
            return plan.zero;
    }
};

template <class Sum>
DEVICE void general_pass(const struct general_plan &plan, const struct scan_item *item, int pass, int warp,
                         tile_sums<Sum> *shared, typename Sum::sample x[ORDER_LEAF])
{
    general_outside<Sum> outside = {plan, item, pass};
    if (plan.scan.backward[pass])
        block_pass<Sum, true, KIND_ANY>(x, item->length, warp, shared, outside);
    else
        block_pass<Sum, false, KIND_ANY>(x, item->length, warp, shared, outside);
}

/* Narrow and Wide: what passes over f32 and over f64 samples keep, of one size. Returns whether there are results: no
 * total was wanted. */
template <class Narrow, class Wide>
DEVICE bool general_passes(const struct general_plan &plan, const struct scan_item *item, int warp,
                           tile_sums<Narrow> *shared, typename Narrow::sample x[ORDER_LEAF])
{
#pragma unroll 1
    for (int pass = 0;; pass++) {
        if (std::is_same<Narrow, Wide>::value || !plan.wide[pass])
            general_pass<Narrow>(plan, item, pass, warp, shared, x);
        else
            general_pass<Wide>(plan, item, pass, warp, (tile_sums<Wide> *)shared, x);
        if (pass == plan.scan.totals_pass)
            return false;
        if (pass + 1 == plan.scan.pass_count)
            return true;
        leaf_between_passes<Narrow>(x, !plan.wide[pass + 1]);
    }
}

/* As scan_item_at, but where there is no more work, the length is -1: ragged rows may be empty. Those of more than an
 * order block are not for this kernel: they are left out, as empty ones are. */
DEVICE struct scan_item general_item_at(const struct general_plan &plan, uint64_t index)
{
    struct scan_item item = {};
    if (index >= plan.scan.items) {
        item.length = -1;
        return item;
    }
    if (!plan.offsets)
        return scan_item_at(plan.scan, index);
    const uint64_t first = plan.offsets[index], length = plan.offsets[index + 1] - first;
    item.input = plan.scan.input.base + (int64_t)first * plan.scan.input.stride;
    item.output = plan.scan.output.base + (int64_t)first * plan.scan.output.stride;
    item.sum = index;
    item.length = length <= ORDER_BLOCK ? (int)length : 0;
    return item;
}

/* Takes items as scan_kernel does, from one on. Shared memory: plan.scan.room slots for each warp. */
template <class Narrow, class Wide, bool Ahead>
DEVICE void general_items(const struct general_plan &plan, uint64_t first)
{
    extern __shared__ __align__(128) uint4 general_tiles[];
    __shared__ struct scan_item items[ITEMS];
    __shared__ general_shared<Narrow> shared;
    __shared__ uint64_t taken;
    if (threadIdx.x < ITEMS_AHEAD)
        items[threadIdx.x] = general_item_at(plan, first + (uint64_t)threadIdx.x * gridDim.x);
    __syncthreads();
    const int warp = warp_index();
    uint4 *tile = general_tiles + warp * plan.scan.room;
    if (Ahead)
        general_fetch_first(plan, &items[0], warp, tile);

    for (unsigned turn = 0; items[turn % ITEMS].length >= 0; turn++) {
        const int number = warp_uniform(turn % ITEMS);
        const struct scan_item *item = &items[number], *next = &items[(number + 1) % ITEMS];
        typename Narrow::sample x[ORDER_LEAF];
        if (warp == 0 && lane_index() == 0)
            taken = scan_take(plan.scan, turn); /* while the samples are on their way */
        general_read<Narrow, Ahead ? FETCH_AHEAD : FETCH_NOW>(plan, item, next, warp, tile, &shared, x);
        if (general_passes<Narrow, Wide>(plan, item, warp, &shared.pass, x))
            general_write<Narrow, Ahead>(plan, item, warp, tile + (Ahead ? WORDS_SLOTS(plan.input_bytes) : 0), x);
        if (warp == 0 && lane_index() == 0)
            items[(turn + ITEMS_AHEAD) % ITEMS] = general_item_at(plan, taken);
    }
    if (plan.scan.progress && threadIdx.x == 0)
        scan_finish(plan.scan.progress);
}

template <class Narrow, class Wide>
__global__ void REGISTERS(Narrow::registers) general_ahead_kernel(const __grid_constant__ struct general_plan plan)
{
    general_items<Narrow, Wide, true>(plan, blockIdx.x);
}

template <class Narrow, class Wide>
__global__ void REGISTERS(64) general_kernel(const __grid_constant__ struct part_list<struct general_plan> parts)
{
    const int number = part_number(parts);
    general_items<Narrow, Wide, false>(parts.plans[number], blockIdx.x - part_begin(parts, number));
}

#endif

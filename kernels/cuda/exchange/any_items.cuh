/*
 * The common parts of kernels for any operator, dtype and layout: items, their samples, means, and a pass's exchange
 * with a row's other blocks.
 */
#ifndef KERNELS_CUDA_EXCHANGE_ANY_ITEMS_CUH
#define KERNELS_CUDA_EXCHANGE_ANY_ITEMS_CUH

#include "kernels/cuda/exchange/block.cuh"
#include "kernels/cuda/lane/accumulator.cuh"
#include "kernels/cuda/warp/any_leaf.cuh"

/* Shared memory in which warps exchange totals; a pass and the making of a mean take turns. */
template <class Sum> union any_shared {
    tile_sums<Sum> pass;
    tile_sums<sum_f64> mean;
};

/* The exchange of a mean with other blocks: none. Only its total is wanted. */
struct any_mean_outside {
    double *total;

    __device__ __forceinline__ bool total_wanted() const { return true; }
    __device__ __forceinline__ bool present() const { return false; }
    __device__ __forceinline__ double *sum() const { return total; }
    __device__ __forceinline__ int kind() const { return SCAND_KIND_INCLUSIVE; }
    __device__ __forceinline__ double zero() const { return 0; }
};

/* The mean of the row whose samples these are: of totals that there are, or else of all of its samples, which are those
 * of one order block then. */
template <class Sum, class T>
DEVICE double any_mean(const struct any_plan &plan, const struct scan_item *item, int warp, any_shared<Sum> *shared,
                       T x[ORDER_LEAF])
{
    __shared__ double block_total;
    const double *total = &block_total;
    if (plan.totals) {
        uint64_t row = item->sum / plan.scan.sums_per_row;
        total = &plan.totals[(row + 1) * plan.scan.sums_per_row - 1];
    } else {
        struct any_mean_outside outside = {&block_total};
        block_pass<sum_f64_of<T>, false, SCAND_KIND_INCLUSIVE>(x, item->length, warp,
                                                               (tile_sums<sum_f64_of<T>> *)&shared->mean, outside);
    }
    return *total / (double)(plan.totals ? plan.scan.length : (uint64_t)item->length);
}

/* Takes the mean of the row from f32 or f64 samples, if that is wanted. */
template <class Sum, class T>
DEVICE void any_demean(const struct any_plan &plan, const struct scan_item *item, int warp, any_shared<Sum> *shared,
                       T *x)
{
    if (!plan.demean)
        return;
    const double mean = any_mean<Sum>(plan, item, warp, shared, x);
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        x[i] = (T)((double)x[i] - mean);
}

/* True for sums that leaf_round may take for bounded: f16 is a multiple of 2^-24 and at most 65,504, and what a mean
 * leaves of it a multiple of 2^-110. */
template <class Sum> DEVICE bool any_is_bounded(const struct any_plan &plan)
{
    return std::is_same<Sum, sum_f64>::value && plan.input == SCAND_DTYPE_F16;
}

/* The samples of this lane's leaf. demean(x) takes the mean from f32 or f64 samples, if that is wanted. */
template <class Sum, bool Tight, bool Apart = true, class Source, class Demean>
DEVICE void any_read_from(const struct any_plan &plan, const Source &source, Demean demean,
                          typename Sum::sample x[ORDER_LEAF])
{
    if constexpr (!Sum::is_real) {
        any_samples<Apart>(plan, source, x);
    } else if (sizeof(typename Sum::sample) == 8 && plan.wide[0]) {
        double reals[ORDER_LEAF];
        any_samples<Apart>(plan, source, reals);
        demean(reals);
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = Sum::from_f64(reals[i]);
    } else {
        /* One conversion takes f16 to f64, instead of two by way of f32. */
        const bool packed =
            !Tight && std::is_same<Sum, sum_f64>::value && plan.input == SCAND_DTYPE_F16 && !plan.demean;
        float reals[ORDER_LEAF];
        any_samples<Apart>(plan, source, reals, packed);
        if (Tight && std::is_same<typename Sum::sample, double>::value)
            leaf_pin(reals); /* else the forms of samples are told apart where they are doubles, and spilled */
        if constexpr (!Tight && std::is_same<Sum, sum_f64>::value)
            if (packed) {
#pragma unroll
                for (int i = 0; i < WORDS16; i++)
                    f64x2_of_f16x2(__float_as_uint(reals[i]), &x[2 * i]);
                return;
            }
        demean(reals);
        leaf_from_f32<Sum>(reals, x);
    }
}

/* Reads the samples of an item from a warp's tile, which is free then, while the next item is on its way. */
template <class Sum, enum any_fetching Fetching, bool Tight = false>
DEVICE void any_read(const struct any_plan &plan, const struct scan_item *item, const struct scan_item *next, int warp,
                     uint4 *tile, any_shared<Sum> *shared, typename Sum::sample x[ORDER_LEAF])
{
    const any_tile_source<Fetching> source = {plan, item, next, warp, tile};
    any_read_from<Sum, Tight, Tight || Fetching == FETCH_NOW>(
        plan, source, [&](auto *reals) { any_demean<Sum>(plan, item, warp, shared, reals); }, x);
}

/* The exchange of a pass as in scan_outside, and the kind. The index of the pass is made a new one for each use, so
 * that addresses are computed anew: kept for the next use, they would be spilled. */
template <class Sum> struct any_outside {
    const struct any_plan &plan;
    const struct scan_item *item;
    int pass;

    __device__ __forceinline__ scan_outside<Sum> outside() const
    {
        int again = pass;
        pin(again);
        return {plan.scan, item, again};
    }
    __device__ __forceinline__ bool total_wanted() const { return outside().total_wanted(); }
    __device__ __forceinline__ bool present() const { return outside().present(); }
    __device__ __forceinline__ typename Sum::sum *sum() const { return outside().sum(); }
    __device__ __forceinline__ int kind() const { return plan.kind; }
    /* Not by the carry, which a launch for totals has none of. */
    __device__ __forceinline__ bool halves() const
    {
        if (!Sum::has_half || plan.kind != SCAND_KIND_TRAPEZOID)
            return false;
        int again = pass;
        pin(again);
        return plan.offsets || plan.scan.blocks <= 1 ||
               item->sum % plan.scan.sums_per_row == (plan.scan.backward[again] ? plan.scan.blocks - 1 : 0);
    }
    __device__ __forceinline__ typename Sum::sample zero() const
    {
        if constexpr (Sum::is_real)
            return Sum::value(Sum::zero());
        else if constexpr (sizeof(typename Sum::sample) == 4)
            return (uint32_t)plan.zero ^ any_flip32(plan);
        else
            return plan.zero ^ plan.flip;
    }
};

/* Returns the item of an index, as scan_item_at does, but with length -1 where there is no more work, since ragged rows
 * may be empty. Where each ragged row is an item, those of more than an order block are left out, as empty ones are.
 * What is done for ragged rows makes kernels spill easily, also those that have none. */
DEVICE struct scan_item any_item_at(const struct any_plan &plan, uint64_t index)
{
    struct scan_item item = {};
    if (index >= plan.scan.items) {
        item.length = -1;
        return item;
    }
    if (!plan.offsets)
        return scan_item_at(plan.scan, index);
    uint32_t sum = 0;
    if (plan.items) {
        const struct scan_ragged_item listed = plan.items[index];
        index = listed.row;
        sum = listed.sum;
        if (listed.row == SCAN_RAGGED_END) {
            item.length = -1;
            return item;
        }
    }
    const uint64_t block = sum % SCAN_RAGGED_SUMS, begin = plan.offsets[index] + block * ORDER_BLOCK;
    const uint64_t left = plan.offsets[index + 1] - begin;
    if (!plan.items && left > ORDER_BLOCK)
        return item;
    item.input = plan.scan.input.base + (int64_t)begin * plan.scan.input.stride;
    item.output = plan.scan.output.base + (int64_t)begin * plan.scan.output.stride;
    item.sum = sum;
    item.length = (int)min(left, (uint64_t)ORDER_BLOCK);
    static_assert(SCAND_PASSES_MAX == 2, "passes are named one by one");
    item.outer[0] = plan.scan.totals_pass != 0 && (plan.scan.backward[0] ? left > ORDER_BLOCK : block > 0);
    item.outer[1] = plan.scan.totals_pass != 1 && (plan.scan.backward[1] ? left > ORDER_BLOCK : block > 0);
    return item;
}

/* The same by a call, for kernels whose samples are slow anyway. */
static __device__ __noinline__ struct scan_item any_item_apart(const struct any_plan &plan, uint64_t index)
{
    return any_item_at(plan, index);
}

#endif

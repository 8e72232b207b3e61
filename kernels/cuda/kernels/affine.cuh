/*
 * The affine recurrence over rows of any dtype and layout, in the manner of the any_layout kernel and by the same order
 * (block.cuh). Coefficients, where each sample has its own, are a second stream of samples, which travels like the
 * first one and lies in registers as long.
 */
#ifndef KERNELS_CUDA_KERNELS_AFFINE_CUH
#define KERNELS_CUDA_KERNELS_AFFINE_CUH

#include <type_traits>

#include "kernels/cuda/exchange/any_items.cuh"
#include "kernels/cuda/exchange/batch.cuh"
#include "kernels/cuda/exchange/lookback.cuh"
#include "kernels/cuda/exchange/work_queue.cuh"
#include "kernels/cuda/lane/affine_leaf.cuh"

/* Kernels are by accumulator, f32, f64, f2, exact, and f2 of f32 samples of which every pass leaves f32, and by how
 * coefficients are held: one for all samples; narrow; wide. An accumulator's are never narrow, or never wide, where
 * there is none. Those for contiguous rows are in files of their own (affine_uniform.cu, affine_varying.cu); the latter
 * with the vectors of shared memory that a warp's coefficients take when they have been read. So are those for rows of
 * several order blocks in one launch (affine_grid.cu). */
#define AFFINE_ACCUMULATORS 5
#define AFFINE_FACTORS      3
struct affine_varying {
    const void *kernel;
    int vectors;
};
extern const void *const affine_ones[AFFINE_ACCUMULATORS];
extern const struct affine_varying affine_eaches[AFFINE_ACCUMULATORS][AFFINE_FACTORS - 1];
extern const void *const affine_longs[AFFINE_ACCUMULATORS][AFFINE_FACTORS];

/* Tile states for rows of several order blocks in a single launch: per pass a tree of them for each row
 * (tile_state.cuh), all zero before. All thread blocks are resident then, and take items in turns. */
struct affine_states {
    tile_state *passes[SCAND_PASSES_MAX];
};

/* One coefficient for all samples. */
struct affine_one_plan {
    struct any_plan samples;
    struct affine_states states;
    double coefficient;
    uint64_t whole; /* with integers this */
};

/* One for each sample, in a tensor that has the place of an input. */
struct affine_each_plan {
    struct any_plan samples;
    struct affine_states states;
    struct any_plan coefficients;
};

template <class T> DEVICE T affine_factor(const struct affine_one_plan &plan)
{
    if constexpr (std::is_same<T, uint64_t>::value)
        return plan.whole;
    else
        return number_of<T>(plan.coefficient);
}

/* An order block's samples, and where its coefficients lie. */
struct affine_item {
    struct scan_item samples, coefficients;
};

/*
 * Factors: the coefficients of this lane's leaf; leaf() has them as at(i), to be asked for in the order of a pass.
 */

/* One for all samples, of which nothing is read. */
template <class T> struct affine_one : affine_same<T> {
    using plan = struct affine_one_plan;

    DEVICE struct affine_item item_at(const plan &plan, uint64_t index)
    {
        return {any_item_at(plan.samples, index), {}};
    }
    __device__ __forceinline__ void read(const plan &plan, const struct affine_item *, int, uint4 *)
    {
        this->factor = affine_factor<T>(plan);
    }
    template <bool Backward> __device__ __forceinline__ const affine_one &leaf() const
    {
        return *this;
    }
};

/* One for each sample, as they were read. */
template <class T, class Read> struct affine_each {
    using plan = struct affine_each_plan;
    Read numbers[ORDER_LEAF];

    DEVICE struct affine_item item_at(const plan &plan, uint64_t index)
    {
        return {any_item_at(plan.samples, index), any_item_at(plan.coefficients, index)};
    }
    __device__ __forceinline__ void read(const plan &plan, const struct affine_item *item, int warp, uint4 *stage)
    {
        any_samples<true>(plan.coefficients,
                          any_tile_source<FETCH_NOW>{plan.coefficients, &item->coefficients, NULL, warp, stage},
                          numbers);
    }
    template <bool Backward> __device__ __forceinline__ const affine_each &leaf() const
    {
        return *this;
    }
    __device__ __forceinline__ T at(int i) const
    {
        return number_of<T>(numbers[i]);
    }
};

/* The carry into an order block, of which nothing is before the first. Apart, as it has no registers in the middle of a
 * kernel. */
template <class T, bool Backward>
static __device__ __noinline__ affine_map<T> affine_lookback(tile_state *states, unsigned blocks, unsigned block,
                                                             affine_map<T> total)
{
    return lookback_carry<affine_sum<T>, Backward>(states, blocks, block, total).sum;
}

/* The map of all that a pass meets before an order block, whose own is `total` in lane `from`; by a warp. */
template <class T, bool Backward>
DEVICE affine_map<T> affine_await(const struct scan_plan &plan, const struct scan_item *item, tile_state *states,
                                  affine_map<T> total, int from)
{
    const uint64_t row = item->sum / plan.sums_per_row, first = row * plan.sums_per_row;
    return affine_lookback<T, Backward>(states + first * tile_state_words<affine_sum<T>>(), (unsigned)plan.blocks,
                                        (unsigned)(item->sum - first), lane_get(total, from));
}

/* Scans the tiles' totals by the first warp, as tiles_scan, for rows whose other blocks are under way as well. */
template <class T, bool Backward>
DEVICE void affine_tiles_scan(tile_sums<affine_sum<T>> *shared, int tiles, const any_outside<affine_sum<T>> &outside,
                              tile_state *states)
{
    using Sum = affine_sum<T>;
    if (!states) {
        tiles_scan<Sum, Backward, true>(shared, tiles, outside);
        return;
    }
    const int tile = lane_index(), last = tiles - 1;
    const affine_map<T> sum = group_scan<Sum, Backward>(shared->totals[tile], last);
    const affine_map<T> outer =
        affine_await<T, Backward>(outside.plan.scan, outside.item, states, sum, Backward ? 0 : last);
    carry<Sum> before = group_before<Sum, Backward>(sum, last);
    if (outside.present())
        before = carry_join<Sum>({outer, true}, before);
    shared->carries[tile] = before.sum;
}

/* A pass over an order block, as block_pass. */
template <class T, bool Backward, class Sample, class Factors>
DEVICE void affine_pass(Sample x[ORDER_LEAF], const Factors &factors, int length, int warp, bool exclusive,
                        tile_sums<affine_sum<T>> *shared, const any_outside<affine_sum<T>> &outside, tile_state *states)
{
    using Sum = affine_sum<T>;
    const int samples = tile_samples(length, warp), leaves = (samples + ORDER_LEAF - 1u) / ORDER_LEAF;
    const int tiles = (length + ORDER_TILE - 1u) / ORDER_TILE;
    const struct leaf_end end = leaf_end_of<Sum, Backward>(samples);
    affine_map<T> sum = end.partial
                            ? affine_leaf_total<T, Backward, Backward>(x, factors.template leaf<Backward>(), end.last)
                            : affine_leaf_total<T, Backward, false>(x, factors.template leaf<Backward>(), end.last);
    sum = group_scan<Sum, Backward>(sum, leaves - 1);
    if (lane_index() == (Backward ? 0 : leaves - 1))
        shared->totals[warp] = sum;
    const carry<Sum> inner = group_before<Sum, Backward>(sum, leaves - 1);
    __syncthreads();
    if (warp == 0)
        affine_tiles_scan<T, Backward>(shared, tiles, outside, states);
    __syncthreads();
    if (outside.total_wanted())
        return;
    const bool present = outside.present() || warp != (Backward ? tiles - 1 : 0);
    const carry<Sum> both = carry_join<Sum>({shared->carries[warp], present}, inner);
    const carry<affine_term<T>> carry = {both.sum.term, both.present};
    if (end.partial)
        affine_leaf_values<T, Backward, Backward>(x, factors.template leaf<Backward>(), carry, end.last, exclusive);
    else
        affine_leaf_values<T, Backward, false>(x, factors.template leaf<Backward>(), carry, end.last, exclusive);
}

/* Returns whether there are results: no total was wanted. */
template <class Samples, bool Long, class T, class Factors>
DEVICE bool affine_passes(const struct any_plan &plan, const struct affine_states &states, const struct scan_item *item,
                          int warp, tile_sums<affine_sum<T>> *shared, typename Samples::sample x[ORDER_LEAF],
                          const Factors &factors)
{
    const bool exclusive = plan.kind == SCAND_KIND_EXCLUSIVE;
#pragma unroll 1
    for (int pass = 0;; pass++) {
        const any_outside<affine_sum<T>> outside = {plan, item, pass};
        tile_state *published = Long ? states.passes[pass] : NULL;
        if (plan.scan.backward[pass])
            affine_pass<T, true>(x, factors, item->length, warp, exclusive, shared, outside, published);
        else
            affine_pass<T, false>(x, factors, item->length, warp, exclusive, shared, outside, published);
        if (pass == plan.scan.totals_pass)
            return false;
        if (pass + 1 == plan.scan.pass_count)
            return true;
        leaf_between_passes<Samples>(x, !plan.wide[pass + 1]);
    }
}

/* Shared memory in which warps exchange totals; a pass and the making of a mean take turns. */
template <class Samples> union affine_shared {
    tile_sums<affine_sum<typename Samples::sum>> pass;
    any_shared<Samples> mean;
};

/* A thread block takes one item after another, from one on. Shared memory: scan.smem vectors for each warp. */
template <class T, class Factors>
__global__ void REGISTERS(64) affine_kernel(const __grid_constant__ struct batch<typename Factors::plan> batch)
{
    using Sum = typename affine_samples<T>::sum;
    extern __shared__ __align__(128) uint4 affine_stages[];
    __shared__ struct affine_item item;
    __shared__ affine_shared<Sum> shared;
    const int number = batch_job(batch), warp = warp_index();
    const typename Factors::plan &plan = batch.plans[number];
    const struct any_plan &samples = plan.samples;
    uint4 *stage = affine_stages + warp * samples.scan.smem;
    for (uint64_t index = blockIdx.x - batch_begin(batch, number); index < samples.scan.items; index += gridDim.x) {
        if (threadIdx.x == 0)
            item = Factors::item_at(plan, index);
        __syncthreads();
        T x[ORDER_LEAF];
        Factors factors;
        any_read<Sum, FETCH_NOW, true>(samples, &item.samples, NULL, warp, stage, &shared.mean, x);
        factors.read(plan, &item, warp, stage);
        if (affine_passes<Sum, false>(samples, {}, &item.samples, warp, &shared.pass, x, factors))
            any_write<Sum, true>(samples, any_tile_target<false>{samples, &item.samples, warp, stage}, x);
        __syncthreads();
    }
}

#endif

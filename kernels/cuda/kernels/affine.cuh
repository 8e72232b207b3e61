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
#include "kernels/cuda/exchange/work_queue.cuh"
#include "kernels/cuda/lane/affine_leaf.cuh"

/* Kernels are by accumulator, f32, f64, f2, exact, and f2 of f32 samples of which every pass leaves f32, and by how
 * coefficients are held: one for all samples; narrow; wide. An accumulator's are never narrow, or never wide, where
 * there is none. Those for contiguous rows are in files of their own (affine_uniform.cu, affine_varying.cu), with the
 * vectors of shared memory that a warp's coefficients take when they have been read. */
#define AFFINE_ACCUMULATORS 5
#define AFFINE_FACTORS      3
struct affine_ahead {
    const void *kernel;
    int vectors;
};
extern const struct affine_ahead affine_ones[AFFINE_ACCUMULATORS];
extern const struct affine_ahead affine_eaches[AFFINE_ACCUMULATORS][AFFINE_FACTORS - 1];

/* One coefficient for all samples. */
struct affine_one_plan {
    struct any_plan samples;
    double coefficient;
    uint64_t whole; /* with integers this */
};

/* One for each sample, in a tensor that has the place of an input. */
struct affine_each_plan : affine_one_plan {
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

DEVICE struct affine_item affine_item_at(const struct affine_one_plan &plan, uint64_t index)
{
    return {any_item_at(plan.samples, index), {}};
}

DEVICE struct affine_item affine_item_at(const struct affine_each_plan &plan, uint64_t index)
{
    return {any_item_at(plan.samples, index), any_item_at(plan.coefficients, index)};
}

/*
 * Factors: the coefficients of this lane's leaf, by way of a warp's part of shared memory; leaf() has them as at(i), to
 * be asked for in the order of a pass. A thread block begins with begin().
 */

/* True where maps travel without what they multiply by: with one coefficient that depends only on how many leaves a map
 * stands for. f2 has too many steps; f32 and f64 wait for memory. */
template <class T> constexpr bool affine_by_terms = std::is_same<T, struct f2>::value;

/* What 1 to 32 full leaves multiply by, as the network makes it; in shared memory. */
template <class T> DEVICE T *affine_leaf_powers()
{
    __shared__ T powers[WARP];
    return powers;
}

/* One for all samples, of which nothing is read. */
template <class T> struct affine_one : affine_powered<T> {
    using plan = struct affine_one_plan;
    static const int vectors = 0;
    static const bool by_terms = affine_by_terms<T>;

    DEVICE void begin(const plan &plan)
    {
        if constexpr (!by_terms) {
            affine_begin(affine_factor<T>(plan));
        } else if (threadIdx.x < WARP) {
            const affine_map<T> leaf = {T{}, affine_power(affine_factor<T>(plan), ORDER_LEAF)};
            affine_leaf_powers<T>()[threadIdx.x] = group_scan<affine_sum<T>, false>(leaf, WARP - 1).factor;
        }
    }
    __device__ __forceinline__ affine_one(const plan &plan, const struct affine_item *, int, uint4 *)
        : affine_powered<T>{affine_factor<T>(plan)}
    {
    }
    template <bool Backward> __device__ __forceinline__ const affine_powered<T> &leaf() const
    {
        return *this;
    }
};

/* What factors of each sample have in common. */
struct affine_varying {
    using plan = struct affine_each_plan;
    static const int vectors = 0;
    static const bool by_terms = false;

    DEVICE void begin(const plan &)
    {
    }
};

/* One for each sample, as they were read. */
template <class T, class Read> struct affine_numbers : affine_varying {
    Read numbers[ORDER_LEAF];

    template <bool Backward> __device__ __forceinline__ const affine_numbers &leaf() const
    {
        return *this;
    }
    __device__ __forceinline__ T at(int i) const
    {
        return number_of<T>(numbers[i]);
    }
};

template <class T, class Read> struct affine_each : affine_numbers<T, Read> {
    __device__ __forceinline__ affine_each(const struct affine_each_plan &plan, const struct affine_item *item,
                                           int warp, uint4 *stage)
    {
        any_samples<true>(plan.coefficients,
                          any_tile_source<FETCH_NOW>{plan.coefficients, &item->coefficients, NULL, warp, stage},
                          this->numbers);
    }
};

/* The network over the leaves of a tile, of terms. What joins those before it stands for full leaves. A map that begins
 * with another leaf is the first that a pass meets, so that nobody asks what it multiplies by. */
template <class T, bool Backward> DEVICE affine_map<T> affine_scan_terms(T term, int last)
{
    const T *powers = affine_leaf_powers<T>();
#pragma unroll
    for (int distance = 1; distance < ORDER_FAN; distance *= 2) {
        T before;
        const bool there = lane_before<Backward>(term, &before, distance, last);
        int full = distance - 1;
        pin(full); /* all five would not fit the registers */
        term = sum_choose<affine_term<T>>(there, affine_apply(powers[full], before, term), term);
    }
    return {term, powers[Backward ? (last - lane_index()) & (WARP - 1) : lane_index()]};
}

/* A pass over an order block, as block_pass. */
template <class T, bool Backward, class Sample, class Factors>
DEVICE void affine_pass(Sample x[ORDER_LEAF], const Factors &factors, int length, int warp, bool exclusive,
                        tile_sums<affine_sum<T>> *shared, const any_outside<affine_sum<T>> &outside)
{
    using Sum = affine_sum<T>;
    const int samples = tile_samples(length, warp), leaves = (samples + ORDER_LEAF - 1u) / ORDER_LEAF;
    const int tiles = (length + ORDER_TILE - 1u) / ORDER_TILE;
    const struct leaf_end end = leaf_end_of<Sum, Backward>(samples);
    affine_map<T> sum = affine_leaf_total<T, Backward>(x, factors.template leaf<Backward>(), end);
    if constexpr (Factors::by_terms)
        sum = affine_scan_terms<T, Backward>(sum.term, leaves - 1);
    else
        sum = group_scan<Sum, Backward>(sum, leaves - 1);
    if (lane_index() == (Backward ? 0 : leaves - 1))
        shared->totals[warp] = sum;
    const carry<Sum> inner = group_before<Sum, Backward>(sum, leaves - 1);
    __syncthreads();
    if (warp == 0)
        tiles_scan<Sum, Backward, true>(shared, tiles, outside);
    __syncthreads();
    if (outside.total_wanted())
        return;
    const bool present = outside.present() || warp != (Backward ? tiles - 1 : 0);
    const carry<Sum> both = carry_join<Sum>({shared->carries[warp], present}, inner);
    affine_leaf_values<T, Backward>(x, factors.template leaf<Backward>(), both, end, exclusive);
}

/* Returns whether there are results: no total was wanted. */
template <class Samples, class T, class Factors>
DEVICE bool affine_passes(const struct any_plan &plan, const struct scan_item *item, int warp,
                          tile_sums<affine_sum<T>> *shared, typename Samples::sample x[ORDER_LEAF],
                          const Factors &factors)
{
    const bool exclusive = plan.kind == SCAND_KIND_EXCLUSIVE;
#pragma unroll 1
    for (int pass = 0;; pass++) {
        const any_outside<affine_sum<T>> outside = {plan, item, pass};
        if (plan.scan.backward[pass])
            affine_pass<T, true>(x, factors, item->length, warp, exclusive, shared, outside);
        else
            affine_pass<T, false>(x, factors, item->length, warp, exclusive, shared, outside);
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
            item = affine_item_at(plan, index);
        Factors::begin(plan);
        __syncthreads();
        T x[ORDER_LEAF];
        any_read<Sum, FETCH_NOW, true>(samples, &item.samples, NULL, warp, stage, &shared.mean, x);
        const Factors factors(plan, &item, warp, stage);
        if (affine_passes<Sum>(samples, &item.samples, warp, &shared.pass, x, factors))
            any_write<Sum, true>(samples, any_tile_target<false>{samples, &item.samples, warp, stage}, x);
        __syncthreads();
    }
}

#endif

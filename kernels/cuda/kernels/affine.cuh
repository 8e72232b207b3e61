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
#include "kernels/cuda/warp/affine_level.cuh"

/* Kernels are by accumulator: f32, f64, f2, exact, and f2 of f32 samples of which every pass leaves f32. Those for
 * contiguous rows are in files of their own, for one coefficient (affine_uniform.cu) and for narrow and wide ones of
 * each sample (affine_varying.cu; an accumulator's are never narrow, or never wide, where there is none), with the
 * vectors of shared memory that a warp's coefficients take when they have been read. */
#define AFFINE_ACCUMULATORS 5
struct affine_ahead {
    const void *kernel;
    int vectors;
};
extern const struct affine_ahead affine_ones[AFFINE_ACCUMULATORS];
extern const struct affine_ahead affine_eaches[AFFINE_ACCUMULATORS][2];

/* One coefficient for all samples. */
struct affine_one_plan {
    struct any_plan samples;
    struct affine_powers powers;
};

/* One for each sample, in a tensor that has the place of an input; or, for rows of any layout, one for all. */
struct affine_each_plan {
    struct any_plan samples, coefficients;
    bool same;
    double coefficient;
};

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

/* The exchange of a pass with the row's other order blocks, and its kind, looked up before the barriers: else all would
 * wait for the warp that looks. */
template <class T> struct affine_outside : any_outside<affine_sum<T>> {
    enum { WANTED = 1, PRESENT = 2, EXCLUSIVE = 4 };
    int known;

    __device__ __forceinline__ affine_outside(const any_outside<affine_sum<T>> &outside)
        : any_outside<affine_sum<T>>(outside)
    {
        known = (outside.total_wanted() ? WANTED : 0) | (outside.present() ? PRESENT : 0) |
                (outside.kind() == SCAND_KIND_EXCLUSIVE ? EXCLUSIVE : 0);
        pin(known);
    }
    __device__ __forceinline__ bool total_wanted() const { return known & WANTED; }
    __device__ __forceinline__ bool present() const { return known & PRESENT; }
    __device__ __forceinline__ int kind() const
    {
        return known & EXCLUSIVE ? SCAND_KIND_EXCLUSIVE : SCAND_KIND_INCLUSIVE;
    }
};

/* One for all samples, of which nothing is read, and terms alone travel. */
template <class T> struct affine_one : affine_same<T> {
    using plan = struct affine_one_plan;
    using sum = affine_term<T>;
    using outside = affine_outside<T>;
    static const int vectors = 0;

    DEVICE void begin(const plan &plan) { affine_begin<T>(plan.powers); }
    __device__ __forceinline__ affine_one(const plan &plan, const struct affine_item *, int, uint4 *)
        : affine_same<T>(affine_coefficient<T>(plan.powers))
    {
    }
    template <bool Backward> __device__ __forceinline__ const affine_one &leaf() const { return *this; }
    DEVICE T part(affine_map<T> map) { return map.term; }
    DEVICE T term(T sum) { return sum; }
    template <bool Early> DEVICE affine_level<sum, Early> leaves(const plan &plan)
    {
        return affine_leaves<sum, Early>(plan.powers);
    }
};

/* What factors of each sample have in common: maps travel. */
template <class T> struct affine_varying {
    using plan = struct affine_each_plan;
    using sum = affine_sum<T>;
    using outside = any_outside<affine_sum<T>>; /* there are no registers for another one */
    static const int vectors = 0;

    DEVICE void begin(const plan &) {}
    DEVICE affine_map<T> part(affine_map<T> map) { return map; }
    DEVICE T term(affine_map<T> sum) { return sum.term; }
    template <bool Early> DEVICE sum_level<sum, Early> leaves(const plan &) { return {}; }
};

/* One for each sample, as they were read. */
template <class T, class Read> struct affine_numbers : affine_varying<T> {
    Read numbers[ORDER_LEAF];

    template <bool Backward> __device__ __forceinline__ const affine_numbers &leaf() const { return *this; }
    __device__ __forceinline__ T at(int i) const { return number_of<T>(numbers[i]); }
};

/* The type that holds coefficients of every dtype that they may have. */
template <class T>
using affine_widest = typename std::conditional<sizeof(T) == 8 && !std::is_same<T, uint64_t>::value, double, T>::type;

template <class T> struct affine_each : affine_numbers<T, affine_widest<T>> {
    using Read = affine_widest<T>;

    __device__ __forceinline__ affine_each(const struct affine_each_plan &plan, const struct affine_item *item,
                                           int warp, uint4 *stage)
    {
        const any_tile_source<FETCH_NOW> source = {plan.coefficients, &item->coefficients, NULL, warp, stage};
        if (plan.same)
            fill([&](int) { return plan.coefficient; });
        else if (std::is_same<Read, double>::value && !plan.coefficients.wide[0])
            read<float>(plan, source);
        else
            read<Read>(plan, source);
    }

  private:
    template <class Get> __device__ __forceinline__ void fill(Get get)
    {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            this->numbers[i] = std::is_same<Read, uint64_t>::value ? (Read)(int64_t)get(i) : (Read)get(i);
    }
    template <class Number, class Source>
    __device__ __forceinline__ void read(const struct affine_each_plan &plan, const Source &source)
    {
        Number numbers[ORDER_LEAF];
        any_samples<true>(plan.coefficients, source, numbers);
        fill([&](int i) { return numbers[i]; });
    }
};

/* A pass over an order block, as block_pass. */
template <class T, bool Backward, class Sample, class Factors>
DEVICE void affine_pass(const typename Factors::plan &plan, Sample x[ORDER_LEAF], const Factors &factors, int length,
                        int warp, tile_sums<typename Factors::sum> *shared, const typename Factors::outside &outside)
{
    using Sum = typename Factors::sum;
    const auto level = Factors::template leaves<false>(plan);
    const int samples = tile_samples(length, warp), leaves = (samples + ORDER_LEAF - 1u) / ORDER_LEAF;
    const int tiles = (length + ORDER_TILE - 1u) / ORDER_TILE;
    const struct leaf_end end = leaf_end_of<Sum, Backward>(samples);
    typename Sum::sum sum = Factors::part(affine_leaf_total<T, Backward>(x, factors.template leaf<Backward>(), end));
    sum = level.template scan<Backward>(sum, leaves - 1);
    if (lane_index() == (Backward ? 0 : leaves - 1))
        shared->totals[warp] = sum;
    const carry<Sum> inner = group_before<Sum, Backward>(sum, leaves - 1);
    __syncthreads();
    if (warp == 0)
        tiles_scan<Sum, Backward>(shared, tiles, outside, Factors::template leaves<true>(plan).above());
    const auto factor = level.template factor<Backward>();
    __syncthreads();
    if (outside.total_wanted())
        return;
    const bool present = outside.present() || warp != (Backward ? tiles - 1 : 0);
    const carry<Sum> both = level.join({shared->carries[warp], present}, inner, factor);
    affine_leaf_values<T, Backward>(x, factors.template leaf<Backward>(), {Factors::term(both.sum), both.present}, end,
                                    outside.kind() == SCAND_KIND_EXCLUSIVE);
}

/* Returns whether there are results: no total was wanted. */
template <class Samples, class T, class Factors>
DEVICE bool affine_passes(const typename Factors::plan &plan, const struct scan_item *item, int warp,
                          tile_sums<typename Factors::sum> *shared, typename Samples::sample x[ORDER_LEAF],
                          const Factors &factors)
{
    const struct any_plan &any = plan.samples;
#pragma unroll 1
    for (int pass = 0;; pass++) {
        const typename Factors::outside outside(any_outside<affine_sum<T>>{any, item, pass});
        if (any.scan.backward[pass])
            affine_pass<T, true>(plan, x, factors, item->length, warp, shared, outside);
        else
            affine_pass<T, false>(plan, x, factors, item->length, warp, shared, outside);
        if (pass == any.scan.totals_pass)
            return false;
        if (pass + 1 == any.scan.pass_count)
            return true;
        leaf_between_passes<Samples>(x, !any.wide[pass + 1]);
    }
}

/* Shared memory in which warps exchange totals; a pass and the making of a mean take turns. */
template <class Samples, class Factors> union affine_shared {
    tile_sums<typename Factors::sum> pass;
    any_shared<Samples> mean;
};

/* A thread block takes one item after another, from one on. Shared memory: scan.smem vectors for each warp. */
template <class T, class Factors>
__global__ void REGISTERS(64) affine_kernel(const __grid_constant__ struct batch<typename Factors::plan> batch)
{
    using Sum = typename affine_samples<T>::sum;
    extern __shared__ __align__(128) uint4 affine_stages[];
    __shared__ struct affine_item item;
    __shared__ affine_shared<Sum, Factors> shared;
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
        if (affine_passes<Sum, T>(plan, &item.samples, warp, &shared.pass, x, factors))
            any_write<Sum, true>(samples, any_tile_target<false>{samples, &item.samples, warp, stage}, x);
        __syncthreads();
    }
}

#endif

/*
 * The affine recurrence, of every dtype and layout, by the same order (block.cuh) as sums. Samples and coefficients are
 * read lane by lane, so that neighbouring lanes touch neighbouring addresses, decoded on the way to shared memory, and
 * held in registers from the first pass to the last.
 */
#ifndef KERNELS_CUDA_AFFINE_CUH
#define KERNELS_CUDA_AFFINE_CUH

#include <type_traits>

#include "kernels/codec.h"
#include "kernels/cuda/affine_sum.cuh"
#include "kernels/cuda/parts.cuh"
#include "kernels/cuda/samples.cuh"

/* The input, output or coefficients of all rows. */
struct affine_side {
    char *base;
    int64_t outer_strides[SCAN_OUTER_MAX];
    int64_t stride;
    enum scand_dtype dtype;
    bool aligned; /* all samples, to their size */
};

struct affine_plan {
    struct affine_side input, output, coefficients;
    uint64_t outer_shape[SCAN_OUTER_MAX];
    int outer_rank;
    uint64_t length, first_row;
    const uint64_t *offsets; /* of ragged rows: each is an item; or NULL */
    uint64_t blocks, items;  /* order blocks of a row, and of all rows */
    int pass_count;
    bool backward[SCAND_PASSES_MAX], exclusive, intermediate_f32;
    double coefficient; /* of all samples, for kernels that have one; */
    uint64_t whole;     /* with integers this */
    uint64_t sums_per_row;
    const double *totals; /* of the rows, last of sums_per_row each, to take their means away; or NULL */
    /* Where a row has several blocks: as in struct scan_plan. */
    void *sums[SCAND_PASSES_MAX];
    int totals_pass;
};

/* An order block to work on. */
struct affine_item {
    char *input, *output, *coefficients; /* its first sample */
    uint64_t sum;                        /* index in plan.sums */
    int length;                          /* 0: a ragged row that is empty, or not for this kernel */
    bool outer[SCAND_PASSES_MAX];        /* whether a pass has a carry from other blocks of the row */
    double mean;
};

DEVICE char *affine_at(const struct affine_plan &plan, const struct affine_side &side, uint64_t row, uint64_t sample)
{
    int64_t offset = (int64_t)sample * side.stride;
    for (int axis = plan.outer_rank - 1; axis >= 0; axis--) {
        offset += (int64_t)(row % plan.outer_shape[axis]) * side.outer_strides[axis];
        row /= plan.outer_shape[axis];
    }
    return side.base + offset;
}

/* Ragged rows of more than an order block are left out. */
DEVICE struct affine_item affine_item_at(const struct affine_plan &plan, uint64_t index)
{
    struct affine_item item = {};
    uint64_t row = index / plan.blocks, block = index % plan.blocks, length = plan.length;
    uint64_t first = block * ORDER_BLOCK;
    if (plan.offsets) {
        first = plan.offsets[index];
        length = plan.offsets[index + 1] - first;
    }
    uint64_t here = plan.offsets ? length : min(length - first, (uint64_t)ORDER_BLOCK);
    item.input = affine_at(plan, plan.input, plan.first_row + row, first);
    item.output = affine_at(plan, plan.output, plan.first_row + row, first);
    item.coefficients = affine_at(plan, plan.coefficients, plan.first_row + row, first);
    item.sum = row * plan.sums_per_row + block;
    item.length = here <= ORDER_BLOCK ? (int)here : 0;
    for (int pass = 0; pass < SCAND_PASSES_MAX; pass++)
        item.outer[pass] = pass != plan.totals_pass && block != (plan.backward[pass] ? plan.blocks - 1 : 0);
    if (plan.totals)
        item.mean = plan.totals[(row + 1) * plan.sums_per_row - 1] / (double)length;
    return item;
}

DEVICE uint64_t affine_load(const char *from, uint32_t bytes, bool aligned)
{
    uint64_t bits = 0;
    if (!aligned)
        for (uint32_t i = 0; i < bytes; i++)
            bits |= (uint64_t)(unsigned char)from[i] << 8 * i;
    else if (bytes == 2)
        bits = *(const uint16_t *)from;
    else if (bytes == 4)
        bits = *(const uint32_t *)from;
    else
        bits = *(const uint64_t *)from;
    return bits;
}

DEVICE void affine_store(char *to, uint64_t bits, uint32_t bytes, bool aligned)
{
    if (!aligned)
        for (uint32_t i = 0; i < bytes; i++)
            to[i] = (char)(bits >> 8 * i);
    else if (bytes == 2)
        *(uint16_t *)to = (uint16_t)bits;
    else if (bytes == 4)
        *(uint32_t *)to = (uint32_t)bits;
    else
        *(uint64_t *)to = bits;
}

/* A sample from its bytes, less the mean of its row where that is to be taken away. */
template <class T> DEVICE T affine_decode(const struct affine_side &side, const char *from, bool demean, double mean)
{
    uint64_t bits = affine_load(from, codec_bytes(side.dtype), side.aligned);
    if constexpr (std::is_same<T, uint64_t>::value) {
        return codec_decode_integer(side.dtype, &bits);
    } else if (codec_class(side.dtype) == SCAND_CLASS_F64) {
        double x = codec_decode_f64(&bits);
        return number_of<T>(demean ? x - mean : x);
    } else {
        float x = codec_decode_f32(side.dtype, &bits);
        return number_of<T>(demean ? (float)((double)x - mean) : x);
    }
}

template <class T> DEVICE void affine_encode(const struct affine_side &side, T value, char *to)
{
    uint64_t bits = 0;
    if constexpr (std::is_same<T, uint64_t>::value)
        bits = value;
    else if (codec_class(side.dtype) == SCAND_CLASS_F64)
        codec_encode_f64(number_f64(value), &bits);
    else
        bits = codec_encoded_f32(side.dtype, number_f32(value));
    affine_store(to, bits, codec_bytes(side.dtype), side.aligned);
}

/* A tile passes through shared memory some leaves at a time: less of it is enough for any GPU. */
#define AFFINE_LEAVES 8
#define AFFINE_STAGE  (AFFINE_LEAVES * ORDER_LEAF) /* samples */

/* The numbers of this lane's leaf, of a tile of `samples` that begins at `from`. */
template <class T>
DEVICE void affine_read(const struct affine_side &side, const char *from, int samples, bool demean, double mean,
                        uint4 *stage, T x[ORDER_LEAF])
{
    const int per_slot = SLOT_BYTES / sizeof(T), slots = ORDER_LEAF / per_slot, lane = lane_index();
#pragma unroll 1
    for (int leaf = 0; leaf < WARP; leaf += AFFINE_LEAVES) {
#pragma unroll
        for (int k = lane; k < AFFINE_STAGE; k += WARP)
            if (leaf * ORDER_LEAF + k < samples)
                *staged_sample<T>(stage, k) =
                    affine_decode<T>(side, from + (leaf * ORDER_LEAF + k) * side.stride, demean, mean);
        __syncwarp();
        if (lane / AFFINE_LEAVES == leaf / AFFINE_LEAVES)
#pragma unroll
            for (int j = 0; j < slots; j++)
                memcpy(&x[j * per_slot], &stage[slot_place<T>(slots * (lane % AFFINE_LEAVES)) ^ j], SLOT_BYTES);
        __syncwarp();
    }
}

template <class T>
DEVICE void affine_write(const struct affine_side &side, char *to, int samples, uint4 *stage, const T x[ORDER_LEAF])
{
    const int lane = lane_index();
#pragma unroll 1
    for (int leaf = 0; leaf < WARP; leaf += AFFINE_LEAVES) {
        if (lane / AFFINE_LEAVES == leaf / AFFINE_LEAVES)
            leaf_write(stage, lane % AFFINE_LEAVES, x);
        __syncwarp();
#pragma unroll
        for (int k = lane; k < AFFINE_STAGE; k += WARP)
            if (leaf * ORDER_LEAF + k < samples)
                affine_encode(side, *staged_sample<T>(stage, k), to + (leaf * ORDER_LEAF + k) * side.stride);
        __syncwarp();
    }
}

/* The coefficients of this lane's leaf: one for all samples, of which nothing is read. */
template <class T> struct affine_one {
    T factor;

    __device__ __forceinline__ affine_one(const struct affine_plan &plan, const struct affine_item *, int, int, uint4 *)
    {
        if constexpr (std::is_same<T, uint64_t>::value)
            factor = plan.whole;
        else
            factor = number_of<T>(plan.coefficient);
    }
    __device__ __forceinline__ T at(int) const
    {
        return factor;
    }
};

/* One for each sample, held as read; one for each row is read once. */
template <class T, class Read> struct affine_each {
    Read factors[ORDER_LEAF];

    __device__ __forceinline__ affine_each(const struct affine_plan &plan, const struct affine_item *item, int warp,
                                           int samples, uint4 *stage)
    {
        const char *from = item->coefficients + (int64_t)warp * ORDER_TILE * plan.coefficients.stride;
        if (plan.coefficients.stride == 0) {
            const Read factor = affine_decode<Read>(plan.coefficients, from, false, 0);
#pragma unroll
            for (int i = 0; i < ORDER_LEAF; i++)
                factors[i] = factor;
        } else {
            affine_read(plan.coefficients, from, samples, false, 0, stage, factors);
        }
    }
    __device__ __forceinline__ T at(int i) const
    {
        return number_of<T>(factors[i]);
    }
};

/* `last`: of a leaf's samples. A backward pass meets it first; forward, what follows it is in nobody's way. */
template <class T, bool Backward, class Factors>
DEVICE affine_map<T> affine_leaf_total(const T x[ORDER_LEAF], const Factors &factors, int last)
{
    const int first = Backward ? ORDER_LEAF - 1 : 0;
    affine_map<T> sum = {x[first], factors.at(first)};
#pragma unroll
    for (int i = 1; i < ORDER_LEAF; i++) {
        const int k = Backward ? ORDER_LEAF - 1 - i : i;
        const T factor = factors.at(k);
        if (Backward && k == last)
            sum = {x[k], factor};
        else
            sum = {affine_apply(factor, sum.term, x[k]), affine_mul(factor, sum.factor)};
    }
    return sum;
}

template <class T, bool Backward, class Factors>
DEVICE void affine_leaf_values(T x[ORDER_LEAF], const Factors &factors, carry<affine_sum<T>> carry, int last,
                               bool exclusive)
{
    T y = carry.sum.term;
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++) {
        const int k = Backward ? ORDER_LEAF - 1 - i : i;
        const bool start = Backward ? k == last : i == 0;
        const T before = !start ? y : carry.present ? carry.sum.term : T{};
        y = affine_apply(factors.at(k), before, x[k]);
        if (start && !carry.present)
            y = x[k];
        x[k] = exclusive ? before : y;
    }
}

/* What a pass over an item has to do with the other blocks of its row. */
template <class T> struct affine_outside {
    const struct affine_plan &plan;
    const struct affine_item *item;
    int pass;

    __device__ __forceinline__ bool total_wanted() const
    {
        return plan.totals_pass == pass;
    }
    __device__ __forceinline__ bool present() const
    {
        return plan.blocks > 1 && item->outer[pass];
    }
    __device__ __forceinline__ affine_map<T> *sum() const
    {
        return (affine_map<T> *)plan.sums[pass] + item->sum;
    }
};

/* As block_pass: replaces samples by their values, unless only the total is wanted. */
template <class T, bool Backward, class Factors>
DEVICE void affine_pass(T x[ORDER_LEAF], const Factors &factors, int warp, tile_sums<affine_sum<T>> *shared,
                        const affine_outside<T> &outside)
{
    using Sum = affine_sum<T>;
    const int length = outside.item->length, samples = tile_samples(length, warp);
    const int leaves = (samples + ORDER_LEAF - 1) / ORDER_LEAF, tiles = (length + ORDER_TILE - 1) / ORDER_TILE;
    const int last = min(samples - lane_index() * ORDER_LEAF, ORDER_LEAF) - 1;
    affine_map<T> sum = affine_leaf_total<T, Backward>(x, factors, last);
    sum = group_scan<Sum, Backward>(sum, leaves - 1);
    if (lane_index() == (Backward ? 0 : leaves - 1))
        shared->totals[warp] = sum;
    carry<Sum> leaf = group_before<Sum, Backward>(sum, leaves - 1);
    __syncthreads();
    if (warp == 0)
        tiles_scan<Sum, Backward>(shared, tiles, outside);
    __syncthreads();
    if (outside.total_wanted())
        return;
    const bool present = outside.present() || warp != (Backward ? tiles - 1 : 0);
    leaf = carry_join<Sum>({shared->carries[warp], present}, leaf);
    affine_leaf_values<T, Backward>(x, factors, leaf, last, outside.plan.exclusive);
}

template <class T, class Factors>
DEVICE void affine_passes(const struct affine_plan &plan, const struct affine_item *item, int warp,
                          tile_sums<affine_sum<T>> *shared, T x[ORDER_LEAF], const Factors &factors)
{
#pragma unroll 1
    for (int pass = 0;; pass++) {
        if (plan.backward[pass])
            affine_pass<T, true>(x, factors, warp, shared, {plan, item, pass});
        else
            affine_pass<T, false>(x, factors, warp, shared, {plan, item, pass});
        if (pass + 1 == plan.pass_count || pass == plan.totals_pass)
            return;
        if constexpr (!std::is_same<T, uint64_t>::value)
            for (int i = 0; i < ORDER_LEAF; i++)
                x[i] = plan.intermediate_f32 ? number_of<T>(number_f32(x[i])) : number_of<T>(number_f64(x[i]));
    }
}

/* A thread block takes one order block after another. Shared memory: AFFINE_STAGE numbers for each warp. */
template <class T, class Factors>
__global__ void __launch_bounds__(ORDER_FAN *WARP)
    affine_kernel(const __grid_constant__ struct part_list<struct affine_plan> parts)
{
    extern __shared__ uint4 stages[];
    __shared__ struct affine_item item;
    __shared__ tile_sums<affine_sum<T>> shared;
    const int number = part_number(parts);
    const struct affine_plan &plan = parts.plans[number];
    const int warp = warp_index();
    uint4 *stage = stages + warp * (AFFINE_STAGE * (int)sizeof(T) / SLOT_BYTES);
    for (uint64_t index = blockIdx.x - part_begin(parts, number); index < plan.items; index += gridDim.x) {
        if (threadIdx.x == 0)
            item = affine_item_at(plan, index);
        __syncthreads();
        if (item.length > 0) {
            const int samples = tile_samples(item.length, warp), first = warp * ORDER_TILE;
            T x[ORDER_LEAF];
            affine_read(plan.input, item.input + first * plan.input.stride, samples, plan.totals != NULL, item.mean,
                        stage, x);
            const Factors factors(plan, &item, warp, samples, stage);
            affine_passes(plan, &item, warp, &shared, x, factors);
            if (plan.totals_pass < 0)
                affine_write(plan.output, item.output + first * plan.output.stride, samples, stage, x);
        }
        __syncthreads();
    }
}

#endif

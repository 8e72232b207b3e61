/*
 * The general kernel: every operator, dtype and kind, at any stride and alignment, by the same order (block.cuh) as the
 * kernel for sums of f32 samples (scan.cuh). It differs in how samples travel: a warp reads its tile lane by lane,
 * decodes it on the way to shared memory, and encodes results on the way back.
 */
#ifndef KERNELS_CUDA_GENERAL_CUH
#define KERNELS_CUDA_GENERAL_CUH

#include "kernels/codec.h"
#include "kernels/cuda/general_sum.cuh"
#include "kernels/cuda/scan.cuh"

struct general_plan {
    struct scan_plan scan;
    enum scand_dtype input, output;
    bool input_aligned, output_aligned; /* all samples, to their size */
    enum scand_kind kind;
    bool wide[SCAND_PASSES_MAX]; /* whether the samples of a pass are f64 */
    uint64_t flip;               /* sign bit of integers that are compared as signed ones, or 0 */
    uint64_t zero;               /* of integers: the value of no samples, flipped */
    const uint64_t *offsets;     /* of ragged rows: each is an item; or NULL */
    const double *totals;        /* of the rows, last of sums_per_row each, to take their means away; or NULL */
};

DEVICE uint64_t general_load(const char *from, uint32_t bytes, bool aligned)
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

DEVICE void general_store(char *to, uint64_t bits, uint32_t bytes, bool aligned)
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

/* A sample from its bytes, less the mean of its row. */
template <class Sum>
DEVICE typename Sum::sample general_decode(const struct general_plan &plan, const char *from, double mean)
{
    uint64_t bits = general_load(from, codec_bytes(plan.input), plan.input_aligned);
    if constexpr (!Sum::is_real) {
        return codec_decode_integer(plan.input, &bits) ^ plan.flip;
    } else if (codec_class(plan.input) == SCAND_CLASS_F64) {
        double x = codec_decode_f64(&bits);
        return Sum::from_f64(plan.totals ? x - mean : x);
    } else {
        float x = codec_decode_f32(plan.input, &bits);
        return Sum::from_f32(plan.totals ? (float)((double)x - mean) : x);
    }
}

/* The mean of an item's row, where it is wanted. */
DEVICE double general_mean(const struct general_plan &plan, const struct scan_item *item)
{
    if (!plan.totals)
        return 0;
    uint64_t row = item->sum / plan.scan.sums_per_row;
    double length = (double)(plan.offsets ? (uint64_t)item->length : plan.scan.length);
    return plan.totals[(row + 1) * plan.scan.sums_per_row - 1] / length;
}

template <class Sum> DEVICE void general_encode(const struct general_plan &plan, typename Sum::sample value, char *to)
{
    uint64_t bits = 0;
    if constexpr (!Sum::is_real)
        bits = value ^ plan.flip;
    else if (codec_class(plan.output) == SCAND_CLASS_F64)
        codec_encode_f64(Sum::as_f64(value), &bits);
    else
        bits = codec_encoded_f32(plan.output, Sum::as_f32(value));
    general_store(to, bits, codec_bytes(plan.output), plan.output_aligned);
}

/* A tile passes through shared memory some leaves at a time: less of it is enough for any GPU. */
#define GENERAL_LEAVES 8
#define GENERAL_STAGE  (GENERAL_LEAVES * ORDER_LEAF) /* samples */

/* The samples of this lane's leaf. */
template <class Sum>
DEVICE void general_read(const struct general_plan &plan, const struct scan_item *item, int warp, uint4 *stage,
                         typename Sum::sample x[ORDER_LEAF])
{
    using sample = typename Sum::sample;
    const int per_slot = SLOT_BYTES / sizeof(sample), slots = ORDER_LEAF / per_slot;
    int samples = tile_samples(item->length, warp), lane = lane_index();
    int64_t stride = plan.scan.input.stride;
    double mean = general_mean(plan, item);
    const char *from = item->input + (int64_t)warp * ORDER_TILE * stride;
#pragma unroll 1
    for (int leaf = 0; leaf < WARP; leaf += GENERAL_LEAVES) {
#pragma unroll
        for (int k = lane; k < GENERAL_STAGE; k += WARP)
            if (leaf * ORDER_LEAF + k < samples)
                *staged_sample<sample>(stage, k) =
                    general_decode<Sum>(plan, from + (leaf * ORDER_LEAF + k) * stride, mean);
        __syncwarp();
        if (lane / GENERAL_LEAVES == leaf / GENERAL_LEAVES)
#pragma unroll
            for (int j = 0; j < slots; j++)
                memcpy(&x[j * per_slot], &stage[slot_place<sample>(slots * (lane % GENERAL_LEAVES)) ^ j], SLOT_BYTES);
        __syncwarp();
    }
}

template <class Sum>
DEVICE void general_write(const struct general_plan &plan, const struct scan_item *item, int warp, uint4 *stage,
                          const typename Sum::sample x[ORDER_LEAF])
{
    int samples = tile_samples(item->length, warp), lane = lane_index();
    int64_t stride = plan.scan.output.stride;
    char *to = item->output + (int64_t)warp * ORDER_TILE * stride;
#pragma unroll 1
    for (int leaf = 0; leaf < WARP; leaf += GENERAL_LEAVES) {
        if (lane / GENERAL_LEAVES == leaf / GENERAL_LEAVES)
            leaf_write(stage, lane % GENERAL_LEAVES, x);
        __syncwarp();
#pragma unroll
        for (int k = lane; k < GENERAL_STAGE; k += WARP)
            if (leaf * ORDER_LEAF + k < samples)
                general_encode<Sum>(plan, *staged_sample<typename Sum::sample>(stage, k),
                                    to + (leaf * ORDER_LEAF + k) * stride);
        __syncwarp();
    }
}

template <class Sum> struct general_outside : scan_outside<Sum> {
    const struct general_plan &general;

    __device__ __forceinline__ general_outside(const struct general_plan &plan, const struct scan_item *item, int pass)
        : scan_outside<Sum>{plan.scan, item, pass}, general(plan)
    {
    }
    __device__ __forceinline__ int kind() const
    {
        return general.kind;
    }
    __device__ __forceinline__ typename Sum::sample zero() const
    {
        if constexpr (Sum::is_real)
            return Sum::value(Sum::zero());
        else
            return general.zero;
    }
};

template <class Sum>
DEVICE void general_pass(const struct general_plan &plan, const struct scan_item *item, int pass, int warp,
                         tile_sums<Sum> *shared, typename Sum::sample x[ORDER_LEAF])
{
    general_outside<Sum> outside(plan, item, pass);
    if (plan.scan.backward[pass])
        block_pass<Sum, true, KIND_ANY>(x, item->length, warp, shared, outside);
    else
        block_pass<Sum, false, KIND_ANY>(x, item->length, warp, shared, outside);
}

/* Narrow and Wide: what passes over f32 and over f64 samples keep, of one size. */
template <class Narrow, class Wide>
DEVICE void general_passes(const struct general_plan &plan, const struct scan_item *item, int warp,
                           tile_sums<Narrow> *shared, typename Narrow::sample x[ORDER_LEAF])
{
#pragma unroll 1
    for (int pass = 0;; pass++) {
        if (std::is_same<Narrow, Wide>::value || !plan.wide[pass])
            general_pass<Narrow>(plan, item, pass, warp, shared, x);
        else
            general_pass<Wide>(plan, item, pass, warp, (tile_sums<Wide> *)shared, x);
        if (pass + 1 == plan.scan.pass_count || pass == plan.scan.totals_pass)
            return;
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = Narrow::between_passes(x[i], !plan.wide[pass + 1]);
    }
}

/* Ragged rows of more than an order block are not for this kernel: they are left out, as empty ones are. */
DEVICE struct scan_item general_item_at(const struct general_plan &plan, uint64_t index)
{
    if (!plan.offsets)
        return scan_item_at(plan.scan, index);
    const uint64_t first = plan.offsets[index], length = plan.offsets[index + 1] - first;
    struct scan_item item = {};
    item.input = plan.scan.input.base + (int64_t)first * plan.scan.input.stride;
    item.output = plan.scan.output.base + (int64_t)first * plan.scan.output.stride;
    item.sum = index;
    item.length = length <= ORDER_BLOCK ? (int)length : 0;
    return item;
}

/* A thread block takes one order block after another. Shared memory: GENERAL_STAGE samples for each warp. */
template <class Narrow, class Wide>
__global__ void __launch_bounds__(ORDER_FAN *WARP) general_kernel(const __grid_constant__ struct general_plan plan)
{
    extern __shared__ uint4 stages[];
    __shared__ struct scan_item item;
    __shared__ tile_sums<Narrow> shared;
    const int warp = warp_index();
    uint4 *stage = stages + warp * (GENERAL_STAGE * (int)sizeof(typename Narrow::sample) / SLOT_BYTES);
    for (uint64_t index = blockIdx.x; index < plan.scan.items; index += gridDim.x) {
        typename Narrow::sample x[ORDER_LEAF];
        if (threadIdx.x == 0)
            item = general_item_at(plan, index);
        __syncthreads();
        if (item.length == 0) {
            __syncthreads();
            continue;
        }
        if (plan.wide[0])
            general_read<Wide>(plan, &item, warp, stage, x);
        else
            general_read<Narrow>(plan, &item, warp, stage, x);
        general_passes<Narrow, Wide>(plan, &item, warp, &shared, x);
        if (plan.scan.totals_pass < 0)
            general_write<Narrow>(plan, &item, warp, stage, x);
        __syncthreads();
    }
}

#endif

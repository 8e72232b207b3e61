/*
 * Rows of several small scans in one launch, sums of 4-byte samples: a launch for each would take longer than the scans
 * do. What they are comes with the launch, as its parameter; a thread block takes a row, of at most an order block, of
 * any of them. It asks for each pass what the tuned kernel (block_per_row.cuh) is compiled for, so there is one kernel
 * for all.
 */
#ifndef KERNELS_CUDA_KERNELS_TOGETHER_CUH
#define KERNELS_CUDA_KERNELS_TOGETHER_CUH

#include <type_traits>

#include "kernels/cuda/exchange/block.cuh"
#include "kernels/cuda/lane/convert32.cuh"
#include "kernels/cuda/scan_cuda.h"
#include "kernels/cuda/warp/item_io.cuh"

struct together_part {
    struct scan_plan plan; /* of one order block per row */
    enum scand_accumulator accumulator;
    enum scand_kind kind;
};

/* No more than 4 KiB, which every driver takes as a kernel's parameters, and quickly. */
struct together_plan {
    uint32_t ends[SCAN_TOGETHER]; /* rows of the parts up to and with each */
    struct together_part parts[SCAN_TOGETHER];
};

static_assert(sizeof(struct together_plan) <= 4096, "parameters of a kernel");

/* A sum whose kind is known when it is made. */
template <class Sum> struct together_sum : Sum {
    static const bool has_half = false;
};

union together_shared {
    tile_sums<sum_f32> f32;
    tile_sums<sum_f64> f64;
    tile_sums<sum_f2_pair> f2;
};

/* What a pass has to do with other order blocks of the row: there are none. */
template <class Sum> struct together_outside {
    const struct together_part &part;

    __device__ __forceinline__ bool total_wanted() const
    {
        return false;
    }
    __device__ __forceinline__ bool present() const
    {
        return false;
    }
    __device__ __forceinline__ typename Sum::sum *sum() const
    {
        return NULL;
    }
    __device__ __forceinline__ int kind() const
    {
        return part.kind;
    }
    __device__ __forceinline__ typename Sum::sample zero() const
    {
        return Sum::value(Sum::zero());
    }
};

template <class Sum>
DEVICE void together_pass(const struct together_part &part, int pass, int length, int warp, void *shared,
                          typename Sum::sample x[ORDER_LEAF])
{
    together_outside<Sum> outside = {part};
    if (part.plan.backward[pass])
        block_pass<Sum, true, KIND_ANY>(x, length, warp, (tile_sums<Sum> *)shared, outside);
    else
        block_pass<Sum, false, KIND_ANY>(x, length, warp, (tile_sums<Sum> *)shared, outside);
}

/* First is the accumulator of the first pass, Later that of a second one over f64. */
template <class First, class Later>
DEVICE void together_row(const struct together_part &part, const struct scan_item *item, int warp, uint4 *tile,
                         void *shared)
{
    const struct scan_plan &plan = part.plan;
    float samples[ORDER_LEAF];
    typename First::sample x[ORDER_LEAF];
    scan_read<false, false>(plan, item, tile, samples);
    leaf_pin(samples);
    leaf_decode(plan.input_form, samples);
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        x[i] = First::from_f32(samples[i]);
#pragma unroll 1
    for (int pass = 0;; pass++) {
        if (std::is_same<First, Later>::value || pass == 0 || plan.intermediate_f32)
            together_pass<together_sum<First>>(part, pass, item->length, warp, shared, x);
        else
            together_pass<together_sum<Later>>(part, pass, item->length, warp, shared, x);
        if (pass + 1 == plan.pass_count)
            break;
        leaf_between_passes<First>(x, plan.intermediate_f32);
    }
    if (plan.output_form == SCAND_DTYPE_F64)
        scan_write<First, double, false>(plan, item, warp, tile, x);
    else
        scan_write<First, float, false>(plan, item, warp, tile, x);
}

/* Shared memory: TILE_ROOM slots for each warp, of which there are as many as the longest row has tiles. */
__global__ void REGISTERS(64) together_kernel(const __grid_constant__ struct together_plan plan)
{
    extern __shared__ uint4 together_tiles[];
    __shared__ struct scan_item item;
    __shared__ union together_shared shared;
    int number = 0;
    while (blockIdx.x >= plan.ends[number])
        number++;
    const struct together_part &part = plan.parts[number];
    if (threadIdx.x == 0)
        item = scan_item_at(part.plan, blockIdx.x - (number > 0 ? plan.ends[number - 1] : 0));
    __syncthreads();
    const int warp = warp_index();
    uint4 *tile = together_tiles + warp * TILE_ROOM;
    scan_fetch<false, false>(part.plan, &item, warp, tile);
    if (part.accumulator == SCAND_ACCUMULATOR_F32)
        together_row<sum_f32, sum_f32>(part, &item, warp, tile, &shared);
    else if (part.accumulator == SCAND_ACCUMULATOR_F64)
        together_row<sum_f64, sum_f64>(part, &item, warp, tile, &shared);
    else
        together_row<sum_f2_pair, sum_f2_wide>(part, &item, warp, tile, &shared);
}

#endif

/*
 * The affine recurrence over contiguous rows, in the manner of the any_layout kernel, and by the same order
 * (block.cuh). Coefficients, where each sample or row has its own, are fetched while the item before is computed, as
 * samples are.
 */
#ifndef KERNELS_CUDA_KERNELS_AFFINE_AHEAD_CUH
#define KERNELS_CUDA_KERNELS_AFFINE_AHEAD_CUH

#include "kernels/cuda/kernels/affine.cuh"

/* A single coefficient, which is aligned. */

DEVICE void affine_load(const struct any_plan &plan, const char *from, float *number)
{
    const uint32_t bits = plan.input_bytes == 2 ? *(const uint16_t *)from : *(const uint32_t *)from;
    *number = codec_decode_f32(plan.input, &bits);
}

DEVICE void affine_load(const struct any_plan &plan, const char *from, double *number)
{
    const uint64_t bits = plan.input_bytes == 4 ? *(const uint32_t *)from : *(const uint64_t *)from;
    *number = codec_decode_f64(plan.input, &bits);
}

DEVICE void affine_load(const struct any_plan &plan, const char *from, uint64_t *number)
{
    const uint64_t bits = plan.input_bytes == 4 ? *(const uint32_t *)from : *(const uint64_t *)from;
    *number = codec_decode_integer(plan.input, &bits);
}

/* The item whose samples and coefficients are fetched ahead. Where a row has a single coefficient, the coefficients
 * have length 0: nothing is fetched. */
template <class Plan> DEVICE struct affine_item affine_item_ahead(const Plan &plan, uint64_t index)
{
    struct affine_item item = affine_item_at(plan, index);
    if constexpr (std::is_same<Plan, struct affine_each_plan>::value)
        if (plan.coefficients.scan.input.stride == 0)
            item.coefficients.length = 0;
    return item;
}

template <class Plan> DEVICE void affine_fetch(const Plan &plan, const struct affine_item *item, int warp, uint4 *tile)
{
    if constexpr (std::is_same<Plan, struct affine_each_plan>::value)
        any_fetch_first(plan.coefficients, &item->coefficients, warp, tile);
}

/* The coefficients of this lane's leaf, when they have arrived. */
template <class Read>
DEVICE void affine_read(const struct affine_each_plan &plan, const struct affine_item *item, int warp, uint4 *tile,
                        Read numbers[ORDER_LEAF])
{
    if (plan.coefficients.scan.input.stride != 0) {
        any_samples<true>(plan.coefficients,
                          any_tile_source<FETCH_APART>{plan.coefficients, &item->coefficients, NULL, warp, tile},
                          numbers);
        return;
    }
    affine_load(plan.coefficients, item->coefficients.input, &numbers[0]);
#pragma unroll
    for (int i = 1; i < ORDER_LEAF; i++)
        numbers[i] = numbers[0];
}

/* Coefficients in registers. */
template <class T, class Read> struct affine_held : affine_numbers<T, Read> {
    __device__ __forceinline__ affine_held(const struct affine_each_plan &plan, const struct affine_item *item,
                                           int warp, uint4 *tile)
    {
        affine_read(plan, item, warp, tile, this->numbers);
    }
};

/* Coefficients in shared memory, where there are no registers for them. A lane looks at a vector of its leaf at a time,
 * from one end to the other. Leaves are a vector apart, so that lanes meet all banks. */
template <class T, class Read, bool Backward> struct affine_staged_leaf {
    uint32_t address;
    mutable uint32_t words[4];
    __device__ __forceinline__ T at(int i) const
    {
        const int per_vector = VEC16_BYTES / sizeof(Read);
        if (i % per_vector == (Backward ? per_vector - 1 : 0))
            load_shared_v4(address + i / per_vector * VEC16_BYTES, words);
        Read number;
        memcpy(&number, &words[i % per_vector * (sizeof(Read) / 4)], sizeof(Read));
        return number_of<T>(number);
    }
};

template <class T, class Read> struct affine_staged : affine_varying<T> {
    static const int vectors = WARP * (sizeof(Read) + 1);
    uint32_t address;

    __device__ __forceinline__ affine_staged(const struct affine_each_plan &plan, const struct affine_item *item,
                                             int warp, uint4 *tile)
    {
        Read numbers[ORDER_LEAF];
        affine_read(plan, item, warp, tile, numbers);
        uint32_t words[ORDER_LEAF * sizeof(Read) / 4];
        memcpy(words, numbers, sizeof(words));
        __syncwarp();
        address = smem_address(tile + lane_index() * (sizeof(Read) + 1));
#pragma unroll
        for (int j = 0; j < (int)sizeof(Read); j++)
            store_shared_v4(address + j * VEC16_BYTES, words[4 * j], words[4 * j + 1], words[4 * j + 2],
                            words[4 * j + 3]);
    }
    template <bool Backward> __device__ __forceinline__ affine_staged_leaf<T, Read, Backward> leaf() const
    {
        return {address, {}};
    }
};

template <class T, class Read>
using affine_factors_of =
    typename std::conditional<std::is_same<T, float>::value, affine_held<T, Read>, affine_staged<T, Read>>::type;

/* Takes items as any_layout_kernel does. Results pass through the place of coefficients, so that these are fetched when
 * the item before has been written. Registers: with 48 an SM holds two thread blocks of 20 warps: f2 with coefficients
 * takes 0.78 ms on an H200 for 10,000 x 10,000 instead of 0.88 with 64, though it spills some. */
template <class Samples, class Factors, int Registers>
__global__ void REGISTERS(Registers) affine_ahead_kernel(const __grid_constant__ typename Factors::plan plan)
{
    using T = typename Samples::sum;
    extern __shared__ __align__(128) uint4 affine_tiles[];
    __shared__ struct affine_item items[ITEMS];
    __shared__ affine_shared<Samples, Factors> shared;
    __shared__ uint64_t taken;
    const struct any_plan &samples = plan.samples;
    if (threadIdx.x < ITEMS_AHEAD)
        items[threadIdx.x] = affine_item_ahead(plan, blockIdx.x + (uint64_t)threadIdx.x * gridDim.x);
    Factors::begin(plan);
    __syncthreads();
    const int warp = warp_index();
    uint4 *tile = affine_tiles + warp * samples.scan.smem, *second = tile + WORDS_VECTORS(samples.input_bytes);
    any_fetch_first(samples, &items[0].samples, warp, tile);
    affine_fetch(plan, &items[0], warp, second);

    for (unsigned iteration = 0; items[iteration % ITEMS].samples.length >= 0; iteration++) {
        const int number = warp_uniform(iteration % ITEMS);
        const struct affine_item *item = &items[number], *next = &items[(number + 1) % ITEMS];
        typename Samples::sample x[ORDER_LEAF];
        if (warp == 0 && lane_index() == 0)
            taken = scan_take(samples.scan, iteration); /* while the samples are on their way */
        const Factors factors(plan, item, warp, second);
        any_read<Samples, FETCH_AHEAD, true>(samples, &item->samples, &next->samples, warp, tile, &shared.mean, x);
        const bool results = affine_passes<Samples, T>(plan, &item->samples, warp, &shared.pass, x, factors);
        __syncwarp(); /* nobody looks at coefficients any more */
        if (results)
            any_write<Samples, true>(samples, any_tile_target<true>{samples, &item->samples, warp, second}, x);
        affine_fetch(plan, next, warp, second);
        if (warp == 0 && lane_index() == 0)
            items[(iteration + ITEMS_AHEAD) % ITEMS] = affine_item_ahead(plan, taken);
    }
    if (samples.scan.progress && threadIdx.x == 0)
        scan_finish(samples.scan.progress);
}

template <class Samples, class Factors, int Registers = 48> static constexpr struct affine_ahead affine_ahead_by()
{
    return {(const void *)affine_ahead_kernel<Samples, Factors, Registers>, Factors::vectors};
}

#endif

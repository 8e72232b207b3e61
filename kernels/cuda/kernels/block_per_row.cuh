/*
 * The scan kernel. Thread blocks stay for the whole launch and take one order block after another (a short row is one
 * order block). The samples of one are in registers while it is computed, and those of the next on their way to shared
 * memory.
 */
#ifndef KERNELS_CUDA_KERNELS_BLOCK_PER_ROW_CUH
#define KERNELS_CUDA_KERNELS_BLOCK_PER_ROW_CUH

#include <type_traits>

#include "kernels/cuda/lane/convert32.cuh"
#include "kernels/cuda/warp/tile_io.cuh"

/*
 * Registers per thread decide how many thread blocks a processor holds, of which some compute while others wait. Its
 * 65,536 suffice for 3 blocks of 20 warps, rows of 10,240 samples, with 32, and for 2 with 40 or 48.
 */
#if CUDART_VERSION >= 12040
#define REGISTERS(COUNT) __maxnreg__(COUNT)
#else
#define REGISTERS(COUNT) __launch_bounds__(ORDER_FAN *WARP)
#endif

/* How far a launch is. All zero before and after: the last thread block to finish sees to that. */
struct scan_progress {
    unsigned long long taken; /* items beyond those that thread blocks begin with */
    unsigned int finished;    /* thread blocks */
};

/* An order block to work on. One thread finds out, for all. */
struct scan_item {
    char *input, *output;         /* its first sample */
    uint64_t sum;                 /* index in plan.sums */
    int length;                   /* 0 where there is no more work */
    bool outer[SCAND_PASSES_MAX]; /* whether a pass has a carry from other blocks of the row */
};

/*
 * In turn t a thread block computes item t, fetches t + 1, and finds out about t + ITEMS_AHEAD, at which others look in
 * a later turn, when they have met.
 */
#define ITEMS       4
#define ITEMS_AHEAD 3

DEVICE char *side_at(const struct scan_plan &plan, const struct scan_side &side, uint64_t row, uint64_t block)
{
    int64_t offset = (int64_t)(block * ORDER_BLOCK) * side.stride;
#pragma unroll
    for (int axis = SCAN_OUTER_MAX - 1; axis > 0; axis--)
        if (axis < plan.outer_rank) {
            offset += (int64_t)(row % plan.outer_shape[axis]) * side.outer_strides[axis];
            row /= plan.outer_shape[axis];
        }
    return side.base + offset + (int64_t)row * side.outer_strides[0];
}

DEVICE struct scan_item scan_item_at(const struct scan_plan &plan, uint64_t index)
{
    struct scan_item item = {};
    if (index >= plan.items)
        return item;
    index += plan.first_item;
    uint64_t row = index, block = 0;
    if (plan.blocks > 1) {
        row = index / plan.blocks;
        block = index % plan.blocks;
    }
    item.input = side_at(plan, plan.input, plan.first_row + row, block);
    item.output = side_at(plan, plan.output, plan.first_row + row, block);
    item.sum = row * plan.sums_per_row + block;
    item.length = (int)min(plan.length - block * ORDER_BLOCK, (uint64_t)ORDER_BLOCK);
    for (int pass = 0; pass < SCAND_PASSES_MAX; pass++)
        item.outer[pass] = pass != plan.totals_pass && block != (plan.backward[pass] ? plan.blocks - 1 : 0);
    return item;
}

/* Starts the copy of a warp's tile of an item. `Lines`: in requests that begin where lines of device memory do. */
template <bool Aligned, bool Lines>
DEVICE void scan_fetch(const struct scan_plan &plan, const struct scan_item *item, int warp, uint4 *tile)
{
    const int count = tile_samples(item->length, warp);
    /* Within a row, no last slot is shared with others. */
    if (!Aligned && !Lines && plan.input.access == ACCESS_SLOTS &&
        (warp + 1) * ORDER_TILE + SLOT_BYTES / 4 <= item->length)
        fetch_slots_inside(tile, item->input + warp * ORDER_TILE * 4, shift_of<float>(item->input));
    else if (!Lines || plan.input.access != ACCESS_SLOTS)
        tile_fetch<Aligned>(tile, item->input, plan.input, item->length, warp);
    else if (count > 0)
        fetch_lines<1>(tile, item->input + warp * ORDER_TILE * 4, count);
    __pipeline_commit();
}

/* The samples of this lane's leaf, when they have arrived. Their place is free then. */
template <bool Aligned, bool Lines>
DEVICE void scan_read(const struct scan_plan &plan, const struct scan_item *item, const uint4 *tile,
                      float samples[ORDER_LEAF])
{
    __pipeline_wait_prior(0);
    __syncwarp();
    if (Aligned)
        leaf_read(tile, samples);
    else if (Lines && plan.input.access == ACCESS_SLOTS)
        leaf_read_at(tile, slots_in_line(item->input) + ORDER_LEAF / 4 * lane_index(), shift_of<float>(item->input),
                     samples);
    else
        leaf_read<true, true>(tile, plan.input.access == ACCESS_SLOTS ? shift_of<float>(item->input) : 0, samples);
    __syncwarp();
}

/* A NaN makes all that follows it in a leaf NaN, so one look at either end tells whether there are any. */
template <class Sum, class Out>
DEVICE void leaf_results(const typename Sum::sample x[ORDER_LEAF], Out results[ORDER_LEAF])
{
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        result_of<Sum>(x[i], &results[i]);
    if (results[0] != results[0] || results[ORDER_LEAF - 1] != results[ORDER_LEAF - 1]) {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            quiet_nan(&results[i]);
    }
}

/* f64 results take twice the registers, and shifting samples takes more of them than 40. */
template <class First, class Out, bool Aligned>
constexpr int scan_registers = sizeof(Out) == 8                  ? 64
                               : !Aligned && First::has_identity ? 48
                                                                 : First::registers;

/* Whether results may be copied in bulk. Lanes meet the same banks for that, which f64 has no time for (10,000 x 10,000
 * reach 0.94 of a copy on an H200 instead of 0.96), and f2 no room for a stage. */
template <class Sum, class Out, bool Aligned> constexpr bool scan_has_bulk = false;
template <> constexpr bool scan_has_bulk<sum_f32, float, true> = HAS_BULK;

/* Writes a warp's tile of an item. */
template <class Sum, class Out, bool Aligned>
DEVICE void scan_write(const struct scan_plan &plan, const struct scan_item *item, int warp, uint4 *stage,
                       const typename Sum::sample x[ORDER_LEAF])
{
    Out results[ORDER_LEAF];
    leaf_results<Sum, Out>(x, results);
    if constexpr (scan_registers<Sum, Out, Aligned> == 32)
        leaf_convert_apart<true>(plan.output_form, results);
    else
        leaf_encode<true>(plan.output_form, results);
    if constexpr (scan_has_bulk<Sum, Out, Aligned>)
        if (plan.bulk) {
            bulk_await<false>();
            tile_write_bulk(stage, item->output, item->length, warp, results);
            return;
        }
    tile_write<Out, Sum::stage_slots, Aligned, scan_registers<Sum, Out, Aligned> == 32>(
        stage, item->output, plan.output, item->length, warp, results);
}

/* What a pass over an item has to do with the other blocks of its row; looked up when needed, to hold no registers. */
template <class Sum> struct scan_outside {
    const struct scan_plan &plan;
    const struct scan_item *item;
    int pass;

    __device__ __forceinline__ bool total_wanted() const
    {
        return plan.totals_pass == pass;
    }
    __device__ __forceinline__ bool present() const
    {
        return item->outer[pass];
    }
    __device__ __forceinline__ typename Sum::sum *sum() const
    {
        return (typename Sum::sum *)plan.sums[pass] + item->sum;
    }
    __device__ __forceinline__ int kind() const
    {
        return KIND_ANY;
    }
    __device__ __forceinline__ typename Sum::sample zero() const
    {
        return Sum::value(Sum::zero());
    }
};

template <class Sum, int Kind>
DEVICE void scan_pass(const struct scan_plan &plan, const struct scan_item *item, int pass, int warp,
                      tile_sums<Sum> *shared, typename Sum::sample x[ORDER_LEAF])
{
    scan_outside<Sum> outside = {plan, item, pass};
    if (plan.backward[pass])
        block_pass<Sum, true, Kind>(x, item->length, warp, shared, outside);
    else
        block_pass<Sum, false, Kind>(x, item->length, warp, shared, outside);
}

/* With values before and after rounding alive at once, registers do not suffice: hence the pins. */
template <class Sum> DEVICE void leaf_between_passes(typename Sum::sample x[ORDER_LEAF], bool to_f32)
{
    leaf_pin(x);
    if constexpr (std::is_same<typename Sum::sample, double>::value) {
        if (to_f32)
            leaf_round(x);
    } else if (to_f32) {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = Sum::between_passes(x[i], true);
    } else {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = Sum::between_passes(x[i], false);
    }
    leaf_pin(x);
}

/* All passes that this launch needs. First is the accumulator of the first one, Later that of a second, of one size. */
template <class First, class Later, int Kind>
DEVICE void scan_passes(const struct scan_plan &plan, const struct scan_item *item, int warp, tile_sums<First> *shared,
                        typename First::sample x[ORDER_LEAF])
{
#pragma unroll 1
    for (int pass = 0;; pass++) {
        if (std::is_same<First, Later>::value || pass == 0 || plan.intermediate_f32)
            scan_pass<First, Kind>(plan, item, pass, warp, shared, x);
        else
            scan_pass<Later, Kind>(plan, item, pass, warp, (tile_sums<Later> *)shared, x);
        if (pass + 1 == plan.pass_count || pass == plan.totals_pass)
            return;
        leaf_between_passes<First>(x, plan.intermediate_f32);
    }
}

/*
 * Which item a thread block does beyond those that all begin with. Order blocks go to whoever is ready, because
 * processors differ in speed; the short ones of short rows are too many for that, and more than this can number.
 */
DEVICE unsigned scan_take_number(const struct scan_plan &plan)
{
    return plan.progress ? (unsigned)atomicAdd(&plan.progress->taken, 1) : 0;
}

/* The index of that item, in the `turn`th turn of this thread block. */
DEVICE uint64_t scan_taken(const struct scan_plan &plan, unsigned number, uint64_t turn)
{
    uint64_t first = (uint64_t)ITEMS_AHEAD * gridDim.x;
    return first + (plan.progress ? number : turn * gridDim.x + blockIdx.x);
}

DEVICE uint64_t scan_take(const struct scan_plan &plan, uint64_t turn)
{
    return scan_taken(plan, scan_take_number(plan), turn);
}

/* Leaves the progress as it was found. Every thread block has taken its last item when the last one finishes. */
DEVICE void scan_finish(struct scan_progress *progress)
{
    if (atomicAdd(&progress->finished, 1) == gridDim.x - 1) {
        progress->taken = 0;
        progress->finished = 0;
    }
}

template <class First, class Later, class Out, int Kind, bool Aligned>
__global__ void REGISTERS((scan_registers<First, Out, Aligned>))
    scan_kernel(const __grid_constant__ struct scan_plan plan)
{
    extern __shared__ uint4 tiles[];
    __shared__ struct scan_item items[ITEMS];
    __shared__ tile_sums<First> shared;
    if (threadIdx.x < ITEMS_AHEAD)
        items[threadIdx.x] = scan_item_at(plan, blockIdx.x + (uint64_t)threadIdx.x * gridDim.x);
    __syncthreads();
    const bool lines = !Aligned && First::has_identity; /* f2 has no instructions to spare, aligned rows need it less */
    const int warp = warp_index();
    uint4 *tile = tiles + warp * plan.room;
    scan_fetch<Aligned, lines>(plan, &items[0], warp, tile);

    for (unsigned turn = 0; items[turn % ITEMS].length > 0; turn++) {
        const struct scan_item *item = &items[turn % ITEMS], *next = &items[(turn + 1) % ITEMS];
        float samples[ORDER_LEAF];
        typename First::sample x[ORDER_LEAF];
        scan_read<Aligned, lines>(plan, item, tile, samples);
        if (plan.ahead)
            scan_fetch<Aligned, lines>(plan, next, warp, tile);
        leaf_pin(samples); /* else sums are spilled */
        if constexpr (scan_registers<First, Out, Aligned> == 32)
            leaf_convert_apart<false>(plan.input_form, samples);
        else
            leaf_decode(plan.input_form, samples);
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            x[i] = First::from_f32(samples[i]);

        scan_passes<First, Later, Kind>(plan, item, warp, &shared, x);
        bool first_thread = warp == 0 && lane_index() == 0;
        unsigned taken = first_thread ? scan_take_number(plan) : 0; /* in one register, until it is known */
        if (plan.totals_pass < 0)
            scan_write<First, Out, Aligned>(plan, item, warp, tile + (plan.ahead ? TILE_ROOM : 0), x);
        if (!plan.ahead)
            scan_fetch<Aligned, lines>(plan, next, warp, tile);
        if (first_thread)
            items[(turn + ITEMS_AHEAD) % ITEMS] = scan_item_at(plan, scan_taken(plan, taken, turn));
    }
    if (scan_has_bulk<First, Out, Aligned>)
        bulk_await<true>();
    if (plan.progress && threadIdx.x == 0)
        scan_finish(plan.progress);
}

#endif

/*
 * Ragged rows (scan.h) as items: what a warp, a team of warps or a thread block of the kernel (ragged.cuh) takes at a
 * time. They are made of the offsets, sorted into classes by length.
 */
#ifndef KERNELS_CUDA_KERNELS_RAGGED_ITEMS_CUH
#define KERNELS_CUDA_KERNELS_RAGGED_ITEMS_CUH

#include "kernels/cuda/exchange/tile_state.cuh"
#include "kernels/cuda/lane/lane.cuh"
#include "kernels/cuda/warp/kogge_stone.cuh"
#include "kernels/cuda/warp/tile_io.cuh"

#define RAGGED_WARPS    8                          /* warps of a thread block */
#define RAGGED_TILES    (ORDER_FAN / RAGGED_WARPS) /* tiles that a warp has room for */
#define RAGGED_SMEM     (RAGGED_TILES * TILE_SMEM) /* vectors of it */
#define RAGGED_SHARED   ((size_t)RAGGED_WARPS * RAGGED_SMEM * VEC16_BYTES)
#define RAGGED_BLOCKS   3  /* on an SM, if there is shared memory for them */
#define RAGGED_AHEAD    4u /* items that a warp takes at a time */
#define STRETCH_TILES   2  /* tiles that a warp has registers for, if sums have 4 bytes */
#define STRETCH_SAMPLES (STRETCH_TILES * ORDER_TILE)
#define RAGGED_THREADS  (RAGGED_WARPS * WARP)
#define RAGGED_OWN      2 /* items that a warp may keep of those that it makes */

/*
 * The n-th is for teams of 2^n warps, or whole thread blocks if those have not as many: rows of up to 2^n times as many
 * samples as are for a warp alone. But the last two are for order blocks of long rows, and for items of one tile.
 */
enum ragged_class {
    RAGGED_ALONE,
    RAGGED_PAIR,
    RAGGED_FOUR,
    RAGGED_EIGHT,
    RAGGED_BLOCK,
    RAGGED_LONG,
    RAGGED_TILE,
    RAGGED_CLASSES
};

/* True when samples of most rows are in registers, by the bytes of a sum. */
__host__ __device__ constexpr bool ragged_in_registers(size_t sum_bytes)
{
    return sum_bytes == 4;
}

/* The longest row for a warp alone: in registers, or in shared memory. */
__host__ __device__ constexpr int ragged_alone_max(size_t sum_bytes)
{
    return (ragged_in_registers(sum_bytes) ? STRETCH_TILES : RAGGED_TILES) * ORDER_TILE;
}

struct __align__(16) ragged_item
{
    uint64_t first;   /* sample of the line */
    uint32_t row;     /* the first one; of a long row its index among these */
    uint16_t samples; /* 0: no more work */
    uint16_t number;  /* number of rows; of a long row the number of this order block */
};

/* A mark of items with two rows of one tile each: `number` of such an item is more than this by the samples of the
 * second row, which begins `row` samples after the first. */
#define RAGGED_BESIDE 64

/* A row of several order blocks. */
struct ragged_long {
    uint32_t item, blocks; /* first item, and number of items */
};

/* Items of a class, all zero before a launch. Each has a line of device memory, as atomic operations on one line take
 * turns. */
struct __align__(128) ragged_counts
{
    unsigned int made, taken;
    unsigned int longs; /* rows, of RAGGED_LONG */
};

struct ragged_plan {
    const char *input;    /* sample 0 of the line */
    uint64_t whole_bytes; /* bytes of the input, up to the last vector, unless that is there to its end */
    char *output;
    const uint64_t *offsets; /* rows + 1 */
    uint64_t rows;
    int pass_count;
    bool backward[SCAND_PASSES_MAX];
    uint64_t alone_max;           /* samples of a row for a warp alone */
    uint64_t length_max;          /* rows beyond are not for these kernels */
    struct ragged_counts *counts; /* counts of each class */
    struct ragged_item *items[RAGGED_CLASSES];
    struct ragged_long *longs;
    tile_state *states[SCAND_PASSES_MAX]; /* tile states of long rows, RAGGED_STATES for each item */
};

#define RAGGED_STATES 4 /* words: a tree over n > 1 items has less than 2 n sums, of 2 words at most */

DEVICE int ragged_leaves(int samples)
{
    return (samples + ORDER_LEAF - 1) / ORDER_LEAF;
}

DEVICE int ragged_tiles(int samples)
{
    return (samples + ORDER_TILE - 1) / ORDER_TILE;
}

/* A lane's row as an item, unless it is in a group. */
struct ragged_row {
    struct ragged_item item;
    int kind; /* an enum ragged_class, or none */
};

/*
 * Rows of at most a tile, one after the other, become items of as many as have leaves for 32 lanes. Each is made by the
 * lane of its first row.
 */
DEVICE void ragged_group(struct ragged_row *row, uint64_t end, bool is_short)
{
    const int lane = lane_index(), leaves = is_short ? ragged_leaves((int)(end - row->item.first)) : WARP + 1;
    const int upto = sum_upto_lane(leaves), most = upto - leaves + WARP;
    int next = 0; /* end of a group that would begin here */
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2)
        if (__shfl_sync(~0u, upto, next + step - 1) <= most)
            next += step;
    next += __shfl_sync(~0u, upto, next) <= most;
    next = max(next, lane + 1); /* what is not short is on its own */
    const uint64_t group_end = __shfl_sync(~0u, end, next - 1);
    bool begins = __all_sync(~0u, next == lane + 1); /* nothing fits together */
    for (int begin = begins ? WARP : 0; begin < WARP; begin = __shfl_sync(~0u, next, begin))
        begins |= begin == lane;
    if (is_short && begins && group_end > row->item.first) {
        row->item.samples = (uint16_t)(group_end - row->item.first);
        row->item.number = (uint16_t)(next - lane);
        row->kind = RAGGED_TILE;
    }
}

/* True when an item has the bits for the distance between any two rows from `first` to `last`. */
__host__ __device__ constexpr bool ragged_are_near(uint64_t first, uint64_t last)
{
    return last - first <= UINT32_MAX;
}
static_assert(ragged_are_near(0, UINT32_MAX) && !ragged_are_near(0, UINT64_C(1) << 32) &&
                  ragged_are_near(UINT64_C(1) << 40, (UINT64_C(1) << 40) + UINT32_MAX),
              "up to 2^32 - 1 samples, wherever they lie");

/* Rows that have a tile each to themselves, two and two, unless a warp has rows that are too far apart for that. */
DEVICE void ragged_pair(struct ragged_row *row)
{
    if (!ragged_are_near(__shfl_sync(~0u, row->item.first, 0), __shfl_sync(~0u, row->item.first, WARP - 1)))
        return;
    const int lane = lane_index();
    const bool single = row->kind == RAGGED_TILE && row->item.number == 1;
    const unsigned singles = __ballot_sync(~0u, single), after = singles & ~1u << lane;
    const int second = after ? __ffs((int)after) - 1 : lane, samples = __shfl_sync(~0u, row->item.samples, second);
    const uint64_t first = __shfl_sync(~0u, row->item.first, second);
    if (!single)
        return;
    if (__popc(singles & ((1u << lane) - 1)) % 2 == 1) {
        row->kind = RAGGED_CLASSES;
    } else if (after) {
        row->item.row = (uint32_t)(first - row->item.first);
        row->item.number = (uint16_t)(RAGGED_BESIDE + samples);
    }
}

/* Makes the items of a long row, and the place for its totals, by a warp. */
DEVICE void ragged_long_make(const struct ragged_plan &plan, uint64_t first, uint64_t length)
{
    const int lane = lane_index();
    const unsigned blocks = (unsigned)((length + ORDER_BLOCK - 1) / ORDER_BLOCK);
    unsigned index = lane == 0 ? atomicAdd(&plan.counts[RAGGED_LONG].longs, 1) : 0;
    unsigned item = lane == 0 ? atomicAdd(&plan.counts[RAGGED_LONG].made, blocks) : 0;
    index = __shfl_sync(~0u, index, 0);
    item = __shfl_sync(~0u, item, 0);
    if (lane == 0)
        plan.longs[index] = {item, blocks};
    for (unsigned block = lane; block < blocks; block += WARP) {
        const uint64_t before = (uint64_t)block * ORDER_BLOCK;
        plan.items[RAGGED_LONG][item + block] = {
            first + before, index, (uint16_t)min(length - before, (uint64_t)ORDER_BLOCK), (uint16_t)block};
    }
    for (int pass = 0; pass < plan.pass_count; pass++)
        for (unsigned word = lane; word < blocks * RAGGED_STATES; word += WARP)
            plan.states[pass][item * RAGGED_STATES + word] = 0;
}

/* Puts the items of a thread block's rows in their places, by one atomic operation for each class. */
DEVICE void ragged_items_put(const struct ragged_plan &plan, const struct ragged_row &row,
                             unsigned offsets[RAGGED_WARPS][RAGGED_CLASSES])
{
    const int lane = lane_index(), warp = (int)threadIdx.x / WARP;
    unsigned same = 0;
#pragma unroll
    for (int kind = 0; kind < RAGGED_CLASSES; kind++) {
        const unsigned lanes = __ballot_sync(~0u, row.kind == kind && kind != RAGGED_LONG);
        if (lane == kind)
            offsets[warp][kind] = __popc(lanes);
        same = row.kind == kind ? lanes : same;
    }
    __syncthreads();
    if (threadIdx.x < RAGGED_CLASSES) {
        unsigned count = 0;
        for (int i = 0; i < RAGGED_WARPS; i++)
            count += offsets[i][lane];
        unsigned offset = count > 0 ? atomicAdd(&plan.counts[lane].made, count) : 0;
        for (int i = 0; i < RAGGED_WARPS; i++) {
            count = offsets[i][lane];
            offsets[i][lane] = offset;
            offset += count;
        }
    }
    __syncthreads();
    if (same)
        plan.items[row.kind][offsets[warp][row.kind] + __popc(same & ((1u << lane) - 1))] = row.item;
}

/* Keeps the first items for a warp alone for the one that has made them, which begins with them at once. */
DEVICE void ragged_keep_own(struct ragged_row *row, struct ragged_item own[RAGGED_OWN])
{
    const bool alone = row->kind == RAGGED_ALONE || row->kind == RAGGED_TILE;
    const unsigned before = __popc(__ballot_sync(~0u, alone) & ((1u << lane_index()) - 1));
    if (alone && before < RAGGED_OWN) {
        own[before] = row->item;
        row->kind = RAGGED_CLASSES;
    }
}

/* Makes items, by all thread blocks: a thread makes those that begin with its row. `own`: if not NULL, the items that
 * this warp keeps, all without samples before. */
DEVICE void ragged_items_make(const struct ragged_plan &plan, struct ragged_item *own)
{
    __shared__ unsigned offsets[RAGGED_WARPS][RAGGED_CLASSES];
    for (uint64_t batch = (uint64_t)blockIdx.x * RAGGED_THREADS; batch < plan.rows;
         batch += (uint64_t)gridDim.x * RAGGED_THREADS) {
        const uint64_t number = min(batch + threadIdx.x, plan.rows), end = plan.offsets[min(number + 1, plan.rows)];
        const uint64_t first = plan.offsets[number], length = end - first;
        struct ragged_row row = {{first, (uint32_t)number, (uint16_t)length, 1}, RAGGED_CLASSES};
        if (length > ORDER_BLOCK)
            row.kind = length <= plan.length_max ? RAGGED_LONG : RAGGED_CLASSES;
        else if (length > ORDER_TILE)
            for (row.kind = RAGGED_ALONE; length > plan.alone_max << row.kind;)
                row.kind++;
        ragged_group(&row, end, length <= ORDER_TILE);
        if (own) {
            ragged_pair(&row);
            if (batch < (uint64_t)gridDim.x * RAGGED_THREADS)
                ragged_keep_own(&row, own);
        }
        ragged_items_put(plan, row, offsets);
        for (unsigned longs = __ballot_sync(~0u, row.kind == RAGGED_LONG); longs != 0; longs &= longs - 1) {
            const int lane = __ffs((int)longs) - 1;
            ragged_long_make(plan, __shfl_sync(~0u, first, lane), __shfl_sync(~0u, length, lane));
        }
        __syncthreads();
    }
}

/* The plan's kernel, as a launch of its own. */
static __global__ void __launch_bounds__(RAGGED_THREADS)
    ragged_plan_kernel(const __grid_constant__ struct ragged_plan plan)
{
    ragged_items_make(plan, NULL);
}

#endif

/*
 * Ragged rows (scan.h) as items: what a warp, a team of warps or a thread block of the kernel (ragged.cuh) takes at a
 * time. They are made of the offsets, sorted into classes by length.
 */
#ifndef KERNELS_CUDA_KERNELS_RAGGED_ITEMS_CUH
#define KERNELS_CUDA_KERNELS_RAGGED_ITEMS_CUH

#include "kernels/cuda/exchange/tile_state.cuh"
#include "kernels/cuda/lane/lane.cuh"
#include "kernels/cuda/warp/ragged_rows.cuh"
#include "kernels/cuda/warp/tile_io.cuh"

#define RAGGED_WARPS     8                          /* warps of a thread block */
#define RAGGED_TILES     (ORDER_FAN / RAGGED_WARPS) /* tiles that a warp has room for */
#define RAGGED_SMEM      (RAGGED_TILES * TILE_SMEM) /* vectors of it */
#define RAGGED_SHARED    ((size_t)RAGGED_WARPS * RAGGED_SMEM * VEC16_BYTES)
#define RAGGED_ALONE_MAX (RAGGED_TILES * ORDER_TILE) /* samples of a row for a warp alone */
#define RAGGED_BLOCKS    3                           /* on an SM, if there is shared memory for them */
#define RAGGED_AHEAD     4u                          /* items that a warp takes at a time */
#define RAGGED_THREADS   (RAGGED_WARPS * WARP)

/* The n-th is for teams of 2^n warps: rows of up to 2^n times as many samples as are for a warp alone. But the last two
 * are for order blocks of long rows, and for items of one tile. */
enum ragged_class { RAGGED_ALONE, RAGGED_PAIR, RAGGED_FOUR, RAGGED_EIGHT, RAGGED_LONG, RAGGED_TILE, RAGGED_CLASSES };

struct __align__(16) ragged_item
{
    uint64_t first;   /* sample of the line */
    uint32_t row;     /* the first one; of a long row its index among these */
    uint16_t samples; /* 0: no more work */
    uint16_t number;  /* number of rows; of a long row the number of this order block */
};

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
    const char *input; /* sample 0 of the line */
    char *output;
    const uint64_t *offsets; /* rows + 1 */
    uint64_t rows;
    int pass_count;
    bool backward[SCAND_PASSES_MAX];
    uint64_t length_max;          /* rows beyond are not for these kernels */
    struct ragged_counts *counts; /* counts of each class */
    struct ragged_item *items[RAGGED_CLASSES];
    struct ragged_long *longs;
    tile_state *states[SCAND_PASSES_MAX]; /* tile states of long rows, RAGGED_STATES for each item */
};

#define RAGGED_STATES 4 /* words: a tree over n > 1 items has less than 2 n sums, of 2 words at most */

DEVICE int ragged_tiles(int samples)
{
    return (samples + ORDER_TILE - 1) / ORDER_TILE;
}

/* A lane's row as an item, unless it is in a group. */
struct ragged_row {
    struct ragged_item item;
    int kind; /* an enum ragged_class, or none */
};

/* Rows of at most a tile become items of several. */
DEVICE void ragged_group(struct ragged_row *row, uint64_t end, bool is_short)
{
    bool begins;
    const int next = ragged_group_end(is_short ? ragged_leaves((int)(end - row->item.first)) : WARP + 1, &begins);
    const uint64_t group_end = __shfl_sync(~0u, end, next - 1);
    if (is_short && begins && group_end > row->item.first) {
        row->item.samples = (uint16_t)(group_end - row->item.first);
        row->item.number = (uint16_t)(next - lane_index());
        row->kind = RAGGED_TILE;
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

/* Makes items: a thread makes those that begin with its row. */
static __global__ void __launch_bounds__(RAGGED_THREADS)
    ragged_plan_kernel(const __grid_constant__ struct ragged_plan plan)
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
            for (row.kind = RAGGED_ALONE; length > (uint64_t)RAGGED_ALONE_MAX << row.kind;)
                row.kind++;
        ragged_group(&row, end, length <= ORDER_TILE);
        ragged_items_put(plan, row, offsets);
        for (unsigned longs = __ballot_sync(~0u, row.kind == RAGGED_LONG); longs != 0; longs &= longs - 1) {
            const int lane = __ffs((int)longs) - 1;
            ragged_long_make(plan, __shfl_sync(~0u, first, lane), __shfl_sync(~0u, length, lane));
        }
        __syncthreads();
    }
}

#endif

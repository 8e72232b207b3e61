#include "kernels/cuda/kernels/by_length.h"

#include "kernels/cuda/warp/ragged_rows.cuh"

#define THREADS 256
#define GRID    1024 /* thread blocks at most; they take their rows by turns */
#define LONG    BY_LENGTH_CLASSES
#define TILE    (BY_LENGTH_CLASSES - 1)

/* What the sorting makes, in the workspace. */
struct lists {
    const uint64_t *offsets;
    uint64_t count;
    uint32_t *counts;                                      /* of each list, and of the rows of LONG; zero before */
    struct scan_ragged_item *items[BY_LENGTH_CLASSES + 1]; /* a list for each class, and for LONG */
    uint32_t *block_counts;
    bool grouped;
};
#define COUNTS    (BY_LENGTH_CLASSES + 2)
#define LONG_ROWS (BY_LENGTH_CLASSES + 1)

/* The class of a row, or LONG, or -1. */
DEVICE int class_of(uint64_t length)
{
    if (length == 0 || length > BY_LENGTH_LONGEST)
        return -1;
    if (length > ORDER_BLOCK)
        return LONG;
    int kind = 0;
    while (length <= by_length_longest(kind + 1))
        kind++;
    return kind;
}

DEVICE void add_long(const struct lists &lists, uint64_t row, uint64_t length)
{
    struct scan_ragged_item *const items = lists.items[LONG];
    const uint32_t blocks = (uint32_t)((length + ORDER_BLOCK - 1) / ORDER_BLOCK);
    const uint32_t number = atomicAdd(&lists.counts[LONG_ROWS], 1), at = atomicAdd(&lists.counts[LONG], blocks);
    lists.block_counts[number] = blocks;
    for (uint32_t i = 0; i < blocks; i++)
        items[at + i] = {(uint32_t)row, number * SCAN_RAGGED_SUMS + i};
}

/* The item that begins with this lane's row, one of the last class: so many rows, or none. */
DEVICE int group_of(bool is_short, uint64_t length)
{
    bool begins;
    const int lane = lane_index(), next = ragged_group_end(is_short ? ragged_leaves((int)length) : WARP + 1, &begins);
    const unsigned there = __ballot_sync(~0u, length > 0) >> lane;
    return is_short && begins && (there & (~0u >> (WARP - (next - lane)))) != 0 ? next - lane : 0;
}

/* The rows of a warp have their places in a list by one atomic operation. */
static __global__ void __launch_bounds__(THREADS) by_length_kernel(const __grid_constant__ struct lists lists)
{
    const int lane = lane_index();
    for (uint64_t first = (uint64_t)blockIdx.x * THREADS; first < lists.count; first += (uint64_t)gridDim.x * THREADS) {
        const uint64_t row = first + threadIdx.x;
        const uint64_t length = row < lists.count ? lists.offsets[row + 1] - lists.offsets[row] : 0;
        int kind = class_of(length), rows = 1;
        if (lists.grouped) {
            rows = (int)min((uint64_t)group_of(length <= ORDER_TILE, length), lists.count - min(row, lists.count));
            kind = length > ORDER_TILE ? kind : rows > 0 ? TILE : -1;
        }
        for (int c = 0; c < BY_LENGTH_CLASSES; c++) {
            const unsigned members = __ballot_sync(~0u, kind == c);
            uint32_t at = 0;
            if (members && lane == 0)
                at = atomicAdd(&lists.counts[c], __popc(members));
            at = __shfl_sync(~0u, at, 0) + __popc(members & ((1u << lane) - 1));
            if (kind == c)
                lists.items[c][at] = {(uint32_t)row, lists.grouped && c == TILE ? (uint32_t)rows : 0};
        }
        if (kind == LONG)
            add_long(lists, row, length);
    }
}

cudaError_t scan_by_length_load(void)
{
    return scan_kernel_load((const void *)by_length_kernel);
}

static uint64_t samples_of(const struct scan_rows *rows)
{
    return rows->offsets[rows->row_count] - rows->offsets[0];
}

/* Items of a class, or of LONG, at most. All its rows have more samples than the longest of the next class; order
 * blocks are at most twice as many as whole ones. */
static uint64_t items_most(const struct scan_rows *rows, uint64_t count, int kind)
{
    if (kind == LONG)
        return rows->length > ORDER_BLOCK ? 2 * (samples_of(rows) / ORDER_BLOCK) : 0;
    const uint64_t shorter = by_length_longest(kind + 1);
    return shorter > 0 ? scan_least(count, samples_of(rows) / shorter) : count;
}

/* The lists in a workspace; returns where they end. */
static char *lists_of(const struct scan_rows *rows, uint64_t count, char *workspace, struct lists *lists)
{
    struct scan_ragged_item *at = (struct scan_ragged_item *)(workspace + COUNTS * sizeof(uint32_t));
    lists->count = count;
    lists->counts = (uint32_t *)workspace;
    for (int kind = 0; kind <= LONG; kind++) {
        lists->items[kind] = at;
        at += items_most(rows, count, kind);
    }
    lists->block_counts = (uint32_t *)at;
    const uintptr_t end = (uintptr_t)(lists->block_counts + items_most(rows, count, LONG) / 2);
    return (char *)((end + VEC16_BYTES - 1) / VEC16_BYTES * VEC16_BYTES);
}

uint64_t scan_by_length_bytes(const struct scan_rows *rows, uint64_t count, uint64_t sum_bytes)
{
    struct lists lists;
    const uint64_t sums = items_most(rows, count, LONG) / 2 * SCAN_RAGGED_SUMS * sum_bytes * rows->rule.pass_count;
    return (uintptr_t)lists_of(rows, scan_least(count, BY_LENGTH_MOST), NULL, &lists) + sums;
}

uint64_t scan_longer_row(const uint64_t *offsets, uint64_t row, uint64_t end, uint64_t longest)
{
    for (uint64_t step = 1; row < end;) {
        const uint64_t to = scan_least(row + step, end);
        if (offsets[to] - offsets[row] <= longest) {
            row = to;
            step *= 2;
        } else if (to - row == 1) {
            return row;
        } else {
            step = (to - row) / 2;
        }
    }
    return end;
}

void scan_by_length_longs(const struct scan_rows *rows, uint64_t first, uint64_t count, struct by_length *sorted)
{
    const uint64_t *const offsets = rows->offsets, end = first + count;
    uint64_t row = first;
    while (rows->length > ORDER_BLOCK && (row = scan_longer_row(offsets, row, end, ORDER_BLOCK)) < end) {
        const uint64_t length = offsets[row + 1] - offsets[row];
        const bool is_long = length <= BY_LENGTH_LONGEST;
        sorted->longs.row_count += is_long;
        sorted->longs.item_count += is_long ? scan_blocks(length) : 0;
        row++;
    }
}

cudaError_t scan_by_length(const struct scan_rows *rows, uint64_t first, uint64_t count, void *workspace, bool grouped,
                           struct by_length *sorted, cudaStream_t stream)
{
    struct lists lists = {rows->device_offsets + first};
    *sorted = {};
    lists.grouped = grouped;
    sorted->sums = lists_of(rows, count, (char *)workspace, &lists);
    for (int kind = 0; kind < BY_LENGTH_CLASSES; kind++)
        sorted->classes[kind] = {lists.offsets, items_most(rows, count, kind), lists.items[kind]};
    sorted->longs = {lists.offsets, 0, lists.items[LONG], 0, lists.block_counts};
    const size_t list_bytes = (char *)lists.block_counts - (char *)lists.items[0];
    cudaError_t error = scan_cleared(cudaMemsetAsync(lists.counts, 0, COUNTS * sizeof(uint32_t), stream));
    if (!error)
        error = scan_cleared(cudaMemsetAsync(lists.items[0], 0xff, list_bytes, stream)); /* SCAN_RAGGED_END */
    void *arguments[] = {&lists};
    const uint64_t grid = scan_least(scan_parts(count, THREADS), GRID);
    return error ? error : scan_kernel_launch((const void *)by_length_kernel, grid, THREADS, arguments, 0, stream);
}

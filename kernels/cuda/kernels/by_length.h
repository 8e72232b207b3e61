/*
 * Ragged rows by length, for kernels whose thread blocks take an order block each. In a launch for the rows of one
 * class thread blocks have as many warps as these rows need; and rows of several order blocks share the launches that
 * they need.
 */
#ifndef KERNELS_CUDA_KERNELS_BY_LENGTH_H
#define KERNELS_CUDA_KERNELS_BY_LENGTH_H

#include "kernels/cuda/launch.h"
#include "kernels/cuda/select/plan.h"
#include "kernels/order1/order.h"
#include "kernels/scan.h"

/* Classes of rows of at most an order block, half of it, a fourth, and so on, down to a tile. Then there are the order
 * blocks of longer rows. */
#define BY_LENGTH_CLASSES 6

/* Fewer rows go unsorted. At most so many are sorted at a time, so that 32 bits number them. */
#define BY_LENGTH_LEAST 64
#define BY_LENGTH_MOST  (UINT64_C(1) << 26)

/* The longest rows of several order blocks: those that one level of sums is enough for. */
#define BY_LENGTH_LONGEST (ORDER_FAN * ORDER_BLOCK)

struct by_length {
    struct scan_ragged_rows classes[BY_LENGTH_CLASSES], longs;
    void *sums; /* workspace for `longs` */
};

/* Loads the kernel on the current device. */
cudaError_t scan_by_length_load(void);

/* Samples that a row of a class has at most; 0 for BY_LENGTH_CLASSES. */
static __host__ __device__ constexpr uint64_t by_length_longest(int kind)
{
    return kind < BY_LENGTH_CLASSES ? ORDER_BLOCK >> kind : 0;
}

/* Bytes of workspace for up to `count` of these rows, if a sum takes so many. */
uint64_t scan_by_length_bytes(const struct scan_rows *rows, uint64_t count, uint64_t sum_bytes);

/* Queues the sorting of `count` rows from `first` on, which is row 0 of the result. Empty rows are left out, and rows
 * that are longer than BY_LENGTH_LONGEST. `grouped`: items of the last class are as many rows as have leaves for a
 * warp, `sum` of them. */
cudaError_t scan_by_length(const struct scan_rows *rows, uint64_t first, uint64_t count, void *workspace, bool grouped,
                           struct by_length *sorted, cudaStream_t stream);

/* The first row from `row` on, of those before `end`, of more samples than `longest`; or `end`. Rows that have no more
 * together are passed over at once. */
uint64_t scan_longer_row(const uint64_t *offsets, uint64_t row, uint64_t end, uint64_t longest);

/* Counts, on the host, the rows of sorted->longs and their items, for grids. */
void scan_by_length_longs(const struct scan_rows *rows, uint64_t first, uint64_t count, struct by_length *sorted);

#endif

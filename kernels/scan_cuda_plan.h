/*
 * Plans: rows as the kernels see them.
 */
#ifndef KERNELS_SCAN_CUDA_PLAN_H
#define KERNELS_SCAN_CUDA_PLAN_H

#include "kernels/cuda/scan.cuh"
#include "kernels/scan.h"

/* Rows first <= r < first + count, and how samples of 4 bytes, and results of 4 or 8, travel. */
struct scan_plan scan_plan_of(const struct scan_rows *rows, uint64_t first, uint64_t count);

/* How samples of `size` bytes travel. */
enum scan_access scan_access_of(const struct scan_plan *plan, const struct scan_side *side, int64_t size);

/* Whether all rows begin with a slot, on both sides. */
bool scan_plan_is_aligned(const struct scan_plan *plan);

/* Whether rows of 4-byte samples lie one right after the other. */
bool scan_side_is_packed(const struct scan_plan *plan, const struct scan_side *side);

/* Order blocks of a row; warps of a thread block that works on one; sums of all levels above those of `count` rows. */
uint64_t scan_blocks(uint64_t length);
int scan_plan_warps(uint64_t length);
uint64_t scan_sums(uint64_t length, uint64_t count);

#endif

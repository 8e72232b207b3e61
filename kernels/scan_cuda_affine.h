/*
 * The affine recurrence on a CUDA device, for scan_cuda.cu.
 */
#ifndef KERNELS_SCAN_CUDA_AFFINE_H
#define KERNELS_SCAN_CUDA_AFFINE_H

#include "kernels/scan.h"
#include "kernels/scan_cuda.h"
#include "kernels/scan_cuda_launch.h"

/* Loads the kernels on the current device. */
cudaError_t scan_affine_load(int shared_max);

/* The number of the kernel for any layout that these rows take. */
#define SCAN_AFFINES 12
int scan_affine_number(const struct scan_rows *rows);

/* Queues scans that select_together_of calls affine and that take the same such kernel, which needs no workspace. */
cudaError_t scan_affine_together(const struct scan_part *parts, unsigned count, cudaStream_t stream);

/* Bytes of what is kept of an order block for each pass. */
uint64_t scan_affine_sum_bytes(const struct scan_rule *rule);
/*
 * Queues the scan of rows first <= r < first + count; of ragged ones, which have device_offsets, those of at most an
 * order block, and `length` is one at most. `totals`, in device memory, are those of the rows, last of sums_per_row
 * each, where means are to be taken away, else NULL. `workspace`: pass_count x count x sums_per_row x sum_bytes where
 * rows have several order blocks.
 */
cudaError_t scan_affine(struct scan_device *device, const struct scan_rows *rows, uint64_t first, uint64_t count,
                        const double *totals, void *workspace, cudaStream_t stream);

#endif

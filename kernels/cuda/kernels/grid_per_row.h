/*
 * Rows of several order blocks in one launch or three (cuda/kernels/grid_per_row.cuh): launched here, for scan_cuda.cu.
 */
#ifndef KERNELS_CUDA_KERNELS_GRID_PER_ROW_H
#define KERNELS_CUDA_KERNELS_GRID_PER_ROW_H

#include "kernels/cuda/launch.h"
#include "kernels/scan.h"

struct scan_grid_per_row_device {
    int grid; /* thread blocks that are resident together; 0: the device cannot run these kernels */
};

/* Loads the kernels on the current device. */
cudaError_t scan_grid_per_row_load(const struct scan_device *device, struct scan_grid_per_row_device *grid_per_row);

/* The workspace where `sums` sums of `sum_bytes` make one pass's trees; at least as much as other ways need. */
uint64_t scan_grid_per_row_workspace_bytes(const struct scan_rule *rule, uint64_t sums, uint64_t sum_bytes);

/* Queues the scan. Two passes over rows of more blocks than thread blocks are resident have to be `sums_first`: one
 * launch for the sums of the passes, one for the carries of the second, one for the values. */
cudaError_t scan_grid_per_row(struct scan_device *device, const struct scan_grid_per_row_device *grid_per_row,
                              const struct scan_rule *rule, const struct scan_plan *plan, bool sums_first,
                              void *workspace, cudaStream_t stream);

#endif

/*
 * Columns that lie side by side in memory (cuda/kernels/columns_shared.cuh): launched here, for scan_cuda.cu.
 */
#ifndef KERNELS_CUDA_KERNELS_COLUMNS_SHARED_H
#define KERNELS_CUDA_KERNELS_COLUMNS_SHARED_H

#include "kernels/cuda/launch.h"
#include "kernels/scan.h"

#define SCAN_COLUMNS 6 /* kernels: by output and accumulator */

struct scan_columns_device {
    int grid[SCAN_COLUMNS]; /* thread blocks that are resident together; 0: the device cannot run these kernels */
};

/* Loads the kernels on the current device. */
cudaError_t scan_columns_load(struct scan_columns_device *columns, const struct scan_device *device);

/* Device memory that the rows need if they lie so; else 0. */
uint64_t scan_columns_workspace_bytes(const struct scan_rule *rule, const struct scan_plan *plan);

cudaError_t scan_columns(const struct scan_columns_device *columns, const struct scan_rule *rule,
                         const struct scan_plan *plan, void *workspace, cudaStream_t stream);

#endif

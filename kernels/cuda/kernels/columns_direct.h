/*
 * Columns that lie side by side in memory, of any rule (cuda/kernels/columns_direct.cuh): launched here, for
 * scan_cuda.cu.
 */
#ifndef KERNELS_CUDA_KERNELS_COLUMNS_DIRECT_H
#define KERNELS_CUDA_KERNELS_COLUMNS_DIRECT_H

#include "kernels/cuda/launch.h"
#include "kernels/scan.h"

/* Loads the kernels on the current device. */
cudaError_t scan_columns_direct_load(void);

/* Device memory that the rows need if they lie so; else 0. */
uint64_t scan_columns_direct_workspace_bytes(const struct scan_rule *rule, const struct scan_plan *plan);

cudaError_t scan_columns_direct(const struct scan_device *device, const struct scan_rule *rule,
                                const struct scan_plan *plan, void *workspace, cudaStream_t stream);

#endif

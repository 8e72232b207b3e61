/*
 * Columns that thread blocks stream through (cuda/kernels/columns_streaming.cuh): launched here, for scan_cuda.cu.
 */
#ifndef KERNELS_CUDA_KERNELS_COLUMNS_STREAMING_H
#define KERNELS_CUDA_KERNELS_COLUMNS_STREAMING_H

#include "kernels/cuda/launch.h"
#include "kernels/scan.h"

#define COLUMNS_STREAMING_KERNELS 6 /* kernels: by output and accumulator */

struct scan_columns_streaming_device {
    int resident[COLUMNS_STREAMING_KERNELS]; /* thread blocks of an SM; 0: the device cannot run these kernels */
    uint64_t processors;
};

/* Loads the kernels on the current device. */
cudaError_t scan_columns_streaming_load(struct scan_columns_streaming_device *streaming,
                                        const struct scan_device *device);

/* Device memory that the rows need if they lie so; else 0. */
uint64_t scan_columns_streaming_workspace_bytes(const struct scan_rule *rule, const struct scan_plan *plan);

cudaError_t scan_columns_streaming(const struct scan_columns_streaming_device *streaming, const struct scan_rule *rule,
                                   const struct scan_plan *plan, void *workspace, cudaStream_t stream);

#endif

/*
 * Columns that lanes walk along (cuda/kernels/columns_streaming.cuh): launched here, for scan_cuda.cu.
 */
#ifndef KERNELS_CUDA_KERNELS_COLUMNS_STREAMING_H
#define KERNELS_CUDA_KERNELS_COLUMNS_STREAMING_H

#include "kernels/cuda/launch.h"
#include "kernels/scan.h"

#define SCAN_WALKS 6 /* kernels: by output and accumulator */

struct scan_walk_device {
    int resident[SCAN_WALKS]; /* thread blocks of a processor; 0: the device cannot run these kernels */
    uint64_t processors;
};

/* Loads the kernels on the current device. */
cudaError_t scan_walk_load(struct scan_walk_device *walk, const struct scan_device *device);

/* Device memory that the rows need if they lie so; else 0. */
uint64_t scan_walk_workspace_bytes(const struct scan_rule *rule, const struct scan_plan *plan);

cudaError_t scan_walk(const struct scan_walk_device *walk, const struct scan_rule *rule, const struct scan_plan *plan,
                      void *workspace, cudaStream_t stream);

#endif

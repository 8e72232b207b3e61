/*
 * The kernels for rows of few tiles (cuda/kernels/warp_per_row.cuh): their instances and launch.
 */
#ifndef KERNELS_CUDA_KERNELS_WARP_PER_ROW_H
#define KERNELS_CUDA_KERNELS_WARP_PER_ROW_H

#include "kernels/cuda/launch.h"
#include "kernels/scan.h"

#define FEW_TILES_MAX 3

/* What scan_few_load finds out about a device: thread blocks per processor. */
struct scan_few_device {
    int resident[FEW_TILES_MAX][SCAN_SUMS];
};

/* Loads the kernels on the current device. */
cudaError_t scan_few_load(struct scan_few_device *few);

/* Queues the scan. */
cudaError_t scan_few(struct scan_device *device, const struct scan_few_device *few, const struct scan_rule *rule,
                     const struct scan_plan *plan, cudaStream_t stream);

#endif

/*
 * The kernels for rows of few tiles (cuda/few.cuh): their instances and launch.
 */
#ifndef KERNELS_SCAN_CUDA_FEW_H
#define KERNELS_SCAN_CUDA_FEW_H

#include "kernels/cuda/few.cuh"
#include "kernels/scan.h"
#include "kernels/scan_cuda_launch.h"
#include "kernels/scan_cuda_short.h"

/* What scan_few_load finds out about a device: thread blocks per processor. */
struct scan_few_device {
    int resident[FEW_TILES_MAX][SCAN_SHORTS];
};

/* Loads the kernels on the current device. */
cudaError_t scan_few_load(struct scan_few_device *few);

/* Queues the scan. */
cudaError_t scan_few(struct scan_device *device, const struct scan_few_device *few, const struct scan_rule *rule,
                     const struct scan_plan *plan, cudaStream_t stream);

#endif

/*
 * The kernels for rows of few tiles (cuda/kernels/warp_per_row.cuh): their instances and launch.
 */
#ifndef KERNELS_CUDA_KERNELS_WARP_PER_ROW_H
#define KERNELS_CUDA_KERNELS_WARP_PER_ROW_H

#include "kernels/cuda/launch.h"
#include "kernels/scan.h"

#define WARP_PER_ROW_TILES_MAX 3

/* A device as scan_warp_per_row_load has found it: thread blocks per SM. */
struct scan_warp_per_row_device {
    int resident[WARP_PER_ROW_TILES_MAX][SCAN_SUMS];
};

/* Loads the kernels on the current device. */
cudaError_t scan_warp_per_row_load(struct scan_warp_per_row_device *warp_per_row);

/* Queues the scan. */
cudaError_t scan_warp_per_row(struct scan_device *device, const struct scan_warp_per_row_device *warp_per_row,
                              const struct scan_rule *rule, const struct scan_plan *plan, cudaStream_t stream);

#endif

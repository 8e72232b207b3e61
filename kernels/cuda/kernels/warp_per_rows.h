/*
 * The kernels for short rows, of which a warp takes several (cuda/kernels/warp_per_rows.cuh): their instances and
 * launch.
 */
#ifndef KERNELS_CUDA_KERNELS_WARP_PER_ROWS_H
#define KERNELS_CUDA_KERNELS_WARP_PER_ROWS_H

#include "kernels/cuda/launch.h"
#include "kernels/scan.h"

/* A device as scan_warp_per_rows_load has found it. */
struct scan_warp_per_rows_device {
    int resident[SCAN_SUMS]; /* thread blocks per SM */
};

/* Loads the kernels on the current device. */
cudaError_t scan_warp_per_rows_load(struct scan_warp_per_rows_device *warp_per_rows);

/* Queues the scan. */
cudaError_t scan_warp_per_rows(struct scan_device *device, const struct scan_warp_per_rows_device *warp_per_rows,
                               const struct scan_rule *rule, const struct scan_plan *plan, cudaStream_t stream);

#endif

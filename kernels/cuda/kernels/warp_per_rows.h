/*
 * The kernels for short rows (cuda/kernels/warp_per_rows.cuh, cuda/kernels/thread_per_row.cuh): their instances and
 * launches.
 */
#ifndef KERNELS_CUDA_KERNELS_WARP_PER_ROWS_H
#define KERNELS_CUDA_KERNELS_WARP_PER_ROWS_H

#include "kernels/cuda/kernels/thread_per_row.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/scan.h"

#define SCAN_SHORTS 6

/* What scan_short_load finds out about a device: thread blocks per processor. */
struct scan_short_device {
    int resident[SCAN_SHORTS];
    uint8_t lanes_resident[SCAN_SHORTS][2][LANES_LENGTH_MAX + 1]; /* by short_plan.ahead and the rows' length */
};

/* Loads the kernels on the current device. */
cudaError_t scan_short_load(struct scan_short_device *shorts, int shared_max);

/* Which of them a rule for sums of f32 into f32 takes; -1: none, because a pass leaves f64 of f2. */
int scan_short_of(const struct scan_rule *rule);

/* Queue the scan: a warp takes rows, or a lane, which may fetch ahead. */
cudaError_t scan_short(struct scan_device *device, const struct scan_short_device *shorts, const struct scan_rule *rule,
                       const struct scan_plan *plan, cudaStream_t stream);
cudaError_t scan_lanes(const struct scan_device *device, const struct scan_short_device *shorts,
                       const struct scan_rule *rule, const struct scan_plan *plan, bool ahead, cudaStream_t stream);

#endif

/*
 * Rows of several order blocks in one launch (cuda/long.cuh): chosen and launched here, for scan_cuda.cu.
 */
#ifndef KERNELS_SCAN_CUDA_LONG_H
#define KERNELS_SCAN_CUDA_LONG_H

#include "kernels/cuda/scan.cuh"
#include "kernels/scan.h"
#include "kernels/scan_cuda_launch.h"

struct scan_long_device {
    int grid; /* thread blocks that are resident together; 0: the device cannot run these kernels */
};

/* Loads the kernels on the current device. */
cudaError_t scan_long_load(struct scan_long_device *device, int processors);

/* Whether rows of more than one block that a rule for sums of f32 scans go this way. */
bool scan_long_takes(const struct scan_long_device *device, const struct scan_rule *rule, const struct scan_plan *plan);

/* What it needs where `sums` sums of `sum_bytes` make one pass's trees; at least as much as other ways do. */
uint64_t scan_long_workspace_bytes(const struct scan_rule *rule, uint64_t sums, uint64_t sum_bytes);

/* Whether the blocks of a row are so few that one launch does everything. */
bool scan_long_fits(const struct scan_long_device *device, const struct scan_plan *plan);

/*
 * Where they fit: scans. Else, for two passes: sets plan->sums, to the carries into all blocks in the first pass and
 * the blocks' totals in the second. `aligned`: all rows begin with a slot.
 */
cudaError_t scan_long_run(const struct scan_long_device *device, const struct scan_rule *rule, struct scan_plan *plan,
                          bool aligned, void *workspace, cudaStream_t stream);

#endif

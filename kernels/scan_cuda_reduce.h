/*
 * The kernels for reductions (cuda/reduce.cuh), chosen and launched. Called by scan_cuda.cu alone.
 */
#ifndef KERNELS_SCAN_CUDA_REDUCE_H
#define KERNELS_SCAN_CUDA_REDUCE_H

#include "kernels/scan.h"
#include "kernels/scan_cuda_launch.h"

#define SCAN_REDUCES 4 /* sums, sums of squares, max and min */

/* What scan_reduce_load finds out about a device. */
struct scan_reduce_device {
    int processors;
    int resident[SCAN_REDUCES], short_resident[SCAN_REDUCES]; /* thread blocks per processor */
};

/* Loads the kernels on the current device. */
cudaError_t scan_reduce_load(struct scan_reduce_device *device, int processors);

/* Whether they take samples of this type: of class f32, in 4 bytes. */
bool scan_reduce_takes(const struct scan_rule *rule);
/* Whether the results are made of totals of order blocks, in the workspace, by scan_reduce_finish. */
bool scan_reduce_needs_totals(const struct scan_rows *rows);

struct scan_plan;

/* Queues the reduction of the plan's rows, or the totals of their blocks into `totals`. */
cudaError_t scan_reduce(const struct scan_reduce_device *device, const struct scan_rows *rows,
                        const struct scan_plan *plan, void *totals, cudaStream_t stream);
/* Queues the results of `count` rows from the totals of their blocks; of rows without samples `totals` may be NULL. */
cudaError_t scan_reduce_finish(const struct scan_rows *rows, const struct scan_plan *plan, uint64_t count, void *totals,
                               cudaStream_t stream);

#endif

/*
 * The kernels for the shortest rows, of which a lane takes one (cuda/kernels/thread_per_row.cuh): their instances and
 * launch.
 */
#ifndef KERNELS_CUDA_KERNELS_THREAD_PER_ROW_H
#define KERNELS_CUDA_KERNELS_THREAD_PER_ROW_H

#include "kernels/cuda/launch.h"
#include "kernels/order1/order.h"
#include "kernels/scan.h"

#define THREAD_PER_ROW_LENGTH_MAX (4 * ORDER_LEAF)

/* A device as scan_thread_per_row_load has found it. */
struct scan_thread_per_row_device {
    uint8_t resident[SCAN_SUMS][2][THREAD_PER_ROW_LENGTH_MAX + 1]; /* thread blocks per SM, by whether they fetch ahead
                                                             and the rows' length */
};

/* Loads the kernels on the current device. */
cudaError_t scan_thread_per_row_load(struct scan_thread_per_row_device *thread_per_row, int shared_max);

/* Queues the scan; warps may fetch the next rows ahead. */
cudaError_t scan_thread_per_row(const struct scan_device *device,
                                const struct scan_thread_per_row_device *thread_per_row, const struct scan_rule *rule,
                                const struct scan_plan *plan, bool ahead, cudaStream_t stream);

#endif

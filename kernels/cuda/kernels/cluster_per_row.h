/*
 * Rows of several order blocks, each in a thread block cluster (cuda/kernels/cluster_per_row.cuh): launched here, for
 * scan_cuda.cu.
 */
#ifndef KERNELS_CUDA_KERNELS_CLUSTER_PER_ROW_H
#define KERNELS_CUDA_KERNELS_CLUSTER_PER_ROW_H

#include "kernels/cuda/launch.h"
#include "kernels/scan.h"

#define CLUSTER_SIZE_MAX 8  /* thread blocks, as on every device that has clusters */
#define CLUSTER_WARPS    32 /* warps of a thread block, at most */

struct scan_cluster_device {
    void *encode; /* the driver's function that makes tensor maps */
    /* Clusters that are resident together, once that was asked for: -1 before. By kernel, in the order of
     * scan_sum_number, by size and by warps of a thread block. */
    int16_t resident[SCAN_SUMS][CLUSTER_SIZE_MAX + 1][CLUSTER_WARPS + 1];
};

/* Loads the kernels on the current device, or says in `device` that it cannot run them. */
cudaError_t scan_cluster_load(struct scan_cluster_device *cluster, struct scan_device *device);

/* Queues the scan. */
cudaError_t scan_cluster(struct scan_cluster_device *cluster, const struct scan_rule *rule,
                         const struct scan_plan *scan, cudaStream_t stream);

#endif

/*
 * Rows of several order blocks, each in a thread block cluster (cuda/kernels/cluster_per_row.cuh): launched here, for
 * scan_cuda.cu.
 */
#ifndef KERNELS_CUDA_KERNELS_CLUSTER_PER_ROW_H
#define KERNELS_CUDA_KERNELS_CLUSTER_PER_ROW_H

#include "kernels/cuda/kernels/cluster_per_row.cuh"
#include "kernels/cuda/kernels/warp_per_rows.h"
#include "kernels/cuda/launch.h"
#include "kernels/scan.h"

struct scan_cluster_device {
    void *encode; /* the driver's function that makes tensor maps */
    /* Clusters that are resident together, once that was asked for: -1 before. By kernel, as scan_short_of has it, by
     * size and by warps of a thread block. */
    int16_t resident[SCAN_SHORTS][CLUSTER_SIZE_MAX + 1][CLUSTER_WARPS + 1];
};

/* Loads the kernels on the current device, or says in `device` that it cannot run them. */
cudaError_t scan_cluster_load(struct scan_cluster_device *cluster, struct scan_device *device);

/* Queues the scan. */
cudaError_t scan_cluster(struct scan_cluster_device *cluster, const struct scan_rule *rule,
                         const struct scan_plan *scan, cudaStream_t stream);

#endif

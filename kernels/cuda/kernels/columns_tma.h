/*
 * Columns that are moved as tiles by TMA and added up in f32 (cuda/kernels/columns_tma.cuh): launched here, for
 * scan_cuda.cu.
 */
#ifndef KERNELS_CUDA_KERNELS_COLUMNS_TMA_H
#define KERNELS_CUDA_KERNELS_COLUMNS_TMA_H

#include "kernels/cuda/launch.h"
#include "kernels/scan.h"

struct scan_columns_tma_device {
    int processors; /* 0: the device cannot run these kernels */
    void *encode;   /* function of the driver that makes tensor maps */
};

/* Loads the kernels on the current device. */
cudaError_t scan_columns_tma_load(struct scan_columns_tma_device *tma, const struct scan_device *device);

/* Device memory that the rows need if they lie so; else 0. */
uint64_t scan_columns_tma_workspace_bytes(const struct scan_rule *rule, const struct scan_plan *plan);

cudaError_t scan_columns_tma(const struct scan_columns_tma_device *tma, const struct scan_rule *rule,
                             const struct scan_plan *plan, void *workspace, cudaStream_t stream);

#endif

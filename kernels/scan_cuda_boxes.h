/*
 * Columns that are moved in boxes and added up in f32 (cuda/boxes.cuh): launched here, for scan_cuda.cu.
 */
#ifndef KERNELS_SCAN_CUDA_BOXES_H
#define KERNELS_SCAN_CUDA_BOXES_H

#include "kernels/cuda/scan.cuh"
#include "kernels/scan.h"
#include "kernels/scan_cuda_launch.h"

struct scan_boxes_device {
    int processors; /* 0: the device cannot run these kernels */
    void *encode;   /* of the driver: makes tensor maps */
};

/* Loads the kernels on the current device. */
cudaError_t scan_boxes_load(struct scan_boxes_device *boxes, const struct scan_device *device);

/* Device memory that the rows need if they lie so; else 0. */
uint64_t scan_boxes_workspace_bytes(const struct scan_rule *rule, const struct scan_plan *plan);

cudaError_t scan_boxes(const struct scan_boxes_device *boxes, const struct scan_rule *rule,
                       const struct scan_plan *plan, void *workspace, cudaStream_t stream);

#endif

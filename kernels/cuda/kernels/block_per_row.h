/*
 * The block_per_row kernel (cuda/kernels/block_per_row.cuh): its instances, chosen by rule, and its launch.
 */
#ifndef KERNELS_CUDA_KERNELS_BLOCK_PER_ROW_H
#define KERNELS_CUDA_KERNELS_BLOCK_PER_ROW_H

#include "kernels/cuda/launch.h"
#include "kernels/order1/order.h"
#include "kernels/scan.h"

#define BLOCK_PER_ROW_KERNELS 20

/* A device as scan_block_per_row_load has found it. */
struct scan_block_per_row_device {
    uint8_t resident[BLOCK_PER_ROW_KERNELS][2][ORDER_FAN + 1]; /* thread blocks per SM, by scan_plan.ahead and warps */
};

/* Loads the kernels on the current device. */
cudaError_t scan_block_per_row_load(struct scan_block_per_row_device *block_per_row, int shared_max);

/* Queues what the plan says: one launch, of values or of totals. */
cudaError_t scan_block_per_row(struct scan_device *device, const struct scan_block_per_row_device *block_per_row,
                               const struct scan_rule *rule, struct scan_plan *plan, cudaStream_t stream);

#endif

/*
 * The kernels for ragged rows (cuda/kernels/ragged.cuh), launched. Called by scan_cuda.cu alone.
 */
#ifndef KERNELS_CUDA_KERNELS_RAGGED_H
#define KERNELS_CUDA_KERNELS_RAGGED_H

#include "kernels/cuda/launch.h"
#include "kernels/scan.h"

/* A device as scan_ragged_load has found it. */
struct scan_ragged_device {
    int processors;
    int resident[SCAN_SUMS]; /* thread blocks per SM */
};

/* Loads the kernels on the current device, if it has the shared memory that they need. */
cudaError_t scan_ragged_load(struct scan_ragged_device *ragged, const struct scan_device *device);

/* The longest row that they take. */
uint64_t scan_ragged_length_max(const struct scan_ragged_device *device);
uint64_t scan_ragged_workspace_bytes(const struct scan_rows *rows);
/* Queues the scan of rows first <= r < first + count but for longer ones. */
cudaError_t scan_ragged(const struct scan_ragged_device *device, const struct scan_rows *rows, uint64_t first,
                        uint64_t count, void *workspace, cudaStream_t stream);

#endif

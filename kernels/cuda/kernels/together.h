/*
 * The kernel for several small sums in one launch (cuda/kernels/together.cuh).
 */
#ifndef KERNELS_CUDA_KERNELS_TOGETHER_H
#define KERNELS_CUDA_KERNELS_TOGETHER_H

#include "kernels/cuda/launch.h"
#include "kernels/cuda/scan_cuda.h"

/* Loads the kernel on the current device. */
cudaError_t scan_together_load(const struct scan_device *device);

/* Queues up to SCAN_TOGETHER scans that select_together_of calls sums. */
cudaError_t scan_together(const struct scan_part *parts, unsigned count, cudaStream_t stream);

#endif

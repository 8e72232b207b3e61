/*
 * The kernel for several small sums in one launch (cuda/together.cuh).
 */
#ifndef KERNELS_SCAN_CUDA_TOGETHER_H
#define KERNELS_SCAN_CUDA_TOGETHER_H

#include "kernels/scan_cuda.h"
#include "kernels/scan_cuda_launch.h"

/* Loads the kernel on the current device. */
cudaError_t scan_together_load(const struct scan_device *device);

/* Queues up to SCAN_TOGETHER scans that select_together_of calls sums. */
cudaError_t scan_together(const struct scan_part *parts, unsigned count, cudaStream_t stream);

#endif

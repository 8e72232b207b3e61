/*
 * The kernels for reductions (cuda/kernels/reduce.cuh), their instances and launches. Called by scan_cuda.cu alone.
 */
#ifndef KERNELS_CUDA_KERNELS_REDUCE_H
#define KERNELS_CUDA_KERNELS_REDUCE_H

#include "kernels/cuda/launch.h"
#include "kernels/cuda/scan_cuda.h"
#include "kernels/cuda/select/ranges.h"
#include "kernels/cuda/select/select.h"
#include "kernels/scan.h"

/* Loads the kernels on the current device. */
cudaError_t scan_reduce_load(const struct scan_device *device);

/* The number of the kernels that a rule takes. */
#define SCAN_REDUCERS 20
int scan_reduce_number(const struct scan_rule *rule);

/* Queues reductions that select_together_of calls such and that take the same kernels, which needs no workspace. */
cudaError_t scan_reduce_together(const struct scan_part *parts, unsigned count, cudaStream_t stream);

uint64_t scan_reduce_workspace_bytes(const struct scan_rows *rows, uint64_t count);

/* Queues the reduction of rows first <= r < first + count; one of the paths for that; with `range` that range
 * of one row. */
cudaError_t scan_reduce(const struct scan_device *device, enum select_path path, const struct scan_rows *rows,
                        uint64_t first, uint64_t count, const struct scan_range *range, void *workspace,
                        cudaStream_t stream);

#endif

/*
 * The any_layout kernels (cuda/kernels/any_layout.cuh): every operator, dtype and layout.
 */
#ifndef KERNELS_CUDA_KERNELS_ANY_LAYOUT_H
#define KERNELS_CUDA_KERNELS_ANY_LAYOUT_H

#include "kernels/cuda/launch.h"
#include "kernels/cuda/scan_cuda.h"
#include "kernels/cuda/select/ranges.h"
#include "kernels/order1/operators.h"
#include "kernels/scan.h"

/* Loads the kernels on the current device. */
cudaError_t scan_any_layout_load(int shared_max);

/* The number of the kernel that a rule takes. */
#define ANY_LAYOUT_KERNELS (3 * NUMBER_OPERATOR_COUNT + ADDING_OPERATOR_COUNT)
int scan_any_layout_number(const struct scan_rule *rule);

/* Queues scans that select_together_of calls general ones and that take the same kernel, which needs no workspace. */
cudaError_t scan_any_layout_together(const struct scan_part *parts, unsigned count, cudaStream_t stream);

/* Bytes of what is kept of an order block for each pass. */
uint64_t scan_any_layout_sum_bytes(const struct scan_rule *rule);

/* Queues the scan of the plan's rows, `offsets` of them if they are ragged, else NULL; with `range` that range of one.
 * The workspace has for each pass the sums of rows of several order blocks, and before them, to take means away, as
 * many doubles. */
cudaError_t scan_any_layout(struct scan_device *device, const struct scan_rule *rule, const struct scan_plan *plan,
                            const uint64_t *offsets, const struct scan_range *range, void *workspace,
                            cudaStream_t stream);

/* The plan of kernels that read and write as the any_layout kernel does (cuda/warp/any_leaf.cuh). */
struct any_plan;
struct any_plan scan_any_layout_plan_of(const struct scan_rule *rule, const struct scan_plan *scan,
                                        const uint64_t *offsets);

/* Queues the totals of rows, which are not ragged, forward in f64: the last of sums_per_row each, after those of the
 * levels below; or a range of that. */
cudaError_t scan_any_layout_totals(struct scan_device *device, const struct scan_rule *rule,
                                   const struct scan_plan *plan, double *totals, const struct scan_range *range,
                                   cudaStream_t stream);

#endif

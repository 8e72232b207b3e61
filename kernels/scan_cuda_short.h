/*
 * The kernels for short rows (cuda/short.cuh, cuda/lanes.cuh): chosen here, launched by scan_cuda.cu.
 */
#ifndef KERNELS_SCAN_CUDA_SHORT_H
#define KERNELS_SCAN_CUDA_SHORT_H

#include "kernels/scan.h"

#define SCAN_SHORTS 6
extern const void *const scan_shorts[SCAN_SHORTS];
extern const void *const scan_lanes[SCAN_SHORTS]; /* the same for the shortest */

/* Which of them a rule for sums of f32 into f32 takes; -1: none, because a pass leaves f64 of f2. */
int scan_short_of(const struct scan_rule *rule);

#endif

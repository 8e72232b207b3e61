/*
 * The general kernels, by what they keep: chosen here, launched by scan_cuda.cu.
 */
#ifndef KERNELS_SCAN_CUDA_GENERAL_H
#define KERNELS_SCAN_CUDA_GENERAL_H

#include "kernels/scan.h"

struct scan_general {
    const void *kernels[2]; /* general_kernel, the second fetches ahead */
    const void *carries[2]; /* carries_kernel, forward and backward */
    uint32_t sum_bytes;
};

#define SCAN_GENERALS 14
extern const struct scan_general scan_generals[SCAN_GENERALS];

/* Which of them a rule takes, and the one that totals f64 for a mean. */
const struct scan_general *scan_general_of(const struct scan_rule *rule);
const struct scan_general *scan_general_of_mean(void);

#endif

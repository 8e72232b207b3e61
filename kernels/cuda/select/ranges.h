/*
 * Very long rows by ranges of their order blocks, so that each launch is over soon, and others come first between two
 * launches, or the row is given up. In order 1 a block's total depends on its samples alone, and its values on those
 * and on the carry into the block, so bits do not depend on where a row is cut. Plain C, so that it is tested without a
 * GPU.
 */
#ifndef KERNELS_RANGES_H
#define KERNELS_RANGES_H

#include "kernels/cuda/select/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

enum range_work {
    RANGE_MEAN_TOTALS, /* with `demean`: totals of blocks, forward and in f64, */
    RANGE_MEAN,        /* and the row's total of them */
    RANGE_TOTALS,      /* totals of blocks in a pass, or of a reduction */
    RANGE_CARRIES,     /* into all blocks in that pass */
    RANGE_VALUES,
    RANGE_RESULT, /* result of a reduction */
};

struct scan_range {
    enum range_work work;
    int pass;
    uint64_t first, count; /* order blocks of the row */
};

/* Return how many ranges a row is, each of at most `blocks` order blocks but for those that are all carries, and the
 * n-th of them. */
uint64_t ranges_count(const struct scan_rule *rule, uint64_t length, uint64_t blocks);
struct scan_range ranges_at(const struct scan_rule *rule, uint64_t length, uint64_t blocks, uint64_t number);

static inline bool range_is_mean(const struct scan_range *range)
{
    return range->work == RANGE_MEAN_TOTALS || range->work == RANGE_MEAN;
}

/* Makes of a row's plan that of one of its ranges. */
void scan_plan_narrow(struct scan_plan *plan, const struct scan_range *range);

/* Return how long a row takes in all, estimated high, on a device of so many SMs; and how many order blocks make a
 * range that takes LIMIT_LAUNCH_MS. `mapped`: samples are in host memory. Of one row, which is not ragged. */
uint64_t ranges_row_us(const struct scan_rows *rows, bool mapped, int processors);
uint64_t ranges_blocks(const struct scan_rows *rows, bool mapped, int processors);

#ifdef __cplusplus
}
#endif

#endif

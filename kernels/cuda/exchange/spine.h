/*
 * Rows of several order blocks in several launches: for each pass one that stores the blocks' totals and some that make
 * carries of them (cuda/exchange/spine.cuh), then one for the values.
 */
#ifndef KERNELS_CUDA_EXCHANGE_SPINE_H
#define KERNELS_CUDA_EXCHANGE_SPINE_H

#include "kernels/cuda/launch.h"
#include "kernels/cuda/select/plan.h"
#include "kernels/cuda/select/ranges.h"
#include "kernels/order1/order.h"
#include "kernels/scan.h"

struct scan_spine {
    const void *ups[2], *downs[2]; /* spine_up_kernel and spine_down_kernel, forward and backward */
    uint64_t sum_bytes;
};

cudaError_t scan_spine_load(const struct scan_spine *spine);

/* A level of the sums of rows of several order blocks: its members, so many each or, where rows are ragged and have one
 * level, as device memory has it. */
struct scan_spine_rows {
    uint64_t rows, sums_per_row, members;
    const uint32_t *member_counts;
};

/* Queues the totals of the groups of a level, whose members' totals become prefixes in their groups. */
cudaError_t scan_spine_up(const void *kernel, void *level, struct scan_spine_rows rows, cudaStream_t stream);

/* Queues the carries into all blocks of rows, in place of the totals of these blocks in `sums`. */
cudaError_t scan_spine_launch(const struct scan_spine *spine, bool backward, void *sums, struct scan_spine_rows rows,
                              cudaStream_t stream);

/* The level of order blocks of a plan's rows or, unless it is NULL, of `ragged` rows; without rows where none has
 * several order blocks. */
static inline struct scan_spine_rows scan_spine_rows_of(const struct scan_plan *plan,
                                                        const struct scan_ragged_rows *ragged)
{
    if (ragged && ragged->row_count > 0)
        return {ragged->row_count, SCAN_RAGGED_SUMS, ORDER_FAN, ragged->block_counts};
    if (plan->blocks > 1)
        return {plan->items / plan->blocks, plan->sums_per_row, plan->blocks, NULL};
    return {};
}

/* Queues the carries of one pass of a plan, whose rows are not ragged. */
template <class Plan>
cudaError_t scan_spine_of_pass(const struct scan_spine *spine, const Plan *plan, int pass, cudaStream_t stream)
{
    return scan_spine_launch(spine, plan->backward[pass], plan->sums[pass], scan_spine_rows_of(plan, NULL), stream);
}

/* One range of a row. */
template <class Plan, class Launch>
cudaError_t scan_range_with_spine(const struct scan_spine *spine, Plan *plan, const struct scan_range *range,
                                  cudaStream_t stream, Launch launch)
{
    if (range->work == RANGE_CARRIES)
        return scan_spine_of_pass(spine, plan, range->pass, stream);
    plan->totals_pass = range->work == RANGE_TOTALS ? range->pass : -1;
    scan_plan_narrow(plan, range);
    return launch();
}

/*
 * All launches that rows of any length take, or, with `range`, those of one range of a row; launch() does what the plan
 * says. The workspace has for each pass an array of sums for every row. Pass goes after pass, because a later one scans
 * what an earlier one leaves.
 */
template <class Plan, class Launch>
cudaError_t scan_with_spine(const struct scan_spine *spine, Plan *plan, const struct scan_ragged_rows *ragged,
                            void *workspace, const struct scan_range *range, cudaStream_t stream, Launch launch)
{
    const struct scan_spine_rows rows = scan_spine_rows_of(plan, ragged);
    const uint64_t bytes = rows.rows * rows.sums_per_row * spine->sum_bytes;
    cudaError_t error = cudaSuccess;
    for (int pass = 0; rows.rows > 0 && pass < plan->pass_count; pass++)
        plan->sums[pass] = (char *)workspace + pass * bytes;
    if (range)
        return scan_range_with_spine(spine, plan, range, stream, launch);
    for (int pass = 0; rows.rows > 0 && pass < plan->pass_count && !error; pass++) {
        plan->totals_pass = pass;
        error = launch();
        if (!error)
            error = scan_spine_launch(spine, plan->backward[pass], plan->sums[pass], rows, stream);
    }
    plan->totals_pass = -1;
    return error ? error : launch();
}

#endif

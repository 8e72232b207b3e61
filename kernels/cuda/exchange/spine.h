/*
 * Rows of several order blocks in several launches: for each pass one that stores the blocks' totals and one that makes
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
    const void *kernels[2];        /* spine_kernel, forward and backward */
    const void *ups[2], *downs[2]; /* spine_up_kernel and spine_down_kernel likewise */
    uint64_t sum_bytes;
};

cudaError_t scan_spine_load(const struct scan_spine *spine);

/* Rows of several order blocks: so many each or, where they are ragged, as device memory has it. */
struct scan_spine_rows {
    uint64_t rows, sums_per_row, blocks;
    const uint32_t *block_counts;
};

/* Queues the carries into all blocks of rows, in place of the totals of these blocks in `sums`. */
cudaError_t scan_spine_launch(const struct scan_spine *spine, bool backward, void *sums, struct scan_spine_rows rows,
                              cudaStream_t stream);

/* Members of a row's level up to which one thread block goes through all levels; it would take 11 to 50 ms for the
 * 524,288 blocks of 2^33 samples on an H200. Of more, each level has launches of its own, for many thread blocks. */
#define SCAN_LEVEL_ALONE 1024
static inline bool scan_level_is_alone(uint64_t members, uint64_t rows)
{
    return members <= SCAN_LEVEL_ALONE || rows > SCAN_GRID_MAX;
}

/* Queues the launch of one level of rows, by spine_up_kernel or spine_down_kernel. */
cudaError_t scan_level_launch(const void *kernel, void *level, uint64_t sums_per_row, uint64_t rows, uint64_t members,
                              cudaStream_t stream);

/* Those of a plan, or of `ragged` rows, or NULL, that have several order blocks; without rows else. */
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

/*
 * Rows of several order blocks in several launches: for each pass one that stores the blocks' totals and one that makes
 * carries of them (cuda/exchange/spine.cuh), then one for the values.
 */
#ifndef KERNELS_CUDA_EXCHANGE_SPINE_H
#define KERNELS_CUDA_EXCHANGE_SPINE_H

#include "kernels/cuda/launch.h"
#include "kernels/cuda/select/ranges.h"
#include "kernels/scan.h"

struct scan_spine {
    const void *kernels[2];        /* spine_kernel, forward and backward */
    const void *ups[2], *downs[2]; /* spine_up_kernel and spine_down_kernel likewise */
    uint64_t sum_bytes;
};

cudaError_t scan_spine_load(const struct scan_spine *spine);

/* Queues the carries into all blocks of `rows` rows, in place of the totals of these blocks in `sums`. */
cudaError_t scan_spine_launch(const struct scan_spine *spine, bool backward, void *sums, uint64_t sums_per_row,
                              uint64_t rows, uint64_t blocks, cudaStream_t stream);

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

/* Queues the carries of one pass of a plan. */
template <class Plan>
cudaError_t scan_spine_of_pass(const struct scan_spine *spine, const Plan *plan, int pass, cudaStream_t stream)
{
    return scan_spine_launch(spine, plan->backward[pass], plan->sums[pass], plan->sums_per_row,
                             plan->items / plan->blocks, plan->blocks, stream);
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
cudaError_t scan_with_spine(const struct scan_spine *spine, Plan *plan, void *workspace, const struct scan_range *range,
                            cudaStream_t stream, Launch launch)
{
    const uint64_t bytes = plan->items / plan->blocks * plan->sums_per_row * spine->sum_bytes;
    cudaError_t error = cudaSuccess;
    for (int pass = 0; plan->blocks > 1 && pass < plan->pass_count; pass++)
        plan->sums[pass] = (char *)workspace + pass * bytes;
    if (range)
        return scan_range_with_spine(spine, plan, range, stream, launch);
    for (int pass = 0; plan->blocks > 1 && pass < plan->pass_count && !error; pass++) {
        plan->totals_pass = pass;
        error = launch();
        if (!error)
            error = scan_spine_of_pass(spine, plan, pass, stream);
    }
    plan->totals_pass = -1;
    return error ? error : launch();
}

#endif

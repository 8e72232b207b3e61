/*
 * The division of a launch's work among warps. All begin with two items each, then take whichever is next, because SMs
 * differ in speed: dealt out evenly, 10^8 samples in rows of 1,536 take 5 % longer on an H200. There, atomic operations
 * on one address take 2 ns each, as long as a row of 1,000 samples, hence several counters.
 */
#ifndef KERNELS_CUDA_EXCHANGE_WORK_QUEUE_CUH
#define KERNELS_CUDA_EXCHANGE_WORK_QUEUE_CUH

#include <stdint.h>

#include "kernels/cuda/exchange/work_queue.h"
#include "kernels/cuda/lane/lane.cuh"
#include "kernels/cuda/select/plan.h"

/* Fewer than WORK_QUEUE_COUNTERS are used if there are fewer thread blocks. */
DEVICE unsigned work_queue_used()
{
    return min(gridDim.x, WORK_QUEUE_COUNTERS);
}

/* The first item of a warp, of a launch whose warps number `warps` in a thread block. The others follow
 * work_queue_stride items apart. */
DEVICE uint64_t work_queue_first(int warps, int warp)
{
    return (uint64_t)blockIdx.x * warps + warp;
}

DEVICE uint64_t work_queue_stride(int warps)
{
    return (uint64_t)gridDim.x * warps;
}

/* Begins to take an item: lane 0 knows the outcome once it is there, all know the item from work_queue_taken. */
DEVICE unsigned long long work_queue_take(struct work_queue *queue)
{
    return lane_index() == 0 ? atomicAdd(&queue->counters[blockIdx.x % work_queue_used()].taken, 1) : 0;
}

DEVICE uint64_t work_queue_taken(unsigned long long outcome, int warps)
{
    const uint64_t number = __shfl_sync(~0u, outcome, 0);
    return 2 * work_queue_stride(warps) + number * work_queue_used() + blockIdx.x % work_queue_used();
}

/* A warp has taken its last item. */
DEVICE void work_queue_finish(struct work_queue *queue, int warps)
{
    const unsigned used = work_queue_used(), number = blockIdx.x % used;
    struct work_queue_counter *counter = &queue->counters[number];
    if (lane_index() == 0 && atomicAdd(&counter->finished, 1) == (gridDim.x - number + used - 1) / used * warps - 1) {
        counter->taken = 0;
        counter->finished = 0;
    }
}

/*
 * Items are pipelined: in iteration t a thread block computes item t, fetches t + 1, and finds out about t +
 * ITEMS_AHEAD, which its other warps look at in a later iteration, when they have met.
 */
#define ITEMS       4
#define ITEMS_AHEAD 3

/*
 * The number of an item beyond those that all thread blocks begin with. Order blocks go to whichever is ready, because
 * SMs differ in speed; the short ones of short rows are too many for that, and more than this number can count.
 */
DEVICE unsigned scan_take_number(const struct scan_plan &plan)
{
    return plan.progress ? (unsigned)atomicAdd(&plan.progress->taken, 1) : 0;
}

/* The index of that item, in iteration `iteration` of this thread block. */
DEVICE uint64_t scan_taken(const struct scan_plan &plan, unsigned number, uint64_t iteration)
{
    uint64_t first = (uint64_t)ITEMS_AHEAD * gridDim.x;
    return first + (plan.progress ? number : iteration * gridDim.x + blockIdx.x);
}

DEVICE uint64_t scan_take(const struct scan_plan &plan, uint64_t iteration)
{
    return scan_taken(plan, scan_take_number(plan), iteration);
}

/* Leaves the progress as it was found. Every thread block has taken its last item when the last one finishes. */
DEVICE void scan_finish(struct work_queue_counter *progress)
{
    if (atomicAdd(&progress->finished, 1) == gridDim.x - 1) {
        progress->taken = 0;
        progress->finished = 0;
    }
}

#endif

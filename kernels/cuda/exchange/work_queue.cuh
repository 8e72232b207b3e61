/*
 * How warps share out a launch's work among themselves. All begin with two items each, then take whichever is next,
 * because processors differ in speed: dealt out evenly, 10^8 samples in rows of 1,536 take 5 % longer on an H200.
 * There, atomic operations on one address take 2 ns each, as long as a row of 1,000 samples, hence several counters.
 */
#ifndef KERNELS_CUDA_EXCHANGE_WORK_QUEUE_CUH
#define KERNELS_CUDA_EXCHANGE_WORK_QUEUE_CUH

#include "kernels/cuda/exchange/block.cuh"

#define SHARES 8 /* counters of a launch; each has every eighth item, and every eighth thread block */

/* All zero before and after a launch: the last warp to finish sees to that. */
struct __align__(64) shares_counter
{
    unsigned long long taken; /* items beyond those that warps begin with */
    unsigned int finished;    /* warps */
};

struct shares {
    struct shares_counter counters[SHARES];
};

/* Fewer than SHARES are used if there are fewer thread blocks. */
DEVICE unsigned shares_used()
{
    return min(gridDim.x, SHARES);
}

/* Of a launch whose warps number `warps` in a thread block: the first item of one, which is followed by shares_stride
 * later ones for the others. */
DEVICE uint64_t shares_first(int warps, int warp)
{
    return (uint64_t)blockIdx.x * warps + warp;
}

DEVICE uint64_t shares_stride(int warps)
{
    return (uint64_t)gridDim.x * warps;
}

/* Begins to take an item: lane 0 knows the outcome once it is there, all know the item from shares_taken. */
DEVICE unsigned long long shares_take(struct shares *shares)
{
    return lane_index() == 0 ? atomicAdd(&shares->counters[blockIdx.x % shares_used()].taken, 1) : 0;
}

DEVICE uint64_t shares_taken(unsigned long long outcome, int warps)
{
    const uint64_t number = __shfl_sync(~0u, outcome, 0);
    return 2 * shares_stride(warps) + number * shares_used() + blockIdx.x % shares_used();
}

/* A warp has taken its last item. */
DEVICE void shares_finish(struct shares *shares, int warps)
{
    const unsigned used = shares_used(), number = blockIdx.x % used;
    struct shares_counter *counter = &shares->counters[number];
    if (lane_index() == 0 && atomicAdd(&counter->finished, 1) == (gridDim.x - number + used - 1) / used * warps - 1) {
        counter->taken = 0;
        counter->finished = 0;
    }
}

#endif

/*
 * Order 1 above the order block, for rows that are longer than one: the totals of a row's blocks become the carries
 * into them. Upwards, every level's totals become exclusive prefixes inside their groups and the groups' totals make
 * the next level; downwards, the carry into a group is added to the prefixes of its members.
 */
#ifndef KERNELS_CUDA_EXCHANGE_SPINE_CUH
#define KERNELS_CUDA_EXCHANGE_SPINE_CUH

#include <stdint.h>

#include "kernels/cuda/exchange/spine.h"
#include "kernels/cuda/lane/accumulator.cuh"
#include "kernels/cuda/warp/kogge_stone.cuh"

#define SPINE_THREADS       1024 /* threads of a thread block that goes through all levels */
#define SPINE_LEVEL_THREADS 256  /* threads of one of several thread blocks that share one level */

/* One level: totals to exclusive prefixes, and the groups' totals to `totals`. By one of so many threads. */
template <class Sum, bool Backward>
DEVICE void level_up(typename Sum::sum *level, uint64_t members, typename Sum::sum *totals, uint64_t thread,
                     uint64_t threads)
{
    int lane = threadIdx.x % WARP;
    for (uint64_t first = thread / WARP * ORDER_FAN; first < members; first += threads / WARP * ORDER_FAN) {
        int count = (int)min(members - first, (uint64_t)ORDER_FAN);
        int last = group_last<Sum>(count);
        typename Sum::sum prefix = lane < count ? level[first + lane] : Sum::identity();
        prefix = group_scan<Sum, Backward>(prefix, last);
        carry<Sum> before = group_before<Sum, Backward>(prefix, last);
        if (lane < count)
            level[first + lane] = before.sum;
        if (lane == (Backward ? 0 : count - 1))
            totals[first / ORDER_FAN] = prefix;
    }
}

/* One level: exclusive prefixes to carries, given the carries into the groups. Likewise. */
template <class Sum, bool Backward>
DEVICE void level_down(typename Sum::sum *level, uint64_t members, const typename Sum::sum *outer, uint64_t thread,
                       uint64_t threads)
{
    uint64_t first_group = Backward ? (members - 1) / ORDER_FAN : 0;
    for (uint64_t i = thread; i < members; i += threads) {
        uint64_t group = i / ORDER_FAN;
        uint64_t first = Backward ? min(group * ORDER_FAN + ORDER_FAN, members) - 1 : group * ORDER_FAN;
        carry<Sum> outside = carry_of<Sum>(outer[group], group != first_group);
        level[i] = carry_join<Sum>(outside, carry_of<Sum>(level[i], i != first)).sum;
    }
}

/* The start of level `depth` of a row's sums, and its members. */
template <class T> DEVICE T *level_at(T *sums, uint64_t *members, int depth)
{
    for (; depth > 0; depth--) {
        sums += *members;
        *members = (*members + ORDER_FAN - 1) / ORDER_FAN;
    }
    return sums;
}

/* The spine of rows, one thread block per row at a time. */
template <class Sum, bool Backward>
__global__ void spine_kernel(typename Sum::sum *sums, const __grid_constant__ struct scan_spine_rows rows)
{
    for (uint64_t row = blockIdx.x; row < rows.rows; row += gridDim.x) {
        typename Sum::sum *bottom = sums + row * rows.sums_per_row;
        const uint64_t blocks = rows.block_counts ? rows.block_counts[row] : rows.blocks;
        int depth = 0;
        for (;; depth++) {
            uint64_t members = blocks;
            typename Sum::sum *level = level_at(bottom, &members, depth);
            level_up<Sum, Backward>(level, members, level + members, threadIdx.x, blockDim.x);
            __syncthreads();
            if (members <= ORDER_FAN)
                break;
        }
        while (depth-- > 0) {
            uint64_t members = blocks;
            typename Sum::sum *level = level_at(bottom, &members, depth);
            level_down<Sum, Backward>(level, members, level + members, threadIdx.x, blockDim.x);
            __syncthreads();
        }
    }
}

/* One level of rows that have many members there: groups need nothing of each other, so a grid takes them, one line of
 * thread blocks for each row. `level`: that of the first row. */

DEVICE uint64_t level_thread(void)
{
    return blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
}

DEVICE uint64_t level_threads(void)
{
    return gridDim.x * (uint64_t)blockDim.x;
}

template <class Sum, bool Backward>
__global__ void spine_up_kernel(typename Sum::sum *level, uint64_t sums_per_row, uint64_t members)
{
    level += blockIdx.y * sums_per_row;
    level_up<Sum, Backward>(level, members, level + members, level_thread(), level_threads());
}

template <class Sum, bool Backward>
__global__ void spine_down_kernel(typename Sum::sum *level, uint64_t sums_per_row, uint64_t members)
{
    level += blockIdx.y * sums_per_row;
    level_down<Sum, Backward>(level, members, level + members, level_thread(), level_threads());
}

/* The kernels of sums of a kind. */
template <class Sum> constexpr struct scan_spine scan_spine_by(void)
{
    return {{(const void *)spine_kernel<Sum, false>, (const void *)spine_kernel<Sum, true>},
            {(const void *)spine_up_kernel<Sum, false>, (const void *)spine_up_kernel<Sum, true>},
            {(const void *)spine_down_kernel<Sum, false>, (const void *)spine_down_kernel<Sum, true>},
            sizeof(typename Sum::sum)};
}

#endif

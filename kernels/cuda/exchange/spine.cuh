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

/* The totals of a group of a level to exclusive prefixes, and the group's own to `total`. By a warp. */
template <class Sum, bool Backward>
DEVICE void spine_group(typename Sum::sum *group, int count, typename Sum::sum *total)
{
    const int lane = lane_index(), last = group_last<Sum>(count);
    const typename Sum::sum prefix = group_scan<Sum, Backward>(lane < count ? group[lane] : Sum::identity(), last);
    const carry<Sum> before = group_before<Sum, Backward>(prefix, last);
    if (lane < count)
        group[lane] = before.sum;
    if (lane == (Backward ? 0 : count - 1))
        *total = prefix;
}

/* One level of all rows: totals to exclusive prefixes, and the groups' totals to the next level. A warp takes a group
 * at a time. `level`: that of the first row. */
template <class Sum, bool Backward>
__global__ void spine_up_kernel(typename Sum::sum *level, const __grid_constant__ struct scan_spine_rows rows)
{
    const uint64_t groups = (rows.members + ORDER_FAN - 1) / ORDER_FAN, warps = gridDim.x * (blockDim.x / WARP);
    for (uint64_t i = blockIdx.x * (blockDim.x / WARP) + warp_index(); i < rows.rows * groups; i += warps) {
        const uint64_t row = i / groups, group = i % groups;
        const uint64_t members = rows.member_counts ? rows.member_counts[row] : rows.members;
        typename Sum::sum *const first = level + row * rows.sums_per_row;
        spine_group<Sum, Backward>(first + group * ORDER_FAN,
                                   (int)min(members - group * ORDER_FAN, (uint64_t)ORDER_FAN), first + members + group);
    }
}

/* The other way: exclusive prefixes to carries, given the carries into groups. */
template <class Sum, bool Backward>
__global__ void spine_down_kernel(typename Sum::sum *level, const __grid_constant__ struct scan_spine_rows rows)
{
    const uint64_t members = rows.members, first_group = Backward ? (members - 1) / ORDER_FAN : 0;
    const uint64_t threads = gridDim.x * (uint64_t)blockDim.x;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < rows.rows * members; i += threads) {
        typename Sum::sum *const sums = level + i / members * rows.sums_per_row;
        const uint64_t member = i % members, group = member / ORDER_FAN;
        const uint64_t first = Backward ? min(group * ORDER_FAN + ORDER_FAN, members) - 1 : group * ORDER_FAN;
        const carry<Sum> outside = carry_of<Sum>(sums[members + group], group != first_group);
        sums[member] = carry_join<Sum>(outside, carry_of<Sum>(sums[member], member != first)).sum;
    }
}

/* The kernels of sums of a kind. */
template <class Sum> constexpr struct scan_spine scan_spine_by(void)
{
    return {{(const void *)spine_up_kernel<Sum, false>, (const void *)spine_up_kernel<Sum, true>},
            {(const void *)spine_down_kernel<Sum, false>, (const void *)spine_down_kernel<Sum, true>},
            sizeof(typename Sum::sum)};
}

#endif

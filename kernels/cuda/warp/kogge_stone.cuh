/*
 * The network of order 1 over the lanes of a warp: Kogge-Stone, from totals to inclusive prefixes, in all forms that
 * the kernels need.
 */
#ifndef KERNELS_CUDA_WARP_KOGGE_STONE_CUH
#define KERNELS_CUDA_WARP_KOGGE_STONE_CUH

#include "kernels/cuda/lane/carry.cuh"
#include "kernels/cuda/lane/f2_by_f64.cuh"
#include "kernels/cuda/lane/lane.cuh"
#include "kernels/cuda/lane/shuffle.cuh"

/* The last member of a group of which `members` exist, or of one that is filled up with identities. */
template <class Sum> DEVICE int group_last(int members)
{
    return Sum::has_identity ? WARP - 1 : members - 1;
}

/* Kogge-Stone over the members of a group, one per lane: totals to inclusive prefixes. `Few`: steps that reach beyond
 * the last member are left out, for groups that are often small. */
template <class Sum, bool Backward, bool Few = false>
DEVICE typename Sum::sum group_scan(typename Sum::sum total, int last)
{
#pragma unroll
    for (int distance = 1; distance < ORDER_FAN; distance *= 2) {
        typename Sum::sum before;
        if (Few && distance > last)
            break;
        bool there = lane_before<Backward>(total, &before, distance, last);
        total = sum_choose<Sum>(there, Sum::add(before, total), total);
    }
    return total;
}

/* What a group's members meet before them in the group, from inclusive prefixes. */
template <class Sum, bool Backward> DEVICE carry<Sum> group_before(typename Sum::sum inclusive, int last)
{
    typename Sum::sum before;
    bool there = lane_before<Backward>(inclusive, &before, 1, last);
    return carry_of<Sum>(before, there);
}

/* Kogge-Stone over the leaves of some tiles side by side, a leaf of each per lane: totals to inclusive prefixes. False,
 * for all lanes, if they may be inexact. */
template <int Tiles, bool Backward>
DEVICE bool exact_scan(double sums[Tiles], struct exact_range range, struct f2 prefixes[Tiles])
{
    const float limit = exact_limit(range.least);
    bool exact = range.most * EXACT_MARGIN <= limit;
#pragma unroll
    for (int distance = 1; distance < ORDER_FAN; distance *= 2)
#pragma unroll
        for (int t = 0; t < Tiles; t++) {
            double before;
            const bool there = lane_before<Backward>(sums[t], &before, distance, ORDER_FAN - 1);
            sums[t] = there ? sums[t] + before : sums[t];
        }
#pragma unroll
    for (int t = 0; t < Tiles; t++) {
        prefixes[t] = exact_f2(sums[t]);
        exact &= fabsf(prefixes[t].high) <= limit;
    }
    return __all_sync(~0u, exact);
}

/* Kogge-Stone over the leaves of all tiles side by side: totals to inclusive prefixes. `last` is a row's last leaf, or
 * lane. */
template <class Sum, int Rows, int Tiles, bool Backward>
DEVICE void few_scans(typename Sum::sum sums[Rows * Tiles], int last)
{
#pragma unroll
    for (int distance = 1; distance < ORDER_FAN; distance *= 2)
#pragma unroll
        for (int t = 0; t < Rows * Tiles; t++) {
            typename Sum::sum before;
            const bool last_tile = t % Tiles == Tiles - 1;
            bool there = lane_before<Backward>(sums[t], &before, distance, last_tile ? last : WARP - 1);
            sums[t] = sum_choose<Sum>(there, Sum::add(before, sums[t]), sums[t]);
        }
}

/* The same of one row. */
template <class Sum, int Tiles, bool Backward> DEVICE void few_scan(typename Sum::sum sums[Tiles], int last)
{
    few_scans<Sum, 1, Tiles, Backward>(sums, last);
}

/* What the leaf has that a pass meets `distance` leaves before this lane's of a tile, be it in this or in the tile
 * before; of the first leaves that it meets, anything. */
template <int Tiles, bool Backward, class T>
DEVICE T short_before(const T values[Tiles], int tile, int lane, int distance)
{
    const int other = Backward ? tile + 1 : tile - 1;
    T value = values[tile];
    if constexpr (Tiles > 1)
        if (other >= 0 && other < Tiles) {
            value = (Backward ? lane < distance : lane >= WARP - distance) ? values[other] : value;
            return lane_value(value, Backward ? lane + distance : lane - distance);
        }
    lane_before<Backward>(values[tile], &value, distance, WARP - 1);
    return value;
}

/* Kogge-Stone over the leaves of each row: totals to inclusive prefixes. `positions`: leaves of the row met earlier. */
template <class Sum, int Tiles, bool Backward>
DEVICE void short_scans(typename Sum::sum sums[Tiles], const int positions[Tiles], int leaves)
{
    const int lane = lane_index();
#pragma unroll
    for (int distance = 1; distance < ORDER_FAN; distance *= 2) {
        if (distance >= leaves)
            break;
#pragma unroll
        for (int i = 0; i < Tiles; i++) {
            const int t = Backward ? i : Tiles - 1 - i;
            const typename Sum::sum before = short_before<Tiles, Backward>(sums, t, lane, distance);
            if (!Sum::has_identity)
                sums[t] = sum_choose<Sum>(positions[t] >= distance, Sum::add(before, sums[t]), sums[t]);
            else if (positions[t] >= distance)
                sums[t] = Sum::add(before, sums[t]);
        }
    }
}

/* The same of a leaf in each lane. */
template <class Sum, bool Backward>
DEVICE typename Sum::sum short_scan(typename Sum::sum total, int position, int leaves)
{
    short_scans<Sum, 1, Backward>(&total, &position, leaves);
    return total;
}

/* The sum over this lane and those before it. */
DEVICE int lanes_upto(int value)
{
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        int before = __shfl_up_sync(~0u, value, distance);
        value += lane_index() >= distance ? before : 0;
    }
    return value;
}

#endif

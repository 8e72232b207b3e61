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

/* One step of the network: a member of a group joins what the one `distance` before it has. `last` is the last member.
 * `Chosen`: sums are added in any case, and chosen from then. That takes longer, but no predicate all the while. */
template <class Sum, bool Backward, bool Chosen = false>
DEVICE typename Sum::sum kogge_stone_step(typename Sum::sum total, int distance, int last)
{
    typename Sum::sum before;
    bool there = lane_before<Backward>(total, &before, distance, last);
    return Chosen ? sum_choose<Sum>(there, Sum::add(before, total), total) : sum_join<Sum>(there, before, total);
}

/* The network over the members of a group, one per lane: totals to inclusive prefixes. `Early`: steps that reach beyond
 * the last member are left out, for groups that are often small. */
template <class Sum, bool Backward, bool Early = false>
DEVICE typename Sum::sum group_scan(typename Sum::sum total, int last)
{
#pragma unroll
    for (int distance = 1; distance < ORDER_FAN; distance *= 2) {
        if (Early && distance > last)
            break;
        total = kogge_stone_step<Sum, Backward>(total, distance, last);
    }
    return total;
}

/* The Kogge-Stone network over `Count` groups side by side: while one group waits for a shuffle, there are the others'
 * instructions. last(t) is the last member of group t. */
template <class Sum, bool Backward, int Count, bool Chosen = false, class Last>
DEVICE void kogge_stone(typename Sum::sum sums[Count], Last last)
{
#pragma unroll
    for (int distance = 1; distance < ORDER_FAN; distance *= 2)
#pragma unroll
        for (int t = 0; t < Count; t++)
            sums[t] = kogge_stone_step<Sum, Backward, Chosen>(sums[t], distance, last(t));
}

/* The network in a loop, of as many steps as the first `members` lanes need: each step is there once. */
template <class Sum, bool Backward> DEVICE typename Sum::sum group_scan_rolled(typename Sum::sum total, int members)
{
#pragma unroll 1
    for (int distance = 1; distance < members; distance *= 2)
        total = kogge_stone_step<Sum, Backward>(total, distance, members - 1);
    return total;
}

/*
 * The way through the network to one member's prefix alone, from the totals of up to `Count` members in registers:
 * sums[0] is that member's, sums[i] that of the i-th before it. exists(i, further): whether there is the one
 * that is so much further from the i-th.
 */
template <class Sum, int Count, class Exists>
DEVICE typename Sum::sum kogge_stone_one(typename Sum::sum sums[Count], Exists exists)
{
#pragma unroll
    for (int distance = 1; distance < Count; distance *= 2)
#pragma unroll
        for (int i = 0; i < Count; i += 2 * distance)
            sums[i] = sum_choose<Sum>(exists(i, distance), Sum::add(sums[i + distance], sums[i]), sums[i]);
    return sums[0];
}

/* The carry into each member of a group from members before it, from inclusive prefixes. */
template <class Sum, bool Backward> DEVICE carry<Sum> group_before(typename Sum::sum inclusive, int last)
{
    typename Sum::sum before;
    bool there = lane_before<Backward>(inclusive, &before, 1, last);
    return carry_of<Sum>(before, there);
}

/* How the members of a group join, at every level of the order: as their sums say. Affine with one coefficient knows
 * more (affine_level). `Early`: as of group_scan. above(): the next level. A carry from outside has what sums are. */
template <class Sum, bool Early = false> struct sum_level {
    template <bool Backward> __device__ __forceinline__ typename Sum::sum scan(typename Sum::sum total, int last) const
    {
        return group_scan<Sum, Backward, Early>(total, last);
    }
    template <bool Backward>
    __device__ __forceinline__ typename Sum::sum scan_rolled(typename Sum::sum total, int members) const
    {
        return group_scan_rolled<Sum, Backward>(total, members);
    }
    template <bool Backward> __device__ __forceinline__ bool factor() const { return false; }
    __device__ __forceinline__ carry<Sum> join(carry<Sum> outer, carry<Sum> inner, bool) const
    {
        return carry_join<Sum>(outer, inner);
    }
    __device__ __forceinline__ sum_level above() const { return *this; }
    __device__ __forceinline__ typename Sum::sum carry_out(typename Sum::sum sum) const { return sum; }
    __device__ __forceinline__ typename Sum::sum carry_in(typename Sum::sum sum) const { return sum; }
};

/* A network over the leaves of some tiles side by side, in f2 by way of f64: scan() makes prefixes of the sums. False,
 * for all lanes, if they may be inexact. */
template <int Tiles, class Scan>
DEVICE bool by_f64_scan(const double sums[Tiles], struct by_f64_range range, struct f2 prefixes[Tiles], Scan scan)
{
    const float limit = by_f64_limit(range.least);
    bool exact = range.most * BY_F64_MARGIN <= limit;
    scan();
#pragma unroll
    for (int t = 0; t < Tiles; t++) {
        prefixes[t] = by_f64_f2(sums[t]);
        exact &= fabsf(prefixes[t].high) <= limit;
    }
    return __all_sync(~0u, exact);
}

/* The value of the leaf that a pass meets `distance` leaves before this lane's leaf of a tile, in this tile or in the
 * tile before; any value for the first leaves that the pass meets. */
template <int Tiles, bool Backward, class T>
DEVICE T segment_before(const T values[Tiles], int tile, int lane, int distance)
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

/* The network over several rows in the lanes of some tiles, a segmented scan: rows begin in any lane, and may go on in
 * the next tile, so that a lane's position in its row tells what it joins. `positions`: leaves of the row met earlier.
 */
template <class Sum, int Tiles, bool Backward>
DEVICE void segmented_scans(typename Sum::sum sums[Tiles], const int positions[Tiles], int leaves)
{
    const int lane = lane_index();
#pragma unroll
    for (int distance = 1; distance < ORDER_FAN; distance *= 2) {
        if (distance >= leaves)
            break;
#pragma unroll
        for (int i = 0; i < Tiles; i++) {
            const int t = Backward ? i : Tiles - 1 - i;
            const typename Sum::sum before = segment_before<Tiles, Backward>(sums, t, lane, distance);
            if (!Sum::has_identity)
                sums[t] = sum_choose<Sum>(positions[t] >= distance, Sum::add(before, sums[t]), sums[t]);
            else if (positions[t] >= distance)
                sums[t] = Sum::add(before, sums[t]);
        }
    }
}

/* Scans segments of one leaf in each lane. */
template <class Sum, bool Backward>
DEVICE typename Sum::sum segmented_scan(typename Sum::sum total, int position, int leaves)
{
    segmented_scans<Sum, 1, Backward>(&total, &position, leaves);
    return total;
}

/* The integers of this lane and those before it, added up: no order is promised, and lane numbers take the place of the
 * shuffle's predicate. */
DEVICE int sum_upto_lane(int value)
{
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        int before = __shfl_up_sync(~0u, value, distance);
        value += lane_index() >= distance ? before : 0;
    }
    return value;
}

#endif

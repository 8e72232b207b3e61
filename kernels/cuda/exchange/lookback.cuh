/*
 * Look-back: how a thread block makes the carry into its order block from the tile states of the row's other blocks
 * (tile_state.cuh): the tree of order 1 above the order block.
 */
#ifndef KERNELS_CUDA_EXCHANGE_LOOKBACK_CUH
#define KERNELS_CUDA_EXCHANGE_LOOKBACK_CUH

#include "kernels/cuda/exchange/tile_state.cuh"
#include "kernels/cuda/lane/shuffle.cuh"
#include "kernels/cuda/warp/kogge_stone.cuh"

/* Where a member of a level stands in its group. */
struct tree_place {
    unsigned first; /* member of the group */
    int position, count;
    int met;      /* members that a pass meets before it */
    int distance; /* of this lane's member, that many places before it; in 1 to `met` where it is met */
};

template <bool Backward> DEVICE struct tree_place tree_place_of(unsigned members, unsigned index)
{
    struct tree_place place;
    place.position = (int)(index % ORDER_FAN);
    place.first = index - place.position;
    place.count = (int)min(members - place.first, (unsigned)ORDER_FAN);
    place.met = Backward ? place.count - 1 - place.position : place.position;
    place.distance = Backward ? lane_index() - place.position : place.position - lane_index();
    return place;
}

/* Whether a member is the last of its group that a pass meets. */
template <bool Backward> DEVICE bool tree_completes(const struct tree_place &place)
{
    return place.position == (Backward ? 0 : place.count - 1);
}

/* From the sums of a group's members that are met before `place`, and the one there: returns the prefix, in all lanes;
 * `total` becomes that of the group if the place completes it. */
template <class Sum, bool Backward>
DEVICE typename Sum::sum tree_prefix(const struct tree_place &place, typename Sum::sum sum, typename Sum::sum *total)
{
    const int last = group_last<Sum>(place.count);
    sum = group_scan<Sum, Backward>(sum, last);
    *total = lane_get(sum, place.position);
    return lane_get(group_before<Sum, Backward>(sum, last).sum, place.position);
}

/* What thread blocks remember of the carry into a group of groups. */
template <class Sum> struct tree_memory {
    const record *records;
    unsigned index;
    carry<Sum> carry;
};

/*
 * The carry into member `index` of `members`, in all lanes, level by level. `records` are those of the members, then of
 * all groups of these, and so on. Its total is put, if known, and so is that of whatever it completes. Prefixes are
 * found innermost first, and added outermost first.
 */
template <class Sum, bool Backward>
DEVICE carry<Sum> tree_carry(record *records, unsigned members, unsigned index, typename Sum::sum total,
                             bool known = true)
{
    const int lane = lane_index();
    typename Sum::sum prefix = total; /* lane l: that of level l */
    unsigned present = 0;             /* bit l: whether there is one */
    int level = 0;
    for (;; level++) {
        const struct tree_place place = tree_place_of<Backward>(members, index);
        if (known && lane == place.position)
            record_put<Sum>(records + index * record_words<Sum>(), total);
        typename Sum::sum sum = lane == place.position ? total : Sum::identity();
        if (place.distance > 0 && place.distance <= place.met)
            sum = record_await<Sum>(records + (place.first + lane) * record_words<Sum>());
        __syncwarp();
        sum = tree_prefix<Sum, Backward>(place, sum, &total);
        if (lane == level)
            prefix = sum;
        present |= (unsigned)(place.met > 0) << level;
        if (members <= ORDER_FAN)
            break;
        known = known && tree_completes<Backward>(place);
        records += (uint64_t)members * record_words<Sum>();
        members = (members + ORDER_FAN - 1) / ORDER_FAN;
        index /= ORDER_FAN;
    }
    carry<Sum> carry = carry_of<Sum>(total, false);
    for (; level >= 0; level--)
        carry = carry_join<Sum>(carry, carry_of<Sum>(lane_get(prefix, level), present >> level & 1));
    return carry;
}

/*
 * Groups right before the one that an order block is in whose totals are made from those of their blocks. Those further
 * away have a record of their own, put by whoever completes them, but only after that waited for others: too late for
 * groups that are under way at the same time.
 */
#define TREE_NEAR     2
#define TREE_PAUSE_NS 32 /* between looks */

/* What a look at the lowest two levels found: at blocks of the same group, of groups near, and at groups further away.
 */
template <class Sum> struct tree_seen {
    record_seen<Sum> own, near[TREE_NEAR], far;
};

/* The first block of the n-th group before `group`, n = 0, 1, ... */
template <bool Backward> DEVICE unsigned tree_near_first(unsigned group, int n)
{
    return (Backward ? group + n + 1 : group - n - 1) * ORDER_FAN;
}

DEVICE int tree_near_count(unsigned members, unsigned first)
{
    return (int)min(members - first, (unsigned)ORDER_FAN);
}

/* Looks at all records at once, until all are there: one way to memory and back. */
template <class Sum, bool Backward>
DEVICE tree_seen<Sum> tree_await(const record *records, unsigned members, const struct tree_place &block,
                                 const struct tree_place &group, int near)
{
    const int lane = lane_index();
    const record *own = records + (block.first + lane) * record_words<Sum>();
    const record *far = records + (members + group.first + lane) * record_words<Sum>();
    tree_seen<Sum> seen;
    seen.own = record_unseen<Sum>(block.distance > 0 && block.distance <= block.met);
    seen.far = record_unseen<Sum>(group.distance > near && group.distance <= group.met);
#pragma unroll
    for (int n = 0; n < TREE_NEAR; n++)
        seen.near[n] = record_unseen<Sum>(
            n < near && lane < tree_near_count(members, tree_near_first<Backward>(group.first + group.position, n)));
    for (;;) {
        record_look_again<Sum>(own, &seen.own);
        record_look_again<Sum>(far, &seen.far);
        bool there = record_there(seen.own);
#pragma unroll
        for (int n = 0; n < TREE_NEAR; n++)
            record_look_again<Sum>(records + (tree_near_first<Backward>(group.first + group.position, n) + lane) *
                                                 record_words<Sum>(),
                                   &seen.near[n]);
#pragma unroll
        for (int n = 0; n < TREE_NEAR; n++)
            there &= record_there(seen.near[n]);
        if (__all_sync(~0u, there && record_there(seen.far)))
            return seen;
        __nanosleep(TREE_PAUSE_NS);
    }
}

/* The sums of the groups before one, in the lanes that stand for them. */
template <class Sum, bool Backward>
DEVICE typename Sum::sum tree_groups(unsigned members, const struct tree_place &group, int near,
                                     const tree_seen<Sum> &seen)
{
    typename Sum::sum sum =
        group.distance > near && group.distance <= group.met ? record_sum<Sum>(seen.far) : Sum::identity();
#pragma unroll
    for (int n = 0; n < TREE_NEAR; n++)
        if (n < near) {
            const unsigned first = tree_near_first<Backward>(group.first + group.position, n);
            const int count = tree_near_count(members, first);
            typename Sum::sum total = lane_index() < count ? record_sum<Sum>(seen.near[n]) : Sum::identity();
            total = group_scan<Sum, Backward>(total, group_last<Sum>(count));
            total = lane_get(total, Backward ? 0 : count - 1);
            if (group.distance == n + 1)
                sum = total;
        }
    return sum;
}

/*
 * The same for a row's order blocks, whose own totals others put, sooner: the lowest two levels are looked at together,
 * and what is above them is remembered.
 */
template <class Sum, bool Backward>
DEVICE carry<Sum> tree_carry_near(record *records, unsigned members, unsigned index, typename Sum::sum total,
                                  tree_memory<Sum> *memory)
{
    const int lane = lane_index();
    const unsigned groups = (members + ORDER_FAN - 1) / ORDER_FAN;
    const struct tree_place block = tree_place_of<Backward>(members, index);
    const struct tree_place group = tree_place_of<Backward>(groups, index / ORDER_FAN);
    const int near = min(group.met, TREE_NEAR);
    const tree_seen<Sum> seen = tree_await<Sum, Backward>(records, members, block, group, near);
    typename Sum::sum sum =
        block.distance > 0 && block.distance <= block.met ? record_sum<Sum>(seen.own) : Sum::identity();
    if (lane == block.position)
        sum = total;
    const carry<Sum> inner = carry_of<Sum>(tree_prefix<Sum, Backward>(block, sum, &total), block.met > 0);
    if (groups == 1)
        return inner;

    const bool completes = tree_completes<Backward>(block),
               completes_group = completes && tree_completes<Backward>(group);
    records += (uint64_t)members * record_words<Sum>();
    if (completes && lane == 0)
        record_put<Sum>(records + index / ORDER_FAN * record_words<Sum>(), total);
    sum = tree_groups<Sum, Backward>(members, group, near, seen);
    if (lane == group.position)
        sum = total;
    carry<Sum> outer = carry_of<Sum>(tree_prefix<Sum, Backward>(group, sum, &total), group.met > 0);
    if (groups > ORDER_FAN) {
        records += (uint64_t)groups * record_words<Sum>();
        index /= ORDER_FAN * ORDER_FAN;
        if (completes_group || memory->records != records || memory->index != index)
            *memory = {records, index,
                       tree_carry<Sum, Backward>(records, (groups + ORDER_FAN - 1) / ORDER_FAN, index, total,
                                                 completes_group)};
        outer = carry_join<Sum>(memory->carry, outer);
    }
    return carry_join<Sum>(outer, inner);
}

#endif

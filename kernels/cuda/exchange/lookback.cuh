/*
 * Look-back: how a thread block makes the carry into its order block from the tile states of the row's other blocks
 * (tile_state.cuh): the tree of order 1 above the order block.
 */
#ifndef KERNELS_CUDA_EXCHANGE_LOOKBACK_CUH
#define KERNELS_CUDA_EXCHANGE_LOOKBACK_CUH

#include "kernels/cuda/exchange/tile_state.cuh"
#include "kernels/cuda/lane/shuffle.cuh"
#include "kernels/cuda/warp/kogge_stone.cuh"

/* The position of a level's member in its group. */
struct lookback_position {
    unsigned first; /* member of the group */
    int position, count;
    int met;      /* members that a pass meets before it */
    int distance; /* distance of this lane's member before this one; in 1 to `met` where it is met */
};

template <bool Backward> DEVICE struct lookback_position lookback_position_of(unsigned members, unsigned index)
{
    struct lookback_position at;
    at.position = (int)(index % ORDER_FAN);
    at.first = index - at.position;
    at.count = (int)min(members - at.first, (unsigned)ORDER_FAN);
    at.met = Backward ? at.count - 1 - at.position : at.position;
    at.distance = Backward ? lane_index() - at.position : at.position - lane_index();
    return at;
}

/* True when a member is the last of its group that a pass meets. */
template <bool Backward> DEVICE bool lookback_completes(const struct lookback_position &at)
{
    return at.position == (Backward ? 0 : at.count - 1);
}

/* Returns the prefix before the member `at`, in all lanes, from the sums of a group's members that are met before it;
 * `total` becomes that of the group if the member completes it. */
template <class Sum, bool Backward>
DEVICE typename Sum::sum lookback_prefix(const struct lookback_position &at, typename Sum::sum sum,
                                         typename Sum::sum *total)
{
    const int last = group_last<Sum>(at.count);
    sum = group_scan<Sum, Backward>(sum, last);
    *total = lane_get(sum, at.position);
    return lane_get(group_before<Sum, Backward>(sum, last).sum, at.position);
}

/* A thread block's memory of the carry into a group of groups. */
template <class Sum> struct lookback_memory {
    const tile_state *states;
    unsigned index;
    carry<Sum> carry;
};

/*
 * The carry into member `index` of `members`, in all lanes, level by level. `states` are those of the members,
 * then of all groups of these, and so on. Its total is put, if known, and so is that of whatever it completes. Prefixes
 * are found innermost first, and added outermost first.
 */
template <class Sum, bool Backward>
DEVICE carry<Sum> lookback_carry(tile_state *states, unsigned members, unsigned index, typename Sum::sum total,
                                 bool known = true)
{
    const int lane = lane_index();
    typename Sum::sum prefix = total; /* lane l: that of level l */
    unsigned present = 0;             /* bit l: whether there is one */
    int level = 0;
    for (;; level++) {
        const struct lookback_position at = lookback_position_of<Backward>(members, index);
        if (known && lane == at.position)
            tile_state_publish<Sum>(states + index * tile_state_words<Sum>(), total);
        typename Sum::sum sum = lane == at.position ? total : Sum::identity();
        if (at.distance > 0 && at.distance <= at.met)
            sum = tile_state_await<Sum>(states + (at.first + lane) * tile_state_words<Sum>());
        __syncwarp();
        sum = lookback_prefix<Sum, Backward>(at, sum, &total);
        if (lane == level)
            prefix = sum;
        present |= (unsigned)(at.met > 0) << level;
        if (members <= ORDER_FAN)
            break;
        known = known && lookback_completes<Backward>(at);
        states += (uint64_t)members * tile_state_words<Sum>();
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
 * away have a tile state of their own, put by whoever completes them, but only after that waited for others: too late
 * for groups that are under way at the same time.
 */
#define LOOKBACK_NEAR     2
#define LOOKBACK_PAUSE_NS 32 /* between polls */

/* The results of a poll of the lowest two levels: at blocks of the same group, of groups near, and at groups further
 * away. */
template <class Sum> struct lookback_polled {
    tile_state_polled<Sum> own, near[LOOKBACK_NEAR], far;
};

/* The first block of the n-th group before `group`, n = 0, 1, ... */
template <bool Backward> DEVICE unsigned lookback_near_first(unsigned group, int n)
{
    return (Backward ? group + n + 1 : group - n - 1) * ORDER_FAN;
}

DEVICE int lookback_near_count(unsigned members, unsigned first)
{
    return (int)min(members - first, (unsigned)ORDER_FAN);
}

/* Polls all tile states at once, until all are there: one way to memory and back. */
template <class Sum, bool Backward>
DEVICE lookback_polled<Sum> lookback_poll(const tile_state *states, unsigned members,
                                          const struct lookback_position &block, const struct lookback_position &group,
                                          int near)
{
    const int lane = lane_index();
    const tile_state *own = states + (block.first + lane) * tile_state_words<Sum>();
    const tile_state *far = states + (members + group.first + lane) * tile_state_words<Sum>();
    lookback_polled<Sum> polled;
    polled.own = tile_state_unpolled<Sum>(block.distance > 0 && block.distance <= block.met);
    polled.far = tile_state_unpolled<Sum>(group.distance > near && group.distance <= group.met);
#pragma unroll
    for (int n = 0; n < LOOKBACK_NEAR; n++)
        polled.near[n] = tile_state_unpolled<Sum>(
            n < near &&
            lane < lookback_near_count(members, lookback_near_first<Backward>(group.first + group.position, n)));
    for (;;) {
        tile_state_poll_again<Sum>(own, &polled.own);
        tile_state_poll_again<Sum>(far, &polled.far);
        bool there = tile_state_is_published(polled.own);
#pragma unroll
        for (int n = 0; n < LOOKBACK_NEAR; n++)
            tile_state_poll_again<Sum>(states +
                                           (lookback_near_first<Backward>(group.first + group.position, n) + lane) *
                                               tile_state_words<Sum>(),
                                       &polled.near[n]);
#pragma unroll
        for (int n = 0; n < LOOKBACK_NEAR; n++)
            there &= tile_state_is_published(polled.near[n]);
        if (__all_sync(~0u, there && tile_state_is_published(polled.far)))
            return polled;
        __nanosleep(LOOKBACK_PAUSE_NS);
    }
}

/* The sums of the groups before one, in the lanes that stand for them. */
template <class Sum, bool Backward>
DEVICE typename Sum::sum lookback_groups(unsigned members, const struct lookback_position &group, int near,
                                         const lookback_polled<Sum> &polled)
{
    typename Sum::sum sum =
        group.distance > near && group.distance <= group.met ? tile_state_sum<Sum>(polled.far) : Sum::identity();
#pragma unroll
    for (int n = 0; n < LOOKBACK_NEAR; n++)
        if (n < near) {
            const unsigned first = lookback_near_first<Backward>(group.first + group.position, n);
            const int count = lookback_near_count(members, first);
            typename Sum::sum total = lane_index() < count ? tile_state_sum<Sum>(polled.near[n]) : Sum::identity();
            total = group_scan<Sum, Backward>(total, group_last<Sum>(count));
            total = lane_get(total, Backward ? 0 : count - 1);
            if (group.distance == n + 1)
                sum = total;
        }
    return sum;
}

/*
 * The carry into an order block, like lookback_carry, but for blocks whose totals other warps publish, and sooner: the
 * lowest two levels are polled together, and the carry above them is remembered.
 */
template <class Sum, bool Backward>
DEVICE carry<Sum> lookback_carry_near(tile_state *states, unsigned members, unsigned index, typename Sum::sum total,
                                      lookback_memory<Sum> *memory)
{
    const int lane = lane_index();
    const unsigned groups = (members + ORDER_FAN - 1) / ORDER_FAN;
    const struct lookback_position block = lookback_position_of<Backward>(members, index);
    const struct lookback_position group = lookback_position_of<Backward>(groups, index / ORDER_FAN);
    const int near = min(group.met, LOOKBACK_NEAR);
    const lookback_polled<Sum> polled = lookback_poll<Sum, Backward>(states, members, block, group, near);
    typename Sum::sum sum =
        block.distance > 0 && block.distance <= block.met ? tile_state_sum<Sum>(polled.own) : Sum::identity();
    if (lane == block.position)
        sum = total;
    const carry<Sum> inner = carry_of<Sum>(lookback_prefix<Sum, Backward>(block, sum, &total), block.met > 0);
    if (groups == 1)
        return inner;

    const bool completes = lookback_completes<Backward>(block),
               completes_group = completes && lookback_completes<Backward>(group);
    states += (uint64_t)members * tile_state_words<Sum>();
    if (completes && lane == 0)
        tile_state_publish<Sum>(states + index / ORDER_FAN * tile_state_words<Sum>(), total);
    sum = lookback_groups<Sum, Backward>(members, group, near, polled);
    if (lane == group.position)
        sum = total;
    carry<Sum> outer = carry_of<Sum>(lookback_prefix<Sum, Backward>(group, sum, &total), group.met > 0);
    if (groups > ORDER_FAN) {
        states += (uint64_t)groups * tile_state_words<Sum>();
        index /= ORDER_FAN * ORDER_FAN;
        if (completes_group || memory->states != states || memory->index != index)
            *memory = {states, index,
                       lookback_carry<Sum, Backward>(states, (groups + ORDER_FAN - 1) / ORDER_FAN, index, total,
                                                     completes_group)};
        outer = carry_join<Sum>(memory->carry, outer);
    }
    return carry_join<Sum>(outer, inner);
}

#endif

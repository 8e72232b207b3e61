/*
 * The exchange among threads of columns_direct.cuh: totals of leaves and of tiles become the carries into them.
 */
#ifndef KERNELS_CUDA_KERNELS_COLUMNS_DIRECT_CARRIES_CUH
#define KERNELS_CUDA_KERNELS_COLUMNS_DIRECT_CARRIES_CUH

#include "kernels/cuda/kernels/columns_direct_item.cuh"

/* A member of a level, and where it is in its group. */
struct direct_member {
    unsigned number;
    int before; /* members of the group that a pass meets earlier */
    bool last;  /* true for the last one that is met */
};

/* The member of a level in which a tile lies. */
template <bool Backward>
DEVICE struct direct_member direct_member_of(const struct direct_plan &plan, unsigned tile, int level)
{
    const unsigned number = level == 0 ? tile : level == 1 ? tile / ORDER_FAN : tile / ORDER_FAN / ORDER_FAN;
    const unsigned first = number / ORDER_FAN * ORDER_FAN;
    const int count = (int)min(plan.members[level] - first, (unsigned)ORDER_FAN), place = (int)(number - first);
    const int before = Backward ? count - 1 - place : place;
    return {number, before, before == count - 1};
}

template <class Sum>
DEVICE tile_state *direct_state(const struct direct_states &states, uint64_t column, int level, unsigned number)
{
    return states.levels[level] + (number * states.columns + column) * tile_state_words<Sum>();
}

/* That of the tile which a pass meets `back` tiles before an item's, in a column of its strip. */
template <class Sum, bool Backward>
DEVICE tile_state *direct_state_before(const struct direct_plan &plan, const struct direct_item *item, int pass,
                                       int column, int back)
{
    return direct_state<Sum>(plan.states[pass], (uint64_t)item->strip * direct_columns_of<Sum> + column, 0,
                             Backward ? item->tile + back : item->tile - back);
}

/* The inclusive prefix of a member of a group: lane i of a warp has the total of the i-th one before it, up to
 * `before`, and step by step the network leads to that of lane 0. */
template <class Sum> DEVICE typename Sum::sum direct_prefix(typename Sum::sum total, int before)
{
    if (lane_index() > before)
        total = Sum::identity();
    return lane_get(group_scan<Sum, true>(total, group_last<Sum>(before + 1)), 0);
}

/* The prefix from tile states, for which the lanes wait. */
template <class Sum, bool Backward>
DEVICE typename Sum::sum direct_await(const struct direct_states &states, uint64_t column, int level, unsigned number,
                                      int before)
{
    const unsigned lane = (unsigned)lane_index();
    typename Sum::sum total = Sum::identity();
    if ((int)lane <= before)
        total =
            tile_state_await<Sum>(direct_state<Sum>(states, column, level, Backward ? number + lane : number - lane));
    __syncwarp();
    return direct_prefix<Sum>(total, before);
}

/* The carry into an order block from the levels above tiles. By a warp. */
template <class Sum, bool Backward>
DEVICE carry<Sum> direct_outer(const struct direct_plan &plan, const struct direct_states &states, uint64_t column,
                               unsigned tile)
{
    carry<Sum> outer = carry_of<Sum>(typename Sum::sum{}, false);
#pragma unroll 1
    for (int level = plan.levels - 1; level > 0; level--) {
        const struct direct_member member = direct_member_of<Backward>(plan, tile, level);
        if (member.before == 0)
            continue;
        const unsigned number = Backward ? member.number + 1 : member.number - 1;
        const typename Sum::sum inner = direct_await<Sum, Backward>(states, column, level, number, member.before - 1);
        outer = carry_join<Sum>(outer, carry_of<Sum>(inner, true));
    }
    return outer;
}

/* Publishes the totals of a column's order block and of its group, if they end with this tile. By a warp. */
template <class Sum, bool Backward>
DEVICE void direct_publish_above(const struct direct_plan &plan, const struct direct_states &states, uint64_t column,
                                 unsigned tile)
{
#pragma unroll 1
    for (int level = 1; level < plan.levels; level++) {
        const struct direct_member below = direct_member_of<Backward>(plan, tile, level - 1);
        if (!below.last)
            break;
        const typename Sum::sum total =
            direct_await<Sum, Backward>(states, column, level - 1, below.number, below.before);
        if (lane_index() == 0)
            tile_state_publish<Sum>(
                direct_state<Sum>(states, column, level, direct_member_of<Backward>(plan, tile, level).number), total);
    }
}

/* The totals that a thread asks for, of as many columns as it has leaves: the first one's column, and how many tiles
 * they lie before this one's. */
struct direct_polls {
    int column, back;
};

template <class Sum> DEVICE struct direct_polls direct_polls_of()
{
    const unsigned across = direct_columns_of<Sum> / direct_leaves_of<Sum>, thread = (unsigned)thread_index();
    return {(int)(thread % across) * direct_leaves_of<Sum>, (int)(thread / across) + 1};
}

/* Asks for the totals of the tiles before an item's, 16 bytes at a time. */
template <class Sum, bool Backward>
DEVICE void direct_poll_of(const struct direct_plan &plan, const struct direct_item *item, int pass,
                           direct_smem<Sum> *smem)
{
    const int words = tile_state_words<Sum>() * direct_leaves_of<Sum>, words_at_once = VEC16_BYTES / sizeof(tile_state);
    const struct direct_polls polls = direct_polls_of<Sum>();
    if (polls.back <= direct_member_of<Backward>(plan, item->tile, 0).before) {
        const tile_state *const state = direct_state_before<Sum, Backward>(plan, item, pass, polls.column, polls.back);
#pragma unroll
        for (int i = 0; i < words; i += words_at_once)
            __pipeline_memcpy_async((tile_state *)&smem->polled[polls.back - 1][polls.column] + i, state + i,
                                    VEC16_BYTES);
    }
    __pipeline_commit();
}

/* True when everything that this thread polled was there. */
template <class Sum, bool Backward>
DEVICE bool direct_polled(const struct direct_plan &plan, const struct direct_item *item, int pass,
                          const direct_smem<Sum> *smem)
{
    const struct direct_polls polls = direct_polls_of<Sum>();
    if (pass == plan.any.scan.totals_pass || polls.back > direct_member_of<Backward>(plan, item->tile, 0).before)
        return true;
    bool there = true;
#pragma unroll
    for (int i = 0; i < direct_leaves_of<Sum>; i++)
        there = there && tile_state_is_published<Sum>(smem->polled[polls.back - 1][polls.column + i]);
    return there;
}

template <class Sum>
DEVICE void direct_poll(const struct direct_plan &plan, const struct direct_item *item, int pass,
                        direct_smem<Sum> *smem)
{
    if (pass == plan.any.scan.totals_pass)
        return;
    if (plan.any.scan.backward[pass])
        direct_poll_of<Sum, true>(plan, item, pass, smem);
    else
        direct_poll_of<Sum, false>(plan, item, pass, smem);
}

/* The sum of up to 4 `span` members: get(i) is the total of the i-th one, counted against the pass, of `count`. Each
 * lane has it; a quarter of the members is loaded at a time, for want of registers. */
template <class Sum, int span, class Get> DEVICE typename Sum::sum direct_join_quarters(const Get &get, int count)
{
    typename Sum::sum all = Sum::identity(), half = Sum::identity();
#pragma unroll 1
    for (int first = 0; first < 4 * span && first < count; first += span) {
        typename Sum::sum sums[span];
#pragma unroll
        for (int i = 0; i < span; i++)
            sums[i] = get(first + i);
        const typename Sum::sum next =
            kogge_stone_one<Sum, span>(sums, [&](int i, int further) { return first + i + further < count; });
        if (first % (2 * span) == 0)
            half = next;
        else
            half = sum_choose<Sum>(first < count, Sum::add(next, half), half);
        if (first < 2 * span)
            all = half;
    }
    return sum_choose<Sum>(2 * span < count, Sum::add(half, all), all);
}

/* The sum of `count` members of a group in each column, by a warp; lane c has that of column c. get(c, i) is the total
 * of the i-th one, counted against the pass. Where there are half as many columns as lanes, two lanes take a column. */
template <class Sum, class Get> DEVICE typename Sum::sum direct_join(const Get &get, int count)
{
    const int span = sizeof(typename Sum::sum) == 4 ? 8 : 4, half = ORDER_FAN / 2;
    const int columns = direct_columns_of<Sum>, lane = lane_index(), c = lane % columns;
    if constexpr (span == 8)
        return direct_join_quarters<Sum, span>([&](int i) { return get(c, i); }, count);
    if constexpr (columns < WARP) {
        const int base = lane / columns * half;
        const typename Sum::sum near =
            direct_join_quarters<Sum, span>([&](int i) { return get(c, base + i); }, count - base);
        const typename Sum::sum far = lane_get(near, lane ^ columns);
        return sum_choose<Sum>(count > half, Sum::add(far, near), near);
    }
    typename Sum::sum all = Sum::identity();
#pragma unroll 1
    for (int base = 0; base < count; base += half) {
        const typename Sum::sum next =
            direct_join_quarters<Sum, span>([&](int i) { return get(c, base + i); }, count - base);
        all = base == 0 ? next : Sum::add(next, all);
    }
    return all;
}

/* Waits for what this thread asked for and was not there. */
template <class Sum, bool Backward>
DEVICE void direct_poll_again(const struct direct_plan &plan, const struct direct_item *item, int pass,
                              direct_smem<Sum> *smem)
{
    const struct direct_polls polls = direct_polls_of<Sum>();
    if (polls.back > direct_member_of<Backward>(plan, item->tile, 0).before)
        return;
#pragma unroll 1
    for (int i = 0; i < direct_leaves_of<Sum>; i++) {
        const int c = polls.column + i;
        const tile_state *const state = direct_state_before<Sum, Backward>(plan, item, pass, c, polls.back);
        while (!tile_state_is_published<Sum>(smem->polled[polls.back - 1][c]))
            smem->polled[polls.back - 1][c] = tile_state_poll<Sum>(state);
    }
}

/* Finds what a pass meets before an item's tile in its order block, of all columns. By a warp. */
template <class Sum, bool Backward>
DEVICE void direct_look_back(const struct direct_plan &plan, const struct direct_item *item, direct_smem<Sum> *smem)
{
    const int before = direct_member_of<Backward>(plan, item->tile, 0).before;
    if (before == 0)
        return;
    const typename Sum::sum inner =
        direct_join<Sum>([&](int c, int i) { return tile_state_sum<Sum>(smem->polled[i][c]); }, before);
    if (lane_index() < direct_columns_of<Sum>)
        smem->inner[lane_index()] = inner;
}

/* Publishes the totals of a tile, of which there is nothing else to find. By a warp. */
template <class Sum, bool Backward>
DEVICE void direct_publish(const struct direct_plan &plan, const struct direct_item *item, int pass,
                           direct_smem<Sum> *smem)
{
    const typename Sum::sum total = direct_join<Sum>(
        [&](int c, int i) { return smem->sums[Backward ? i : max(item->leaves - 1 - i, 0)][c]; }, item->leaves);
    if (lane_index() < direct_columns_of<Sum>)
        tile_state_publish<Sum>(direct_state_before<Sum, Backward>(plan, item, pass, lane_index(), 0), total);
}

/* Totals of a strip's leaves become what is before them in the tile, and the total of the tile is published. Each warp
 * takes columns. */
template <class Sum, bool Backward>
DEVICE void direct_network(const struct direct_plan &plan, const struct direct_item *item, int pass,
                           direct_smem<Sum> *smem)
{
    const int each = direct_leaves_of<Sum>, leaves = item->leaves, last = group_last<Sum>(leaves);
    const int lane = lane_index(), after = Backward ? lane - 1 : lane + 1;
#pragma unroll 1
    for (int first = warp_index() * each; first < direct_columns_of<Sum>; first += (int)blockDim.x / WARP * each) {
        typename Sum::sum prefixes[each];
#pragma unroll
        for (int i = 0; i < each; i++)
            prefixes[i] = lane < leaves ? smem->sums[lane][first + i] : Sum::identity();
        /* Else f64 spills a register. */
        kogge_stone<Sum, Backward, each, std::is_same<typename Sum::sum, double>::value>(prefixes,
                                                                                         [&](int) { return last; });
        __syncwarp();
        if (lane < leaves && after >= 0 && after < leaves)
#pragma unroll
            for (int i = 0; i < each; i++)
                smem->sums[after][first + i] = prefixes[i];
        if (pass == plan.published_pass && lane == (Backward ? 0 : leaves - 1))
#pragma unroll
            for (int i = 0; i < each; i++)
                tile_state_publish<Sum>(direct_state_before<Sum, Backward>(plan, item, pass, first + i, 0),
                                        prefixes[i]);
    }
}

/* Publishes and awaits sums above tiles. Each warp takes columns. */
template <class Sum, bool Backward>
DEVICE void direct_above(const struct direct_plan &plan, const struct direct_item *item, int pass,
                         direct_smem<Sum> *smem)
{
#pragma unroll 1
    for (int c = warp_index(); c < direct_columns_of<Sum>; c += (int)blockDim.x / WARP) {
        const uint64_t column = (uint64_t)item->strip * direct_columns_of<Sum> + c;
        if (pass == plan.published_pass)
            direct_publish_above<Sum, Backward>(plan, plan.states[pass], column, item->tile);
        if (pass == plan.any.scan.totals_pass)
            continue;
        const carry<Sum> outer = direct_outer<Sum, Backward>(plan, plan.states[pass], column, item->tile);
        if (lane_index() == 0)
            smem->outer[c] = outer.sum;
    }
}

/* Exchanges carries among all threads in a pass, between two barriers of the thread block. */
template <class Sum, bool Backward>
DEVICE void direct_carries(const struct direct_plan &plan, const struct direct_item *item, int pass, bool polled,
                           direct_smem<Sum> *smem)
{
    const bool last_warp = warp_index() == (int)blockDim.x / WARP - 1;
    if (pass != plan.any.scan.totals_pass)
        direct_network<Sum, Backward>(plan, item, pass, smem);
    else if (last_warp)
        direct_seldom<Sum, direct_publish<Sum, Backward>>(plan, item, pass, smem);
    if (plan.levels > 1)
        direct_seldom<Sum, direct_above<Sum, Backward>>(plan, item, pass, smem);
    if (!polled) {
        direct_seldom<Sum, direct_poll_again<Sum, Backward>>(plan, item, pass, smem);
        __syncthreads();
    }
    if (last_warp && pass != plan.any.scan.totals_pass)
        direct_seldom<Sum, direct_look_back<Sum, Backward>>(plan, item, smem);
}

/* The carry into a leaf. */
template <class Sum, bool Backward>
DEVICE carry<Sum> direct_carry(const struct direct_plan &plan, const struct direct_item *item,
                               const struct direct_place &place, const direct_smem<Sum> *smem)
{
    const bool outer = direct_member_of<Backward>(plan, item->tile, 1).number != (Backward ? plan.members[1] - 1 : 0);
    carry<Sum> before = carry_of<Sum>(typename Sum::sum{}, false);
    if (outer)
        before = carry_of<Sum>(smem->outer[place.column], true);
    if (direct_member_of<Backward>(plan, item->tile, 0).before > 0)
        before = carry_join<Sum>(before, carry_of<Sum>(smem->inner[place.column], true));
    const bool begins = place.leaf == (Backward ? item->leaves - 1 : 0);
    return carry_join<Sum>(before, carry_of<Sum>(smem->sums[place.leaf][place.column], !begins));
}

#endif

/*
 * Order 1 (order.h) inside an order block, by one thread block: a lane holds a leaf in registers, a warp a tile.
 *
 * A backward pass is the mirror image of a forward one, so everything is written once in terms of `position`: how many
 * members of the group the pass meets before this one. Members that do not exist get a negative position backward, and
 * forward one that nobody listens to, so they take part in nothing.
 */
#ifndef KERNELS_CUDA_BLOCK_CUH
#define KERNELS_CUDA_BLOCK_CUH

#include "kernels/cuda/sum.cuh"
#include "kernels/order.h"

#define WARP 32 /* lanes, of a leaf each: ORDER_FAN */

/* A tile in shared memory: slots of f32 samples (samples.cuh). f64 results pass through in two halves. */
#define SLOT_BYTES 16
#define TILE_SLOTS (ORDER_TILE * 4 / SLOT_BYTES)

/*
 * Indexes are read anew wherever they are needed: kept in registers from the load to the store, they and what is made
 * of them would cost a resident thread block.
 */
DEVICE unsigned thread_index()
{
    unsigned index;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
    return index;
}

DEVICE int lane_index()
{
    return (int)(thread_index() % WARP);
}

DEVICE int warp_index()
{
    return (int)(thread_index() / WARP);
}

/* The sum of everything that a pass meets before some sample; absent where it meets nothing, which is not zero. */
template <class Sum> struct carry {
    typename Sum::sum sum;
    bool present;
};

/*
 * One of two sums, of which `then` was just added up. An f2 addition is long enough for the compiler to send only those
 * lanes through it that need it, but going apart and coming together again takes longer: so they all add, and select.
 */
template <class Sum>
DEVICE typename Sum::sum sum_choose(bool condition, typename Sum::sum then, typename Sum::sum otherwise)
{
    if (sizeof(typename Sum::sample) != sizeof(double))
        pin(then);
    return condition ? then : otherwise;
}

template <class Sum> DEVICE carry<Sum> carry_join(carry<Sum> outer, carry<Sum> inner)
{
    carry<Sum> both = {sum_choose<Sum>(inner.present, Sum::add(outer.sum, inner.sum), outer.sum), true};
    if (!outer.present)
        both = inner;
    return both;
}

/* How many members of a group a pass meets before this one. */
template <bool Backward> DEVICE int position_of(int member, int members)
{
    return Backward ? members - 1 - member : member;
}

/* Kogge-Stone over the members of a group, one per lane: totals to inclusive prefixes. */
template <class Sum, bool Backward> DEVICE typename Sum::sum group_scan(typename Sum::sum total, int position)
{
#pragma unroll
    for (int distance = 1; distance < ORDER_FAN; distance *= 2) {
        typename Sum::sum before = lane_before<Backward>(total, distance);
        total = sum_choose<Sum>(position >= distance, Sum::add(before, total), total);
    }
    return total;
}

/* This thread's leaf in an order block of `length` samples. */
struct leaf_place {
    int leaves;   /* in its tile, 0 to 32 */
    int position; /* among them */
    int last;     /* index of its last sample, where `partial` */
    bool partial; /* a leaf of the tile lacks samples, which only a backward pass notices: it would meet them first */
};

template <bool Backward> DEVICE struct leaf_place leaf_place_of(int length)
{
    int lane = lane_index(), samples = max(length - warp_index() * ORDER_TILE, 0);
    struct leaf_place place;
    place.leaves = min((samples + ORDER_LEAF - 1u) / ORDER_LEAF, ORDER_FAN);
    place.position = position_of<Backward>(lane, place.leaves);
    place.partial = Backward && samples < ORDER_TILE && samples % ORDER_LEAF != 0;
    place.last = min(samples - lane * ORDER_LEAF, ORDER_LEAF) - 1;
    return place;
}

template <class Sum, bool Backward, bool Partial>
DEVICE typename Sum::sum leaf_total(const typename Sum::sample x[ORDER_LEAF], int last)
{
    typename Sum::sum sum = Sum::first(x[Backward ? ORDER_LEAF - 1 : 0]);
#pragma unroll
    for (int i = 1; i < ORDER_LEAF; i++) {
        const int k = Backward ? ORDER_LEAF - 1 - i : i;
        sum = Partial && k == last ? Sum::first(x[k]) : Sum::add_sample(sum, x[k]);
    }
    return sum;
}

template <class Sum, bool Backward, bool Exclusive, bool Partial>
DEVICE void leaf_values(typename Sum::sample x[ORDER_LEAF], carry<Sum> carry, int last)
{
    if (Exclusive && !carry.present)
        carry.sum = Sum::zero();
    typename Sum::sum sum = carry.sum;
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++) {
        const int k = Backward ? ORDER_LEAF - 1 - i : i;
        const bool start = Partial ? k == last : i == 0;
        typename Sum::sum before = start ? carry.sum : sum;
        sum = Sum::add_sample(before, x[k]);
        if (start)
            sum = sum_choose<Sum>(carry.present, sum, Sum::first(x[k]));
        x[k] = Sum::value(Exclusive ? before : sum);
    }
}

/*
 * While its samples are in registers, a tile's shared memory holds what the halves of a pass tell each other: the
 * prefixes of its leaves, its total, which the carry into it replaces, and in the first tile the block's total. The
 * totals lie at a different place in each tile, so that a warp that goes through the tiles meets all banks.
 */
template <class Sum> DEVICE typename Sum::sum *leaf_prefix(uint4 *tiles, int tile, int leaf)
{
    return (typename Sum::sum *)(tiles + tile * TILE_SLOTS) + leaf;
}

template <class Sum> DEVICE typename Sum::sum *block_total(uint4 *tiles)
{
    return (typename Sum::sum *)(tiles + ORDER_FAN / 2);
}

template <class Sum> DEVICE typename Sum::sum *tile_sum(uint4 *tiles, int tile)
{
    return (typename Sum::sum *)(tiles + tile * (TILE_SLOTS + 1) + ORDER_FAN / 2 + 1);
}

/* The sum of all order blocks that a pass met before this one: sums[index], where there are any. */
template <class Sum> struct outer_carry {
    bool present;
    const typename Sum::sum *sums;
    const uint64_t *index;
};

/* The first half of a pass: the prefixes of the leaves and the tile's total. */
template <class Sum, bool Backward>
DEVICE void tile_up(const typename Sum::sample x[ORDER_LEAF], int length, uint4 *tiles)
{
    struct leaf_place place = leaf_place_of<Backward>(length);
    typename Sum::sum sum = place.partial ? leaf_total<Sum, Backward, Backward>(x, place.last)
                                          : leaf_total<Sum, Backward, false>(x, place.last);
    sum = group_scan<Sum, Backward>(sum, place.position);
    int warp = warp_index();
    __syncwarp(); /* all lanes have read what an earlier pass left there */
    *leaf_prefix<Sum>(tiles, warp, lane_index()) = sum;
    if (place.position == place.leaves - 1)
        *tile_sum<Sum>(tiles, warp) = sum;
}

/*
 * Between the halves: the first warp turns the totals of the tiles into the carries into them. If every warp did that
 * for itself, they would meet once instead of twice, but for f2 it takes longer.
 */
template <class Sum, bool Backward> DEVICE void tiles_scan(uint4 *tiles, int tile_count, outer_carry<Sum> outer)
{
    __syncthreads();
    if (thread_index() < WARP) {
        int tile = lane_index();
        int position = position_of<Backward>(tile, tile_count);
        typename Sum::sum sum = tile < tile_count ? *tile_sum<Sum>(tiles, tile) : Sum::zero();
        sum = group_scan<Sum, Backward>(sum, position);
        if (position == tile_count - 1)
            *block_total<Sum>(tiles) = sum;
        carry<Sum> carry = {lane_before<Backward>(sum, 1), position > 0};
        if (outer.present)
            carry = carry_join<Sum>({outer.sums[*outer.index], true}, carry);
        if (tile < tile_count)
            *tile_sum<Sum>(tiles, tile) = carry.sum;
    }
    __syncthreads();
}

/* The second half: replaces the samples by their values. */
template <class Sum, bool Backward, bool Exclusive>
DEVICE void tile_down(typename Sum::sample x[ORDER_LEAF], int length, uint4 *tiles, bool outer_present)
{
    struct leaf_place place = leaf_place_of<Backward>(length);
    int warp = warp_index(), position = position_of<Backward>(warp, (length + ORDER_TILE - 1u) / ORDER_TILE);
    carry<Sum> tile = {*tile_sum<Sum>(tiles, warp), outer_present || position > 0};
    carry<Sum> leaf = {Sum::zero(), place.position > 0};
    if (leaf.present)
        leaf.sum = *leaf_prefix<Sum>(tiles, warp, lane_index() + (Backward ? 1 : -1));
    leaf = carry_join<Sum>(tile, leaf);
    if (place.partial)
        leaf_values<Sum, Backward, Exclusive, Backward>(x, leaf, place.last);
    else
        leaf_values<Sum, Backward, Exclusive, false>(x, leaf, place.last);
}

/*
 * One pass over an order block of `length` samples: replaces the samples by their values. With `total_only` the samples
 * stay. Either way *block_total holds the block's total until `tiles` changes.
 */
template <class Sum, bool Backward, bool Exclusive>
DEVICE void block_pass(typename Sum::sample x[ORDER_LEAF], int length, uint4 *tiles, outer_carry<Sum> outer,
                       bool total_only)
{
    tile_up<Sum, Backward>(x, length, tiles);
    tiles_scan<Sum, Backward>(tiles, (length + ORDER_TILE - 1u) / ORDER_TILE, outer);
    if (!total_only)
        tile_down<Sum, Backward, Exclusive>(x, length, tiles, outer.present);
}

#endif

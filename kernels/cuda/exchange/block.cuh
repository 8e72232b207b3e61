/*
 * Order 1 (order.h) inside an order block, by one thread block: a lane holds a leaf in registers, a warp a tile.
 *
 * A backward pass is the mirror image of a forward one, so everything is written once in terms of what a pass met
 * before. Samples, leaves and tiles that do not exist are identities where there is an identity. Else they hold
 * anything: forward, nobody listens to them; backward, they are told apart.
 */
#ifndef KERNELS_CUDA_EXCHANGE_BLOCK_CUH
#define KERNELS_CUDA_EXCHANGE_BLOCK_CUH

#include <scand/types.h>

#include "kernels/cuda/lane/accumulator.cuh"
#include "kernels/cuda/lane/f2_by_f64.cuh"
#include "kernels/order1/order.h"

#define WARP 32 /* lanes, of a leaf each: ORDER_FAN */

/* What all lanes of a warp have the same value of. Only so does the compiler know that, and keeps it in a register that
 * they share; a vector register would be spilled, at a cost of 15 %. */
DEVICE int warp_uniform(int value)
{
    return __shfl_sync(~0u, value, 0);
}

/* Once per kernel, and passed on in a register that the lanes share, unlike lane_index. */
DEVICE int warp_index()
{
    return warp_uniform((int)threadIdx.x / WARP);
}

/* How many samples of an order block of `length` lie in a warp's tile. */
DEVICE int tile_samples(int length, int warp)
{
    return min(max(length - warp * ORDER_TILE, 0), ORDER_TILE);
}

/* The last member of a group of which `members` exist, or of one that is filled up with identities. */
template <class Sum> DEVICE int group_last(int members)
{
    return Sum::has_identity ? WARP - 1 : members - 1;
}

/* The sum of everything that a pass meets before some sample; absent where it meets nothing. */
template <class Sum> struct carry {
    typename Sum::sum sum;
    bool present; /* always true where there is an identity */
};

template <class Sum> DEVICE carry<Sum> carry_of(typename Sum::sum sum, bool present)
{
    if (Sum::has_identity)
        return {present ? sum : Sum::identity(), true};
    return {sum, present};
}

/*
 * One of two sums, of which `then` was just added up. An f2 addition is long enough for the compiler to send only those
 * lanes through it that need it, but going apart and coming together again takes longer: so they all add, and select.
 */
template <class Sum>
DEVICE typename Sum::sum sum_choose(bool condition, typename Sum::sum then, typename Sum::sum otherwise)
{
    if (!Sum::has_identity)
        pin(then);
    return condition ? then : otherwise;
}

template <class Sum> DEVICE carry<Sum> carry_join(carry<Sum> outer, carry<Sum> inner)
{
    if (Sum::has_identity)
        return {Sum::add(outer.sum, inner.sum), true};
    carry<Sum> both = {sum_choose<Sum>(inner.present, Sum::add(outer.sum, inner.sum), outer.sum), true};
    if (!outer.present)
        both = inner;
    return both;
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

/* Of the leaves of a tile of `samples` samples, whether one lacks samples that a backward pass would have met first,
 * and which is the last sample of this lane's. Where there is an identity, that makes no difference. */
struct leaf_end {
    bool partial;
    int last;
};

template <class Sum, bool Backward> DEVICE struct leaf_end leaf_end_of(int samples)
{
    if (Sum::has_identity || !Backward || samples % ORDER_LEAF == 0)
        return {false, ORDER_LEAF - 1};
    return {true, min(samples - lane_index() * ORDER_LEAF, ORDER_LEAF) - 1};
}

/* Makes absent what is not among the first `samples` samples of this warp's tile. */
template <class Sum> DEVICE void leaf_fill(typename Sum::sample x[ORDER_LEAF], int samples)
{
    int there = samples - lane_index() * ORDER_LEAF;
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        if (i >= there)
            x[i] = Sum::absent();
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

/* As tile_prefixes, if that is exact: the same for all lanes. */
template <bool Backward> DEVICE bool tile_prefixes_exact(const float x[ORDER_LEAF], struct f2 *prefix, float *most)
{
    struct exact_range range = {~0u, 0.0f};
    double sum = exact_total(x, &range);
    *most = range.most;
    return exact_scan<1, Backward>(&sum, range, prefix);
}

/* The inclusive prefixes of the totals of a tile's leaves, of which the last one has `samples` % 16. What lies beyond
 * is absent, or nobody listens to it. `most`: what this lane's magnitudes add up to. */
template <class Sum, bool Backward>
DEVICE typename Sum::sum tile_prefixes(const typename Sum::sample x[ORDER_LEAF], struct leaf_end end, int samples,
                                       float *most)
{
    typename Sum::sum sum;
    if constexpr (sum_is_exact<Sum>)
        if ((!Backward || samples % ORDER_LEAF != 1) && tile_prefixes_exact<Backward>(x, &sum, most))
            return sum;
    *most = INFINITY;
    sum =
        end.partial ? leaf_total<Sum, Backward, Backward>(x, end.last) : leaf_total<Sum, Backward, false>(x, end.last);
    return group_scan<Sum, Backward>(sum, group_last<Sum>((int)((samples + ORDER_LEAF - 1u) / ORDER_LEAF)));
}

/* Replaces samples by their values of a kind. `Smaller`: no sum is as small as a sample, and there is a carry. */
template <class Sum, bool Backward, int Kind, bool Partial, bool Smaller = false>
DEVICE void leaf_values(typename Sum::sample x[ORDER_LEAF], carry<Sum> carry, int last)
{
    const bool exclusive = Kind == SCAND_KIND_EXCLUSIVE;
    if (exclusive && !carry.present)
        carry.sum = Sum::zero();
    typename Sum::sum sum = carry.sum;
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++) {
        const int k = Backward ? ORDER_LEAF - 1 - i : i;
        const bool start = Partial ? k == last : i == 0;
        typename Sum::sum before = start ? carry.sum : sum;
        if constexpr (Smaller)
            sum = Sum::add_smaller(before, x[k]);
        else
            sum = Sum::add_sample(before, x[k]);
        if (start && !Sum::has_identity && !Smaller)
            sum = sum_choose<Sum>(carry.present, sum, Sum::first(x[k]));
        typename Sum::sum result = exclusive ? before : sum;
        if constexpr (Kind == SCAND_KIND_HALF)
            result = Sum::less_half(sum, x[k]);
        x[k] = Sum::value(result);
    }
}

/* Which kind a pass is of, where that is not known before the launch. */
#define KIND_ANY (-1)

/* The same, of `Kind`, or of `kind` if that is KIND_ANY. The pins keep what kinds have in common apart: computed for
 * all of them before they part, it would not fit the registers. */
template <class Sum, bool Backward, int Kind, bool Partial>
DEVICE void leaf_values(typename Sum::sample x[ORDER_LEAF], carry<Sum> carry, int last, int kind)
{
    if constexpr (Kind != KIND_ANY) {
        leaf_values<Sum, Backward, Kind, Partial>(x, carry, last);
    } else if (kind == SCAND_KIND_EXCLUSIVE) {
        pin(carry.sum);
        leaf_values<Sum, Backward, SCAND_KIND_EXCLUSIVE, Partial>(x, carry, last);
    } else if (!Sum::has_half || kind == SCAND_KIND_INCLUSIVE) {
        pin(carry.sum);
        leaf_values<Sum, Backward, SCAND_KIND_INCLUSIVE, Partial>(x, carry, last);
    } else if constexpr (Sum::has_half) {
        leaf_values<Sum, Backward, SCAND_KIND_HALF, Partial>(x, carry, last);
    }
}

/* The same of a leaf that is full, of samples whose magnitudes add up to `most`. Where all carries of the warp are
 * further from 0, no sum is as small as the sample that it takes, which is fewer steps then. */
template <class Sum, bool Backward, int Kind>
DEVICE void leaf_values_of(typename Sum::sample x[ORDER_LEAF], carry<Sum> carry, float most, int kind)
{
    if constexpr (sum_is_exact<Sum> && Kind != KIND_ANY)
        if (__all_sync(~0u, carry.present && fabsf(carry.sum.high) >= most * EXACT_MARGIN)) {
            leaf_values<Sum, Backward, Kind, false, true>(x, carry, ORDER_LEAF - 1);
            return;
        }
    leaf_values<Sum, Backward, Kind, false>(x, carry, ORDER_LEAF - 1, kind);
}

/* An exclusive pass leaves `zero` of the sample that it meets first; an identity may look different. */
template <class Sum, bool Backward>
DEVICE void leaf_zero_first(typename Sum::sample x[ORDER_LEAF], int length, int warp, typename Sum::sample zero)
{
    int first = (Backward ? length - 1 : 0) - (warp * WARP + lane_index()) * ORDER_LEAF;
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        if (i == first)
            x[i] = zero;
}

/* Where the tiles of an order block tell each other their totals, and the carries into them. */
template <class Sum> struct tile_sums {
    typename Sum::sum totals[ORDER_FAN], carries[ORDER_FAN];
};

/*
 * The first warp turns the totals of the tiles into the carries into them. If every warp did that for itself, they
 * would meet once, but it takes longer.
 */
template <class Sum, bool Backward, bool Few = false, class Outside>
DEVICE void tiles_scan(tile_sums<Sum> *shared, int tiles, Outside outside)
{
    int tile = lane_index(), last = tiles - 1;
    typename Sum::sum sum = shared->totals[tile];
    sum = group_scan<Sum, Backward, Few>(sum, last);
    if (outside.total_wanted() && tile == (Backward ? 0 : last))
        *outside.sum() = sum;
    carry<Sum> before = group_before<Sum, Backward>(sum, last);
    if (outside.present())
        before = carry_join<Sum>({*outside.sum(), true}, before);
    shared->carries[tile] = before.sum;
}

/*
 * One pass over an order block of `length` samples: replaces the samples by their values, unless only the total is
 * wanted. `outside` knows the rest: whether a carry from the row's other order blocks is present, whether the total is
 * wanted, and where the one lies and the other goes; of what kind the pass is, and its value of no samples.
 */
template <class Sum, bool Backward, int Kind, class Outside>
DEVICE void block_pass(typename Sum::sample x[ORDER_LEAF], int length, int warp, tile_sums<Sum> *shared,
                       Outside outside)
{
    int samples = tile_samples(length, warp), leaves = (samples + ORDER_LEAF - 1u) / ORDER_LEAF;
    int tiles = (length + ORDER_TILE - 1u) / ORDER_TILE;
    if (samples < ORDER_TILE && (Sum::has_identity || sum_is_exact<Sum>))
        leaf_fill<Sum>(x, samples);
    struct leaf_end end = leaf_end_of<Sum, Backward>(samples);
    float most;
    typename Sum::sum sum = tile_prefixes<Sum, Backward>(x, end, samples, &most);
    if (lane_index() == (Backward ? 0 : leaves - 1))
        shared->totals[warp] = sum;
    carry<Sum> leaf = group_before<Sum, Backward>(sum, group_last<Sum>(leaves));
    __syncthreads();
    if (warp == 0)
        tiles_scan<Sum, Backward>(shared, tiles, outside);
    __syncthreads();
    if (outside.total_wanted())
        return;
    bool present = Sum::has_identity || outside.present() || warp != (Backward ? tiles - 1 : 0);
    leaf = carry_join<Sum>({shared->carries[warp], present}, leaf);
    if (end.partial)
        leaf_values<Sum, Backward, Kind, Backward>(x, leaf, end.last, outside.kind());
    else
        leaf_values_of<Sum, Backward, Kind>(x, leaf, most, outside.kind());
    const bool exclusive = (Kind == KIND_ANY ? outside.kind() : Kind) == SCAND_KIND_EXCLUSIVE;
    if (exclusive && Sum::has_identity && !outside.present())
        leaf_zero_first<Sum, Backward>(x, length, warp, outside.zero());
}

#endif

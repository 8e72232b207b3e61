/*
 * A leaf of order 1 (order.h), which a lane holds in registers: its total, and its values.
 *
 * A backward pass is the mirror image of a forward one, so everything is written once in terms of what a pass met
 * before. Samples that do not exist are identities where there is an identity. Else they hold anything: forward, nobody
 * listens to them; backward, they are told apart.
 */
#ifndef KERNELS_CUDA_LANE_LEAF_CUH
#define KERNELS_CUDA_LANE_LEAF_CUH

#include <limits.h>

#include <scand/types.h>

#include "kernels/cuda/lane/carry.cuh"
#include "kernels/cuda/lane/f2_by_f64.cuh"
#include "kernels/cuda/lane/lane.cuh"

/* A lane's leaf of a stretch. */
template <class T> struct held_leaf {
    T x[ORDER_LEAF];
};

/* The end of a tile of `samples` samples: whether one of its leaves lacks samples that a backward pass would have met
 * first, and which is the last sample of this lane's leaf. Where there is an identity, that makes no difference. */
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

/* What a lane holds of f32 samples. */
template <class Sum> DEVICE void leaf_from_f32(const float samples[ORDER_LEAF], typename Sum::sample x[ORDER_LEAF])
{
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        x[i] = Sum::from_f32(samples[i]);
}

/* What is compared as reals changes sign where a minimum is wanted, and back (instance_flip). */
template <class Sum, class T> DEVICE void leaf_turn(T x[ORDER_LEAF], uint64_t flip)
{
    if constexpr (Sum::compares && Sum::is_real)
        if (flip != 0)
#pragma unroll
            for (int i = 0; i < ORDER_LEAF; i++)
                x[i] = -x[i];
}

/* Makes absent what is not among the first `there` samples of a leaf. */
template <class Sum> DEVICE void leaf_fill_beyond(typename Sum::sample x[ORDER_LEAF], int there)
{
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        if (i >= there)
            x[i] = Sum::absent();
}

/* Makes all samples absent but the first `samples` ones of this warp's tile. */
template <class Sum> DEVICE void leaf_fill(typename Sum::sample x[ORDER_LEAF], int samples)
{
    leaf_fill_beyond<Sum>(x, samples - lane_index() * ORDER_LEAF);
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

/* The same of a leaf of a tile with such an end. */
template <class Sum, bool Backward>
DEVICE typename Sum::sum leaf_total(const typename Sum::sample x[ORDER_LEAF], struct leaf_end end)
{
    return end.partial ? leaf_total<Sum, Backward, Backward>(x, end.last)
                       : leaf_total<Sum, Backward, false>(x, end.last);
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

/* The kind of a pass whose kind is not known before the launch. */
#define KIND_ANY (-1)

/* The values of a leaf of kind `Kind`, or of `kind` if that is KIND_ANY. The pins keep what kinds have in common apart:
 * computed for all of them before they part, it would not fit the registers. */
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

/* The same of a leaf of a tile with such an end. */
template <class Sum, bool Backward, int Kind>
DEVICE void leaf_values(typename Sum::sample x[ORDER_LEAF], carry<Sum> carry, struct leaf_end end)
{
    if (end.partial)
        leaf_values<Sum, Backward, Kind, Backward>(x, carry, end.last);
    else
        leaf_values<Sum, Backward, Kind, false>(x, carry, ORDER_LEAF - 1);
}

/* True, in all lanes of a warp, if no sample of its leaves is a -0, which has the least bits of all integers. */
DEVICE bool leaf_is_plain(const float x[ORDER_LEAF])
{
    int least = __float_as_int(x[0]);
#pragma unroll
    for (int i = 1; i < ORDER_LEAF; i++)
        least = min(least, __float_as_int(x[i]));
    return __all_sync(~0u, least != INT_MIN);
}

/* The values of a leaf of kind `Kind`, or of `kind` if that is KIND_ANY, of samples whose magnitudes add up to `most`.
 * Where all carries of the warp are further from 0, no sum is as small as the sample that is added, which takes fewer
 * steps. `most` is 0 where leaf_is_plain, if Sum has a plain one. */
template <class Sum, bool Backward, int Kind>
DEVICE void leaf_values_of(typename Sum::sample x[ORDER_LEAF], carry<Sum> carry, struct leaf_end end, float most,
                           int kind)
{
    if (end.partial) {
        leaf_values<Sum, Backward, Kind, Backward>(x, carry, end.last, kind);
        return;
    }
    if constexpr (sum_by_f64<Sum> && Kind != KIND_ANY)
        if (__all_sync(~0u, carry.present && fabsf(carry.sum.high) >= most * BY_F64_MARGIN)) {
            leaf_values<Sum, Backward, Kind, false, true>(x, carry, ORDER_LEAF - 1);
            return;
        }
    if constexpr (sum_has_plain<Sum>)
        if (most == 0.0f && __all_sync(~0u, __float_as_int(carry.sum) != INT_MIN)) {
            using Plain = typename sum_plain<Sum>::sum;
            leaf_values<Plain, Backward, Kind, false>(x, {carry.sum, carry.present}, ORDER_LEAF - 1, kind);
            return;
        }
    leaf_values<Sum, Backward, Kind, false>(x, carry, ORDER_LEAF - 1, kind);
}

/* An exclusive pass leaves `zero` of the sample that it meets first, which is number `first` of a leaf, if it is one
 * of its samples; an identity may look different. */
template <class Sum> DEVICE void leaf_zero_at(typename Sum::sample x[ORDER_LEAF], int first, typename Sum::sample zero)
{
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        if (i == first)
            x[i] = zero;
}

/* Inclusive values of a leaf of which `samples` are there become exclusive ones: each goes one place further, behind
 * the one that the pass begins with. */
template <bool Backward, class T> DEVICE void leaf_shift(T x[ORDER_LEAF], int samples, T begin)
{
#pragma unroll
    for (int i = ORDER_LEAF - 1; i > 0; i--)
        x[Backward ? ORDER_LEAF - 1 - i : i] = x[Backward ? ORDER_LEAF - i : i - 1];
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        x[i] = i == (Backward ? samples - 1 : 0) ? begin : x[i];
}

/* The number, in this lane's leaf of a warp's tile, of the first of `length` samples that a pass meets. */
template <bool Backward> DEVICE int leaf_first(int length, int warp)
{
    return (Backward ? length - 1 : 0) - (warp * WARP + lane_index()) * ORDER_LEAF;
}

/* Sets the first value of a pass to `zero`, of a row of `length` samples of which this warp has a tile. */
template <class Sum, bool Backward>
DEVICE void leaf_zero_first(typename Sum::sample x[ORDER_LEAF], int length, int warp, typename Sum::sample zero)
{
    leaf_zero_at<Sum>(x, leaf_first<Backward>(length, warp), zero);
}

/* The kind trapezoid is half of a row whose first sample, number `first` of a leaf if it is one of its samples, is
 * halved before, and whose first value is 0 after. */
template <class Sum> DEVICE void leaf_halve_at(typename Sum::sample x[ORDER_LEAF], int first)
{
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        if (i == first)
            x[i] = Sum::half(x[i]);
}

/* A NaN makes all that follows it in a leaf NaN, so one look at either end tells whether there are any. */
template <class Sum> DEVICE void leaf_results(const typename Sum::sample x[ORDER_LEAF], float results[ORDER_LEAF])
{
#pragma unroll
    for (int i = 0; i < ORDER_LEAF; i++)
        result_of<Sum>(x[i], &results[i]);
    if (results[0] != results[0] || results[ORDER_LEAF - 1] != results[ORDER_LEAF - 1]) {
#pragma unroll
        for (int i = 0; i < ORDER_LEAF; i++)
            quiet_nan(&results[i]);
    }
}

#endif

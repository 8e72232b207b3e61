/*
 * Accumulators, one struct for each operator and type, so that the order (block.cuh) is written once. What they keep is
 * called a sum, whatever the operator. Each names
 *
 * - `sum`, the accumulator, and `sample`, what a lane holds of one sample from the first pass to the last;
 * - from_f32 and from_f64: a sample from what the codec made of its bytes;
 * - first, add_sample and add: a sum begins with its first sample, takes more samples, joins the sum that follows it;
 * - has_identity: whether adding `identity` on either side, or `absent` as a sample, changes no bit. (For sums that is
 *   -0: +0 would make a +0 of a -0. f2 has none: an addition alters -0 and infinities);
 * - value: what a pass leaves of a sum in place of a sample; between_passes: that, rounded to the intermediate type;
 * - has_half, less_half and half: a sum less half of its last sample, and half of a sample;
 * - is_real, as_f32 and as_f64: what is written, if not an integer;
 * - registers of a thread of the any_layout kernel: the most with which an SM holds two thread blocks of 20 warps. With
 *   32 it would hold three of f32, but prod of 10,000 x 10,000 takes 0.256 ms instead of 0.213 on an H200;
 * - stage_vectors of a warp, which results pass through (tile_io.cuh): with 64 instead of 128 vectors three thread
 *   blocks of f2 that fetch ahead fit an SM, and 10,000 x 10,000 takes 0.288 ms instead of 0.291 on an H200. f64 cannot
 *   have a third for want of registers; f32 can, but gets slower, from 0.96 of a copy to 0.91;
 * - where sum_by_f64, add_smaller: as add_sample, for samples no further from 0 than the sum.
 */
#ifndef KERNELS_CUDA_LANE_ACCUMULATOR_CUH
#define KERNELS_CUDA_LANE_ACCUMULATOR_CUH

#include <scand/types.h>
#include <stdint.h>
#include <type_traits>

#include "kernels/cuda/ptx.cuh"
#include "kernels/order1/f2.h"
#include "kernels/order1/operators.h"

DEVICE void pin(struct f2 &x)
{
    pin(x.high);
    pin(x.low);
}

/* What floats and integers have in common. `compares`: samples may be flipped from their load to their store
 * (instance_flip). */
template <class T, scand_operator Op> struct any_number {
    using sum = T;
    using sample = T;
    static const bool compares = OPERATOR_COMPARES(Op);
    static const int registers = 48;
    static const int stage_vectors = 128;
    static const bool has_identity = true;

    DEVICE sum first(sample x) { return x; }
    DEVICE sum add_sample(sum s, sample x) { return OPERATOR_APPLY(Op, s, x); }
    DEVICE sum add(sum left, sum right) { return OPERATOR_APPLY(Op, left, right); }
    DEVICE sample value(sum s) { return s; }
};

/* Floats and doubles. Of f32 samples doubles are held from the load on: conversions are the scarce unit on most GPUs.
 */
template <class T, scand_operator Op> struct any_real : any_number<T, Op> {
    static const bool is_real = true, has_half = Op == SCAND_OPERATOR_SUM;

    DEVICE T from_f32(float x) { return x; }
    DEVICE T from_f64(double x) { return (T)x; }
    DEVICE T zero() { return (T)OPERATOR_EMPTY_REAL(Op); }
    DEVICE T identity() { return Op == SCAND_OPERATOR_SUM ? (T)-0.0 : zero(); }
    DEVICE T absent() { return identity(); }
    DEVICE T less_half(T s, T x) { return s - (T)0.5 * x; }
    DEVICE T half(T x) { return (T)0.5 * x; }
    DEVICE T between_passes(T x, bool to_f32) { return to_f32 ? (T)(float)x : x; }
    DEVICE float as_f32(T x) { return (float)x; }
    DEVICE double as_f64(T x) { return (double)x; }
};

/* Integers that wrap, of 64 bits, or of 32 where no more of them are written. */
template <enum scand_operator Op, class Word = uint64_t> struct any_whole : any_number<Word, Op> {
    static const bool is_real = false, has_half = false;

    DEVICE Word zero() { return (Word)OPERATOR_EMPTY_WHOLE(Op); }
    DEVICE Word identity() { return zero(); }
    DEVICE Word absent() { return zero(); }
    DEVICE Word between_passes(Word x, bool) { return x; }
};

/* What all double-words have in common. */
template <enum scand_operator Op> struct any_double_word {
    using sum = struct f2;
    static const bool has_identity = false, is_real = true, has_half = Op == SCAND_OPERATOR_SUM, compares = false;

    DEVICE sum add(sum left, sum right) { return f2_apply(Op, left, right); }
    DEVICE sum zero() { return f2_from_f32((float)OPERATOR_EMPTY_REAL(Op)); }
    /* Of members that do not exist: nobody looks at it. */
    DEVICE sum identity() { return zero(); }
};

/* Double-words, as which samples are held, too. `Wide`: both their words count; else only their high words are more
 * than 0. */
template <enum scand_operator Op, bool Wide> struct any_f2 : any_double_word<Op> {
    using sum = struct f2;
    using sample = struct f2;
    static const int registers = 64;
    static const int stage_vectors = 128;

    DEVICE sample from_f32(float x) { return f2_from_f32(x); }
    DEVICE sample from_f64(double x) { return f2_from_f64(x); }
    DEVICE sum first(sample x) { return x; }
    DEVICE sum add_sample(sum s, sample x) { return Wide ? f2_apply(Op, s, x) : f2_apply_f32(Op, s, x.high); }
    DEVICE sample absent() { return any_double_word<Op>::zero(); }
    DEVICE sample value(sum s) { return s; }
    DEVICE sum less_half(sum s, sample x) { return add_sample(s, {-0.5f * x.high, -0.5f * x.low}); }
    DEVICE sample half(sample x) { return {0.5f * x.high, 0.5f * x.low}; }
    DEVICE sample between_passes(sample x, bool to_f32)
    {
        return to_f32 ? f2_from_f32(x.high) : f2_from_f64(f2_to_f64(x));
    }
    DEVICE float as_f32(sample x) { return x.high; }
    DEVICE double as_f64(sample x) { return f2_to_f64(x); }
};

/* Sums, which have kernels of their own. */
using sum_f32 = any_real<float, SCAND_OPERATOR_SUM>;
using sum_f64 = any_real<double, SCAND_OPERATOR_SUM>;

/* f2 where f32 goes in and f32 comes out of every pass: only high words are held. */
struct sum_f2 : any_double_word<SCAND_OPERATOR_SUM> {
    using sample = float;
    static const int registers = 32;
    static const int stage_vectors = 64;

    DEVICE sample from_f32(float x) { return x; }
    DEVICE sample from_f64(double x) { return (float)x; }
    DEVICE sum first(sample x) { return f2_from_f32(x); }
    DEVICE sum add_sample(sum s, sample x) { return f2_add_f32(s, x); }
    DEVICE sum add_smaller(sum s, sample x)
    {
        const struct f2 t = f2_fast_two_sum(s.high, x);
        return f2_fast_two_sum(t.high, s.low + t.low);
    }
    DEVICE sample absent() { return 0.0f; }
    DEVICE sample value(sum s) { return s.high; }
    DEVICE sum less_half(sum s, sample x) { return add_sample(s, -0.5f * x); }
    DEVICE sample half(sample x) { return 0.5f * x; }
    DEVICE sample between_passes(sample x, bool) { return x; }
    DEVICE float as_f32(sample x) { return x; }
    DEVICE double as_f64(sample x) { return x; }
};

/* The same without the way by f64. */
struct any_f2_of_f32 : sum_f2 {
};

/* True when totals of a tile may be made as f2_by_f64.cuh says. */
template <class Sum> constexpr bool sum_by_f64 = false;
template <> constexpr bool sum_by_f64<sum_f2> = true;

/* Sums in f64 of samples that are held as T from pass to pass. */
template <class T> struct sum_f64_of : sum_f64 {
    using sample = T;
    static const bool has_half = false;

    DEVICE sample from_f32(float x) { return x; }
    DEVICE sample absent() { return (T)-0.0; }
    DEVICE sample value(sum s) { return (T)s; }
    DEVICE sample between_passes(sample x, bool) { return x; }
    DEVICE float as_f32(sample x) { return (float)x; }
};

/* Maxima of floats that are no -0. Of zeros of both signs a comparison would leave the left one; where there is one
 * zero, an instruction that chooses between them will do, instead of two comparisons and a selection. */
struct any_plain : any_real<float, SCAND_OPERATOR_MAX> {
    DEVICE float add_sample(float s, float x) { return max_or_nan(s, x); }
    DEVICE float add(float left, float right) { return max_or_nan(left, right); }
};

/* The accumulator for samples and carries among which there is no -0, which takes fewer steps; or Sum itself. */
template <class Sum> struct sum_plain {
    using sum = Sum;
};
template <> struct sum_plain<any_real<float, SCAND_OPERATOR_MAX>> {
    using sum = any_plain;
};
template <class Sum> constexpr bool sum_has_plain = !std::is_same<typename sum_plain<Sum>::sum, Sum>::value;

/* All rules of numbers, in the order of scan_any_layout_number: X(NAME, ..., RULE), of which RULE(operator) is Narrow,
 * and for f2 Wide. Minima are maxima of flipped samples, but of f32 in any_cluster: there maxima of 57,001 samples
 * would reach 0.653 of a copy instead of 0.69. */
#define ANY_FLIPPED(OP)            ((OP) == SCAND_OPERATOR_MIN ? SCAND_OPERATOR_MAX : (OP))
#define ANY_RULE_F32(OP)           any_real<float, ANY_FLIPPED(OP)>
#define ANY_RULE_F32_UNFLIPPED(OP) any_real<float, OP>
#define ANY_RULE_F64(OP)           any_real<double, ANY_FLIPPED(OP)>
#define ANY_RULE_WHOLE(OP)         any_whole<ANY_FLIPPED(OP)>
#define ANY_RULE_SHORT(OP)         any_whole<ANY_FLIPPED(OP), uint32_t>
#define ANY_RULE_F2(OP)            any_f2<OP, false>, any_f2<OP, true>
#define ANY_RULES(X)                        \
    NUMBER_OPERATORS(X, , , ANY_RULE_F32)   \
    NUMBER_OPERATORS(X, , , ANY_RULE_F64)   \
    NUMBER_OPERATORS(X, , , ANY_RULE_WHOLE) \
    ADDING_OPERATORS(X, , , ANY_RULE_F2)

/* The sums that have kernels of their own, by kind, in the order of scan_sum_number: X(SUM, KIND, MORE). */
#define SUM_RULES(X, MORE)                 \
    X(sum_f32, SCAND_KIND_INCLUSIVE, MORE) \
    X(sum_f32, SCAND_KIND_EXCLUSIVE, MORE) \
    X(sum_f64, SCAND_KIND_INCLUSIVE, MORE) \
    X(sum_f64, SCAND_KIND_EXCLUSIVE, MORE) \
    X(sum_f2, SCAND_KIND_INCLUSIVE, MORE)  \
    X(sum_f2, SCAND_KIND_EXCLUSIVE, MORE)

/* The result that is written of a value. Hardware differs in which NaN it makes, so there is only one. */
template <class Sum> DEVICE void result_of(typename Sum::sample x, float *result)
{
    *result = Sum::as_f32(x);
}

template <class Sum> DEVICE void result_of(typename Sum::sample x, double *result)
{
    *result = Sum::as_f64(x);
}

DEVICE void quiet_nan(float *x)
{
    *x = *x == *x ? *x : __int_as_float(0x7fc00000);
}

DEVICE void quiet_nan(double *x)
{
    *x = *x == *x ? *x : __longlong_as_double(0x7ff8000000000000);
}

#endif

/*
 * Accumulators of the any_layout kernel: the results of any operator, as accumulator.cuh has sums of f32 samples, under
 * the same names and called sums too. Besides
 *
 * - from_f32 and from_f64: a sample from what the codec made of its bytes;
 * - has_half, less_half and half: a sum less half of its last sample, and half of a sample;
 * - registers of a thread: the most with which an SM holds two thread blocks of 20 warps. With 32 it would hold
 *   three of f32, but prod of 10,000 x 10,000 takes 0.256 ms instead of 0.213 on an H200.
 */
#ifndef KERNELS_CUDA_LANE_ANY_ACCUMULATOR_CUH
#define KERNELS_CUDA_LANE_ANY_ACCUMULATOR_CUH

#include <scand/types.h>

#include "kernels/cuda/lane/accumulator.cuh"
#include "kernels/order1/operators.h"

/* Floats and doubles. */
template <class T, scand_operator Op> struct any_real {
    using sum = T;
    using sample = T;
    static const int registers = 48;
    static const bool has_identity = true, is_real = true, has_half = Op == SCAND_OPERATOR_SUM;

    DEVICE sample from_f32(float x)
    {
        return x;
    }
    DEVICE sample from_f64(double x)
    {
        return (T)x;
    }
    DEVICE sum first(sample x)
    {
        return x;
    }
    DEVICE sum add_sample(sum s, sample x)
    {
        return OPERATOR_APPLY(Op, s, x);
    }
    DEVICE sum add(sum left, sum right)
    {
        return OPERATOR_APPLY(Op, left, right);
    }
    DEVICE sum identity()
    {
        return Op == SCAND_OPERATOR_SUM ? (T)-0.0 : zero();
    }
    DEVICE sample absent()
    {
        return identity();
    }
    DEVICE sum zero()
    {
        return (T)OPERATOR_EMPTY_REAL(Op);
    }
    DEVICE sample value(sum s)
    {
        return s;
    }
    DEVICE sum less_half(sum s, sample x)
    {
        return s - (T)0.5 * x;
    }
    DEVICE sample half(sample x)
    {
        return (T)0.5 * x;
    }
    DEVICE sample between_passes(sample x, bool to_f32)
    {
        return to_f32 ? (T)(float)x : x;
    }
    DEVICE float as_f32(sample x)
    {
        return (float)x;
    }
    DEVICE double as_f64(sample x)
    {
        return (double)x;
    }
};

/* Maxima and minima of floats that are no -0. Of zeros of both signs a comparison would leave the left one; where there
 * is one zero, an instruction that chooses between them will do, instead of two comparisons and a selection. */
template <scand_operator Op> struct any_plain : any_real<float, Op> {
    DEVICE float add_sample(float s, float x)
    {
        return Op == SCAND_OPERATOR_MAX ? max_or_nan(s, x) : min_or_nan(s, x);
    }
    DEVICE float add(float left, float right)
    {
        return add_sample(left, right);
    }
};
template <> struct sum_plain<any_real<float, SCAND_OPERATOR_MAX>> {
    using sum = any_plain<SCAND_OPERATOR_MAX>;
};
template <> struct sum_plain<any_real<float, SCAND_OPERATOR_MIN>> {
    using sum = any_plain<SCAND_OPERATOR_MIN>;
};

/* The total that a mean is computed from: in f64, of f32 or f64 samples as they are. */
template <class T> struct any_total {
    using sum = double;
    using sample = T;
    static const bool has_identity = true, has_half = false;

    DEVICE sum first(sample x)
    {
        return x;
    }
    DEVICE sum add_sample(sum s, sample x)
    {
        return s + x;
    }
    DEVICE sum add(sum left, sum right)
    {
        return left + right;
    }
    DEVICE sum identity()
    {
        return -0.0;
    }
    DEVICE sample absent()
    {
        return (T)-0.0;
    }
    DEVICE sum zero()
    {
        return 0.0;
    }
    DEVICE sample value(sum s)
    {
        return (T)s;
    }
};

/* Integers that wrap, of 64 bits, or of 32 where no more of them are written. Where signed ones are compared, their
 * sign bits are flipped as long as they are here. */
template <enum scand_operator Op, class Word = uint64_t> struct any_whole {
    using sum = Word;
    using sample = Word;
    static const int registers = 48;
    static const bool has_identity = true, is_real = false, has_half = false;

    DEVICE sum first(sample x)
    {
        return x;
    }
    DEVICE sum add_sample(sum s, sample x)
    {
        return OPERATOR_APPLY(Op, s, x);
    }
    DEVICE sum add(sum left, sum right)
    {
        return OPERATOR_APPLY(Op, left, right);
    }
    DEVICE sum identity()
    {
        return zero();
    }
    DEVICE sample absent()
    {
        return identity();
    }
    DEVICE sum zero()
    {
        return (Word)OPERATOR_EMPTY_WHOLE(Op);
    }
    DEVICE sample value(sum s)
    {
        return s;
    }
    DEVICE sample between_passes(sample x, bool)
    {
        return x;
    }
};

/* Double-words. `Wide`: so are samples; else only their high words are more than 0. */
template <enum scand_operator Op, bool Wide> struct any_f2 {
    using sum = struct f2;
    using sample = struct f2;
    static const int registers = 64;
    static const bool has_identity = false, is_real = true, has_half = Op == SCAND_OPERATOR_SUM;

    DEVICE sample from_f32(float x)
    {
        return f2_from_f32(x);
    }
    DEVICE sample from_f64(double x)
    {
        return f2_from_f64(x);
    }
    DEVICE sum first(sample x)
    {
        return x;
    }
    DEVICE sum add_sample(sum s, sample x)
    {
        return Wide ? add(s, x) : f2_apply_f32(Op, s, x.high);
    }
    DEVICE sum add(sum left, sum right)
    {
        return f2_apply(Op, left, right);
    }
    DEVICE sum identity()
    {
        return zero();
    }
    DEVICE sample absent()
    {
        return zero();
    }
    DEVICE sum zero()
    {
        return f2_from_f32((float)OPERATOR_EMPTY_REAL(Op));
    }
    DEVICE sample value(sum s)
    {
        return s;
    }
    DEVICE sum less_half(sum s, sample x)
    {
        return add_sample(s, {-0.5f * x.high, -0.5f * x.low});
    }
    DEVICE sample half(sample x)
    {
        return {0.5f * x.high, 0.5f * x.low};
    }
    DEVICE sample between_passes(sample x, bool to_f32)
    {
        return to_f32 ? f2_from_f32(x.high) : f2_from_f64(f2_to_f64(x));
    }
    DEVICE float as_f32(sample x)
    {
        return x.high;
    }
    DEVICE double as_f64(sample x)
    {
        return f2_to_f64(x);
    }
};

/* Sums of f32 in f2, of which every pass leaves f32: only these are held. */
struct any_f2_of_f32 : sum_f2 {
    static const bool is_real = true, has_half = true;

    DEVICE sample from_f64(double x) /* which none of them is */
    {
        return (float)x;
    }
    DEVICE sum less_half(sum s, sample x)
    {
        return add_sample(s, -0.5f * x);
    }
    DEVICE sample half(sample x)
    {
        return 0.5f * x;
    }
    DEVICE double as_f64(sample x)
    {
        return x;
    }
};

/* All rules of numbers, in the order of scan_any_layout_number: X(NAME, ..., RULE), of which RULE(operator) is Narrow,
 * and for f2 Wide. */
#define ANY_RULE_F32(OP)   any_real<float, OP>
#define ANY_RULE_F64(OP)   any_real<double, OP>
#define ANY_RULE_WHOLE(OP) any_whole<OP>
#define ANY_RULE_SHORT(OP) any_whole<OP, uint32_t>
#define ANY_RULE_F2(OP)    any_f2<OP, false>, any_f2<OP, true>
#define ANY_RULES(X)                        \
    NUMBER_OPERATORS(X, , , ANY_RULE_F32)   \
    NUMBER_OPERATORS(X, , , ANY_RULE_F64)   \
    NUMBER_OPERATORS(X, , , ANY_RULE_WHOLE) \
    ADDING_OPERATORS(X, , , ANY_RULE_F2)

#endif

/*
 * Accumulators: the value that an operator makes of some samples, how it begins, how samples and other values are
 * added, and what it is rounded to. The value is called a sum whatever the operator, since sums are the first and usual
 * case.
 */
#ifndef KERNELS_ORDER1_ACCUMULATOR_H
#define KERNELS_ORDER1_ACCUMULATOR_H

#include <assert.h>
#include <float.h>
#include <scand/types.h>
#include <stdbool.h>

#include "kernels/order1/dtypes.h"
#include "kernels/order1/f2.h"
#include "kernels/order1/operators.h"
#include "kernels/order1/squares.h"
#include "kernels/scan.h"

/* The type of float and double operations must be their own, not a wider one as on the x87, since they must round to
 * it. */
_Static_assert(FLT_EVAL_METHOD == 0, "float and double arithmetic must be evaluated in its own type");

/* A sample, or the value that a pass leaves in its place. A `wide` sample uses the whole double, any other holds an f32
 * in it. */
union sample {
    double real;
    uint64_t whole; /* value of integers, extended to 64 bits */
};

/* A number as an accumulator keeps it. */
union number {
    float f32;
    double f64;
    struct f2 f2;
    uint64_t exact;
};

/* The operator's result for some samples. For affine it is the map that the samples stand for, from the value before
 * them to the one after them: y -> factor y + term. The term lies where other operators have their sum. */
union sum {
    float f32;
    double f64;
    struct f2 f2;
    uint64_t exact;
    struct squares squares;
    struct {
        union number term, factor;
    } map;
};

/* The parameters that decide how sums are computed. */
struct arithmetic {
    enum scand_operator op;
    enum scand_accumulator accumulator; /* not AUTO */
    uint64_t flip;                      /* flips integers' bits while they are compared */
    bool squares;                       /* F64 sums are of squares, and have a range */
};

static inline struct arithmetic arithmetic_of(const struct scan_rule *rule)
{
    assert(rule->accumulator != SCAND_ACCUMULATOR_AUTO);
    struct arithmetic arithmetic = {rule->op, rule->accumulator, operator_flip(rule->op, rule->input),
                                    reduce_squares(rule->reduction)};
    if (codec_is_integer(rule->input))
        arithmetic.accumulator = SCAND_ACCUMULATOR_EXACT;
    else if (OPERATOR_COMPARES(rule->op))
        arithmetic.accumulator =
            codec_class(rule->input) == SCAND_CLASS_F64 ? SCAND_ACCUMULATOR_F64 : SCAND_ACCUMULATOR_F32;
    return arithmetic;
}

/* The arithmetic of the total that a mean is computed from. */
static const struct arithmetic arithmetic_of_mean = {SCAND_OPERATOR_SUM, SCAND_ACCUMULATOR_F64, 0, false};

static inline uint64_t exact_add(struct arithmetic a, uint64_t left, uint64_t right)
{
    return OPERATOR_APPLY(a.op, left ^ a.flip, right ^ a.flip) ^ a.flip;
}

/* Returns a sample or a coefficient as a number of the accumulator. */
static inline union number number_of(enum scand_accumulator accumulator, union sample sample, bool wide)
{
    union number number = {0};
    switch (accumulator) {
    case SCAND_ACCUMULATOR_EXACT:
        number.exact = sample.whole;
        break;
    case SCAND_ACCUMULATOR_F32:
        number.f32 = (float)sample.real;
        break;
    case SCAND_ACCUMULATOR_F64:
        number.f64 = sample.real;
        break;
    case SCAND_ACCUMULATOR_F2:
        number.f2 = wide ? f2_from_f64(sample.real) : f2_from_f32((float)sample.real);
        break;
    case SCAND_ACCUMULATOR_AUTO: /* asserted */
    case SCAND_ACCUMULATOR_COUNT:
        break;
    }
    return number;
}

/* Returns the sum of one sample. */
static inline union sum sum_first(struct arithmetic a, union sample sample, bool wide)
{
    union sum sum = {0};
    sum.map.term = number_of(a.accumulator, sample, wide);
    return sum;
}

/* Returns the coefficient of all samples where none is given for each. */
static inline union number coefficient_number(const struct scan_rule *rule, enum scand_accumulator accumulator)
{
    union sample coefficient;
    if (accumulator == SCAND_ACCUMULATOR_EXACT)
        coefficient.whole = (uint64_t)(int64_t)rule->coefficient;
    else
        coefficient.real = rule->coefficient;
    return number_of(accumulator, coefficient, true);
}

/* Returns factor y + term; in f2 by DWTimesDW3 and AccurateDWPlusDW. */
static inline union number number_map(enum scand_accumulator accumulator, union number factor, union number y,
                                      union number term)
{
    switch (accumulator) {
    case SCAND_ACCUMULATOR_EXACT:
        y.exact = factor.exact * y.exact + term.exact;
        break;
    case SCAND_ACCUMULATOR_F32:
        y.f32 = factor.f32 * y.f32 + term.f32;
        break;
    case SCAND_ACCUMULATOR_F64:
        y.f64 = factor.f64 * y.f64 + term.f64;
        break;
    case SCAND_ACCUMULATOR_F2:
        y.f2 = f2_add(f2_mul(factor.f2, y.f2), term.f2);
        break;
    case SCAND_ACCUMULATOR_AUTO: /* asserted */
    case SCAND_ACCUMULATOR_COUNT:
        break;
    }
    return y;
}

static inline union number number_mul(enum scand_accumulator accumulator, union number left, union number right)
{
    switch (accumulator) {
    case SCAND_ACCUMULATOR_EXACT:
        left.exact *= right.exact;
        break;
    case SCAND_ACCUMULATOR_F32:
        left.f32 *= right.f32;
        break;
    case SCAND_ACCUMULATOR_F64:
        left.f64 *= right.f64;
        break;
    case SCAND_ACCUMULATOR_F2:
        left.f2 = f2_mul(left.f2, right.f2);
        break;
    case SCAND_ACCUMULATOR_AUTO: /* asserted */
    case SCAND_ACCUMULATOR_COUNT:
        break;
    }
    return left;
}

/* Composes two maps into one that applies `left` first. */
static inline union sum sum_compose(enum scand_accumulator accumulator, union sum left, union sum right)
{
    union sum both;
    both.map.term = number_map(accumulator, right.map.factor, left.map.term, right.map.term);
    both.map.factor = number_mul(accumulator, right.map.factor, left.map.factor);
    return both;
}

/* Adds two sums; `left` is the one that the scan meets first. */
static inline union sum sum_add(struct arithmetic a, union sum left, union sum right)
{
    if (a.op == SCAND_OPERATOR_AFFINE)
        return sum_compose(a.accumulator, left, right);
    if (a.squares) {
        left.squares = squares_add(left.squares, right.squares);
        return left;
    }
    switch (a.accumulator) {
    case SCAND_ACCUMULATOR_EXACT:
        left.exact = exact_add(a, left.exact, right.exact);
        break;
    case SCAND_ACCUMULATOR_F32:
        left.f32 = OPERATOR_APPLY(a.op, left.f32, right.f32);
        break;
    case SCAND_ACCUMULATOR_F64:
        left.f64 = OPERATOR_APPLY(a.op, left.f64, right.f64);
        break;
    case SCAND_ACCUMULATOR_F2:
        left.f2 = f2_apply(a.op, left.f2, right.f2);
        break;
    case SCAND_ACCUMULATOR_AUTO: /* asserted */
    case SCAND_ACCUMULATOR_COUNT:
        break;
    }
    return left;
}

/* Adds one sample, which is given as its sum_first, to a sum. Only f2 knows cheaper ways to add one f32; affine does
 * without. */
static inline union sum sum_add_sample(struct arithmetic a, union sum sum, union sum sample, bool wide)
{
    if (a.accumulator != SCAND_ACCUMULATOR_F2 || a.op == SCAND_OPERATOR_AFFINE || wide)
        return sum_add(a, sum, sample);
    sum.f2 = f2_apply_f32(a.op, sum.f2, sample.f2.high);
    return sum;
}

/* Returns a sum of floats less half of its last sample, which is given as its sum_first. */
static inline union sum sum_less_half(struct arithmetic a, union sum sum, union sum sample, bool wide)
{
    if (a.accumulator == SCAND_ACCUMULATOR_F32)
        sum.f32 -= 0.5f * sample.f32;
    else if (a.accumulator == SCAND_ACCUMULATOR_F64)
        sum.f64 -= 0.5 * sample.f64;
    else {
        union sum half = {.f2 = {-0.5f * sample.f2.high, -0.5f * sample.f2.low}};
        sum = sum_add_sample(a, sum, half, wide);
    }
    return sum;
}

/* Returns half of a sum of floats. */
static inline union sum sum_half(struct arithmetic a, union sum sum)
{
    if (a.accumulator == SCAND_ACCUMULATOR_F32)
        sum.f32 *= 0.5f;
    else if (a.accumulator == SCAND_ACCUMULATOR_F64)
        sum.f64 *= 0.5;
    else
        sum.f2 = (struct f2){0.5f * sum.f2.high, 0.5f * sum.f2.low};
    return sum;
}

/* Returns the value of a sum: a float is rounded to f64 where wide, else to f32. */
static inline union sample sum_value(struct arithmetic a, union sum sum, bool wide)
{
    union sample value = {0};
    switch (a.accumulator) {
    case SCAND_ACCUMULATOR_EXACT:
        value.whole = sum.exact;
        break;
    case SCAND_ACCUMULATOR_F32:
        value.real = (double)sum.f32;
        break;
    case SCAND_ACCUMULATOR_F64:
        value.real = wide ? sum.f64 : (double)(float)sum.f64;
        break;
    case SCAND_ACCUMULATOR_F2:
        value.real = wide ? f2_to_f64(sum.f2) : (double)sum.f2.high;
        break;
    case SCAND_ACCUMULATOR_AUTO: /* asserted */
    case SCAND_ACCUMULATOR_COUNT:
        break;
    }
    return value;
}

/* Returns the value that an exclusive scan begins with: the operator's value for no samples. */
static inline union sample operator_identity(const struct scan_rule *rule)
{
    union sample identity;
    if (codec_is_integer(rule->input))
        identity.whole = operator_empty_whole(rule->op, rule->input);
    else
        identity.real = OPERATOR_EMPTY_REAL(rule->op);
    return identity;
}

#endif

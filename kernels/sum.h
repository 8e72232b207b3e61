/*
 * What an operator has made of some samples, in each accumulator: how it begins, how samples and others of its kind are
 * added, and what it is rounded to. It is called a sum whatever the operator, as the first and usual one is. A sample
 * is held in a double; `wide` samples are those that a first pass left in f64, the others hold an f32 value.
 */
#ifndef KERNELS_SUM_H
#define KERNELS_SUM_H

#include <float.h>
#include <scand/types.h>
#include <stdbool.h>

#include "kernels/f2.h"
#include "kernels/scan.h"

/* Operations must round to their own type, not to a wider one as on the x87. */
_Static_assert(FLT_EVAL_METHOD == 0, "float and double arithmetic must be evaluated in its own type");

union sum {
    float f32;
    double f64;
    struct f2 f2;
};

/* What decides how sums are computed. */
struct arithmetic {
    enum scand_operator op;
    enum scand_accumulator accumulator;
};

/* max and min change no value: they work in the type of the samples, whatever the accumulator. */
static inline struct arithmetic arithmetic_of(const struct scan_rule *rule)
{
    struct arithmetic arithmetic = {rule->op, rule->accumulator};
    if (rule->op == SCAND_OPERATOR_MAX || rule->op == SCAND_OPERATOR_MIN)
        arithmetic.accumulator = SCAND_ACCUMULATOR_F32;
    return arithmetic;
}

/* `left` is the one that the scan meets first: it stays where both are equal, or it is NaN. */
#define OPERATOR_MAX(LEFT, RIGHT) ((RIGHT) > (LEFT) || (RIGHT) != (RIGHT) ? (RIGHT) : (LEFT))
#define OPERATOR_MIN(LEFT, RIGHT) ((RIGHT) < (LEFT) || (RIGHT) != (RIGHT) ? (RIGHT) : (LEFT))

#define OPERATOR_APPLY(OP, LEFT, RIGHT)                        \
    ((OP) == SCAND_OPERATOR_SUM    ? (LEFT) + (RIGHT)          \
     : (OP) == SCAND_OPERATOR_PROD ? (LEFT) * (RIGHT)          \
     : (OP) == SCAND_OPERATOR_MAX  ? OPERATOR_MAX(LEFT, RIGHT) \
                                   : OPERATOR_MIN(LEFT, RIGHT))

/* The sum of one sample. */
static inline union sum sum_first(struct arithmetic a, double sample, bool wide)
{
    union sum sum = {0};
    if (a.accumulator == SCAND_ACCUMULATOR_F32)
        sum.f32 = (float)sample;
    else if (a.accumulator == SCAND_ACCUMULATOR_F64)
        sum.f64 = sample;
    else
        sum.f2 = wide ? f2_from_f64(sample) : f2_from_f32((float)sample);
    return sum;
}

/* The sum of two sums; `left` is the one that the scan meets first. */
static inline union sum sum_add(struct arithmetic a, union sum left, union sum right)
{
    if (a.accumulator == SCAND_ACCUMULATOR_F32)
        left.f32 = OPERATOR_APPLY(a.op, left.f32, right.f32);
    else if (a.accumulator == SCAND_ACCUMULATOR_F64)
        left.f64 = OPERATOR_APPLY(a.op, left.f64, right.f64);
    else
        left.f2 = a.op == SCAND_OPERATOR_SUM ? f2_add(left.f2, right.f2) : f2_mul(left.f2, right.f2);
    return left;
}

/* A sum and one sample more, which is given as its sum_first. Only f2 knows cheaper ways to add one f32. */
static inline union sum sum_add_sample(struct arithmetic a, union sum sum, union sum sample, bool wide)
{
    if (a.accumulator != SCAND_ACCUMULATOR_F2 || wide)
        return sum_add(a, sum, sample);
    float x = sample.f2.high;
    sum.f2 = a.op == SCAND_OPERATOR_SUM ? f2_add_f32(sum.f2, x) : f2_mul_f32(sum.f2, x);
    return sum;
}

/* The value of a sum, rounded to `type`. */
static inline double sum_round(struct arithmetic a, union sum sum, enum scand_dtype type)
{
    if (a.accumulator == SCAND_ACCUMULATOR_F32)
        return (double)sum.f32;
    if (a.accumulator == SCAND_ACCUMULATOR_F64)
        return type == SCAND_DTYPE_F32 ? (double)(float)sum.f64 : sum.f64;
    return type == SCAND_DTYPE_F32 ? (double)sum.f2.high : f2_to_f64(sum.f2);
}

/* What an exclusive scan begins with: the sum of no samples. */
static inline double operator_identity(enum scand_operator op)
{
    static const double identities[SCAND_OPERATOR_COUNT] = {
        [SCAND_OPERATOR_PROD] = 1.0, [SCAND_OPERATOR_MAX] = -INFINITY, [SCAND_OPERATOR_MIN] = INFINITY};
    return identities[op];
}

#endif

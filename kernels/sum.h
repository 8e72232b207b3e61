/*
 * A sum of samples in each accumulator: how it begins, how samples and other sums are added, and what it is rounded to.
 * A sample is held in a double; `wide` samples are those that a first pass left in f64, the others hold an f32 value.
 */
#ifndef KERNELS_SUM_H
#define KERNELS_SUM_H

#include <float.h>
#include <scand/types.h>
#include <stdbool.h>

#include "kernels/f2.h"

/* Operations must round to their own type, not to a wider one as on the x87. */
_Static_assert(FLT_EVAL_METHOD == 0, "float and double arithmetic must be evaluated in its own type");

union sum {
    float f32;
    double f64;
    struct f2 f2;
};

/* The sum of one sample. */
static inline union sum sum_first(enum scand_accumulator accumulator, double sample, bool wide)
{
    union sum sum = {0};
    if (accumulator == SCAND_ACCUMULATOR_F32)
        sum.f32 = (float)sample;
    else if (accumulator == SCAND_ACCUMULATOR_F64)
        sum.f64 = sample;
    else
        sum.f2 = wide ? f2_from_f64(sample) : f2_from_f32((float)sample);
    return sum;
}

static inline union sum sum_add_sample(enum scand_accumulator accumulator, union sum sum, double sample, bool wide)
{
    if (accumulator == SCAND_ACCUMULATOR_F32)
        sum.f32 += (float)sample;
    else if (accumulator == SCAND_ACCUMULATOR_F64)
        sum.f64 += sample;
    else
        sum.f2 = wide ? f2_add(sum.f2, f2_from_f64(sample)) : f2_add_f32(sum.f2, (float)sample);
    return sum;
}

/* The sum of two sums; `left` is the one that the scan meets first. */
static inline union sum sum_add(enum scand_accumulator accumulator, union sum left, union sum right)
{
    if (accumulator == SCAND_ACCUMULATOR_F32)
        left.f32 += right.f32;
    else if (accumulator == SCAND_ACCUMULATOR_F64)
        left.f64 += right.f64;
    else
        left.f2 = f2_add(left.f2, right.f2);
    return left;
}

/* The value of a sum, rounded to `type`. */
static inline double sum_round(enum scand_accumulator accumulator, union sum sum, enum scand_dtype type)
{
    if (accumulator == SCAND_ACCUMULATOR_F32)
        return (double)sum.f32;
    if (accumulator == SCAND_ACCUMULATOR_F64)
        return type == SCAND_DTYPE_F32 ? (double)(float)sum.f64 : sum.f64;
    return type == SCAND_DTYPE_F32 ? (double)sum.f2.high : f2_to_f64(sum.f2);
}

#endif

/*
 * The operators on numbers of one type, in the order of the vocabulary. affine, which works on pairs of numbers, is
 * apart (accumulator.h).
 */
#ifndef KERNELS_ORDER1_OPERATORS_H
#define KERNELS_ORDER1_OPERATORS_H

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/order1/dtypes.h"
#include "kernels/order1/f2.h"

/* The larger and the smaller of two values: LEFT where both are equal, or LEFT is NaN. */
#define OPERATOR_MAX(LEFT, RIGHT) ((RIGHT) > (LEFT) || (RIGHT) != (RIGHT) ? (RIGHT) : (LEFT))
#define OPERATOR_MIN(LEFT, RIGHT) ((RIGHT) < (LEFT) || (RIGHT) != (RIGHT) ? (RIGHT) : (LEFT))

/*
 * X(NAME, name, RESULT, EMPTY_REAL, EMPTY_WHOLE, A): what LEFT, which the scan meets first, and RIGHT come to; what no
 * floats, and no unsigned integers of 64 bits, come to; and an argument of the caller's.
 *
 * max and min compare: they change no value, so that they work in the type of the samples, whatever the accumulator.
 */
// clang-format off
#define ADDING_OPERATORS(X, LEFT, RIGHT, A)                                            \
    X(SUM,  sum,  (LEFT) + (RIGHT),          0.0,               0,           A)        \
    X(PROD, prod, (LEFT) * (RIGHT),          1.0,               1,           A)
#define COMPARING_OPERATORS(X, LEFT, RIGHT, A)                                         \
    X(MAX,  max,  OPERATOR_MAX(LEFT, RIGHT), -(double)INFINITY, 0,           A)        \
    X(MIN,  min,  OPERATOR_MIN(LEFT, RIGHT), (double)INFINITY,  UINT64_MAX,  A)

/* X(NAME, RESULT, RESULT_F32): the result of two double-words, and of a double-word and an f32. */
#define F2_OPERATORS(X)         \
    X(SUM,  f2_add, f2_add_f32) \
    X(PROD, f2_mul, f2_mul_f32)
// clang-format on

#define NUMBER_OPERATORS(X, LEFT, RIGHT, A) \
    ADDING_OPERATORS(X, LEFT, RIGHT, A)     \
    COMPARING_OPERATORS(X, LEFT, RIGHT, A)

enum {
#define X(NAME, LOWER, RESULT, EMPTY_REAL, EMPTY_WHOLE, A) NUMBER_OPERATOR_##NAME,
    NUMBER_OPERATORS(X, , , ) NUMBER_OPERATOR_COUNT,
    ADDING_OPERATOR_COUNT = NUMBER_OPERATOR_MAX
#undef X
};
#define X(NAME, LOWER, RESULT, EMPTY_REAL, EMPTY_WHOLE, A) \
    static_assert((int)SCAND_OPERATOR_##NAME == (int)NUMBER_OPERATOR_##NAME, "rows are in the vocabulary's order");
NUMBER_OPERATORS(X, , , )
#undef X
static_assert((int)SCAND_OPERATOR_COUNT == NUMBER_OPERATOR_COUNT + 1,
              "a further operator has its row; AFFINE is apart");

#define OPERATOR_RESULT(NAME, LOWER, RESULT, EMPTY_REAL, EMPTY_WHOLE, OP) (OP) == SCAND_OPERATOR_##NAME ? (RESULT):
#define OPERATOR_REAL(NAME, LOWER, RESULT, EMPTY_REAL, EMPTY_WHOLE, OP)   (OP) == SCAND_OPERATOR_##NAME ? (EMPTY_REAL):
#define OPERATOR_WHOLE(NAME, LOWER, RESULT, EMPTY_REAL, EMPTY_WHOLE, OP)  (OP) == SCAND_OPERATOR_##NAME ? (EMPTY_WHOLE):
#define OPERATOR_IS(NAME, LOWER, RESULT, EMPTY_REAL, EMPTY_WHOLE, OP)     (OP) == SCAND_OPERATOR_##NAME ||

/* The result of an operator on two numbers, and the values that exclusive scans begin with. */
#define OPERATOR_APPLY(OP, LEFT, RIGHT) (NUMBER_OPERATORS(OPERATOR_RESULT, LEFT, RIGHT, OP)(LEFT))
#define OPERATOR_EMPTY_REAL(OP)         (NUMBER_OPERATORS(OPERATOR_REAL, , , OP) 0.0)
#define OPERATOR_EMPTY_WHOLE(OP)        (NUMBER_OPERATORS(OPERATOR_WHOLE, , , OP) UINT64_C(0))
#define OPERATOR_COMPARES(OP)           (COMPARING_OPERATORS(OPERATOR_IS, , , OP) false)

F2_INLINE struct f2 f2_apply(enum scand_operator op, struct f2 left, struct f2 right)
{
#define X(NAME, RESULT, RESULT_F32)  \
    if (op == SCAND_OPERATOR_##NAME) \
        return RESULT(left, right);
    F2_OPERATORS(X)
#undef X
    return left;
}

F2_INLINE struct f2 f2_apply_f32(enum scand_operator op, struct f2 left, float right)
{
#define X(NAME, RESULT, RESULT_F32)  \
    if (op == SCAND_OPERATOR_##NAME) \
        return RESULT_F32(left, right);
    F2_OPERATORS(X)
#undef X
    return left;
}

/* Returns the bits by which integers are flipped while they are compared as unsigned integers. */
static inline uint64_t operator_flip(enum scand_operator op, enum scand_dtype dtype)
{
    return OPERATOR_COMPARES(op) && codec_class(dtype) == SCAND_CLASS_SIGNED ? UINT64_C(1) << 63 : 0;
}

/* Returns the value that an exclusive scan of integers begins with, extended to 64 bits: for max and min an end of the
 * dtype's range. */
static inline uint64_t operator_empty_whole(enum scand_operator op, enum scand_dtype dtype)
{
    const uint64_t empty = OPERATOR_EMPTY_WHOLE(op) ^ operator_flip(op, dtype);
    const unsigned beyond = 64 - 8 * codec_bytes(dtype);
    if (!OPERATOR_COMPARES(op))
        return empty;
    return codec_class(dtype) == SCAND_CLASS_SIGNED ? (uint64_t)((int64_t)empty >> beyond) : empty >> beyond;
}

#endif

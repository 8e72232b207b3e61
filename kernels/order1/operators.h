/*
 * The operators on numbers of one type, affine excepted, which works on pairs of them (accumulator.h). `LEFT` is what
 * the scan meets first: max and min leave it where both are equal, or it is NaN.
 */
#ifndef KERNELS_ORDER1_OPERATORS_H
#define KERNELS_ORDER1_OPERATORS_H

#include "kernels/order1/dtypes.h"

#define OPERATOR_MAX(LEFT, RIGHT) ((RIGHT) > (LEFT) || (RIGHT) != (RIGHT) ? (RIGHT) : (LEFT))
#define OPERATOR_MIN(LEFT, RIGHT) ((RIGHT) < (LEFT) || (RIGHT) != (RIGHT) ? (RIGHT) : (LEFT))

#define OPERATOR_APPLY(OP, LEFT, RIGHT)                        \
    ((OP) == SCAND_OPERATOR_SUM    ? (LEFT) + (RIGHT)          \
     : (OP) == SCAND_OPERATOR_PROD ? (LEFT) * (RIGHT)          \
     : (OP) == SCAND_OPERATOR_MAX  ? OPERATOR_MAX(LEFT, RIGHT) \
                                   : OPERATOR_MIN(LEFT, RIGHT))

static_assert(SCAND_OPERATOR_COUNT == 5,
              "a further operator has its line above and its identity below; AFFINE is apart");

/* What an exclusive scan of integers begins with, extended to 64 bits: max and min with an end of the dtype. */
static inline uint64_t operator_identity_whole(enum scand_operator op, enum scand_dtype dtype)
{
    uint64_t end = UINT64_C(1) << (8 * codec_bytes(dtype) - 1); /* of signed ones, -end the smallest */
    bool is_signed = codec_class(dtype) == SCAND_CLASS_SIGNED;
    uint64_t smallest = is_signed ? -end : 0, largest = is_signed ? end - 1 : end + (end - 1);
    switch (op) {
    case SCAND_OPERATOR_PROD:
        return 1;
    case SCAND_OPERATOR_MAX:
        return smallest;
    case SCAND_OPERATOR_MIN:
        return largest;
    case SCAND_OPERATOR_SUM:
    case SCAND_OPERATOR_AFFINE:
    case SCAND_OPERATOR_COUNT:
        break;
    }
    return 0;
}

#endif

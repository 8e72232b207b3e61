/*
 * stack: y[b] = sum of x[i] over the i of which index[i] = b, for 0 <= b < bins: samples of a row are added into bins.
 * Along the axis of traces, a gather is stacked so. Samples of which the index is out of range are left out.
 *
 * index-add: the same onto what there is already, y[b] = onto[b] + sum of alpha x[i]. The output may be `onto`.
 *
 * Floats are added in f64, from 0 or onto[b] and in ascending order of i, products with alpha being rounded to f64
 * first, and rounded once to the output. Integers wrap in 64
 * bits, of which the output gets the low ones. The fold of a bin is how many of its samples are not 0; NaN is not. With
 * STACK_NORM_FOLD a sum is divided by the power of the fold, and is 0 where that is 0. NaN and infinity act as IEEE
 * arithmetic says.
 *
 * This is what sfstack of Madagascar and sustack of Seismic Unix do to the traces of each gather. Its adjoint, without
 * norm, is x[i] = y[index[i]]. index-add is PyTorch's index_add, but for its roundings.
 */
#ifndef KERNELS_STEPS_STACK_H
#define KERNELS_STEPS_STACK_H

#include <math.h>

#include "kernels/steps/step.h"
#include "protocol/operations.h"

struct stack {
    uint64_t bins; /* at least 1: the length of the output */
    enum stack_norm norm;
    double power; /* power of the fold: above 0 */
    double alpha; /* 1, but for index-add; of integers a whole number of up to 2^53 */
};

/* Further operands: the bin of each sample, for each row or for all; written, the fold of each bin, or NULL; what there
 * is already, of the class of the samples, or NULL for zeros. */
enum { STACK_INDEX, STACK_FOLD, STACK_ONTO };

extern const struct step_kernel stack_kernel;

/* The launch on CUDA devices that, wherever it can, gives a lane several rows, as for very many bins. For tests. */
#ifdef __cplusplus
extern "C"
#endif
    step_launch stack_launch_wide;

/* Sums and folds that a tile of a processor has at a time. */
#define STACK_CELLS (UINT64_C(1) << 14)
/* Rows below which each of them is given to threads that have a bin each. */
#define STACK_ROWS_LEAST 32

/* True when all rows have the same index. */
CODEC_INLINE bool stack_is_shared(const struct step_rows *rows)
{
    bool shared = true;
    for (uint32_t k = 0; k < rows->outer_rank; k++)
        shared = shared && rows->further[STACK_INDEX].outer_strides[k] == 0;
    return shared;
}

/* True when rows along the last dimension have one index, whatever others have. */
CODEC_INLINE bool stack_lines_share(const struct step_rows *rows)
{
    const uint32_t last = rows->outer_rank - 1;
    return rows->outer_rank > 1 && rows->further[STACK_INDEX].outer_strides[last] == 0 &&
           rows->outer_shape[last] >= STACK_ROWS_LEAST;
}

/* True when rows are added from lists of an index, in which samples have numbers of 4 bytes. */
CODEC_INLINE bool stack_has_lists(const struct step_rows *rows)
{
    return rows->input.length <= INT32_MAX && (stack_is_shared(rows) || stack_lines_share(rows));
}

/* True when rows are neighbours in memory, samples of a row are not, and neighbours have the same index. */
CODEC_INLINE bool stack_is_columns(const struct step_rows *rows)
{
    const struct step_operand *input = &rows->input;
    const int64_t item = codec_bytes(input->dtype);
    const uint32_t last = rows->outer_rank - 1;
    return rows->outer_rank > 0 && input->outer_strides[last] == item && input->stride != item &&
           rows->further[STACK_INDEX].outer_strides[last] == 0 && rows->outer_shape[last] >= STACK_ROWS_LEAST;
}

CODEC_INLINE bool stack_counts(const struct step_rows *rows, const struct stack *stack)
{
    return stack->norm == STACK_NORM_FOLD || rows->further[STACK_FOLD].origin;
}

/*
 * fold^power by products and square roots, which all devices round alike: those of the squares that the whole part of
 * the power has, and of the roots that its fraction has. It is exact for 1, and good to some 30 units in the last
 * place.
 */
CODEC_INLINE double stack_power(double fold, double power)
{
    double result = 1, square = fold, root = fold, fraction = power - floor(power);
    for (uint32_t whole = (uint32_t)power; whole > 0; whole /= 2) {
        result = whole % 2 > 0 ? result * square : result;
        square = square * square;
    }
    while (fraction > 0) {
        fraction = 2 * fraction;
        root = sqrt(root);
        result = fraction >= 1 ? result * root : result;
        fraction = fraction >= 1 ? fraction - 1 : fraction;
    }
    return result;
}

/* A bin's value from its sum. */
CODEC_INLINE double stack_value(const struct stack *stack, double sum, uint64_t fold)
{
    if (stack->norm == STACK_NORM_NONE)
        return sum;
    return fold > 0 ? sum / stack_power((double)fold, stack->power) : 0.0;
}

#endif

/*
 * Sums of squares of floats, for rms and norm. The square of an f64 sample may be too large or too small for f64 where
 * the root of the sum is not. So the squares of a leaf are added up as they are and, where that sum leaves the middle
 * of the range, once more with the samples multiplied by 2^600 or 2^-600. A sum nearer the middle keeps all its digits:
 * in a leaf of at least 2^-900, squares that lose some, below 2^-1022, are too small to be seen.
 *
 * Powers of two change no digit. So a sum has the bits that it would have without scaling wherever squares and sums lie
 * inside the range of f64.
 */
#ifndef KERNELS_ORDER1_SQUARES_H
#define KERNELS_ORDER1_SQUARES_H

#include "kernels/order1/dtypes.h"

/* True when a reduction adds the squares of samples in place of the samples. */
CODEC_INLINE bool reduce_squares(enum scand_reduction reduction)
{
    return reduction == SCAND_REDUCTION_RMS || reduction == SCAND_REDUCTION_NORM;
}

/* The sums of leaves from SQUARES_LEAST to below SQUARES_MOST are taken as they are. 2^64 such leaves stay below
 * 2^1024. */
#define SQUARES_LEAST 0x1p-900
#define SQUARES_MOST  0x1p900
#define SQUARES_SCALE 0x1p600

/* A sum of squares of samples that were multiplied by SQUARES_SCALE to the power of -range, which is -1, 0 or 1. */
struct squares {
    double sum;
    int range;
};

/* Returns the range of a leaf from its plain sum. A NaN stays in the middle, an infinity is large; a leaf of zeros is
 * small. */
CODEC_INLINE int squares_range(double sum)
{
    return sum >= SQUARES_MOST ? 1 : sum < SQUARES_LEAST ? -1 : 0;
}

/* Returns the factor by which samples of a leaf in a range are multiplied. */
CODEC_INLINE double squares_factor(int range)
{
    return range > 0 ? 1 / SQUARES_SCALE : range < 0 ? SQUARES_SCALE : 1.0;
}

/* Adds two sums of any range: the sum of smaller range is brought to the larger range, where it may vanish. */
CODEC_INLINE struct squares squares_add(struct squares left, struct squares right)
{
    for (; left.range < right.range; left.range++)
        left.sum = left.sum * (1 / SQUARES_SCALE) * (1 / SQUARES_SCALE);
    for (; right.range < left.range; right.range++)
        right.sum = right.sum * (1 / SQUARES_SCALE) * (1 / SQUARES_SCALE);
    left.sum = left.sum + right.sum;
    return left;
}

#endif

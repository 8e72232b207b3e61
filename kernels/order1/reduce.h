/*
 * Reductions of rows: sum, min, max, mean, rms and norm, one result for each row.
 *
 * A result is made of the row's total in order 1 (order.h), forward: of the samples or, for rms and norm, of their
 * squares. Floats are added in f64; the squares of f32 samples are exact in it, those of f64 samples are rounded once,
 * and scaled where they leave its range (squares.h). The mean is the total divided by the number of samples, rms and
 * norm are square roots, of the mean square and of the total; each step is rounded to f64, the result to the output.
 * min and max are the operators of scan.h, so a NaN stays, and of equal values the first. Integers have sums, which
 * wrap in 64 bits, min and max.
 */
#ifndef KERNELS_ORDER1_REDUCE_H
#define KERNELS_ORDER1_REDUCE_H

#include <math.h>

#include "kernels/order1/dtypes.h"
#include "kernels/order1/squares.h"
#include "kernels/scan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns a rule whose one pass, operator and accumulator are those of the total. */
struct scan_rule reduce_rule(enum scand_reduction reduction, enum scand_dtype input, enum scand_dtype output);

/* Returns the result of floats from their total, or from the extreme among them. */
CODEC_INLINE double reduce_finish(enum scand_reduction reduction, double total, uint64_t length)
{
    if (reduction == SCAND_REDUCTION_MEAN || reduction == SCAND_REDUCTION_RMS)
        total = total / (double)length;
    return reduce_squares(reduction) ? sqrt(total) : total;
}

/* Returns the result from a total of squares of any size. */
CODEC_INLINE double reduce_finish_squares(enum scand_reduction reduction, struct squares total, uint64_t length)
{
    return reduce_finish(reduction, total.sum, length) * squares_factor(-total.range);
}

/* Writes the result of row `row`, whose samples make `total`; NULL for a row without samples. */
union sum;
void reduce_store(const struct scan_rows *rows, uint64_t row, const union sum *total);

#ifdef __cplusplus
}
#endif

#endif

/*
 * dot: y = sum of x[i] other[i], one number for each row.
 *
 * Floats: products in f64, exact of f32 samples and rounded once of f64 samples; then order 1 (order.h), forward and in
 * f64; the result is rounded once to the output. The dot product of no samples is 0. NaN and infinity act as IEEE
 * arithmetic says. Integers: products and sums wrap in 64 bits, of which the output gets the low ones.
 *
 * It is linear in each operand: <a x, y> = a <x, y>. With other = x it is the square of the norm.
 */
#ifndef KERNELS_STEPS_DOT_H
#define KERNELS_STEPS_DOT_H

#include "kernels/steps/totals.h"

/* It has no parameters. Its further operand has an element for each sample. */
enum { DOT_OTHER };

/* Rows that are computed side by side, where neighbouring rows are neighbours in memory. */
#define DOT_COLUMNS       128
#define DOT_COLUMNS_LEAST 8

extern const struct step_kernel dot_kernel;

/* Whether they are: row after row of the input lies side by side, and samples of a row do not. Rows are then bounded,
 * too. */
CODEC_INLINE bool dot_is_columns(const struct step_rows *rows)
{
    const struct step_operand *input = &rows->input;
    const int64_t item = codec_bytes(input->dtype);
    return rows->outer_rank > 0 && !input->on_line && input->outer_strides[rows->outer_rank - 1] == item &&
           input->stride != item && rows->outer_shape[rows->outer_rank - 1] >= DOT_COLUMNS_LEAST &&
           input->length <= UINT64_C(1) << 24;
}

#endif

/*
 * dot: y = sum of x[i] other[i], one number for each row.
 *
 * Floats: products in f64, exact of f32 samples and rounded once of f64 samples; then order 1 (order.h), forward and in
 * f64; the result is rounded once to the output. The dot product of no samples is 0. NaN and infinity act as IEEE
 * arithmetic says. Integers: products and sums wrap in 64 bits, of which the output gets the low ones.
 *
 * Long rows are divided into blocks of order 1, whose totals are members of its upper levels: the bits are the same.
 *
 * It is linear in each operand: <a x, y> = a <x, y>. With other = x it is the square of the norm.
 */
#ifndef KERNELS_STEPS_DOT_H
#define KERNELS_STEPS_DOT_H

#include "kernels/steps/totals.h"

/* The further operand of dot, which has no parameters: an element for each sample. */
enum { DOT_OTHER };

/* Rows that are computed side by side, where neighbouring rows are neighbours in memory. */
#define DOT_COLUMNS       128
#define DOT_COLUMNS_LEAST 8

/* dot_parts: of rows as dot has them, the total of each block of order 1, or the sum of its integers. dot_join: of such
 * numbers the row's result. */
extern const struct step_kernel dot_kernel, dot_parts_kernel, dot_join_kernel;

#define DOT_DIVIDED (8 * ORDER_BLOCK) /* samples from which on rows are divided */

/* True when rows are computed side by side: row after row of the input lies side by side, and samples of a row do not.
 * Such rows are bounded in length. */
CODEC_INLINE bool dot_is_columns(const struct step_rows *rows)
{
    const struct step_operand *input = &rows->input;
    const int64_t item = codec_bytes(input->dtype);
    return rows->outer_rank > 0 && !input->on_line && input->outer_strides[rows->outer_rank - 1] == item &&
           input->stride != item && rows->outer_shape[rows->outer_rank - 1] >= DOT_COLUMNS_LEAST &&
           input->length <= UINT64_C(1) << 24;
}

/* The least group of order 1 that holds so many blocks, in blocks. */
CODEC_INLINE uint64_t dot_join_group(uint64_t count)
{
    uint64_t size = 1;
    while (size < count)
        size *= ORDER_FAN;
    return size;
}

/* Integers of 64 bits, which wrap. */
CODEC_INLINE uint64_t dot_sum(const void *numbers, uint64_t count)
{
    const uint64_t *integers = (const uint64_t *)numbers;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += integers[i];
    return sum;
}

#endif

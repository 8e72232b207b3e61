/*
 * diff: differences along rows, of as many elements as the row has. Samples before it count as 0.
 *
 *     first       y[i] = x[i] - x[i-1]
 *     second      y[i] = (x[i] - x[i-1]) - (x[i-1] - x[i-2])
 *     derivative  y[i] = ((3 x[i] - 4 x[i-1]) + x[i-2]) / (2 dt)
 *
 * The first difference undoes the inclusive running sum, and the second one is the first twice. The derivative is the
 * one-sided one of three points, of second order in dt, that Kirchhoff migrations take before they integrate twice.
 * What the brackets say is the order of operations, of which each is rounded to f32, of samples of class f32, or to
 * f64; 2 dt is rounded likewise, once. Infinities and NaNs do what these operations do with them. Integers wrap, and
 * have no derivative.
 */
#ifndef KERNELS_STEPS_DIFF_H
#define KERNELS_STEPS_DIFF_H

#include "kernels/steps/elements.h"
#include "protocol/operations.h"

struct diff {
    enum diff_kind kind;
    double dt; /* of a derivative: not 0, also as an f32 */
};

extern const struct step_kernel diff_kernel;

CODEC_INLINE float diff_f32(enum diff_kind kind, float dt, float x, float before, float second)
{
    if (kind == DIFF_FIRST)
        return x - before;
    if (kind == DIFF_SECOND)
        return (x - before) - (before - second);
    return ((3 * x - 4 * before) + second) / (2 * dt);
}

CODEC_INLINE double diff_f64(enum diff_kind kind, double dt, double x, double before, double second)
{
    if (kind == DIFF_FIRST)
        return x - before;
    if (kind == DIFF_SECOND)
        return (x - before) - (before - second);
    return ((3 * x - 4 * before) + second) / (2 * dt);
}

CODEC_INLINE uint64_t diff_integer(enum diff_kind kind, uint64_t dt, uint64_t x, uint64_t before, uint64_t second)
{
    (void)dt; /* there is no derivative */
    return kind == DIFF_FIRST ? x - before : (x - before) - (before - second);
}

/* Element i of a row. */
CODEC_INLINE void diff_element(const struct step_rows *rows, const struct diff *diff, uint64_t row, uint64_t i)
{
    const struct step_operand *input = &rows->input;
    const enum scand_dtype dtype = input->dtype, made = rows->output.dtype;
    const char *x = step_row(rows, input, row) + (int64_t)i * input->stride;
    const char *before = i > 0 ? x - input->stride : NULL, *second = i > 1 ? before - input->stride : NULL;
    char *y = step_row(rows, &rows->output, row) + (int64_t)i * rows->output.stride;
    if (codec_is_integer(dtype))
        codec_encode_integer(made,
                             diff_integer(diff->kind, 0, codec_decode_integer(dtype, x),
                                          before ? codec_decode_integer(dtype, before) : 0,
                                          second ? codec_decode_integer(dtype, second) : 0),
                             y);
    else if (codec_class(dtype) == SCAND_CLASS_F64)
        step_put_f64(made,
                     diff_f64(diff->kind, diff->dt, codec_decode_f64(dtype, x),
                              before ? codec_decode_f64(dtype, before) : 0,
                              second ? codec_decode_f64(dtype, second) : 0),
                     y);
    else
        step_put_f32(made,
                     diff_f32(diff->kind, (float)diff->dt, codec_decode_f32(dtype, x),
                              before ? codec_decode_f32(dtype, before) : 0,
                              second ? codec_decode_f32(dtype, second) : 0),
                     y);
}

#endif

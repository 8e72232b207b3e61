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
    double dt; /* sample interval of a derivative: not 0, also as an f32 */
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

/* A row: element 0 of its input and its output, and bytes from element to element. */
struct diff_line {
    const char *x;
    char *y;
    int64_t x_stride, y_stride;
    enum scand_dtype from, to;
    bool aligned; /* all elements are known to lie at multiples of their size */
};

CODEC_INLINE struct diff_line diff_line_of(const struct step_rows *rows, uint64_t row)
{
    struct diff_line line;
    line.x = step_row(rows, &rows->input, row);
    line.y = step_row(rows, &rows->output, row);
    line.x_stride = rows->input.stride;
    line.y_stride = rows->output.stride;
    line.from = rows->input.dtype;
    line.to = rows->output.dtype;
    line.aligned = false;
    return line;
}

CODEC_INLINE void diff_element(const struct diff *diff, const struct diff_line *line, uint64_t i)
{
    const enum scand_dtype from = line->from, to = line->to;
    const int64_t stride = line->x_stride;
    const char *x = step_aligned(line->aligned, from, line->x + (int64_t)i * stride);
    const char *before = i > 0 ? step_aligned(line->aligned, from, x - stride) : NULL;
    const char *second = i > 1 ? step_aligned(line->aligned, from, x - 2 * stride) : NULL;
    char *y = (char *)step_aligned(line->aligned, to, line->y + (int64_t)i * line->y_stride);
    if (codec_is_integer(from))
        step_encode_integer(to,
                            diff_integer(diff->kind, 0, step_decode_integer(from, x),
                                         before ? step_decode_integer(from, before) : 0,
                                         second ? step_decode_integer(from, second) : 0),
                            y);
    else if (codec_class(from) == SCAND_CLASS_F64)
        step_put_f64(to,
                     diff_f64(diff->kind, diff->dt, step_decode_f64(from, x),
                              before ? step_decode_f64(from, before) : 0, second ? step_decode_f64(from, second) : 0),
                     y);
    else
        step_put_f32(to,
                     diff_f32(diff->kind, (float)diff->dt, step_decode_f32(from, x),
                              before ? step_decode_f32(from, before) : 0, second ? step_decode_f32(from, second) : 0),
                     y);
}

#endif

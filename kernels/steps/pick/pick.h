/*
 * pick: y[k] = (2 d(t) - d(t - w) - d(t + w)) / w^2 with t = position[k] and w = half_width[k] + 1, a triangle of any
 * width about any place: of a row that has been summed forward and then backward, it is the weighted mean that programs
 * for Kirchhoff migration take against aliasing (Lumley, Claerbout and Bevc, 1994). Between two samples d(t) is
 * interpolated linearly. A pick is 0 where t - w or t + w does not lie in the row, from sample 0 to the last one, and
 * where its half-width is below 0; NaN as a position or half-width makes it 0, too.
 *
 * All is computed in f64. w, t - w, t + w and (2 d(t) - d(t - w)) - d(t + w) are rounded operation by operation, so is
 * the product w w, by which the last one is divided, and the quotient is rounded to the output. At t = i + f, with a
 * whole i and 0 < f < 1, d(t) = d[i] + f (d[i + 1] - d[i]), rounded likewise; at a sample it is that sample.
 *
 * With whole positions and half-widths K - 1 the results of a row's double sums are those of the row's triangle of
 * half-width K that skips (triangle.h), but for rounding. Output and operands have as many picks as are wanted.
 */
#ifndef KERNELS_STEPS_PICK_H
#define KERNELS_STEPS_PICK_H

#include <math.h>

#include "kernels/steps/elements.h"

struct pick {
    uint64_t picks; /* picks of a row: the length of the output */
};

/* Further operands: where each pick is, in samples, and how wide; for each row or for all. */
enum { PICK_POSITION, PICK_HALF_WIDTH };

extern const struct step_kernel pick_kernel;

CODEC_INLINE bool pick_is_inside(double position, double half_width, uint64_t length)
{
    const double width = half_width + 1;
    return half_width >= 0 && position - width >= 0 && position + width <= (double)length - 1;
}

/* A place in a row: the sample at it or before it, the one that follows it, if that has a share, and this share. */
struct pick_place {
    uint64_t first, second;
    double share;
};

CODEC_INLINE struct pick_place pick_place(double at)
{
    struct pick_place place;
    const double whole = floor(at);
    place.first = (uint64_t)whole;
    place.share = at - whole;
    place.second = place.first + (place.share > 0);
    return place;
}

CODEC_INLINE double pick_between(double first, double second, double share)
{
    return share > 0 ? first + share * (second - first) : first;
}

CODEC_INLINE double pick_value(double behind, double here, double ahead, double width)
{
    return ((2 * here - behind) - ahead) / (width * width);
}

#endif

/*
 * triangle, box: weighted sums of the samples around each one, in a time that does not depend on how many they are.
 *
 *     triangle   y[i] = scale * sum of (K - |m|) x[i + m] over |m| < K
 *     box        y[i] = scale * sum of x[i + m] over |m| < K
 *
 * With K = 1 and a scale of 1 both are a copy. Output and input have the same length, and any dtypes of floats.
 *
 * Samples beyond the row. REFLECT: those of the row in a mirror at its edges, the edges repeated, as often as it takes.
 * ZERO: 0. SKIP: as ZERO, but y[i] is 0 where a tap of the formula lies outside: of the triangle, which is a difference
 * of double sums at three points, i - K or i + K; of the box any of its samples. The triangle is that of Claerbout's
 * "Earth Soundings Analysis" and of anti-aliased Kirchhoff migration (Lumley, Claerbout and Bevc, 1994); with REFLECT
 * it is Madagascar's.
 *
 * Each output may have a half-width of its own, K[i], from 1 to K, and the scale that goes with it: against aliasing
 * they change with time and offset. It is then computed as said below, with K[i] in place of K but of the segments that
 * K has; it is 0 where K[i] is out of range.
 *
 * How it is computed, all in f64. With K up to TRIANGLE_TAPS_MAX outputs are sums of taps, from the middle outwards,
 * and so is one whose half-width is 1:
 *
 *     y = K x[i], y = fma(K - m, x[i - m] + x[i + m], y) for m = 1, ..., K - 1; of the box y = x[i], y = y + (...).
 *
 * Else the row, extended by as much as is needed on both sides, is cut into segments of K samples, from sample 0
 * on. Each segment has sums of its own, which know nothing of what lies before it:
 *
 *     single sums s[r] = x[0] + ... + x[r - 1], double sums e[r] = s[1] + ... + s[r], for r from 0 on.
 *
 * The double sum at any point within K of segment b, seen from b, is a sum of b's or of its neighbour's and a straight
 * line (triangle_line), so that output r of segment b is made of e[r] of b and of the segments on either side. No sum
 * spans more than a segment, whatever the row's length and mean, and the error of y, with weights whose sum is 1, is
 * below 2^-50 (1 + (K / K[i])^2) of the largest sample of three segments. A NaN or an infinity makes NaN of some or all
 * y of its segment and the next one on either side, and of no others.
 *
 * Association. Leaves are TRIANGLE_LEAF samples of a segment, summed serially; the last leaf is filled up with zeros,
 * and a segment's totals are those behind them. Groups are TRIANGLE_FAN leaves or what is left of the segment. The
 * totals of a group's leaves are joined (triangle_join) by the Kogge-Stone network, distances 1, 2, 4, 8, 16, the
 * totals of groups one after the other. The carry into a leaf is the join of the group's carry and the prefix of the
 * leaves before it, of which those that are not there are left out. From the carry on, 0 where there is neither, s and
 * e are summed serially along the leaf. A segment's total is what its last leaf leaves.
 */
#ifndef KERNELS_STEPS_TRIANGLE_H
#define KERNELS_STEPS_TRIANGLE_H

#include <math.h>

#include "kernels/steps/step.h"
#include "protocol/operations.h"

#define TRIANGLE_LEAF           8
#define TRIANGLE_FAN            32
#define TRIANGLE_GROUP          (TRIANGLE_LEAF * TRIANGLE_FAN)
#define TRIANGLE_TAPS_MAX       8 /* the longest half-width that is a sum of taps */
#define TRIANGLE_HALF_WIDTH_MAX 2048
#define TRIANGLE_LEAVES_MAX     (TRIANGLE_HALF_WIDTH_MAX / TRIANGLE_LEAF)

enum triangle_shape { TRIANGLE_TRIANGLE, TRIANGLE_BOX };

struct triangle {
    uint32_t half_width; /* K: 1 to TRIANGLE_HALF_WIDTH_MAX */
    enum triangle_shape shape;
    enum boundary boundary;
    double scale;          /* 1 if half_width is 1 */
    enum window_norm norm; /* norm for the scales of outputs that have half-widths of their own */
};

/* A further operand: the half-width of each output, or NULL: that of the struct is everyone's. */
enum { TRIANGLE_HALF_WIDTHS };

extern const struct step_kernel triangle_kernel;

CODEC_INLINE double triangle_scale(enum triangle_shape shape, enum window_norm norm, double half_width)
{
    const bool is_box = shape == TRIANGLE_BOX;
    switch (norm) {
    case WINDOW_NORM_AREA:
        return is_box ? 1 / (2 * half_width - 1) : 1 / (half_width * half_width);
    case WINDOW_NORM_HEIGHT:
        return is_box ? 1 : 1 / half_width;
    case WINDOW_NORM_NONE:
        break;
    }
    return 1;
}

/* The triangle of an output with a half-width of its own; of one that is out of range the half-width is 0. */
CODEC_INLINE struct triangle triangle_with(const struct triangle *triangle, uint64_t half_width)
{
    struct triangle own = *triangle;
    own.half_width = half_width <= triangle->half_width ? (uint32_t)half_width : 0;
    own.scale = triangle_scale(own.shape, own.norm, own.half_width);
    return own;
}

/* Leaves of a segment; samples of it with the zeros that fill up the last leaf. */
CODEC_INLINE int32_t triangle_leaves(uint32_t half_width)
{
    return (int32_t)((half_width + TRIANGLE_LEAF - 1) / TRIANGLE_LEAF);
}

CODEC_INLINE int32_t triangle_filled(uint32_t half_width)
{
    return triangle_leaves(half_width) * TRIANGLE_LEAF;
}

/* Returns the sample of a row of `length` that position i stands for; -1: none, but 0. */
CODEC_INLINE int64_t triangle_source(enum boundary boundary, int64_t i, int64_t length)
{
    if (i >= 0 && i < length)
        return i;
    if (boundary != BOUNDARY_REFLECT)
        return -1;
    if (i >= -length && i < 2 * length) /* once, which takes no division */
        return i < 0 ? -1 - i : 2 * length - 1 - i;
    const int64_t turned = i % (2 * length), inside = turned < 0 ? turned + 2 * length : turned;
    return inside < length ? inside : 2 * length - 1 - inside;
}

/* The outputs *from <= i < *to of a row of `length` that are not skipped. */
CODEC_INLINE void triangle_kept(const struct triangle *triangle, uint64_t length, uint64_t *from, uint64_t *to)
{
    const bool skips = triangle->boundary == BOUNDARY_SKIP;
    const uint64_t reach = triangle->half_width - (triangle->shape == TRIANGLE_BOX);
    *from = skips ? reach : 0;
    *to = !skips ? length : length > reach ? length - reach : 0;
}

/* True when an output with a half-width of its own is kept: it is not skipped, and in range. */
CODEC_INLINE bool triangle_keeps(const struct triangle *own, int64_t i, int64_t length)
{
    const int64_t reach = (int64_t)own->half_width - (own->shape == TRIANGLE_BOX);
    return own->half_width > 0 && (own->boundary != BOUNDARY_SKIP || (i >= reach && i < length - reach));
}

/* The sums of some samples in a row: the single sum and the double sum behind the last of them. */
struct triangle_sums {
    double single, twice;
};

CODEC_INLINE struct triangle_sums triangle_add(struct triangle_sums before, double x)
{
    struct triangle_sums sums;
    sums.single = before.single + x;
    sums.twice = before.twice + sums.single;
    return sums;
}

/* Joins the sums of samples and of the `count` samples behind them. */
CODEC_INLINE struct triangle_sums triangle_join(struct triangle_sums left, struct triangle_sums right, double count)
{
    struct triangle_sums sums;
    sums.single = left.single + right.single;
    sums.twice = (left.twice + left.single * count) + right.twice;
    return sums;
}

/* The correction of sums that are taken from the next segment, `ahead` of this one, or from the one `behind` it: a
 * straight line in r. `here` and `before` are the totals of this segment, of `samples` and the zeros behind them, and
 * of the one behind it.
 */
struct triangle_line {
    double start, slope;
};

CODEC_INLINE struct triangle_line triangle_line(const struct triangle *triangle, uint32_t samples, bool ahead,
                                                bool behind, struct triangle_sums here, struct triangle_sums before)
{
    const bool is_box = triangle->shape == TRIANGLE_BOX;
    const int32_t width = (int32_t)triangle->half_width, filled = triangle_filled(samples);
    struct triangle_line line = {0, 0};
    if (ahead) {
        line.start = is_box ? here.single : here.twice + here.single * (width - filled);
        line.slope = is_box ? 0 : here.single;
    }
    if (behind) {
        line.start += is_box ? before.single : before.single * (width + filled - (int32_t)samples) - before.twice;
        line.slope -= is_box ? 0 : before.single;
    }
    return line;
}

/* The line at the first sample of a leaf. */
CODEC_INLINE double triangle_line_at(struct triangle_line line, int32_t leaf)
{
    return fma(line.slope, (double)(leaf * TRIANGLE_LEAF), line.start);
}

/*
 * Output q of a leaf, where the line is `at` its first sample. A triangle is made of the double sums at r + K, at r - K
 * and at r, a box of the single sums at r + K and at r - K + 1. Where this is sample 0, it is the total of the segment
 * behind. A line of zeros changes nothing.
 */
CODEC_INLINE double triangle_output(const struct triangle *triangle, double ahead, double behind, double here,
                                    double at, double slope, int32_t q)
{
    if (triangle->shape == TRIANGLE_BOX)
        return ((ahead - behind) + at) * triangle->scale;
    return (((behind - 2 * here) + ahead) + fma(slope, (double)q, at)) * triangle->scale;
}

/* True when an output with a half-width of its own is a sum of taps. */
CODEC_INLINE bool triangle_has_taps(const struct triangle *triangle, const struct triangle *own)
{
    return triangle->half_width <= TRIANGLE_TAPS_MAX || own->half_width == 1;
}

/* A sum of taps: what it is with that of the middle, and with those at a distance of m on either side, whose samples
 * are added up in `pair`. */
CODEC_INLINE double triangle_middle(const struct triangle *triangle, double x)
{
    return triangle->shape == TRIANGLE_BOX ? x : triangle->half_width * x;
}

CODEC_INLINE double triangle_taps(const struct triangle *triangle, double sum, int32_t m, double pair)
{
    return triangle->shape == TRIANGLE_BOX ? sum + pair : fma((double)((int32_t)triangle->half_width - m), pair, sum);
}

#endif

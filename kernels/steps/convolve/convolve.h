/*
 * convolve, and correlate, which is its adjoint: rows with a filter w of some taps, the same for all rows or one for
 * each. Output i of a row x is the sum of
 *
 *   w[m] x[i + first - m]   (convolve)      w[m] x[i + first + m]   (correlate)
 *
 * by acc = fma(w[m], sample, acc) from acc = 0, for m = 0, 1, ..., in f32 or f64, rounded once to the output's dtype.
 * Taps whose sample would lie outside the row are left out: they would make NaN of an infinite tap, and 0 of -0.
 * Samples and taps are converted to f32 or f64 first; NaNs and infinities are as arithmetic has them.
 *
 * `first` and the output's length come from a mode. Full, and the valid part of it, are those of numpy.convolve and
 * numpy.correlate. Same is as long as the row and begins (taps - 1) / 2 after full does: numpy.convolve's of a filter
 * that is no longer than the row, and scipy.signal.convolve's. A correlation is <C x, y> = <x, C* y> of a convolution:
 * valid of full, full of valid, and same of same, where numpy.correlate's begins one element earlier if taps are even.
 */
#ifndef KERNELS_STEPS_CONVOLVE_H
#define KERNELS_STEPS_CONVOLVE_H

#include "kernels/steps/step.h"
#include "protocol/limits.h"
#include "protocol/operations.h"

/* The filter is the operand further[0]. Input, filter and output are of floats. */
struct convolve {
    uint64_t taps; /* from 1 to LIMIT_TAPS */
    int64_t first;
    bool correlate;
    bool wide; /* sums are of f64, else of f32 */
};

static inline struct convolve convolve_params(bool correlate, enum convolve_mode mode, uint64_t taps, bool wide)
{
    const int64_t beyond = (int64_t)taps - 1;
    const int64_t before = mode == CONVOLVE_FULL ? beyond : mode == CONVOLVE_SAME ? beyond / 2 : 0;
    const int64_t after = mode == CONVOLVE_FULL ? 0 : mode == CONVOLVE_SAME ? beyond / 2 : beyond;
    return (struct convolve){.taps = taps, .first = correlate ? -before : after, .correlate = correlate, .wide = wide};
}

/*
 * A row of either as a correlation, y[i] = sum of w[m] x[i + m + start]: a convolution is one whose samples and outputs
 * are counted from the last to the first. Outputs begin <= i < end are those of a tile.
 */
struct convolve_row {
    const char *x, *w;
    char *y;
    int64_t x_stride, w_stride, y_stride;
    int64_t samples, start, begin, end;
};

CODEC_INLINE struct convolve_row convolve_row_of(const struct step_rows *rows, const struct convolve *convolve,
                                                 const struct step_tile *tile, uint64_t row)
{
    const struct step_operand *input = &rows->input, *output = &rows->output, *filter = &rows->further[0];
    const int64_t samples = (int64_t)step_length(rows, input, row), outputs = (int64_t)step_length(rows, output, row);
    struct convolve_row r;
    r.x = step_row(rows, input, row);
    r.w = step_row(rows, filter, row);
    r.y = step_row(rows, output, row);
    r.x_stride = input->stride;
    r.w_stride = filter->stride;
    r.y_stride = output->stride;
    r.samples = samples;
    r.start = convolve->first;
    r.begin = (int64_t)tile->begin;
    r.end = (int64_t)step_end(rows, tile, row);
    if (!convolve->correlate && r.begin < r.end) {
        r.x += (samples - 1) * r.x_stride;
        r.y += (outputs - 1) * r.y_stride;
        r.x_stride = -r.x_stride;
        r.y_stride = -r.y_stride;
        r.start = samples - outputs - convolve->first;
        r.end = outputs - (int64_t)tile->begin;
        r.begin = outputs - (int64_t)step_end(rows, tile, row);
    }
    return r;
}

extern const struct step_kernel convolve_kernel;

#endif

#include "convolve.h"
#include "kernels/steps/elements.h"

#define OUTPUTS_MIN (UINT64_C(1) << 10)
#define OUTPUTS_MAX (UINT64_C(1) << 14)
#define ROWS_MAX    16                  /* rows that share cache lines: so many samples are in one */
#define TAPS_MAX    (UINT64_C(1) << 22) /* taps of all outputs of a tile together */

/* A row's samples and taps. */
struct row {
    const struct step_operand *input, *filter;
    const char *x, *w;
    int64_t samples;
};

/* The sample of tap m for output i of a row; NULL: there is none. */
static const char *sample_of(const struct row *row, const struct convolve *convolve, int64_t i, int64_t m)
{
    const int64_t j = i + convolve->first + (convolve->correlate ? m : -m);
    return j >= 0 && j < row->samples ? row->x + j * row->input->stride : NULL;
}

static float sum_f32(const struct row *row, const struct convolve *convolve, int64_t i)
{
    float sum = 0;
    for (int64_t m = 0; m < (int64_t)convolve->taps; m++) {
        const char *sample = sample_of(row, convolve, i, m), *tap = row->w + m * row->filter->stride;
        if (sample)
            sum = fmaf(step_get_f32(row->filter->dtype, tap), step_get_f32(row->input->dtype, sample), sum);
    }
    return sum;
}

static double sum_f64(const struct row *row, const struct convolve *convolve, int64_t i)
{
    double sum = 0;
    for (int64_t m = 0; m < (int64_t)convolve->taps; m++) {
        const char *sample = sample_of(row, convolve, i, m), *tap = row->w + m * row->filter->stride;
        if (sample)
            sum = fma(step_get_f64(row->filter->dtype, tap), step_get_f64(row->input->dtype, sample), sum);
    }
    return sum;
}

static void convolve_reference(const struct step_rows *rows, const void *params, const struct step_tile *tile,
                               void *scratch)
{
    const struct convolve *convolve = params;
    const struct step_operand *input = &rows->input, *filter = &rows->further[0], *output = &rows->output;
    (void)scratch;
    for (uint64_t r = tile->first_row; r < tile->first_row + tile->row_count; r++) {
        const struct row row = {input, filter, step_row(rows, input, r), step_row(rows, filter, r),
                                (int64_t)step_length(rows, input, r)};
        char *to = step_row(rows, output, r);
        for (int64_t i = (int64_t)tile->begin; i < (int64_t)step_end(rows, tile, r); i++)
            if (convolve->wide)
                step_put_f64(output->dtype, sum_f64(&row, convolve, i), to + i * output->stride);
            else
                step_put_f32(output->dtype, sum_f32(&row, convolve, i), to + i * output->stride);
    }
}

static uint64_t clamped(uint64_t value, uint64_t least, uint64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* The more taps, the fewer outputs; of ragged rows the mean length counts. Rows whose elements share cache lines are
 * computed soon after each other. */
static struct step_tiling convolve_tiling(const struct step_rows *rows, const void *params)
{
    const struct convolve *convolve = params;
    const uint64_t fitting = TAPS_MAX / convolve->taps, elements = clamped(fitting, OUTPUTS_MIN, OUTPUTS_MAX);
    const uint64_t ragged = rows->row_count > 0 ? rows->output.length / rows->row_count : 0;
    const uint64_t length = (rows->offsets ? ragged : rows->output.length) + 1;
    if (length < OUTPUTS_MIN)
        return (struct step_tiling){.rows = elements / length, .elements = elements};
    if (elements_cross_rows(rows))
        return (struct step_tiling){.rows = clamped(fitting / OUTPUTS_MIN, 1, ROWS_MAX), .elements = OUTPUTS_MIN};
    return (struct step_tiling){.rows = length < elements ? elements / length : 1, .elements = elements};
}

STEP_DECLARE(convolve);
const struct step_kernel convolve_kernel = {.name = "convolve",
                                            .in_place = false,
                                            .tiling = convolve_tiling,
                                            .least_elements = 1024,
                                            .reference = convolve_reference,
                                            .cpu = STEP_BUILDS(convolve)};

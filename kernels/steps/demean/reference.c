#include "demean.h"

struct row {
    const struct step_operand *input;
    const char *x;
};

static double sample(const void *row, uint64_t i)
{
    const struct row *self = row;
    return step_get_f64(self->input->dtype, self->x + (int64_t)i * self->input->stride);
}

static void demean_reference(const struct step_rows *rows, const void *params, const struct step_tile *tile,
                             void *scratch)
{
    const struct step_operand *input = &rows->input, *output = &rows->output;
    (void)params, (void)scratch;
    for (uint64_t r = tile->first_row; r < tile->first_row + tile->row_count; r++) {
        const uint64_t length = step_length(rows, input, r);
        const struct row row = {input, step_row(rows, input, r)};
        char *y = step_row(rows, output, r);
        const double mean =
            length > 0 ? totals_define(sample, &row, 0, length, totals_group(length)) / (double)length : 0;
        for (uint64_t i = 0; i < length; i++)
            step_put_f64(output->dtype, demean_sample(input->dtype, sample(&row, i), mean),
                         y + (int64_t)i * output->stride);
    }
}

#define TILE_SAMPLES (UINT64_C(1) << 15)

/* Whole rows, since each needs its mean. */
static struct step_tiling demean_tiling(const struct step_rows *rows, const void *params)
{
    const uint64_t samples = step_row_samples(rows), many = TILE_SAMPLES / (samples > 0 ? samples : 1);
    (void)params;
    return (struct step_tiling){.rows = many > 0 ? many : 1, .elements = UINT64_MAX};
}

STEP_DECLARE(demean);
const struct step_kernel demean_kernel = {.name = "demean",
                                          .in_place = true,
                                          .tiling = demean_tiling,
                                          .least_elements = 2048,
                                          .reference = demean_reference,
                                          .cpu = STEP_BUILDS(demean)};

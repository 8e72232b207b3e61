#include "dot.h"

/* Two rows. */
struct pair {
    const struct step_operand *x, *y;
    const char *x0, *y0;
};

static double product(const void *row, uint64_t i)
{
    const struct pair *pair = row;
    return step_get_f64(pair->x->dtype, pair->x0 + (int64_t)i * pair->x->stride) *
           step_get_f64(pair->y->dtype, pair->y0 + (int64_t)i * pair->y->stride);
}

static uint64_t total_of_integers(const struct pair *pair, uint64_t length)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < length; i++)
        sum += codec_decode_integer(pair->x->dtype, pair->x0 + (int64_t)i * pair->x->stride) *
               codec_decode_integer(pair->y->dtype, pair->y0 + (int64_t)i * pair->y->stride);
    return sum;
}

static void dot_reference(const struct step_rows *rows, const void *params, const struct step_tile *tile, void *scratch)
{
    const struct step_operand *output = &rows->output;
    struct pair pair = {.x = &rows->input, .y = &rows->further[DOT_OTHER]};
    (void)params, (void)scratch;
    for (uint64_t row = tile->first_row; row < tile->first_row + tile->row_count; row++) {
        const uint64_t length = step_length(rows, pair.x, row);
        char *at = step_row(rows, output, row);
        pair.x0 = step_row(rows, pair.x, row);
        pair.y0 = step_row(rows, pair.y, row);
        if (codec_is_integer(pair.x->dtype))
            codec_encode_integer(output->dtype, total_of_integers(&pair, length), at);
        else
            step_put_f64(output->dtype,
                         length > 0 ? totals_define(product, &pair, 0, length, totals_group(length)) : 0.0, at);
    }
}

#define TILE_SAMPLES (UINT64_C(1) << 15)

static struct step_tiling dot_tiling(const struct step_rows *rows, const void *params)
{
    const uint64_t samples = step_row_samples(rows), least = dot_is_columns(rows) ? DOT_COLUMNS : 1;
    const uint64_t many = TILE_SAMPLES / (samples > 0 ? samples : 1) / least * least;
    (void)params;
    return (struct step_tiling){.rows = many > least ? many : least, .elements = 1};
}

STEP_DECLARE(dot);
const struct step_kernel dot_kernel = {
    .name = "dot", .in_place = false, .tiling = dot_tiling, .reference = dot_reference, .cpu = STEP_BUILDS(dot)};

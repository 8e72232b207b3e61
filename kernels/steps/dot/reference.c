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

/*
 * Long rows.
 */

static uint64_t part_length(const struct step_operand *input, uint64_t part)
{
    const uint64_t left = input->length - part * ORDER_BLOCK;
    return left < ORDER_BLOCK ? left : ORDER_BLOCK;
}

static void dot_parts_reference(const struct step_rows *rows, const void *params, const struct step_tile *tile,
                                void *scratch)
{
    struct pair pair = {.x = &rows->input, .y = &rows->further[DOT_OTHER]};
    (void)params, (void)scratch;
    for (uint64_t row = tile->first_row; row < tile->first_row + tile->row_count; row++)
        for (uint64_t part = tile->begin; part < step_end(rows, tile, row); part++) {
            const int64_t first = (int64_t)(part * ORDER_BLOCK);
            const uint64_t length = part_length(pair.x, part);
            char *at = step_row(rows, &rows->output, row) + (int64_t)part * rows->output.stride;
            pair.x0 = step_row(rows, pair.x, row) + first * pair.x->stride;
            pair.y0 = step_row(rows, pair.y, row) + first * pair.y->stride;
            if (codec_is_integer(pair.x->dtype))
                codec_encode_integer(rows->output.dtype, total_of_integers(&pair, length), at);
            else
                step_put_f64(rows->output.dtype, totals_define(product, &pair, 0, length, ORDER_BLOCK), at);
        }
}

/* The total of members first <= i < first + count, of a group of order 1 that has `size` of them if it is full. */
static double join(const double *members, uint64_t first, uint64_t count, uint64_t size)
{
    double totals[ORDER_FAN];
    uint64_t n = 0;
    if (size == 1)
        return members[first];
    for (const uint64_t part = size / ORDER_FAN; n * part < count; n++)
        totals[n] = join(members, first + n * part, count - n * part < part ? count - n * part : part, part);
    for (uint64_t distance = 1; distance < n; distance *= 2)
        for (uint64_t j = n - 1; j >= distance; j--)
            totals[j] = totals[j - distance] + totals[j];
    return totals[n - 1];
}

static void dot_join_reference(const struct step_rows *rows, const void *params, const struct step_tile *tile,
                               void *scratch)
{
    const uint64_t count = rows->input.length;
    (void)params, (void)scratch;
    for (uint64_t row = tile->first_row; row < tile->first_row + tile->row_count; row++) {
        const void *numbers = step_row(rows, &rows->input, row);
        char *at = step_row(rows, &rows->output, row);
        if (codec_is_integer(rows->input.dtype))
            codec_encode_integer(rows->output.dtype, dot_sum(numbers, count), at);
        else
            step_put_f64(rows->output.dtype, join(numbers, 0, count, dot_join_group(count)), at);
    }
}

static bool dot_divides(const struct step_rows *rows)
{
    return rows->input.length >= DOT_DIVIDED && !dot_is_columns(rows);
}

static struct step_tiling dot_parts_tiling(const struct step_rows *rows, const void *params)
{
    (void)rows, (void)params;
    return (struct step_tiling){.rows = 1, .elements = TILE_SAMPLES / ORDER_BLOCK};
}

static struct step_tiling dot_join_tiling(const struct step_rows *rows, const void *params)
{
    (void)rows, (void)params;
    return (struct step_tiling){.rows = 1, .elements = 1};
}

STEP_DECLARE(dot);
STEP_DECLARE(dot_parts);
STEP_DECLARE(dot_join);
static const struct step_parts parts = {
    .each = &dot_parts_kernel, .joined = &dot_join_kernel, .samples = ORDER_BLOCK, .divides = dot_divides};
const struct step_kernel dot_kernel = {.name = "dot",
                                       .in_place = false,
                                       .tiling = dot_tiling,
                                       .parts = &parts,
                                       .reference = dot_reference,
                                       .cpu = STEP_BUILDS(dot)};
const struct step_kernel dot_parts_kernel = {.name = "dot_parts",
                                             .in_place = false,
                                             .tiling = dot_parts_tiling,
                                             .least_elements = 1,
                                             .reference = dot_parts_reference,
                                             .cpu = STEP_BUILDS(dot_parts)};
const struct step_kernel dot_join_kernel = {.name = "dot_join",
                                            .in_place = false,
                                            .tiling = dot_join_tiling,
                                            .reference = dot_join_reference,
                                            .cpu = STEP_BUILDS(dot_join)};

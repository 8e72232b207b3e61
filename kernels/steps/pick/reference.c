#include "pick.h"

/* A row of samples. */
struct line {
    const struct step_operand *input;
    const char *x;
};

static double sample(const struct line *line, uint64_t i)
{
    return step_get_f64(line->input->dtype, line->x + (int64_t)i * line->input->stride);
}

static double interpolated(const struct line *line, double at)
{
    const struct pick_place place = pick_place(at);
    return pick_between(sample(line, place.first), sample(line, place.second), place.share);
}

static double picked(const struct line *line, double position, double half_width)
{
    const double width = half_width + 1;
    if (!pick_is_inside(position, half_width, line->input->length))
        return 0;
    return pick_value(interpolated(line, position - width), interpolated(line, position),
                      interpolated(line, position + width), width);
}

static double number(const struct step_rows *rows, uint32_t further, uint64_t row, uint64_t k)
{
    const struct step_operand *operand = &rows->further[further];
    return step_get_f64(operand->dtype, step_row(rows, operand, row) + (int64_t)k * operand->stride);
}

static void pick_reference(const struct step_rows *rows, const void *params, const struct step_tile *tile,
                           void *scratch)
{
    const struct step_operand *output = &rows->output;
    (void)params, (void)scratch;
    for (uint64_t row = tile->first_row; row < tile->first_row + tile->row_count; row++) {
        const struct line line = {&rows->input, step_row(rows, &rows->input, row)};
        char *to = step_row(rows, output, row);
        for (uint64_t k = tile->begin; k < step_end(rows, tile, row); k++)
            step_put_f64(output->dtype,
                         picked(&line, number(rows, PICK_POSITION, row, k), number(rows, PICK_HALF_WIDTH, row, k)),
                         to + (int64_t)k * output->stride);
    }
}

STEP_DECLARE(pick);
const struct step_kernel pick_kernel = {.name = "pick",
                                        .in_place = false,
                                        .tiling = elements_tiling,
                                        .least_elements = 1024,
                                        .reference = pick_reference,
                                        .cpu = STEP_BUILDS(pick)};

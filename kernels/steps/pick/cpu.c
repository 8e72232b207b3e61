/*
 * Positions, widths and results of a group lie in arrays; samples are read where they are, since picks are anywhere.
 */
#include "kernels/steps/lines.h"
#include "pick.h"

step_run STEP_CPU(pick);

/* Groups of a tile, in its scratch memory. */
struct group {
    double positions[LINE_GROUP], half_widths[LINE_GROUP], results[LINE_GROUP];
};
_Static_assert(sizeof(struct group) <= STEP_SCRATCH_BYTES, "it fits into a tile's memory");

/* A row of samples. */
struct line {
    const char *x;
    int64_t stride;
    uint64_t length;
};

/* The dtype and, of dense rows, the stride are constants where these are inlined. */
static inline double interpolated(enum scand_dtype dtype, int64_t stride, const char *x, double at)
{
    const struct pick_place place = pick_place(at);
    return pick_between(step_get_f64(dtype, x + (int64_t)place.first * stride),
                        step_get_f64(dtype, x + (int64_t)place.second * stride), place.share);
}

static inline void pick_group(enum scand_dtype dtype, int64_t stride, const struct line *line, uint64_t count,
                              struct group *group)
{
    for (uint64_t k = 0; k < count; k++) {
        const double at = group->positions[k], half_width = group->half_widths[k], width = half_width + 1;
        group->results[k] = 0;
        if (pick_is_inside(at, half_width, line->length))
            group->results[k] =
                pick_value(interpolated(dtype, stride, line->x, at - width), interpolated(dtype, stride, line->x, at),
                           interpolated(dtype, stride, line->x, at + width), width);
    }
}

static void pick_any(enum scand_dtype dtype, const struct line *line, uint64_t count, struct group *group)
{
    if (dtype == SCAND_DTYPE_F32 && line->stride == 4)
        pick_group(SCAND_DTYPE_F32, 4, line, count, group);
    else if (dtype == SCAND_DTYPE_F64 && line->stride == 8)
        pick_group(SCAND_DTYPE_F64, 8, line, count, group);
    else
        pick_group(dtype, line->stride, line, count, group);
}

static void load(const struct step_rows *rows, uint32_t further, uint64_t row, uint64_t first, uint64_t count,
                 double *to)
{
    const struct step_operand *operand = &rows->further[further];
    line_load_f64(operand->dtype, step_row(rows, operand, row) + (int64_t)first * operand->stride, operand->stride,
                  count, to);
}

void STEP_CPU(pick)(const struct step_rows *rows, const void *params, const struct step_tile *tile, void *scratch)
{
    const struct step_operand *input = &rows->input, *output = &rows->output;
    struct group *group = scratch;
    (void)params;
    for (uint64_t row = tile->first_row; row < tile->first_row + tile->row_count; row++) {
        const struct line line = {step_row(rows, input, row), input->stride, input->length};
        const uint64_t end = step_end(rows, tile, row);
        char *to = step_row(rows, output, row);
        for (uint64_t k = tile->begin, n; k < end; k += n) {
            n = end - k < LINE_GROUP ? end - k : LINE_GROUP;
            load(rows, PICK_POSITION, row, k, n, group->positions);
            load(rows, PICK_HALF_WIDTH, row, k, n, group->half_widths);
            pick_any(input->dtype, &line, n, group);
            line_store_f64(output->dtype, group->results, n, to + (int64_t)k * output->stride, output->stride);
        }
    }
}

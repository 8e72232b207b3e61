#include "diff.h"
#include "kernels/steps/lines.h"

step_run STEP_CPU(diff);

/* Elements of the output that are computed alike, and the samples that they are computed of. */
struct line {
    const char
        *samples[3]; /* samples of the first element, the one before it, the second before it; NULL: it counts as 0 */
    int64_t stride;
    char *out;
    int64_t out_stride;
    uint64_t count;
};

/* Defines a line of floats of a TYPE. The compiler makes a loop of each kind. */
#define DEFINE_LINE(NAME, TYPE, COMPUTE)                                                                               \
    static void line_##NAME(const struct step_operand *input, const struct step_operand *output,                       \
                            const struct diff *diff, const struct line *line)                                          \
    {                                                                                                                  \
        const enum diff_kind kind = diff->kind;                                                                        \
        const double dt = diff->dt;                                                                                    \
        TYPE loaded[3][LINE_GROUP], y[LINE_GROUP];                                                                     \
        const TYPE *x[3];                                                                                              \
        for (uint64_t at = 0, n; at < line->count; at += n) {                                                          \
            n = line->count - at < LINE_GROUP ? line->count - at : LINE_GROUP;                                         \
            for (int k = 0; k < 3; k++)                                                                                \
                x[k] = line->samples[k] ? line_see_##NAME(input->dtype, line->samples[k] + (int64_t)at * line->stride, \
                                                          line->stride, n, loaded[k])                                  \
                                        : memset(loaded[k], 0, n * sizeof(TYPE));                                      \
            for (uint64_t i = 0; i < n; i++)                                                                           \
                y[i] = COMPUTE(kind, (TYPE)dt, x[0][i], x[1][i], x[2][i]);                                             \
            line_store_##NAME(output->dtype, y, n, line->out + (int64_t)at * line->out_stride, line->out_stride);      \
        }                                                                                                              \
    }
DEFINE_LINE(f32, float, diff_f32)
DEFINE_LINE(f64, double, diff_f64)

/* In place: twice as fast as with an array for the results. */
static void line_integers(const struct step_operand *input, const struct step_operand *output, const struct diff *diff,
                          const struct line *line)
{
    const enum diff_kind kind = diff->kind;
    uint64_t x[3][LINE_GROUP];
    for (uint64_t at = 0, n; at < line->count; at += n) {
        n = line->count - at < LINE_GROUP ? line->count - at : LINE_GROUP;
        for (int k = 0; k < 3; k++)
            if (!line->samples[k])
                memset(x[k], 0, n * sizeof x[k][0]);
            else
                line_load_integers(input->dtype, line->samples[k] + (int64_t)at * line->stride, line->stride, n, x[k]);
        for (uint64_t i = 0; i < n; i++)
            x[0][i] = diff_integer(kind, (uint64_t)diff->dt, x[0][i], x[1][i], x[2][i]);
        line_store_integers(output->dtype, x[0], n, line->out + (int64_t)at * line->out_stride, line->out_stride);
    }
}

static void line_compute(const struct step_rows *rows, const struct diff *diff, const struct line *line)
{
    const struct step_operand *input = &rows->input, *output = &rows->output;
    if (codec_is_integer(input->dtype))
        line_integers(input, output, diff, line);
    else if (codec_class(input->dtype) == SCAND_CLASS_F64)
        line_f64(input, output, diff, line);
    else
        line_f32(input, output, diff, line);
}

/* The line from element i of a row on. */
static struct line line_at(const struct step_rows *rows, uint64_t row, uint64_t i)
{
    const struct step_operand *input = &rows->input, *output = &rows->output;
    struct line line = {.stride = input->stride,
                        .out = step_row(rows, output, row) + (int64_t)i * output->stride,
                        .out_stride = output->stride};
    for (uint64_t k = 0; k < 3 && k <= i; k++)
        line.samples[k] = step_row(rows, input, row) + (int64_t)(i - k) * input->stride;
    return line;
}

/* Neighbours are elements of neighbouring rows. */
static void run_across(const struct step_rows *rows, const struct diff *diff, const struct step_tile *tile)
{
    for (uint64_t i = tile->begin; i < step_end(rows, tile, tile->first_row); i++) {
        struct line line = line_at(rows, tile->first_row, i);
        line.stride = rows->input.outer_strides[0];
        line.out_stride = rows->output.outer_strides[0];
        line.count = tile->row_count;
        line_compute(rows, diff, &line);
    }
}

void STEP_CPU(diff)(const struct step_rows *rows, const void *params, const struct step_tile *tile, void *scratch)
{
    (void)scratch;
    if (elements_cross_rows(rows)) {
        run_across(rows, params, tile);
        return;
    }
    /* The first two elements of a row have no samples before them. */
    for (uint64_t row = tile->first_row; row < tile->first_row + tile->row_count; row++) {
        const uint64_t end = step_end(rows, tile, row);
        for (uint64_t i = tile->begin, next; i < end; i = next) {
            struct line line = line_at(rows, row, i);
            next = i < 2 ? i + 1 : end;
            line.count = next - i;
            line_compute(rows, params, &line);
        }
    }
}

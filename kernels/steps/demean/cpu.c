#include "demean.h"

#include "kernels/steps/lines.h"

step_run STEP_CPU(demean);

struct row {
    const struct step_operand *input;
    const char *x;
};

static void samples(const void *row, uint64_t first, uint64_t count, double terms[ORDER_TILE])
{
    const struct row *self = row;
    line_load_f64(self->input->dtype, self->x + (int64_t)first * self->input->stride, self->input->stride, count,
                  terms);
}

static inline void subtract(enum scand_dtype dtype, double mean, uint64_t count, double *values)
{
    for (uint64_t i = 0; i < count; i++)
        values[i] = demean_sample(dtype, values[i], mean);
}

/* Writes a row, a tile of order 1 at a time. */
static void write_row(const struct row *row, double mean, uint64_t length, const struct step_operand *output, char *y)
{
    _Alignas(64) double values[ORDER_TILE];
    for (uint64_t first = 0, count; first < length; first += count) {
        count = length - first < ORDER_TILE ? length - first : ORDER_TILE;
        samples(row, first, count, values);
        if (codec_class(row->input->dtype) == SCAND_CLASS_F64)
            subtract(SCAND_DTYPE_F64, mean, count, values);
        else
            subtract(SCAND_DTYPE_F32, mean, count, values);
        line_store_f64(output->dtype, values, count, y + (int64_t)first * output->stride, output->stride);
    }
}

void STEP_CPU(demean)(const struct step_rows *rows, const void *params, const struct step_tile *tile, void *scratch)
{
    const struct step_operand *input = &rows->input;
    (void)params, (void)scratch;
    for (uint64_t r = tile->first_row; r < tile->first_row + tile->row_count; r++) {
        const uint64_t length = step_length(rows, input, r);
        const struct row row = {input, step_row(rows, input, r)};
        if (length == 0)
            continue;
        const double mean = totals_row(samples, &row, 0, length, totals_group(length)) / (double)length;
        write_row(&row, mean, length, &rows->output, step_row(rows, &rows->output, r));
    }
}

/*
 * serial-cpu: the definition that all other variants are read against.
 *
 * A row's samples are added one by one, in the order in which the pass meets them, to a sum in the accumulator's type;
 * every sum is stored rounded to f32. n - 1 additions, each of which waits for the one before: nothing here is
 * parallel. On a CPU that costs little, because memory is slower than one addition after another.
 *
 * Association: ((x0 + x1) + x2) + ...
 */
#include "kernels/sum.h"
#include "kernels/variants/variants.h"

/* The samples of one row, in the order of a pass: sample i at first[i * step]. */
struct side {
    char *first;
    int64_t step;
};

static struct side side_of(const float *base, int64_t pitch, uint64_t row, uint64_t length, enum scand_pass pass)
{
    struct side side = {(char *)base + (int64_t)row * pitch, sizeof(float)};
    if (pass == SCAND_PASS_BACKWARD) {
        side.first += (length - 1) * sizeof(float);
        side.step = -side.step;
    }
    return side;
}

static void row_scan(enum scand_accumulator accumulator, struct side x, struct side y, uint64_t length)
{
    union sum sum = {0};
    for (uint64_t i = 0; i < length; i++) {
        double sample = *(const float *)(x.first + (int64_t)i * x.step);
        sum = i == 0 ? sum_first(accumulator, sample, false) : sum_add_sample(accumulator, sum, sample, false);
        *(float *)(y.first + (int64_t)i * y.step) = (float)sum_round(accumulator, sum, SCAND_DTYPE_F32);
    }
}

static void row_pass(const struct variant_scan *scan, uint64_t row, uint32_t pass)
{
    const float *input = pass == 0 ? scan->input : scan->output;
    int64_t pitch = pass == 0 ? scan->input_pitch : scan->output_pitch;
    struct side x = side_of(input, pitch, row, scan->length, scan->passes[pass]);
    struct side y = side_of(scan->output, scan->output_pitch, row, scan->length, scan->passes[pass]);
    /* A constant accumulator in each call lets the compiler take it out of the loop. */
    if (scan->accumulator == SCAND_ACCUMULATOR_F32)
        row_scan(SCAND_ACCUMULATOR_F32, x, y, scan->length);
    else if (scan->accumulator == SCAND_ACCUMULATOR_F64)
        row_scan(SCAND_ACCUMULATOR_F64, x, y, scan->length);
    else
        row_scan(SCAND_ACCUMULATOR_F2, x, y, scan->length);
}

int serial_cpu(const struct variant_scan *scan, void *workspace, struct CUstream_st *stream)
{
    (void)workspace;
    (void)stream;
    for (uint64_t row = 0; row < scan->rows; row++)
        for (uint32_t pass = 0; pass < scan->pass_count; pass++)
            row_pass(scan, row, pass);
    return 0;
}

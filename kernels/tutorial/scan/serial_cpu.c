/*
 * serial-cpu: the definition that all other variants are read against.
 *
 * A row's samples are added one by one, in the order in which the pass meets them, to a sum in the accumulator's type;
 * every sum is stored rounded to f32. n - 1 additions, each of which waits for the one before: nothing here is
 * parallel, so it takes several times as long as to copy the samples.
 *
 * Association: ((x0 + x1) + x2) + ...
 */
#include "kernels/order1/f2.h"
#include "kernels/tutorial/scan/variants.h"

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

/* The sums of a row, of one accumulator: what the first sample is as a sum, what adding one makes of it, and what is
 * stored of it. */
#define ROW_SCAN(NAME, SUM, FIRST, ADDED, STORED)                                 \
    static void row_scan_##NAME(struct side x, struct side y, uint64_t length)    \
    {                                                                             \
        SUM sum = {0};                                                            \
        for (uint64_t i = 0; i < length; i++) {                                   \
            const float sample = *(const float *)(x.first + (int64_t)i * x.step); \
            sum = i == 0 ? (FIRST) : (ADDED);                                     \
            *(float *)(y.first + (int64_t)i * y.step) = (STORED);                 \
        }                                                                         \
    }
ROW_SCAN(f32, float, sample, sum + sample, sum)
ROW_SCAN(f64, double, (double)sample, sum + (double)sample, (float)sum)
ROW_SCAN(f2, struct f2, f2_from_f32(sample), f2_add_f32(sum, sample), sum.high)

static void row_pass(const struct variant_scan *scan, uint64_t row, uint32_t pass)
{
    const float *input = pass == 0 ? scan->input : scan->output;
    int64_t pitch = pass == 0 ? scan->input_pitch : scan->output_pitch;
    struct side x = side_of(input, pitch, row, scan->length, scan->passes[pass]);
    struct side y = side_of(scan->output, scan->output_pitch, row, scan->length, scan->passes[pass]);
    if (scan->accumulator == SCAND_ACCUMULATOR_F32)
        row_scan_f32(x, y, scan->length);
    else if (scan->accumulator == SCAND_ACCUMULATOR_F64)
        row_scan_f64(x, y, scan->length);
    else
        row_scan_f2(x, y, scan->length);
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

/*
 * serial-cpu: the definition that all other variants are read against.
 *
 * A row's samples are added one by one, in the order in which the pass meets them, to a sum in the accumulator's type;
 * every sum is stored rounded to f32. n - 1 additions, each of which waits for the one before: nothing here is
 * parallel. On a CPU that costs little, because memory is slower than one addition after another.
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

union total {
    float f32;
    double f64;
    struct f2 f2;
};

static union total total_of(enum scand_accumulator accumulator, float sample)
{
    if (accumulator == SCAND_ACCUMULATOR_F32)
        return (union total){.f32 = sample};
    if (accumulator == SCAND_ACCUMULATOR_F64)
        return (union total){.f64 = (double)sample};
    return (union total){.f2 = f2_from_f32(sample)};
}

static union total total_add(enum scand_accumulator accumulator, union total total, float sample)
{
    if (accumulator == SCAND_ACCUMULATOR_F32)
        total.f32 += sample;
    else if (accumulator == SCAND_ACCUMULATOR_F64)
        total.f64 += (double)sample;
    else
        total.f2 = f2_add_f32(total.f2, sample);
    return total;
}

static float total_rounded(enum scand_accumulator accumulator, union total total)
{
    if (accumulator == SCAND_ACCUMULATOR_F32)
        return total.f32;
    return accumulator == SCAND_ACCUMULATOR_F64 ? (float)total.f64 : total.f2.high;
}

static inline void row_scan(enum scand_accumulator accumulator, struct side x, struct side y, uint64_t length)
{
    union total total = {0};
    for (uint64_t i = 0; i < length; i++) {
        float sample = *(const float *)(x.first + (int64_t)i * x.step);
        total = i == 0 ? total_of(accumulator, sample) : total_add(accumulator, total, sample);
        *(float *)(y.first + (int64_t)i * y.step) = total_rounded(accumulator, total);
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

/*
 * The CPU path on one thread against the plain loops of plain.c on one: rows short and long, columns, other dtypes.
 * Last, one long row, which threads share and a serial loop leaves to one of them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/order1/dtypes.h"
#include "kernels/scan.h"
#include "tests/bench/bench.h"
#include "tests/bench/plain.h"

#define SAMPLES    2000000 /* samples of a shape, about: caches hold a part */
#define PAGE       4096    /* jobs' memory begins at a page's begin, too */
#define BYTES      ((SAMPLES * sizeof(double) + PAGE - 1) / PAGE * PAGE)
#define RUNS       11
#define PLAIN_NAME "the compiler's serial loop"

static const uint64_t lengths[] = {8, 16, 32, 100, 512, 1000, 10000, 20000, 1000000};

static const struct kind {
    enum scand_dtype dtype;
    enum scand_accumulator accumulator;
    bool columns;
    const char *name;
} kinds[] = {
    {SCAND_DTYPE_F32, SCAND_ACCUMULATOR_F32, false, "rows"},
    {SCAND_DTYPE_F32, SCAND_ACCUMULATOR_F64, false, "rows"},
    {SCAND_DTYPE_F32, SCAND_ACCUMULATOR_F2, false, "rows"},
    {SCAND_DTYPE_F64, SCAND_ACCUMULATOR_F64, false, "rows of f64"},
    {SCAND_DTYPE_I32, SCAND_ACCUMULATOR_EXACT, false, "rows of i32"},
    {SCAND_DTYPE_F32BE, SCAND_ACCUMULATOR_F64, false, "rows of f32be"},
    {SCAND_DTYPE_F32, SCAND_ACCUMULATOR_F32, true, "columns"},
    {SCAND_DTYPE_F32, SCAND_ACCUMULATOR_F64, true, "columns"},
    {SCAND_DTYPE_F64, SCAND_ACCUMULATOR_F64, true, "columns of f64"},
    {SCAND_DTYPE_I32, SCAND_ACCUMULATOR_EXACT, true, "columns of i32"},
};

struct shapes {
    struct cpu_pool *pool;
    double (*now_ms)(void);
    void *input, *output, *sums;
};

static struct scan_rows rows_of(const struct shapes *shapes, const struct kind *kind, uint64_t count, uint64_t length)
{
    int64_t bytes = codec_bytes(kind->dtype);
    int64_t from_sample = kind->columns ? (int64_t)count * bytes : bytes;
    int64_t from_row = kind->columns ? bytes : (int64_t)length * bytes;
    return (struct scan_rows){
        .rule = {.passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD},
                 .pass_count = 2,
                 .accumulator = kind->accumulator,
                 .intermediate = kind->dtype == SCAND_DTYPE_F64 ? SCAND_DTYPE_F64 : SCAND_DTYPE_F32,
                 .input = kind->dtype,
                 .output = kind->dtype},
        .length = length,
        .row_count = count,
        .outer_rank = 1,
        .outer_shape = {count},
        .input_outer_strides = {from_row},
        .output_outer_strides = {from_row},
        .input_stride = from_sample,
        .output_stride = from_sample,
        .input = shapes->input,
        .output = shapes->output,
    };
}

/* Returns time in which this thread had a processor, for measuring what one thread does. */
static double thread_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* The shortest of some runs of each, in turns. */
static int shape_measure(const struct shapes *shapes, const struct kind *kind, uint64_t length, struct bench_row *row)
{
    uint64_t count = SAMPLES / length;
    struct scan_rows rows = rows_of(shapes, kind, count, length);
    plain_scan *plain = plain_find(kind->dtype, kind->accumulator, kind->columns);
    double plain_ms = 1e30;
    row->milliseconds = 1e30;
    for (int i = 0; i < RUNS; i++) {
        double start = shapes->now_ms();
        plain(shapes->input, shapes->output, shapes->sums, count, length);
        double middle = shapes->now_ms();
        int error = scan_cpu(shapes->pool, &rows, 0, count);
        if (error)
            return error;
        plain_ms = least(plain_ms, middle - start);
        row->milliseconds = least(row->milliseconds, shapes->now_ms() - middle);
    }
    row->share = plain_ms / row->milliseconds;
    snprintf(row->shape, sizeof(row->shape), "%llu x %llu", (unsigned long long)count, (unsigned long long)length);
    return 0;
}

static void fill(const struct shapes *shapes, enum scand_dtype dtype)
{
    uint32_t bytes = codec_bytes(dtype);
    for (uint64_t i = 0; i < SAMPLES; i++) {
        char *to = (char *)shapes->input + i * bytes;
        double value = (double)(i * 2654435761u % 65536) * 0x1p-16 - 0.5;
        if (codec_class(dtype) == SCAND_CLASS_F64)
            codec_encode_f64(dtype, value, to);
        else if (codec_is_integer(dtype))
            codec_encode_integer(dtype, i % 65536, to);
        else
            codec_encode_f32(dtype, (float)value, to);
    }
}

static int kind_measure(const struct shapes *shapes, const struct kind *kind, const char *threads, uint64_t length,
                        struct bench_table *table)
{
    static const char *const words[] = {
#define X(NAME, WORD) WORD,
        SCAND_ACCUMULATORS(X)
#undef X
    };
    struct bench_row row = {.against = PLAIN_NAME, .target = 1};
    snprintf(row.name, sizeof(row.name), "CPU sum fb %s %s", threads, kind->name);
    snprintf(row.accumulator, sizeof(row.accumulator), "%s", words[kind->accumulator]);
    int error = shape_measure(shapes, kind, length, &row);
    if (!error)
        bench_add(table, &row);
    return error;
}

static int shapes_measure(const struct shapes *shapes, struct bench_table *table)
{
    int error = 0;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]) && !error; k++) {
        fill(shapes, kinds[k].dtype);
        for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]) && !error; l++)
            error = kind_measure(shapes, &kinds[k], "1 thread", lengths[l], table);
    }
    return error;
}

static int long_row_measure(const struct shapes *shapes, struct bench_table *table)
{
    int error = 0;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]) && !error; k++)
        if (!kinds[k].columns) {
            fill(shapes, kinds[k].dtype);
            error = kind_measure(shapes, &kinds[k], "all threads", SAMPLES, table);
        }
    return error;
}

int bench_shapes(struct bench_table *table)
{
    struct cpu_pool *one = cpu_pool_create(1), *all = cpu_pool_create(0);
    struct shapes shapes = {one, thread_ms, aligned_alloc(PAGE, BYTES), aligned_alloc(PAGE, BYTES),
                            aligned_alloc(PAGE, BYTES)};
    int error = -ENOMEM;
    if (one && all && shapes.input && shapes.output && shapes.sums)
        error = shapes_measure(&shapes, table);
    shapes.pool = all;
    shapes.now_ms = bench_now_ms;
    if (!error)
        error = long_row_measure(&shapes, table);
    cpu_pool_destroy(one);
    cpu_pool_destroy(all);
    free(shapes.input);
    free(shapes.output);
    free(shapes.sums);
    return error;
}

/*
 * The CPU path's speed on the job that scand exists for, as a share of copying on the same threads; then that of other
 * shapes.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/scan.h"
#include "tests/bench/bench.h"

#define ROWS        10000
#define LENGTH      10000
#define BYTES       ((size_t)ROWS * LENGTH * sizeof(float))
#define RUNS        11
#define THREADS_MAX 256
#define TARGET      0.8 /* share of the speed of a copy, for f64 */
#define COPY_NAME   "copy of 400 MB by all host threads"

struct copy {
    pthread_t thread;
    char *to;
    const char *from;
    size_t bytes;
};

static void *copy_main(void *argument)
{
    const struct copy *copy = argument;
    memcpy(copy->to, copy->from, copy->bytes);
    return NULL;
}

/* Copies on that many threads; the time to start them is well under 1 % of it. */
static int copy_run(float *to, const float *from, size_t bytes, unsigned threads)
{
    struct copy copies[THREADS_MAX];
    unsigned started = 0;
    int error = 0;
    for (unsigned i = 0; i < threads && !error; i++) {
        size_t begin = bytes / threads * i, end = i + 1 == threads ? bytes : bytes / threads * (i + 1);
        copies[i] = (struct copy){0, (char *)to + begin, (const char *)from + begin, end - begin};
        error = pthread_create(&copies[i].thread, NULL, copy_main, &copies[i]);
        started += !error;
    }
    for (unsigned i = 0; i < started; i++)
        pthread_join(copies[i].thread, NULL);
    return -error;
}

static int copy_measure(float *data, const float *source, unsigned threads, double *ms)
{
    double times[RUNS];
    for (unsigned i = 0; i < RUNS; i++) {
        double start = bench_now_ms();
        int error = copy_run(data, source, BYTES, threads);
        if (error)
            return error;
        times[i] = bench_now_ms() - start;
    }
    *ms = bench_median(times, RUNS);
    return 0;
}

/* Each run begins with the source, so that sums do not grow from run to run; that copy is not timed. */
static int scan_measure(struct cpu_pool *pool, enum scand_accumulator accumulator, float *data, const float *source,
                        double *ms)
{
    const struct scan_rows rows = {
        .rule = {.passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD}, .pass_count = 2, .accumulator = accumulator},
        .length = LENGTH,
        .row_count = ROWS,
        .outer_rank = 1,
        .outer_shape = {ROWS},
        .input_outer_strides = {LENGTH * sizeof(float)},
        .output_outer_strides = {LENGTH * sizeof(float)},
        .input_stride = sizeof(float),
        .output_stride = sizeof(float),
        .input = data,
        .output = data,
    };
    double times[RUNS];
    for (unsigned i = 0; i < RUNS; i++) {
        memcpy(data, source, BYTES);
        double start = bench_now_ms();
        int error = scan_cpu(pool, &rows, 0, ROWS);
        if (error)
            return error;
        times[i] = bench_now_ms() - start;
    }
    *ms = bench_median(times, RUNS);
    return 0;
}

static int rows_measure(struct cpu_pool *pool, float *data, const float *source, struct bench_table *table)
{
    static const char *const words[] = {
#define X(NAME, WORD) WORD,
        SCAND_ACCUMULATORS(X)
#undef X
    };
    unsigned threads = cpu_pool_threads(pool) < THREADS_MAX ? cpu_pool_threads(pool) : THREADS_MAX;
    struct bench_row copy = {.name = COPY_NAME};
    int error = copy_measure(data, source, threads, &copy.milliseconds);
    if (error)
        return error;
    bench_add(table, &copy);
    for (unsigned i = SCAND_ACCUMULATOR_F32; i <= SCAND_ACCUMULATOR_F2 && !error; i++) {
        struct bench_row row = {.name = "CPU sum fb", .shape = "10000 x 10000", .against = COPY_NAME};
        snprintf(row.accumulator, sizeof row.accumulator, "%s", words[i]);
        error = scan_measure(pool, (enum scand_accumulator)i, data, source, &row.milliseconds);
        row.share = copy.milliseconds / row.milliseconds;
        row.target = i == SCAND_ACCUMULATOR_F64 ? TARGET : 0;
        if (!error)
            bench_add(table, &row);
    }
    return error;
}

static float *memory_map(void)
{
    void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void memory_unmap(float *memory)
{
    if (memory)
        munmap(memory, BYTES);
}

int bench_cpu(struct bench_table *table)
{
    int error = -ENOMEM;
    float *data = memory_map(), *source = memory_map();
    struct cpu_pool *pool = cpu_pool_create(0);
    if (data && source && pool) {
        for (uint64_t i = 0; i < (uint64_t)ROWS * LENGTH; i++)
            source[i] = (float)(i * 2654435761u % 65536) * 0x1p-16f - 0.5f;
        memset(data, 0, BYTES);
        error = rows_measure(pool, data, source, table);
    }
    if (!error)
        error = bench_shapes(table);
    if (error)
        fprintf(stderr, "scand-bench: cpu: %s\n", strerror(-error));
    cpu_pool_destroy(pool);
    memory_unmap(data);
    memory_unmap(source);
    return error;
}

/*
 * Operations in tiles on one thread, against a copy that reads and writes as many bytes as the operation does at least.
 * The two take turns, so that neighbours on the machine hold up both.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/bench/step_cases.h"

#define ROWS   1000
#define LENGTH 10000
#define BYTES  (2 * ROWS * LENGTH * sizeof(double)) /* size of an operand: upsampled rows are the longest */
#define RUNS   11

struct memory {
    struct cpu_pool *pool;
    char *input, *further, *output;
};

/* Turns of this thread alone. */
static double thread_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static uint64_t random_bits(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 11;
}

/* Numbers from 1/2 to 3/2, of which there are roots and logarithms; integers of up to 53 bits. */
static void fill(enum scand_dtype dtype, char *to)
{
    const uint32_t size = codec_bytes(dtype);
    uint64_t state = 1;
    for (uint64_t i = 0; i < (uint64_t)ROWS * LENGTH; i++)
        if (codec_is_integer(dtype))
            codec_encode_integer(dtype, random_bits(&state), to + i * size);
        else
            step_put_f64(dtype, 0.5 + (double)random_bits(&state) * 0x1p-53, to + i * size);
}

static int run(const struct memory *memory, const struct step_bench *bench)
{
    const struct step_rows rows = step_bench_rows(bench, ROWS, LENGTH, memory->input, memory->further, memory->output);
    struct step_task *task =
        step_task_create(memory->pool, bench->kernel, &rows, bench->params, bench->params_bytes, 0, ROWS);
    if (!task)
        return -ENOMEM;
    step_task_run(task, NULL, NULL);
    step_task_destroy(task);
    return 0;
}

static int measure(const struct memory *memory, const struct step_bench *bench, struct bench_table *table)
{
    const size_t bytes = step_bench_bytes(bench, ROWS, LENGTH) / 2;
    double copies[RUNS], times[RUNS];
    int error = 0;
    fill(bench->dtype, memory->input);
    fill(bench->dtype, memory->further);
    step_bench_fill(bench, LENGTH, (uint32_t *)memory->further);
    for (unsigned i = 0; i < RUNS && !error; i++) {
        const double begin = thread_ms();
        memcpy(memory->output, memory->input, bytes);
        const double copied = thread_ms();
        error = run(memory, bench);
        copies[i] = copied - begin;
        times[i] = thread_ms() - copied;
    }
    struct bench_row row = {.milliseconds = bench_median(times, RUNS)};
    row.share = bench_median(copies, RUNS) / row.milliseconds;
    snprintf(row.name, sizeof row.name, "CPU %s", bench->name);
    snprintf(row.shape, sizeof row.shape, "%d x %d %s", ROWS, LENGTH, step_bench_dtypes(bench));
    snprintf(row.against, sizeof row.against, "copy of as many bytes by one thread");
    if (!error)
        bench_add(table, &row);
    return error;
}

int bench_steps_cpu(struct bench_table *table)
{
    struct memory memory = {cpu_pool_create(1), calloc(1, BYTES), calloc(1, BYTES), calloc(1, BYTES)};
    int error = memory.pool && memory.input && memory.further && memory.output ? 0 : -ENOMEM;
    if (!error)
        memset(memory.output, 1, BYTES);
    for (size_t i = 0; i < step_bench_count && !error; i++)
        error = measure(&memory, &step_benches[i], table);
    free(memory.input);
    free(memory.further);
    free(memory.output);
    if (memory.pool)
        cpu_pool_destroy(memory.pool);
    if (error)
        fprintf(stderr, "scand-bench: steps: %s\n", strerror(-error));
    return error;
}

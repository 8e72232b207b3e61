/*
 * The reductions of rows by name, for the main job's shape and for few long rows, against reading the same bytes.
 */
#include <cuda_runtime.h>
#include <stdio.h>

#include "kernels/variants/reduce.h"
#include "tests/bench/bench.h"
#include "tests/bench/read.h"
#include "tests/bench/stopwatch.h"

#define SAMPLES 100000000
#define BYTES   (SAMPLES * sizeof(float))

static const uint64_t lengths[] = {10000, 1000000};

#define READ_NAME "read of 400 MB"

struct job {
    enum reduction_id id;
    struct reduce_rows rows;
    void *workspace;
};

static int read_start(void *argument, cudaStream_t stream)
{
    const struct reduce_rows *rows = argument;
    return bench_read(rows->input, BYTES, (unsigned *)rows->output, stream);
}

static int job_start(void *argument, cudaStream_t stream)
{
    const struct job *job = argument;
    return reduction_run(job->id, &job->rows, job->workspace, stream);
}

static int job_measure(struct stopwatch *stopwatch, struct job *job, double read_ms, struct bench_table *table)
{
    double ms;
    char name[64];
    int error = cudaMalloc(&job->workspace, reduction_workspace_bytes(job->id, &job->rows) + 16);
    if (!error)
        error = stopwatch_median(stopwatch, job_start, job, &ms);
    cudaFree(job->workspace);
    snprintf(name, sizeof name, "%s%s, %llu x %llu", reduction_list[job->id].name,
             job->rows.op == REDUCE_SUM ? " sum" : "", (unsigned long long)job->rows.rows,
             (unsigned long long)job->rows.length);
    if (!error)
        bench_add(table, name, READ_NAME, ms, read_ms / ms, 0);
    return error;
}

/* Sums where they are offered, and norms otherwise. */
static int length_measure(struct stopwatch *stopwatch, struct reduce_rows rows, double read_ms,
                          struct bench_table *table)
{
    int error = 0;
    for (enum reduction_id id = 0; id < REDUCTION_COUNT && !error; id++) {
        struct job job = {.id = id, .rows = rows};
        job.rows.op = reduction_list[id].ops >> REDUCE_SUM & 1 ? REDUCE_SUM : REDUCE_NORM;
        error = job_measure(stopwatch, &job, read_ms, table);
    }
    return error;
}

static int jobs_measure(struct stopwatch *stopwatch, struct reduce_rows *rows, struct bench_table *table)
{
    double read_ms = 0;
    int error = stopwatch_median(stopwatch, read_start, rows, &read_ms);
    if (!error)
        bench_add(table, READ_NAME, "", read_ms, 0, 0);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]) && !error; i++) {
        rows->length = lengths[i];
        rows->rows = SAMPLES / rows->length;
        rows->pitch = (int64_t)(rows->length * sizeof(float));
        error = length_measure(stopwatch, *rows, read_ms, table);
    }
    return error;
}

int bench_reduce(struct bench_table *table)
{
    struct stopwatch stopwatch = {0};
    struct reduce_rows rows = {0};
    float *input = NULL;
    int error = stopwatch_init(&stopwatch);
    if (!error)
        error = cudaMalloc((void **)&input, BYTES);
    if (!error)
        error = cudaMalloc((void **)&rows.output, SAMPLES / lengths[0] * sizeof(double));
    if (!error)
        error = stopwatch_noise(input, BYTES / sizeof(float));
    rows.input = input;
    if (!error)
        error = jobs_measure(&stopwatch, &rows, table);
    cudaFree(input);
    cudaFree(rows.output);
    stopwatch_finish(&stopwatch);
    if (error)
        fprintf(stderr, "bench_reduce: %s\n", cudaGetErrorString((cudaError_t)error));
    return error != 0;
}

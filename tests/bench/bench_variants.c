/*
 * The variants of the scan by name, for the main job's shape, against a copy of the same bytes.
 */
#include <cuda_runtime.h>
#include <stdio.h>

#include "kernels/variants/variants.h"
#include "tests/bench/bench.h"
#include "tests/bench/stopwatch.h"

#define ROWS   10000
#define LENGTH 10000
#define BYTES  ((size_t)ROWS * LENGTH * sizeof(float))

struct job {
    enum variant_id id;
    struct variant_scan scan;
    void *workspace;
};

static int copy_start(void *argument, cudaStream_t stream)
{
    const struct variant_scan *scan = argument;
    return cudaMemcpyAsync(scan->output, scan->input, BYTES, cudaMemcpyDeviceToDevice, stream);
}

static int job_start(void *argument, cudaStream_t stream)
{
    const struct job *job = argument;
    return variant_run(job->id, &job->scan, job->workspace, stream);
}

static int job_measure(struct stopwatch *stopwatch, struct job *job, double copy_ms, struct bench_table *table)
{
    static const char *const words[SCAND_ACCUMULATOR_COUNT] = {"f32", "f64", "f2"};
    char name[64];
    double ms;
    int error = cudaMalloc(&job->workspace, variant_workspace_bytes(job->id, &job->scan) + 16);
    if (!error)
        error = stopwatch_median(stopwatch, job_start, job, &ms);
    cudaFree(job->workspace);
    snprintf(name, sizeof name, "%s fb %s", variant_list[job->id].name, words[job->scan.accumulator]);
    if (!error)
        bench_add(table, name, "device copy, 10000 x 10000", ms, copy_ms / ms, 0);
    return error;
}

static int jobs_measure(struct stopwatch *stopwatch, const struct variant_scan *scan, struct bench_table *table)
{
    double copy_ms = 0;
    int error = stopwatch_median(stopwatch, copy_start, (void *)scan, &copy_ms);
    if (!error)
        bench_add(table, "device copy, 10000 x 10000", "", copy_ms, 0, 0);
    for (enum variant_id id = 0; id < VARIANT_COUNT; id++)
        for (enum scand_accumulator a = 0; a < SCAND_ACCUMULATOR_COUNT && !error; a++) {
            struct job job = {.id = id, .scan = *scan};
            job.scan.accumulator = a;
            if (!variant_list[id].on_cpu && variant_list[id].accumulators >> a & 1)
                error = job_measure(stopwatch, &job, copy_ms, table);
        }
    return error;
}

int bench_variants(struct bench_table *table)
{
    struct stopwatch stopwatch = {0};
    float *input = NULL, *output = NULL;
    int error = stopwatch_init(&stopwatch);
    if (!error)
        error = cudaMalloc((void **)&input, BYTES);
    if (!error)
        error = cudaMalloc((void **)&output, BYTES);
    if (!error)
        error = stopwatch_noise(input, BYTES / sizeof(float));
    const struct variant_scan scan = {input,
                                      output,
                                      ROWS,
                                      LENGTH,
                                      LENGTH * sizeof(float),
                                      LENGTH * sizeof(float),
                                      {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD},
                                      2,
                                      SCAND_ACCUMULATOR_F32};
    if (!error)
        error = jobs_measure(&stopwatch, &scan, table);
    cudaFree(input);
    cudaFree(output);
    stopwatch_finish(&stopwatch);
    if (error)
        fprintf(stderr, "bench_variants: %s\n", cudaGetErrorString((cudaError_t)error));
    return error != 0;
}

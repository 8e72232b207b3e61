/*
 * The variants of the scan by name, for the main job's shape and for few long rows, against a copy of the same bytes.
 */
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>

#include "kernels/variants/variants.h"
#include "tests/bench/bench.h"
#include "tests/bench/stopwatch.h"

#define SAMPLES   100000000
#define BYTES     (SAMPLES * sizeof(float))
#define COPY_NAME "device copy of 400 MB"

static const uint64_t lengths[] = {10000, 1000000};

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
    static const char *const words[SCAND_ACCUMULATOR_COUNT] = {
        [SCAND_ACCUMULATOR_F32] = "f32", [SCAND_ACCUMULATOR_F64] = "f64", [SCAND_ACCUMULATOR_F2] = "f2"};
    char name[64];
    double ms;
    int error = cudaMalloc(&job->workspace, variant_workspace_bytes(job->id, &job->scan) + 16);
    if (!error)
        error = stopwatch_median(stopwatch, job_start, job, &ms);
    cudaFree(job->workspace);
    snprintf(name, sizeof name, "%s fb %s, %llu x %llu", variant_list[job->id].name, words[job->scan.accumulator],
             (unsigned long long)job->scan.rows, (unsigned long long)job->scan.length);
    if (!error)
        bench_add(table, name, COPY_NAME, ms, copy_ms / ms, 0);
    return error;
}

/* Of long rows only sums in f32, and not by a lane alone, which takes a second for each. */
static bool is_wanted(enum variant_id id, const struct variant_scan *scan)
{
    const struct variant *variant = &variant_list[id];
    bool long_rows = scan->length > lengths[0];
    if (long_rows && (scan->accumulator != SCAND_ACCUMULATOR_F32 || strncmp(variant->name, "smem", 4) == 0))
        return false;
    return !variant->on_cpu && variant->accumulators >> scan->accumulator & 1;
}

static int length_measure(struct stopwatch *stopwatch, const struct variant_scan *scan, double copy_ms,
                          struct bench_table *table)
{
    int error = 0;
    for (enum variant_id id = 0; id < VARIANT_COUNT; id++)
        for (enum scand_accumulator a = 0; a < SCAND_ACCUMULATOR_COUNT && !error; a++) {
            struct job job = {.id = id, .scan = *scan};
            job.scan.accumulator = a;
            if (is_wanted(id, &job.scan))
                error = job_measure(stopwatch, &job, copy_ms, table);
        }
    return error;
}

static int jobs_measure(struct stopwatch *stopwatch, struct variant_scan *scan, struct bench_table *table)
{
    double copy_ms = 0;
    int error = stopwatch_median(stopwatch, copy_start, scan, &copy_ms);
    if (!error)
        bench_add(table, COPY_NAME, "", copy_ms, 0, 0);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]) && !error; i++) {
        scan->length = lengths[i];
        scan->rows = SAMPLES / scan->length;
        scan->input_pitch = scan->output_pitch = (int64_t)(scan->length * sizeof(float));
        error = length_measure(stopwatch, scan, copy_ms, table);
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
    struct variant_scan scan = {
        .input = input, .output = output, .passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD}, .pass_count = 2};
    if (!error)
        error = jobs_measure(&stopwatch, &scan, table);
    cudaFree(input);
    cudaFree(output);
    stopwatch_finish(&stopwatch);
    if (error)
        fprintf(stderr, "bench_variants: %s\n", cudaGetErrorString((cudaError_t)error));
    return error != 0;
}

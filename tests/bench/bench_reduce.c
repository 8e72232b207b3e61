/*
 * The reductions of rows by name, against reading the same bytes: sums where they are offered, and norms otherwise.
 */
#include <cuda_runtime.h>
#include <stdio.h>

#include "kernels/variants/reduce.h"
#include "tests/bench/job.h"
#include "tests/bench/read.h"
#include "tests/bench/samples.h"

#define SAMPLES        100000000
#define BYTES          (SAMPLES * sizeof(float))
#define READ_NAME      "read of 400 MB"
#define CHECKED_ROWS   1000
#define CHECKED_LENGTH 1000000 /* samples; fewer rows of longer ones are compared with exact sums */

struct reduction_job {
    enum reduction_id id;
    struct reduce_rows rows;
    void *workspace;
};

/* Noise, room for results twice, and how long reading takes. */
struct reduce_memory {
    struct stopwatch stopwatch;
    float *input;
    double *output, *again;
    double read_ms;
};

static int read_start(void *argument, cudaStream_t stream)
{
    const struct reduce_memory *memory = argument;
    return bench_read(memory->input, BYTES, (unsigned *)memory->output, stream);
}

static int reduction_start(void *argument, cudaStream_t stream)
{
    const struct reduction_job *job = argument;
    return reduction_run(job->id, &job->rows, job->workspace, stream);
}

static int memory_init(struct reduce_memory *memory, uint64_t rows_max, struct bench_table *table)
{
    struct bench_row row = {.name = READ_NAME};
    *memory = (struct reduce_memory){.read_ms = 0};
    int error = stopwatch_init(&memory->stopwatch);
    if (!error)
        error = cudaMalloc((void **)&memory->input, BYTES);
    if (!error)
        error = cudaMalloc((void **)&memory->output, rows_max * sizeof(double));
    if (!error)
        error = cudaMalloc((void **)&memory->again, rows_max * sizeof(double));
    if (!error)
        error = samples_noise(memory->input, SCAND_DTYPE_F32, SAMPLES);
    if (!error)
        error = stopwatch_median(&memory->stopwatch, read_start, memory, &memory->read_ms);
    row.milliseconds = memory->read_ms;
    if (!error)
        bench_add(table, &row);
    return error;
}

static void memory_finish(struct reduce_memory *memory)
{
    cudaFree(memory->input);
    cudaFree(memory->output);
    cudaFree(memory->again);
    stopwatch_finish(&memory->stopwatch);
}

static int sameness_find(struct reduce_memory *memory, struct reduction_job job, enum bench_sameness *same)
{
    bool found = false;
    job.rows.output = memory->again;
    int error = reduction_start(&job, memory->stopwatch.stream);
    if (!error)
        error = cudaStreamSynchronize(memory->stopwatch.stream);
    if (!error)
        error = samples_compare(memory->output, memory->again, job.rows.rows * sizeof(double), &found);
    *same = found ? BENCH_SAME : BENCH_DIFFERENT;
    return error;
}

static int accuracy_find(const struct reduce_rows *rows, struct exact_result *result)
{
    const struct samples_side input_side = {rows->input, SCAND_DTYPE_F32, rows->pitch, sizeof(float)};
    const struct samples_side output_side = {rows->output, SCAND_DTYPE_F64, sizeof(double), sizeof(double)};
    struct samples_reader input, output;
    uint64_t wanted = rows->length < CHECKED_LENGTH / CHECKED_ROWS ? CHECKED_ROWS : CHECKED_LENGTH / rows->length;
    uint64_t step = rows->rows / wanted, count = rows->rows / step;
    int error = samples_reader_init(&input, &input_side, count, rows->length, step);
    if (error)
        return error;
    error = samples_reader_init(&output, &output_side, count, 1, step);
    if (!error) {
        const struct exact_sides sides = {&input.source, &output.source};
        error = exact_compare_totals(count, rows->length, &sides, result);
        samples_reader_finish(&output);
    }
    samples_reader_finish(&input);
    return error;
}

static int reduction_measure(struct reduce_memory *memory, struct reduction_job *job, struct bench_row row,
                             struct bench_table *table)
{
    struct exact_result exact = {0};
    bool sums = job->rows.op == SCAND_REDUCTION_SUM;
    snprintf(row.name, sizeof row.name, "%s%s", reduction_list[job->id].name, sums ? " sum" : "");
    snprintf(row.shape, sizeof row.shape, "%llu x %llu", (unsigned long long)job->rows.rows,
             (unsigned long long)job->rows.length);
    snprintf(row.against, sizeof row.against, "%s", READ_NAME);
    snprintf(row.accumulator, sizeof row.accumulator, "f64");
    int error = cudaMalloc(&job->workspace, reduction_workspace_bytes(job->id, &job->rows) + 16);
    if (!error)
        error = stopwatch_median(&memory->stopwatch, reduction_start, job, &row.milliseconds);
    if (!error)
        error = sameness_find(memory, *job, &row.same);
    if (!error && sums)
        error = accuracy_find(&job->rows, &exact);
    cudaFree(job->workspace);
    row.share = error ? 0 : memory->read_ms / row.milliseconds;
    row.checked = exact.checked;
    row.rounded = exact.rounded;
    row.worst_ulps = exact.worst_ulps;
    if (!error)
        bench_add(table, &row);
    return error;
}

static struct reduction_job job_of(const struct reduce_memory *memory, enum reduction_id id, uint64_t length)
{
    bool sums = reduction_list[id].ops >> SCAND_REDUCTION_SUM & 1;
    return (struct reduction_job){.id = id,
                                  .rows = {.input = memory->input,
                                           .output = memory->output,
                                           .rows = SAMPLES / length,
                                           .length = length,
                                           .pitch = (int64_t)(length * sizeof(float)),
                                           .op = sums ? SCAND_REDUCTION_SUM : SCAND_REDUCTION_NORM}};
}

int bench_reduce(struct bench_table *table)
{
    static const uint64_t lengths[] = {10000, 1000000};
    struct reduce_memory memory;
    int error = memory_init(&memory, SAMPLES / lengths[0], table);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0] && !error; i++)
        for (enum reduction_id id = 0; id < REDUCTION_COUNT && !error; id++) {
            struct reduction_job job = job_of(&memory, id, lengths[i]);
            error = reduction_measure(&memory, &job, (struct bench_row){0}, table);
        }
    memory_finish(&memory);
    return job_fail("reductions", error);
}

/* Rows of the lengths that the figures name, by the reduction that is fastest for them. */
static const struct row_sum {
    enum reduction_id id;
    uint64_t length;
    double target;
} row_sums[] = {
    {REDUCTION_reduce_v7, 10000, 0.95},
    {REDUCTION_reduce_v7, 1000, 0.85},
    {REDUCTION_reduce_v7, 64, 0},
};

int bench_row_sums(struct bench_table *table)
{
    struct reduce_memory memory;
    int error = memory_init(&memory, SAMPLES / 64, table);
    for (size_t i = 0; i < sizeof row_sums / sizeof row_sums[0] && !error; i++) {
        struct reduction_job job = job_of(&memory, row_sums[i].id, row_sums[i].length);
        error = reduction_measure(&memory, &job, (struct bench_row){.target = row_sums[i].target}, table);
    }
    memory_finish(&memory);
    return job_fail("sums of rows", error);
}

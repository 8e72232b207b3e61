/*
 * The reductions of rows by name, against reading the same bytes: sums where they are offered, and norms otherwise.
 */
#include <cuda_runtime.h>
#include <stdio.h>

#include "kernels/cuda/scan_cuda.h"
#include "kernels/order1/reduce.h"
#include "kernels/tutorial/reduce/reduce.h"
#include "tests/bench/job.h"
#include "tests/bench/read.h"
#include "tests/bench/samples.h"

#define SAMPLES        100000000
#define BYTES          (SAMPLES * sizeof(float))
#define MAIN_LENGTH    10000
#define LONG_LENGTH    1000000
#define SHORT_LENGTH   64
#define READ_NAME      "read of 400 MB"
#define CHECKED_ROWS   1000
#define CHECKED_LENGTH 1000000 /* samples; fewer rows of longer ones are compared with exact sums */

#define DEFAULT_PATH (-1)

struct reduction_job {
    int id; /* an enum reduction_id, or DEFAULT_PATH */
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

/* The rows as the default path takes them. */
static struct scan_rows scan_rows_of(const struct reduce_rows *rows)
{
    return (struct scan_rows){.rule = reduce_rule(SCAND_REDUCTION_SUM, SCAND_DTYPE_F32, SCAND_DTYPE_F64),
                              .length = rows->length,
                              .row_count = rows->rows,
                              .outer_rank = 1,
                              .outer_shape = {rows->rows},
                              .input_outer_strides = {rows->pitch},
                              .output_outer_strides = {sizeof(double)},
                              .input_stride = sizeof(float),
                              .input = rows->input,
                              .output = rows->output};
}

static int reduction_start(void *argument, cudaStream_t stream)
{
    const struct reduction_job *job = argument;
    struct scan_rows rows = scan_rows_of(&job->rows);
    return job->id == DEFAULT_PATH ? scan_cuda(&rows, 0, rows.row_count, job->workspace, stream)
                                   : reduction_run((enum reduction_id)job->id, &job->rows, job->workspace, stream);
}

static uint64_t workspace_bytes(const struct reduction_job *job)
{
    struct scan_rows rows = scan_rows_of(&job->rows);
    return job->id == DEFAULT_PATH ? scan_cuda_workspace_bytes(&rows, rows.row_count)
                                   : reduction_workspace_bytes((enum reduction_id)job->id, &job->rows);
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
    snprintf(row.name, sizeof row.name, "%s%s", job->id == DEFAULT_PATH ? "reduce" : reduction_list[job->id].name,
             sums ? " sum" : "");
    snprintf(row.shape, sizeof row.shape, "%llu x %llu", (unsigned long long)job->rows.rows,
             (unsigned long long)job->rows.length);
    snprintf(row.against, sizeof row.against, "%s", READ_NAME);
    snprintf(row.accumulator, sizeof row.accumulator, "f64");
    int error = cudaMalloc(&job->workspace, workspace_bytes(job) + 16);
    if (job->id == DEFAULT_PATH) {
        const struct scan_rows rows = scan_rows_of(&job->rows);
        snprintf(row.kernel, sizeof row.kernel, "%s", scan_cuda_path(&rows, 0, rows.row_count));
    }
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

static struct reduction_job job_of(const struct reduce_memory *memory, int id, uint64_t length)
{
    bool sums = id == DEFAULT_PATH || reduction_list[id].ops >> SCAND_REDUCTION_SUM & 1;
    return (struct reduction_job){.id = id,
                                  .rows = {.input = memory->input,
                                           .output = memory->output,
                                           .rows = SAMPLES / length,
                                           .length = length,
                                           .pitch = (int64_t)(length * sizeof(float)),
                                           .op = sums ? SCAND_REDUCTION_SUM : SCAND_REDUCTION_NORM}};
}

/* Every reduction by name, on rows of one length. */
static int ladder_measure(struct reduce_memory *memory, uint64_t length, struct bench_table *table)
{
    int error = 0;
    for (int id = 0; id < REDUCTION_COUNT && !error; id++) {
        struct reduction_job job = job_of(memory, id, length);
        error = reduction_measure(memory, &job, (struct bench_row){0}, table);
    }
    return error;
}

int bench_reduce(struct bench_table *table)
{
    struct reduce_memory memory;
    int error = memory_init(&memory, SAMPLES / MAIN_LENGTH, table);
    if (!error)
        error = ladder_measure(&memory, MAIN_LENGTH, table);
    if (!error)
        error = ladder_measure(&memory, LONG_LENGTH, table);
    memory_finish(&memory);
    return job_fail("reductions", error);
}

/* Sums by the default path. */
static const struct row_sum {
    uint64_t length;
    double target;
} row_sums[] = {{MAIN_LENGTH, 0.95}, {1000, 0.85}, {SHORT_LENGTH, 0}};

int bench_row_reductions(struct bench_table *table)
{
    struct reduce_memory memory;
    int error = memory_init(&memory, SAMPLES / SHORT_LENGTH, table);
    for (size_t i = 0; i < sizeof row_sums / sizeof row_sums[0] && !error; i++) {
        struct reduction_job job = job_of(&memory, DEFAULT_PATH, row_sums[i].length);
        error = reduction_measure(&memory, &job, (struct bench_row){.target = row_sums[i].target}, table);
    }
    if (!error)
        error = ladder_measure(&memory, MAIN_LENGTH, table);
    memory_finish(&memory);
    return job_fail("reductions of rows", error);
}

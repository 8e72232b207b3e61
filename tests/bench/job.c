#include "tests/bench/job.h"

#include <cuda_runtime.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/order1/dtypes.h"
#include "kernels/tutorial/scan/variants.h"
#include "tests/bench/samples.h"

#define CHECKED_SAMPLES 200000 /* about as many outputs are compared with exact sums, at least a row */
#define CHECK_THREADS   12     /* when a row has many millions of them */

/* A job with its addresses, as what is queued wants it. */
struct launch {
    const struct job *job;
    struct scan_rows rows;
    void *workspace, *offsets;
    char *coefficients;
};

static int copy_start(void *argument, cudaStream_t stream)
{
    const struct job_memory *memory = argument;
    return cudaMemcpyAsync(memory->output, memory->input, memory->region_bytes, cudaMemcpyDeviceToDevice, stream);
}

static void copy_row_add(const struct job_memory *memory, struct bench_table *table)
{
    struct bench_row row = {.milliseconds = memory->copy_ms};
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->rows[i].name, memory->copy_name) == 0)
            return;
    snprintf(row.name, sizeof row.name, "%s", memory->copy_name);
    bench_add(table, &row);
}

static int memory_there(uint64_t needed)
{
    size_t free_bytes, total;
    int error = cudaMemGetInfo(&free_bytes, &total);
    return error ? error : free_bytes < needed ? -ENOSPC : 0;
}

int job_memory_init(struct job_memory *memory, enum scand_dtype dtype, uint64_t region_bytes, uint64_t sample_bytes,
                    struct bench_table *table)
{
    const uint64_t slack = UINT64_C(1) << 30;
    *memory = (struct job_memory){.region_bytes = region_bytes};
    int error = memory_there(3 * region_bytes + slack);
    if (!error)
        error = stopwatch_init(&memory->stopwatch);
    char **const regions[] = {&memory->input, &memory->output, &memory->again};
    for (int i = 0; i < 3 && !error; i++)
        error = cudaMalloc((void **)regions[i], region_bytes);
    if (!error)
        error = samples_noise(memory->input, dtype, region_bytes / codec_bytes(dtype));
    if (!error)
        error = stopwatch_median(&memory->stopwatch, copy_start, memory, &memory->copy_ms);
    /* A copy of the gaps is not part of the least work. */
    memory->copy_ms *= (double)sample_bytes / (double)region_bytes;
    snprintf(memory->copy_name, sizeof memory->copy_name, "device copy of %.0f MB", (double)sample_bytes / 1e6);
    if (error)
        job_memory_finish(memory);
    else
        copy_row_add(memory, table);
    return error;
}

void job_memory_finish(struct job_memory *memory)
{
    cudaFree(memory->input);
    cudaFree(memory->output);
    cudaFree(memory->again);
    stopwatch_finish(&memory->stopwatch);
}

static struct variant_scan variant_scan_of(const struct launch *launch)
{
    return variant_scan_from(&launch->rows, 0, launch->rows.row_count);
}

static uint64_t workspace_bytes(const struct launch *launch)
{
    if (launch->job->variant == JOB_DEFAULT_PATH)
        return scan_cuda_workspace_bytes(&launch->rows, launch->rows.row_count);
    struct variant_scan scan = variant_scan_of(launch);
    return variant_workspace_bytes((enum variant_id)launch->job->variant, &scan);
}

static int launch_start(void *argument, cudaStream_t stream)
{
    const struct launch *launch = argument;
    if (launch->job->variant == JOB_DEFAULT_PATH)
        return scan_cuda_by(&(struct scan_choice){.path = launch->job->path}, &launch->rows, 0, launch->rows.row_count,
                            launch->workspace, stream);
    struct variant_scan scan = variant_scan_of(launch);
    return variant_run((enum variant_id)launch->job->variant, &scan, launch->workspace, stream);
}

/* Compares two runs, into equal memory. */
static int sameness_find(struct job_memory *memory, struct launch *launch, enum bench_sameness *same)
{
    char *const outputs[] = {memory->again, memory->output};
    int error = 0;
    bool found = false;
    for (int i = 0; i < 2 && !error; i++) {
        launch->rows.output = outputs[i] + launch->job->offset;
        error = cudaMemset(outputs[i], 0, memory->region_bytes);
        if (!error)
            error = launch_start(launch, memory->stopwatch.stream);
        if (!error)
            error = cudaStreamSynchronize(memory->stopwatch.stream);
    }
    if (!error)
        error = samples_compare(memory->output, memory->again, memory->region_bytes, &found);
    *same = found ? BENCH_SAME : BENCH_DIFFERENT;
    return error;
}

static bool has_exact_sums(const struct job *job)
{
    const struct scan_rule *rule = &job->rows.rule;
    return job->path == SCAN_BY_TABLE && rule->op == SCAND_OPERATOR_SUM && rule->kind == SCAND_KIND_INCLUSIVE &&
           !rule->demean && !codec_is_integer(rule->input);
}

static struct samples_side input_of(const struct scan_rows *rows)
{
    return (struct samples_side){rows->input, rows->rule.input, rows->input_outer_strides[0], rows->input_stride};
}

static struct samples_side output_of(const struct scan_rows *rows)
{
    return (struct samples_side){rows->output, rows->rule.output, rows->output_outer_strides[0], rows->output_stride};
}

/* Readers of both sides for each thread. */
struct readers {
    unsigned count;
    struct samples_reader inputs[CHECK_THREADS], outputs[CHECK_THREADS];
    struct exact_sides sides[CHECK_THREADS];
};

static void readers_finish(struct readers *readers)
{
    for (unsigned i = 0; i < readers->count; i++) {
        samples_reader_finish(&readers->inputs[i]);
        samples_reader_finish(&readers->outputs[i]);
    }
}

static int readers_add(struct readers *readers, const struct scan_rows *rows, uint64_t count, uint64_t step)
{
    const struct samples_side input = input_of(rows), output = output_of(rows);
    unsigned i = readers->count;
    int error = samples_reader_init(&readers->inputs[i], &input, count, rows->length, step);
    if (error)
        return error;
    error = samples_reader_init(&readers->outputs[i], &output, count, rows->length, step);
    if (error) {
        samples_reader_finish(&readers->inputs[i]);
        return error;
    }
    readers->sides[i] = (struct exact_sides){&readers->inputs[i].source, &readers->outputs[i].source};
    readers->count++;
    return 0;
}

/* Compares what the last run left with exact sums, in rows from all over the output. */
static int rows_check(const struct scan_rows *rows, struct exact_result *result)
{
    uint64_t wanted = CHECKED_SAMPLES / rows->length + 1,
             step = rows->row_count / wanted ? rows->row_count / wanted : 1;
    uint64_t count = (rows->row_count + step - 1) / step;
    unsigned threads = rows->length > SAMPLES_AT_ONCE ? CHECK_THREADS : 1;
    struct readers readers = {.count = 0};
    int error = 0;
    while (readers.count < threads && !error)
        error = readers_add(&readers, rows, count, step);
    if (!error)
        error = exact_compare(&rows->rule, count, rows->length, readers.sides, threads, result);
    readers_finish(&readers);
    return error;
}

/* Compares ragged rows as rows_check does, each row as a batch of one. */
static int ragged_check(const struct scan_rows *rows, struct exact_result *result)
{
    uint64_t samples = rows->offsets[rows->row_count];
    uint64_t wanted = rows->row_count * CHECKED_SAMPLES / samples + 1, step = (rows->row_count + wanted - 1) / wanted;
    int error = 0;
    for (uint64_t r = 0; r < rows->row_count && !error; r += step) {
        struct scan_rows row = *rows;
        row.offsets = NULL;
        row.row_count = 1;
        row.length = rows->offsets[r + 1] - rows->offsets[r];
        row.input = (const char *)rows->input + (int64_t)rows->offsets[r] * rows->input_stride;
        row.output = (char *)rows->output + (int64_t)rows->offsets[r] * rows->output_stride;
        error = rows_check(&row, result);
    }
    return error;
}

static int coefficients_make(struct launch *launch, uint64_t region_bytes)
{
    const enum scand_dtype dtype = launch->rows.rule.coefficients;
    int error = cudaMalloc((void **)&launch->coefficients, region_bytes);
    if (!error)
        error = samples_noise(launch->coefficients, dtype, region_bytes / codec_bytes(dtype));
    launch->rows.coefficients = launch->coefficients + launch->job->offset;
    return error;
}

/* Allocates device memory for the scan itself, its coefficients, and the offsets of ragged rows. */
static int launch_prepare(struct launch *launch, uint64_t region_bytes)
{
    const size_t bytes = (launch->rows.row_count + 1) * sizeof(uint64_t);
    int error = cudaMalloc(&launch->workspace, workspace_bytes(launch) + 16);
    if (!error && launch->job->has_coefficients)
        error = coefficients_make(launch, region_bytes);
    if (error || !launch->rows.offsets)
        return error;
    error = cudaMalloc(&launch->offsets, bytes);
    if (!error)
        error = cudaMemcpy(launch->offsets, launch->rows.offsets, bytes, cudaMemcpyHostToDevice);
    launch->rows.device_offsets = launch->offsets;
    return error;
}

int job_measure(struct job_memory *memory, const struct job *job, struct bench_row row, struct bench_table *table)
{
    struct launch launch = {.job = job, .rows = job->rows};
    struct exact_result exact = {0};
    launch.rows.input = memory->input + job->offset;
    launch.rows.output = memory->output + job->offset;
    int error = launch_prepare(&launch, memory->region_bytes);
    if (job->variant == JOB_DEFAULT_PATH)
        snprintf(row.kernel, sizeof row.kernel, "%s",
                 job->path == SCAN_BY_TABLE ? scan_cuda_path(&launch.rows, 0, launch.rows.row_count)
                                            : select_word(job->path));
    if (!error)
        error = stopwatch_median(&memory->stopwatch, launch_start, &launch, &row.milliseconds);
    if (!error)
        error = sameness_find(memory, &launch, &row.same);
    if (!error && has_exact_sums(job))
        error = (launch.rows.offsets ? ragged_check : rows_check)(&launch.rows, &exact);
    cudaFree(launch.workspace);
    cudaFree(launch.offsets);
    cudaFree(launch.coefficients);
    row.share = error ? 0 : job->copies * memory->copy_ms / row.milliseconds;
    row.checked = exact.checked;
    row.rounded = exact.rounded;
    row.worst_ulps = exact.worst_ulps;
    if (job->copies == 1)
        snprintf(row.against, sizeof row.against, "%s", memory->copy_name);
    else
        snprintf(row.against, sizeof row.against, "%g x %s", job->copies, memory->copy_name);
    if (!error)
        bench_add(table, &row);
    return error;
}

bool job_can(const struct job_memory *memory, const struct job *job)
{
    struct scan_rows rows = job->rows;
    rows.input = memory->input + job->offset;
    rows.output = memory->output + job->offset;
    rows.coefficients = job->has_coefficients ? memory->input : NULL;
    return scan_cuda_can(job->path, &rows, 0, rows.row_count);
}

static const char *accumulator_word(enum scand_accumulator accumulator)
{
#define X(NAME, WORD) WORD,
    static const char *const words[] = {SCAND_ACCUMULATORS(X)};
#undef X
    return words[accumulator];
}

int job_case_measure(const struct bench_case *c, job_measurer *measure, struct bench_table *table)
{
    struct job_memory memory;
    struct case_offsets offsets;
    struct bench_row row = {0};
    case_name(c, row.name);
    case_shape(c, row.shape);
    int error = job_memory_init(&memory, c->dtype, case_region_bytes(c), case_sample_bytes(c), table);
    if (error == -ENOSPC) {
        fprintf(stderr, "scand-bench: %s, %s is left out: the device has no memory for three times %.1f GB\n", row.name,
                row.shape, (double)case_region_bytes(c) / 1e9);
        return 0;
    }
    if (error)
        return job_fail(row.shape, error);
    error = case_offsets_make(c, &offsets);
    for (int i = 0; i < CASE_ACCUMULATORS && !error; i++) {
        struct job job = {.rows = case_rows(c, i, &offsets),
                          .variant = JOB_DEFAULT_PATH,
                          .path = SCAN_BY_TABLE,
                          .offset = c->gap_bytes,
                          .has_coefficients = c->layout == CASE_COEFFICIENTS,
                          .copies = c->copies};
        row.target = c->targets[i];
        snprintf(row.accumulator, sizeof row.accumulator, "%s", accumulator_word(job.rows.rule.accumulator));
        if (c->targets[i] != CASE_LEFT_OUT)
            error = measure(&memory, &job, row, table);
    }
    free(offsets.starts);
    job_memory_finish(&memory);
    return job_fail(row.shape, error);
}

int job_fail(const char *what, int error)
{
    if (error)
        fprintf(stderr, "scand-bench: %s: %s\n", what,
                error < 0 ? strerror(-error) : cudaGetErrorString((cudaError_t)error));
    return error != 0;
}

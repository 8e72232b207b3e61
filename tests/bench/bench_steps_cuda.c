/* Operations in tiles in device memory, against a copy there that reads and writes as many bytes as they do at least.
 */
#include <cuda_runtime.h>
#include <stdio.h>

#include "tests/bench/job.h"
#include "tests/bench/samples.h"
#include "tests/bench/step_cases.h"

#define ROWS   10000
#define LENGTH 10000
#define BYTES  ((size_t)2 * ROWS * LENGTH * sizeof(double)) /* size of an operand: upsampled rows are the longest */

struct memory {
    struct stopwatch stopwatch;
    char *input, *further, *output;
    void *workspace; /* of the kernel that is measured */
};

/* One kind of work of a case. */
struct work {
    const struct memory *memory;
    const struct step_bench *bench;
    step_launch *launch; /* replaces the kernel's own launch, or NULL */
};

static int copy_start(void *argument, cudaStream_t stream)
{
    const struct work *work = argument;
    return cudaMemcpyAsync(work->memory->output, work->memory->input, step_bench_bytes(work->bench, ROWS, LENGTH) / 2,
                           cudaMemcpyDeviceToDevice, stream);
}

static step_launch *launch_of(const struct step_kernel *kernel)
{
    unsigned id = 0;
    while (step_kernels[id] != kernel)
        id++;
    return step_launches[id];
}

static struct step_rows rows_of(const struct memory *memory, const struct step_bench *bench)
{
    return step_bench_rows(bench, ROWS, LENGTH, memory->input, memory->further, memory->output);
}

static int step_start(void *argument, cudaStream_t stream)
{
    const struct work *work = argument;
    const struct memory *memory = work->memory;
    const struct step_kernel *kernel = work->bench->kernel;
    struct step_rows rows = rows_of(memory, work->bench);
    rows.workspace = memory->workspace;
    const struct step_tiles tiles = step_tiles_of(kernel, &rows, work->bench->params, 0, ROWS);
    step_launch *launch = work->launch ? work->launch : launch_of(kernel);
    return launch(&rows, work->bench->params, &tiles, 0, tiles.tile_count, stream);
}

static int put_words(struct memory *memory, const struct step_bench *bench)
{
    static uint32_t words[2 * LENGTH];
    const uint64_t count = step_bench_words(bench, LENGTH);
    step_bench_fill(bench, LENGTH, words);
    return cudaMemcpy(memory->further, words, count * sizeof words[0], cudaMemcpyHostToDevice);
}

static int workspace_in(struct memory *memory, const struct step_bench *bench)
{
    const struct step_rows rows = rows_of(memory, bench);
    const uint64_t bytes = step_workspace_bytes(bench->kernel, &rows, bench->params, ROWS);
    return bytes > 0 ? cudaMalloc(&memory->workspace, bytes) : 0;
}

static int measure(struct memory *memory, const struct step_bench *bench, step_launch *launch,
                   struct bench_table *table)
{
    struct work work = {memory, bench, launch};
    struct bench_row row = {.target = bench->target};
    double copy_ms = 0;
    int error = samples_noise(memory->input, bench->dtype, (uint64_t)ROWS * LENGTH);
    if (!error)
        error = samples_noise(memory->further, bench->dtype, (uint64_t)ROWS * LENGTH);
    if (!error && step_bench_words(bench, LENGTH) > 0)
        error = put_words(memory, bench);
    if (!error)
        error = workspace_in(memory, bench);
    if (!error)
        error = stopwatch_median(&memory->stopwatch, copy_start, &work, &copy_ms);
    if (!error)
        error = stopwatch_median(&memory->stopwatch, step_start, &work, &row.milliseconds);
    cudaFree(memory->workspace);
    memory->workspace = NULL;
    snprintf(row.name, sizeof row.name, "%s", bench->name);
    snprintf(row.shape, sizeof row.shape, "%d x %d %s", ROWS, LENGTH, step_bench_dtypes(bench));
    snprintf(row.against, sizeof row.against, "device copy of as many bytes");
    row.share = error ? 0 : copy_ms / row.milliseconds;
    if (!error)
        bench_add(table, &row);
    return error;
}

int step_benches_measure(const struct step_bench *benches, size_t count, step_launch *const *launches,
                         struct bench_table *table)
{
    struct memory memory = {.input = NULL};
    char **const regions[] = {&memory.input, &memory.further, &memory.output};
    int error = stopwatch_init(&memory.stopwatch);
    for (int i = 0; i < 3 && !error; i++)
        error = cudaMalloc((void **)regions[i], BYTES);
    for (size_t i = 0; i < count && !error; i++)
        error = measure(&memory, &benches[i], launches ? launches[i] : NULL, table);
    for (int i = 0; i < 3; i++)
        cudaFree(*regions[i]);
    stopwatch_finish(&memory.stopwatch);
    return job_fail("steps", error);
}

int bench_steps_cuda(struct bench_table *table)
{
    return step_benches_measure(step_benches, step_bench_count, NULL, table);
}

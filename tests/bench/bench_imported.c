/*
 * A job on device memory of this process, by a daemon that is another one, beside its kernel alone: what the way
 * through the socket, the daemon's threads and back costs.
 */
#include <cuda_runtime.h>
#include <stdio.h>

#include <scand/scand.h>

#include "kernels/cuda/scan_cuda.h"
#include "tests/bench/bench.h"
#include "tests/bench/client.h"
#include "tests/bench/job.h"

#define RUNS      101
#define BEYOND_MS 0.060 /* time by which a job may exceed its kernel */

static const struct imported_shape {
    uint64_t rows, samples;
    const char *name;
} shapes[] = {{1, 1000, "1 x 1000"}, {10000, 1000, "10000 x 1000"}, {10000, 10000, "10000 x 10000"}};

struct imported {
    struct scan_rows rows;
    struct scand *daemon;
    struct scand_scan scan;
};

static void imported_init(struct imported *self, const struct imported_shape *shape, void *memory,
                          struct scand_buffer *buffer)
{
    self->rows = client_rows(memory, shape->rows, shape->samples);
    self->scan = client_scan(buffer, shape->rows, shape->samples, 0);
}

/* Rows of this length need no workspace. */
static int start_kernel(void *argument, cudaStream_t stream)
{
    struct imported *self = argument;
    return scan_cuda(&self->rows, 0, self->rows.row_count, NULL, stream);
}

static int time_jobs(struct imported *self, double *median_ms)
{
    double times_ms[RUNS];
    int status = SCAND_OK;
    for (int i = -3; i < RUNS && !status; i++) {
        struct scand_job *job;
        double begin_ms = bench_now_ms();
        status = scand_submit(self->daemon, &self->scan, &job);
        if (status)
            break;
        status = scand_wait(job, -1, NULL);
        if (i >= 0)
            times_ms[i] = bench_now_ms() - begin_ms;
        scand_job_release(job);
    }
    *median_ms = status ? 0 : bench_median(times_ms, RUNS);
    return status;
}

static int measure_shape(struct imported *self, const struct imported_shape *shape, struct stopwatch *stopwatch,
                         struct bench_table *table)
{
    struct bench_row kernel = {.name = "kernel alone", .accumulator = "f64"},
                     job = {.name = "job on imported device memory", .accumulator = "f64"};
    int r = stopwatch_median(stopwatch, start_kernel, self, &kernel.milliseconds);
    if (r)
        return job_fail("kernel alone", r);
    if (time_jobs(self, &job.milliseconds)) {
        fprintf(stderr, "bench_imported: %s\n", scand_message(self->daemon));
        return 1;
    }
    snprintf(kernel.shape, sizeof kernel.shape, "%s", shape->name);
    snprintf(job.shape, sizeof job.shape, "%s", shape->name);
    job.target = kernel.milliseconds + BEYOND_MS;
    bench_add(table, &kernel);
    bench_add(table, &job);
    return 0;
}

/* Measures with memory of the shape, imported. */
static int measure_imported(struct scand *daemon, const struct imported_shape *shape, struct stopwatch *stopwatch,
                            struct bench_table *table)
{
    struct imported self = {.daemon = daemon};
    struct scand_buffer *buffer;
    cudaIpcMemHandle_t handle;
    void *memory;
    uint64_t size_bytes = shape->rows * shape->samples * sizeof(float);
    int r = cudaMalloc(&memory, size_bytes);
    if (r)
        return job_fail("memory to import", r);
    r = cudaMemset(memory, 0, size_bytes);
    if (!r)
        r = cudaIpcGetMemHandle(&handle, memory);
    if (!r)
        r = cudaDeviceSynchronize();
    if (r) {
        job_fail("memory to import", r);
    } else if (scand_buffer_import_cuda(daemon, &handle, 0, size_bytes, &buffer)) {
        r = fprintf(stderr, "bench_imported: %s\n", scand_message(daemon));
    } else {
        imported_init(&self, shape, memory, buffer);
        r = measure_shape(&self, shape, stopwatch, table);
        scand_buffer_release(buffer);
    }
    cudaFree(memory);
    return r;
}

int bench_imported(struct bench_table *table, const struct service *service)
{
    struct stopwatch stopwatch;
    struct scand *daemon;
    int r = scan_cuda_init();
    if (!r)
        r = stopwatch_init(&stopwatch);
    if (r)
        return job_fail("a stream", r);
    if (scand_connect(service->server.socket, "scand-bench", &daemon)) {
        stopwatch_finish(&stopwatch);
        fprintf(stderr, "bench_imported: %s\n", scand_connect_message());
        return 1;
    }
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0] && !r; i++)
        r = measure_imported(daemon, &shapes[i], &stopwatch, table);
    scand_disconnect(daemon);
    stopwatch_finish(&stopwatch);
    return r;
}

/* The main job through a daemon, as its users run it: a process of its own, warm, on one device or several, and a
 * client that has just started. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <scand/scand.h>

#include "tests/bench/bench.h"
#include "tests/bench/server.h"

#define ROWS    10000
#define SAMPLES 10000
#define RUNS    15

static int fail(const char *what, const char *message)
{
    fprintf(stderr, "bench_service: %s: %s\n", what, message);
    return 1;
}

static void fill(float *x, size_t count)
{
    uint32_t state = 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)state * 0x1p-31f;
    }
}

static struct scand_scan main_scan(struct scand_buffer *input, struct scand_buffer *output, uint64_t rows,
                                   enum scand_accumulator accumulator)
{
    struct scand_tensor tensor = {.buffer = input, .dtype = SCAND_DTYPE_F32, .rank = 2, .shape = {rows, SAMPLES}};
    scand_tensor_pack(&tensor);
    struct scand_scan scan = {.input = tensor,
                              .output = tensor,
                              .axis = 1,
                              .pass_count = 2,
                              .passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD},
                              .accumulator = accumulator};
    scan.output.buffer = output;
    return scan;
}

static int run_job(struct scand *daemon, const struct scand_scan *scan)
{
    struct scand_job *job;
    int status = scand_submit(daemon, scan, &job);
    if (status)
        return status;
    status = scand_wait(job, -1, NULL);
    scand_job_release(job);
    return status;
}

/* Median over warm runs, out of place, so that every run scans the same data. */
static int time_main_job(struct scand *daemon, uint64_t rows, double *median_ms)
{
    struct scand_buffer *input, *output;
    uint64_t bytes = rows * SAMPLES * sizeof(float);
    double times_ms[RUNS];
    int status = scand_buffer_create(daemon, SCAND_PLACE_HOST, bytes, &input);
    if (!status)
        status = scand_buffer_create(daemon, SCAND_PLACE_HOST, bytes, &output);
    if (status)
        return status;
    fill(scand_buffer_data(input), rows * SAMPLES);
    memset(scand_buffer_data(output), 0, bytes);
    struct scand_scan scan = main_scan(input, output, rows, SCAND_ACCUMULATOR_F64);
    for (int i = -2; i < RUNS && !status; i++) {
        double begin_ms = bench_now_ms();
        status = run_job(daemon, &scan);
        if (i >= 0)
            times_ms[i] = bench_now_ms() - begin_ms;
    }
    *median_ms = status ? 0 : bench_median(times_ms, RUNS);
    scand_buffer_release(input);
    scand_buffer_release(output);
    return status;
}

int bench_fresh_client(const char *socket, double start_ms)
{
    struct scand *daemon;
    struct scand_buffer *buffer;
    uint64_t rows = ROWS / 4, bytes = rows * SAMPLES * sizeof(float);
    if (scand_connect(socket, "scand-bench", &daemon))
        return fail("fresh client", scand_connect_message());
    if (scand_buffer_create(daemon, SCAND_PLACE_HOST, bytes, &buffer))
        return fail("fresh client", scand_message(daemon));
    double fill_ms = bench_now_ms();
    fill(scand_buffer_data(buffer), rows * SAMPLES);
    fill_ms = bench_now_ms() - fill_ms;
    struct scand_scan scan = main_scan(buffer, buffer, rows, SCAND_ACCUMULATOR_F64);
    if (run_job(daemon, &scan))
        return fail("fresh client", scand_message(daemon));
    printf("%.3f\n", bench_now_ms() - start_ms - fill_ms);
    scand_disconnect(daemon);
    return 0;
}

static int time_fresh_clients(const char *self, const char *socket, double *median_ms)
{
    double times_ms[RUNS];
    for (int i = 0; i < RUNS; i++) {
        char command[1024];
        snprintf(command, sizeof command, "'%s' --fresh-client '%s' %.3f", self, socket, bench_now_ms());
        FILE *pipe = popen(command, "r");
        int got = pipe ? fscanf(pipe, "%lf", &times_ms[i]) : 0;
        if (!pipe || pclose(pipe) || got != 1)
            return fail("fresh client", "it gave no time");
    }
    *median_ms = bench_median(times_ms, RUNS);
    return 0;
}

static int connect_and_time(const char *socket, uint64_t rows, double *job_ms)
{
    struct scand *daemon;
    if (scand_connect(socket, "scand-bench", &daemon))
        return fail("connect", scand_connect_message());
    int r = time_main_job(daemon, rows, job_ms);
    if (r)
        r = fail("main job", scand_message(daemon));
    scand_disconnect(daemon);
    return r;
}

static double job_gb_per_second(uint64_t rows, double job_ms)
{
    return (double)rows * SAMPLES * sizeof(float) / job_ms / 1e6;
}

static int measure(struct bench_table *table, const char *self, const char *socket, double duplex_gb_per_second)
{
    double job_ms, fresh_ms;
    if (connect_and_time(socket, ROWS, &job_ms) || time_fresh_clients(self, socket, &fresh_ms))
        return 1;
    bool gpu = duplex_gb_per_second > 0;
    struct bench_row job = {.name = "warm main job through the daemon",
                            .shape = "10000 x 10000",
                            .accumulator = "f64",
                            .milliseconds = job_ms};
    struct bench_row fresh = {.name = "fresh client to its first result",
                              .shape = "2500 x 10000",
                              .accumulator = "f64",
                              .milliseconds = fresh_ms};
    if (gpu) {
        snprintf(job.against, sizeof job.against, "copy of 400 MB in both directions");
        job.share = job_gb_per_second(ROWS, job_ms) / duplex_gb_per_second;
        job.target = 0.90;
        fresh.target = 15;
    }
    bench_add(table, &job);
    bench_add(table, &fresh);
    return 0;
}

int bench_service(struct bench_table *table, const char *scand, const char *self, double duplex_gb_per_second)
{
    struct server server;
    double kernel_ms = 0;
    int r = server_start(&server, scand, (const char *const[]){"--device", "auto", "--pool", "1G", NULL});
    if (r)
        return r;
    r = measure(table, self, server.socket, duplex_gb_per_second);
#ifdef SCAND_HAVE_CUDA
    if (!r && duplex_gb_per_second > 0)
        r = bench_imported(table, server.socket);
    if (!r && duplex_gb_per_second > 0)
        r = bench_mapped_kernel(&kernel_ms);
#endif
    if (!r)
        r = bench_small(table, server.socket, kernel_ms);
    server_stop(&server);
    return r;
}

#ifdef SCAND_HAVE_CUDA
/* "cuda:0,1" of the first `count`. */
static void name_devices(int count, char *out, size_t size)
{
    size_t length = (size_t)snprintf(out, size, "cuda:0");
    for (int i = 1; i < count; i++)
        length += (size_t)snprintf(out + length, size - length, ",%d", i);
}

static int measure_job(struct bench_table *table, const char *socket, uint64_t rows, int count,
                       double duplex_gb_per_second)
{
    struct bench_row row = {.name = "warm job through the daemon", .accumulator = "f64", .target = 0.90};
    const char *plural = count > 1 ? "s" : "";
    if (connect_and_time(socket, rows, &row.milliseconds))
        return 1;
    snprintf(row.shape, sizeof row.shape, "%d x 10000 on %d GPU%s", (int)rows, count, plural);
    snprintf(row.against, sizeof row.against, "copy in both directions on %d GPU%s", count, plural);
    row.share = job_gb_per_second(rows, row.milliseconds) / duplex_gb_per_second;
    bench_add(table, &row);
    return 0;
}

/* The main job, and one four times as long, in which beginning and end count less. */
static int measure_devices(struct bench_table *table, const char *scand, int count)
{
    struct server server;
    char names[64];
    double duplex_gb_per_second;
    name_devices(count, names, sizeof names);
    if (bench_duplex(table, count, &duplex_gb_per_second) ||
        server_start(&server, scand, (const char *const[]){"--device", names, "--pool", "4G", NULL}))
        return 1;
    int r = measure_job(table, server.socket, ROWS, count, duplex_gb_per_second);
    if (!r)
        r = measure_job(table, server.socket, 4 * ROWS, count, duplex_gb_per_second);
    server_stop(&server);
    return r;
}

int bench_devices(struct bench_table *table, const char *scand)
{
    int r = 0, most = bench_device_count();
    for (int count = 1; count <= most && !r; count *= 2)
        r = measure_devices(table, scand, count);
    return r;
}
#endif

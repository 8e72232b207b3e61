/* The main job through a daemon, as its users run it: a process of its own, warm, on one device or several. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <scand/scand.h>

#include "tests/bench/bench.h"
#include "tests/bench/client.h"

/* Measures the median over warm runs, out of place, so that every run scans the same data. `again`: scan the result
 * once more, too. */
static int time_main_job(struct scand *daemon, uint64_t rows, bool again, double *median_ms)
{
    struct scand_buffer *input, *output;
    uint64_t bytes = client_bytes(rows, MAIN_SAMPLES);
    int status = scand_buffer_create(daemon, SCAND_PLACE_HOST, bytes, &input);
    if (!status)
        status = scand_buffer_create(daemon, SCAND_PLACE_HOST, bytes, &output);
    if (status)
        return status;
    client_fill(scand_buffer_data(input), rows * MAIN_SAMPLES);
    memset(scand_buffer_data(output), 0, bytes);
    struct scand_scan scan = client_scan(input, rows, MAIN_SAMPLES, 0);
    const struct scand_step step = {
        .pass_count = 2, .passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD}, .accumulator = SCAND_ACCUMULATOR_F64};
    scan.output.buffer = output;
    scan.then = &step;
    scan.then_count = again;
    status = client_time(daemon, &scan, median_ms);
    scand_buffer_release(input);
    scand_buffer_release(output);
    return status;
}

static int connect_and_time(const char *socket, uint64_t rows, bool again, double *job_ms)
{
    struct scand *daemon;
    if (scand_connect(socket, "scand-bench", &daemon))
        return client_fail("connect", scand_connect_message());
    int r = time_main_job(daemon, rows, again, job_ms);
    if (r)
        r = client_fail("main job", scand_message(daemon));
    scand_disconnect(daemon);
    return r;
}

int bench_time_main_job(const char *socket, double *median_ms)
{
    return connect_and_time(socket, MAIN_ROWS, false, median_ms);
}

static double job_gb_per_second(uint64_t rows, double job_ms)
{
    return (double)client_bytes(rows, MAIN_SAMPLES) / job_ms / 1e6;
}

static int measure_main_job(struct bench_table *table, const struct service *service, const char *name, bool again)
{
    struct bench_row row = {.shape = "10000 x 10000", .accumulator = "f64"};
    snprintf(row.name, sizeof row.name, "%s", name);
    if (connect_and_time(service->server.socket, MAIN_ROWS, again, &row.milliseconds))
        return 1;
    if (service_has_gpu(service)) {
        snprintf(row.against, sizeof row.against, "copy of 400 MB in both directions");
        row.share = job_gb_per_second(MAIN_ROWS, row.milliseconds) / service->duplex_gb_per_second;
        row.target = again ? 0 : 0.96;
    }
    bench_add(table, &row);
    return 0;
}

int bench_main_job(struct bench_table *table, const struct service *service)
{
    int r = measure_main_job(table, service, "warm main job through the daemon", false);
#ifdef SCAND_HAVE_CUDA
    if (!r && service_has_gpu(service))
        r = bench_ring(table, service);
#endif
    return r ? r : measure_main_job(table, service, "the same twice as steps of a job", true);
}

#ifdef SCAND_HAVE_CUDA
/* The first `count` GPUs, with the processor beside them or without. */
struct devices {
    int count;
    bool helped;
};

/* Names devices, "cuda:0,1" or "cuda:0,1,cpu". */
static void name_devices(struct devices devices, char *out, size_t size)
{
    size_t length = (size_t)snprintf(out, size, "cuda:0");
    for (int i = 1; i < devices.count; i++)
        length += (size_t)snprintf(out + length, size - length, ",%d", i);
    snprintf(out + length, size - length, "%s", devices.helped ? ",cpu" : "");
}

static int measure_job(struct bench_table *table, const char *socket, uint64_t rows, struct devices devices,
                       double duplex_gb_per_second)
{
    struct bench_row row = {.accumulator = "f64"};
    const char *plural = devices.count > 1 ? "s" : "";
    if (connect_and_time(socket, rows, false, &row.milliseconds))
        return 1;
    row.target = devices.helped ? 0 : 0.90;
    snprintf(row.name, sizeof row.name, "%s",
             devices.helped ? "the same with the processor" : "warm job through the daemon");
    snprintf(row.shape, sizeof row.shape, "%d x 10000 on %d GPU%s", (int)rows, devices.count, plural);
    snprintf(row.against, sizeof row.against, "copy in both directions on %d GPU%s", devices.count, plural);
    row.share = job_gb_per_second(rows, row.milliseconds) / duplex_gb_per_second;
    bench_add(table, &row);
    return 0;
}

/* The main job, and one four times as long, in which beginning and end count less. */
static int measure_jobs(struct bench_table *table, const char *scand, struct devices devices,
                        double duplex_gb_per_second)
{
    struct server server;
    char names[64];
    name_devices(devices, names, sizeof names);
    if (server_start(&server, scand, (const char *const[]){"--device", names, "--pool", "4G", NULL}))
        return 1;
    int r = measure_job(table, server.socket, MAIN_ROWS, devices, duplex_gb_per_second);
    if (!r)
        r = measure_job(table, server.socket, 4 * MAIN_ROWS, devices, duplex_gb_per_second);
    server_stop(&server);
    return r;
}

static int measure_devices(struct bench_table *table, const char *scand, int count)
{
    double duplex_gb_per_second;
    int r = bench_duplex(table, count, &duplex_gb_per_second);
    r = r ? r : measure_jobs(table, scand, (struct devices){count, false}, duplex_gb_per_second);
    return r ? r : measure_jobs(table, scand, (struct devices){count, true}, duplex_gb_per_second);
}

int bench_devices(struct bench_table *table, const char *scand)
{
    int r = 0, most = bench_device_count();
    for (int count = 1; count <= most && !r; count = 2 * count < most || count == most ? 2 * count : most)
        r = measure_devices(table, scand, count);
    return r;
}
#endif

/* The main job through a daemon, as its users run it: a process of its own, warm, and a client that has just started.
 */
#include <errno.h>

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <scand/scand.h>

#include "tests/bench/bench.h"

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
static int time_main_job(struct scand *daemon, double *median_ms)
{
    struct scand_buffer *input, *output;
    uint64_t bytes = (uint64_t)ROWS * SAMPLES * sizeof(float);
    double times_ms[RUNS];
    int status = scand_buffer_create(daemon, SCAND_PLACE_HOST, bytes, &input);
    if (!status)
        status = scand_buffer_create(daemon, SCAND_PLACE_HOST, bytes, &output);
    if (status)
        return status;
    fill(scand_buffer_data(input), (size_t)ROWS * SAMPLES);
    memset(scand_buffer_data(output), 0, bytes);
    struct scand_scan scan = main_scan(input, output, ROWS, SCAND_ACCUMULATOR_F64);
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

static pid_t start_daemon(const char *scand, const char *socket)
{
    pid_t pid = fork();
    if (pid == 0) {
        execl(scand, "scand", "--foreground", "--socket", socket, (char *)NULL);
        _exit(127);
    }
    struct stat status;
    while (pid > 0 && stat(socket, &status) && waitpid(pid, NULL, WNOHANG) == 0)
        usleep(20000);
    return pid;
}

static int measure(struct bench_table *table, const char *self, const char *socket, double duplex_gb_per_second)
{
    struct scand *daemon;
    double job_ms, fresh_ms;
    if (scand_connect(socket, "scand-bench", &daemon))
        return fail("connect", scand_connect_message());
    int r = time_main_job(daemon, &job_ms);
    if (r)
        r = fail("main job", scand_message(daemon));
    scand_disconnect(daemon);
    if (r || time_fresh_clients(self, socket, &fresh_ms))
        return 1;
    double gb_per_second = (double)ROWS * SAMPLES * sizeof(float) / job_ms / 1e6;
    bool gpu = duplex_gb_per_second > 0;
    struct bench_row job = {.name = "main job through the daemon, warm",
                            .shape = "10000 x 10000",
                            .accumulator = "f64",
                            .milliseconds = job_ms};
    struct bench_row fresh = {.name = "fresh client to its first result",
                              .shape = "2500 x 10000",
                              .accumulator = "f64",
                              .milliseconds = fresh_ms};
    if (gpu) {
        snprintf(job.against, sizeof job.against, "copy of 400 MB in both directions");
        job.share = gb_per_second / duplex_gb_per_second;
        job.target = 0.90;
        fresh.target = 15;
    }
    bench_add(table, &job);
    bench_add(table, &fresh);
    return 0;
}

int bench_service(struct bench_table *table, const char *scand, const char *self, double duplex_gb_per_second)
{
    char folder[] = "/tmp/scand-bench-XXXXXX", socket[64];
    if (!mkdtemp(folder))
        return fail("temporary folder", strerror(errno));
    snprintf(socket, sizeof socket, "%s/scand.sock", folder);
    pid_t daemon = start_daemon(scand, socket);
    int r = daemon > 0 ? measure(table, self, socket, duplex_gb_per_second) : fail("fork", strerror(errno));
    if (daemon > 0) {
        kill(daemon, SIGTERM);
        waitpid(daemon, NULL, 0);
    }
    rmdir(folder);
    return r;
}

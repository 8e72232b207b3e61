/*
 * Small jobs through a daemon: how long one of 1,000 samples takes to come back, alone and while another process
 * streams large ones, and how many of them eight processes get done that do not wait for each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <scand/scand.h>

#include "tests/bench/bench.h"

#define SAMPLES     1000
#define ROUND_TRIPS 4000
#define WARM_UP     200
#define CLIENTS     8
#define PIPELINED   64 /* jobs that a client has under way */
#define CLIENT_JOBS 200000
#define STREAM_ROWS 10000 /* of 10,000 samples: the main job */
#define STREAM_JOBS 100   /* 40 GB */
#define CHUNK_MS    0.33  /* of 8 MiB, each way, three times: what p99 may take */
#define PING_BYTES  64
#define P99(COUNT)  ((COUNT)*99 / 100)

static int fail(const char *what, const char *message)
{
    fprintf(stderr, "bench_small: %s: %s\n", what, message);
    return 1;
}

static struct scand_scan small_scan(struct scand_buffer *buffer, uint64_t rows, uint64_t samples, uint64_t first)
{
    struct scand_tensor tensor = {.buffer = buffer,
                                  .offset = first * samples * sizeof(float),
                                  .dtype = SCAND_DTYPE_F32,
                                  .rank = 2,
                                  .shape = {rows, samples}};
    scand_tensor_pack(&tensor);
    return (struct scand_scan){.input = tensor,
                               .output = tensor,
                               .axis = 1,
                               .pass_count = 2,
                               .passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD},
                               .accumulator = SCAND_ACCUMULATOR_F64};
}

/* A connection with a buffer of zeros, which jobs in place leave as they are. */
static int client_open(const char *socket, uint64_t size_bytes, struct scand **daemon, struct scand_buffer **buffer)
{
    if (scand_connect(socket, "scand-bench", daemon))
        return fail("connect", scand_connect_message());
    if (scand_buffer_create(*daemon, SCAND_PLACE_HOST, size_bytes, buffer))
        return fail("buffer", scand_message(*daemon));
    memset(scand_buffer_data(*buffer), 0, size_bytes);
    return 0;
}

static int run_job(struct scand *daemon, const struct scand_scan *scan)
{
    struct scand_job *job;
    int status = scand_submit(daemon, scan, &job);
    if (status)
        return fail("submit", scand_message(daemon));
    status = scand_wait(job, -1, NULL);
    scand_job_release(job);
    return status ? fail("wait", scand_message(daemon)) : 0;
}

/* Sorted by bench_median. */
static int time_round_trips(const char *socket, double times_ms[ROUND_TRIPS])
{
    struct scand *daemon;
    struct scand_buffer *buffer;
    if (client_open(socket, SAMPLES * sizeof(float), &daemon, &buffer))
        return 1;
    struct scand_scan scan = small_scan(buffer, 1, SAMPLES, 0);
    int r = 0;
    for (int i = -WARM_UP; i < ROUND_TRIPS && !r; i++) {
        double begin_ms = bench_now_ms();
        r = run_job(daemon, &scan);
        if (i >= 0)
            times_ms[i] = bench_now_ms() - begin_ms;
    }
    scand_disconnect(daemon);
    bench_median(times_ms, ROUND_TRIPS);
    return r;
}

static int echo(int fd)
{
    char bytes[PING_BYTES];
    while (read(fd, bytes, sizeof bytes) == sizeof bytes)
        if (write(fd, bytes, sizeof bytes) != sizeof bytes)
            return 1;
    return 0;
}

/* Between two processes that do nothing else. */
static int time_pings(double times_ms[ROUND_TRIPS])
{
    char bytes[PING_BYTES] = {0};
    int fds[2], status = 1;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
        return fail("ping", "no sockets");
    pid_t child = fork();
    if (child == 0) {
        close(fds[0]);
        _exit(echo(fds[1]));
    }
    close(fds[1]);
    for (int i = -WARM_UP; i < ROUND_TRIPS; i++) {
        double begin_ms = bench_now_ms();
        if (write(fds[0], bytes, sizeof bytes) != sizeof bytes || read(fds[0], bytes, sizeof bytes) != sizeof bytes)
            break;
        if (i >= 0)
            times_ms[i] = bench_now_ms() - begin_ms;
    }
    close(fds[0]);
    waitpid(child, &status, 0);
    bench_median(times_ms, ROUND_TRIPS);
    return status ? fail("ping", "the other process ended") : 0;
}

/* A part of the time of small jobs: `share` of what they are held against. */
static void add_times(struct bench_table *table, const char *name, const double *times_ms, double against_ms)
{
    const double at_ms[] = {times_ms[ROUND_TRIPS / 2], times_ms[P99(ROUND_TRIPS)]};
    const double targets[] = {1 / 1.5, 1 / 2.5};
    for (int i = 0; i < 2; i++) {
        struct bench_row row = {.shape = "1 x 1000", .accumulator = "f64", .milliseconds = at_ms[i]};
        snprintf(row.name, sizeof row.name, "%s %s", name, i ? "p99" : "p50");
        if (against_ms > 0) {
            snprintf(row.against, sizeof row.against, "socket ping + kernel on mapped memory");
            row.share = against_ms / at_ms[i];
            row.target = targets[i];
        }
        bench_add(table, &row);
    }
}

static int measure_round_trip(struct bench_table *table, const char *socket, double kernel_ms)
{
    double times_ms[ROUND_TRIPS];
    if (time_pings(times_ms))
        return 1;
    double ping_ms = times_ms[ROUND_TRIPS / 2];
    add_times(table, "socket ping", times_ms, 0);
    if (time_round_trips(socket, times_ms))
        return 1;
    add_times(table, "small job", times_ms, kernel_ms > 0 ? ping_ms + kernel_ms : 0);
    return 0;
}

/* A process's jobs, always as many under way. */
static int pipeline(const char *socket, int start_fd)
{
    struct scand *daemon;
    struct scand_buffer *buffer;
    struct scand_job *jobs[PIPELINED] = {0};
    char byte;
    if (client_open(socket, PIPELINED * SAMPLES * sizeof(float), &daemon, &buffer) || read(start_fd, &byte, 1) != 0)
        return 1;
    for (int i = 0; i < CLIENT_JOBS + PIPELINED; i++) {
        struct scand_job **job = &jobs[i % PIPELINED];
        struct scand_scan scan = small_scan(buffer, 1, SAMPLES, (uint64_t)(i % PIPELINED));
        if (*job && scand_wait(*job, -1, NULL))
            return fail("pipelined job", scand_message(daemon));
        scand_job_release(*job);
        *job = NULL;
        if (i < CLIENT_JOBS && scand_submit(daemon, &scan, job))
            return fail("pipelined job", scand_message(daemon));
    }
    scand_disconnect(daemon);
    return 0;
}

static int wait_all(const pid_t *children, int count)
{
    int failed = 0;
    for (int i = 0; i < count; i++) {
        int status = 1;
        waitpid(children[i], &status, 0);
        failed |= status;
    }
    return failed;
}

static int measure_pipelines(struct bench_table *table, const char *socket)
{
    struct bench_row row = {.name = "small job of eight pipelining clients", .shape = "1 x 1000", .accumulator = "f64"};
    pid_t children[CLIENTS];
    int start[2];
    if (pipe(start))
        return fail("pipelines", "no pipe");
    for (int i = 0; i < CLIENTS; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            close(start[1]);
            _exit(pipeline(socket, start[0]));
        }
    }
    close(start[0]);
    usleep(300000); /* until all are connected */
    double begin_ms = bench_now_ms();
    close(start[1]);
    int r = wait_all(children, CLIENTS);
    row.milliseconds = (bench_now_ms() - begin_ms) / ((double)CLIENTS * CLIENT_JOBS);
    row.target = 0.004;
    bench_add(table, &row);
    return r;
}

/* Says on the pipe when the first job is done; ends with its last one, or when nobody listens any more. */
static int stream(const char *socket, int ready_fd)
{
    struct scand *daemon;
    struct scand_buffer *buffer;
    if (client_open(socket, STREAM_ROWS * UINT64_C(10000) * sizeof(float), &daemon, &buffer))
        return 1;
    struct scand_scan scan = small_scan(buffer, STREAM_ROWS, 10000, 0);
    struct scand_job *jobs[2] = {0};
    for (int i = 0; i < STREAM_JOBS; i++) {
        if (scand_submit(daemon, &scan, &jobs[i % 2]))
            return fail("large job", scand_message(daemon));
        struct scand_job **before = &jobs[(i + 1) % 2];
        if (*before && scand_wait(*before, -1, NULL))
            return fail("large job", scand_message(daemon));
        scand_job_release(*before);
        *before = NULL;
        if (i == 1 && write(ready_fd, "", 1) != 1)
            return 1;
    }
    return 0;
}

static int measure_beside_stream(struct bench_table *table, const char *socket)
{
    double times_ms[ROUND_TRIPS];
    int ready[2];
    char byte;
    if (pipe(ready))
        return fail("stream", "no pipe");
    pid_t child = fork();
    if (child == 0)
        _exit(stream(socket, ready[1]));
    close(ready[1]);
    int r = read(ready[0], &byte, 1) != 1 || time_round_trips(socket, times_ms);
    r |= wait_all(&child, 1);
    close(ready[0]);
    struct bench_row row = {.name = "small job beside a stream p50",
                            .shape = "1 x 1000",
                            .accumulator = "f64",
                            .milliseconds = times_ms[ROUND_TRIPS / 2]};
    if (r)
        return r;
    bench_add(table, &row);
    snprintf(row.name, sizeof row.name, "small job beside a stream p99");
    row.milliseconds = times_ms[P99(ROUND_TRIPS)];
    row.target = 3 * CHUNK_MS;
    bench_add(table, &row);
    return 0;
}

int bench_small(struct bench_table *table, const char *socket, double kernel_ms)
{
    int r = measure_round_trip(table, socket, kernel_ms);
    if (!r)
        r = measure_pipelines(table, socket);
    return r ? r : measure_beside_stream(table, socket);
}

/*
 * Small jobs through a daemon: the time until one of 1,000 samples comes back, also without a daemon, and how many of
 * them eight processes get done that do not wait for each, sums and maxima, with a message for each and with one for
 * several; and the same where the programs compute small jobs themselves.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <scand/scand.h>

#include "tests/bench/bench.h"
#include "tests/bench/client.h"
#include "tests/bench/team.h"

#define WARM_UP     200
#define CLIENTS     8
#define PIPELINED   64 /* jobs that a client has under way */
#define BATCH       32 /* jobs in one message where clients send several */
#define CLIENT_JOBS 200000
#define PING_BYTES  64
#define P99(COUNT)  ((COUNT)*99 / 100)

static int echo(int fd)
{
    char bytes[PING_BYTES];
    while (read(fd, bytes, sizeof bytes) == sizeof bytes)
        if (write(fd, bytes, sizeof bytes) != sizeof bytes)
            return 1;
    return 0;
}

/* Measures messages between two processes that do nothing else. */
static int time_pings(double times_ms[ROUND_TRIPS])
{
    char bytes[PING_BYTES] = {0};
    int fds[2], status = 1;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
        return client_fail("ping", "no sockets");
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
    return status ? client_fail("ping", "the other process ended") : 0;
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
    if (client_round_trips(socket, times_ms))
        return 1;
    add_times(table, "small job", times_ms, kernel_ms > 0 ? ping_ms + kernel_ms : 0);
    if (client_round_trips(NULL, times_ms))
        return 1;
    add_times(table, "without a daemon", times_ms, 0);
    return 0;
}

/* Clients that each keep several small jobs on their way. */
struct pipelined {
    const char *socket;
    enum scand_operator op;
};

/* A process's jobs, always as many under way. */
static int pipeline(struct team *team, int index, const void *argument)
{
    const struct pipelined *pipelined = argument;
    struct scand *daemon;
    struct scand_buffer *buffer;
    struct scand_job *jobs[PIPELINED] = {0};
    (void)index;
    if (client_open(pipelined->socket, client_bytes(PIPELINED, SMALL_SAMPLES), &daemon, &buffer) || team_meet(team))
        return 1;
    for (int i = 0; i < CLIENT_JOBS + PIPELINED; i++) {
        struct scand_job **job = &jobs[i % PIPELINED];
        struct scand_scan scan = client_scan(buffer, 1, SMALL_SAMPLES, (uint64_t)(i % PIPELINED));
        scan.op = pipelined->op;
        if (*job && scand_wait(*job, -1, NULL))
            return client_fail("pipelined job", scand_message(daemon));
        scand_job_release(*job);
        *job = NULL;
        if (i < CLIENT_JOBS && scand_submit(daemon, &scan, job))
            return client_fail("pipelined job", scand_message(daemon));
    }
    scand_disconnect(daemon);
    return 0;
}

static int wait_all(struct scand_job *jobs[BATCH])
{
    int status = 0;
    for (int i = 0; i < BATCH; i++) {
        if (jobs[i] && !status)
            status = scand_wait(jobs[i], -1, NULL);
        scand_job_release(jobs[i]);
        jobs[i] = NULL;
    }
    return status;
}

/* Submits jobs with a message for every BATCH of them: one batch is filled up while the others are under way. */
static int pipeline_batches(struct team *team, int index, const void *argument)
{
    const struct pipelined *pipelined = argument;
    struct scand *daemon;
    struct scand_buffer *buffer;
    struct scand_job *jobs[PIPELINED / BATCH][BATCH] = {0};
    struct scand_scan scans[PIPELINED];
    (void)index;
    if (client_open(pipelined->socket, client_bytes(PIPELINED, SMALL_SAMPLES), &daemon, &buffer) || team_meet(team))
        return 1;
    for (int i = 0; i < PIPELINED; i++)
        scans[i] = client_scan(buffer, 1, SMALL_SAMPLES, (uint64_t)i);
    for (int i = 0; i < (CLIENT_JOBS + PIPELINED) / BATCH; i++) {
        const int part = i % (PIPELINED / BATCH);
        if (wait_all(jobs[part]))
            return client_fail("batch of jobs", scand_message(daemon));
        if (i < CLIENT_JOBS / BATCH && scand_submit_many(daemon, &scans[part * BATCH], BATCH, jobs[part]))
            return client_fail("batch of jobs", scand_message(daemon));
    }
    scand_disconnect(daemon);
    return 0;
}

static int measure_pipelines(struct bench_table *table, struct pipelined pipelined, const char *name, team_work *work)
{
    struct bench_row row = {.shape = "1 x 1000", .accumulator = "f64"};
    struct team team;
    snprintf(row.name, sizeof row.name, "%s", name);
    int r = team_start(&team, CLIENTS, work, &pipelined);
    double begin_ms = bench_now_ms();
    r |= team_end(&team);
    row.milliseconds = (bench_now_ms() - begin_ms) / ((double)CLIENTS * CLIENT_JOBS) * 1000;
    row.target = 4; /* 250,000 a second */
    bench_add(table, &row);
    return r;
}

/* Clients of a daemon that compute small jobs themselves. */
static int measure_here(struct bench_table *table, const char *socket)
{
    const struct pipelined sums = {socket, SCAND_OPERATOR_SUM};
    double times_ms[ROUND_TRIPS];
    setenv("SCAND_SMALL_JOBS", "here", 1);
    int r = client_round_trips(socket, times_ms);
    if (!r)
        add_times(table, "small job in the program", times_ms, 0);
    if (!r)
        r = measure_pipelines(table, sums, "1000 of 8 clients in their programs", pipeline);
    if (!r)
        r = measure_pipelines(table, sums, "the same in batches of 32", pipeline_batches);
    unsetenv("SCAND_SMALL_JOBS");
    return r;
}

int bench_small(struct bench_table *table, const struct service *service)
{
    const char *socket = service->server.socket;
    const struct pipelined sums = {socket, SCAND_OPERATOR_SUM}, maxima = {socket, SCAND_OPERATOR_MAX};
    double kernel_ms = 0;
    int r = 0;
#ifdef SCAND_HAVE_CUDA
    if (service_has_gpu(service))
        r = bench_mapped_kernel(&kernel_ms);
#endif
    if (!r)
        r = measure_round_trip(table, socket, kernel_ms);
    if (!r)
        r = measure_pipelines(table, sums, "1000 small jobs of 8 pipelining clients", pipeline);
    if (!r)
        r = measure_pipelines(table, maxima, "the same of maxima", pipeline);
    if (!r)
        r = measure_pipelines(table, sums, "sums in batches of 32", pipeline_batches);
    return r ? r : measure_here(table, socket);
}

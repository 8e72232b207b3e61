/*
 * Programs that have just started: one, to its first result; and four at once, each with ten jobs of 100 MB, from the
 * first one's start to the last one's end, beside the same programs with CUDA contexts and pinned memory of their own
 * (fresh_own.cu).
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <scand/scand.h>

#include "tests/bench/bench.h"
#include "tests/bench/client.h"
#include "tests/bench/programs.h"

#define RUNS     15
#define PROGRAMS 4
#define OWN_RUNS 5 /* each takes a second or more */

/*
 * The programs.
 */

/* Opens memory without filling it, since that is not the daemon's work. */
static int fresh_open(const char *socket, struct scand **daemon, struct scand_buffer **buffer)
{
    if (scand_connect(socket, "scand-bench", daemon))
        return client_fail("fresh client", scand_connect_message());
    if (scand_buffer_create(*daemon, SCAND_PLACE_HOST, client_bytes(FRESH_ROWS, MAIN_SAMPLES), buffer))
        return client_fail("fresh client", scand_message(*daemon));
    return 0;
}

int fresh_client(int argc, char **argv)
{
    struct scand *daemon;
    struct scand_buffer *buffer;
    if (argc != 3 || fresh_open(argv[1], &daemon, &buffer))
        return 1;
    double fill_ms = bench_now_ms();
    client_fill(scand_buffer_data(buffer), FRESH_ROWS * MAIN_SAMPLES);
    fill_ms = bench_now_ms() - fill_ms;
    struct scand_scan scan = client_scan(buffer, FRESH_ROWS, MAIN_SAMPLES, 0);
    if (client_run(daemon, &scan))
        return 1;
    printf("%.3f\n", bench_now_ms() - atof(argv[2]) - fill_ms);
    scand_disconnect(daemon);
    return 0;
}

int fresh_jobs(int argc, char **argv)
{
    struct scand *daemon;
    struct scand_buffer *buffer;
    if (argc != 2 || fresh_open(argv[1], &daemon, &buffer))
        return 1;
    float *row = scand_buffer_data(buffer);
    struct scand_scan scan = client_scan(buffer, FRESH_ROWS, MAIN_SAMPLES, 0);
    client_fill(row, MAIN_SAMPLES);
    for (int i = 0; i < FRESH_JOBS; i++) {
        if (client_run(daemon, &scan))
            return 1;
        if (i == 0 && !client_row_is_scanned(row))
            return client_fail("fresh client", "the first row is not what it should be");
    }
    scand_disconnect(daemon);
    return 0;
}

/*
 * The programs' times.
 */

static int time_first_result(const char *self, const char *socket, double *median_ms)
{
    double times_ms[RUNS];
    for (int i = 0; i < RUNS; i++) {
        char command[1024];
        snprintf(command, sizeof command, "'%s' --fresh-client '%s' %.3f", self, socket, bench_now_ms());
        FILE *pipe = popen(command, "r");
        int got = pipe ? fscanf(pipe, "%lf", &times_ms[i]) : 0;
        if (!pipe || pclose(pipe) || got != 1)
            return client_fail("fresh client", "it gave no time");
    }
    *median_ms = bench_median(times_ms, RUNS);
    return 0;
}

/* Runs programs, not by fork, which would first copy the page tables of a program that has used CUDA. */
static int run_programs(const char *const *arguments, double *milliseconds)
{
    pid_t children[PROGRAMS];
    int count = 0, failed = 0;
    double begin_ms = bench_now_ms();
    for (; count < PROGRAMS && !failed; count += !failed)
        failed = posix_spawn(&children[count], arguments[0], NULL, NULL, (char **)arguments, environ);
    if (failed)
        client_fail("fresh programs", strerror(failed));
    for (int i = 0; i < count; i++) {
        int status = 1;
        waitpid(children[i], &status, 0);
        failed |= status;
    }
    *milliseconds = bench_now_ms() - begin_ms;
    return failed ? client_fail("fresh programs", "one of them failed") : 0;
}

static int time_programs(const char *const *arguments, int runs, double *median_ms)
{
    double times_ms[RUNS];
    int r = 0;
    for (int i = 0; i < runs && !r; i++)
        r = run_programs(arguments, &times_ms[i]);
    *median_ms = r ? 0 : bench_median(times_ms, (size_t)runs);
    return r;
}

static int measure_first_result(struct bench_table *table, const char *self, const char *socket, bool gpu)
{
    struct bench_row row = {.name = "fresh client to its first result",
                            .shape = "2500 x 10000",
                            .accumulator = "f64",
                            .target = gpu ? 15 : 0};
    if (time_first_result(self, socket, &row.milliseconds))
        return 1;
    bench_add(table, &row);
    return 0;
}

static int measure_programs(struct bench_table *table, const char *self, const char *socket, bool gpu)
{
    struct bench_row jobs = {.name = "ten jobs from each of four programs",
                             .shape = "2500 x 10000",
                             .accumulator = "f64"},
                     own = {.name = "the same with own CUDA contexts", .shape = "2500 x 10000", .accumulator = "f64"};
    if (time_programs((const char *const[]){self, "--fresh-jobs", socket, NULL}, RUNS, &jobs.milliseconds) ||
        (gpu && time_programs((const char *const[]){self, "--fresh-own", NULL}, OWN_RUNS, &own.milliseconds)))
        return 1;
    if (gpu) {
        bench_add(table, &own);
        snprintf(jobs.against, sizeof jobs.against, "%s", own.name);
        jobs.share = own.milliseconds / jobs.milliseconds;
        jobs.target = 10;
    }
    bench_add(table, &jobs);
    return 0;
}

int bench_fresh(struct bench_table *table, const struct service *service)
{
    const char *socket = service->server.socket;
    const bool gpu = service_has_gpu(service);
    int r = measure_first_result(table, service->self, socket, gpu);
    return r ? r : measure_programs(table, service->self, socket, gpu);
}

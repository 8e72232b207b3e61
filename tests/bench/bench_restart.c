/*
 * scand-bench restart [--device=DEVICE] [--pool=SIZE] [--kills=N]: how soon a daemon is back. Under load its worker is
 * killed N times (50 unless said otherwise); each time a client waits for the result of a job that it submits at once.
 * The load is another session with jobs under way, which must all be right as well, or be said to be lost. Prints the
 * time from the kill to the result, and what the daemon says of its own: how long nobody served, and how long the new
 * worker took to begin, in which a GPU's context is made.
 */
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <scand/scand.h>

#include "tests/bench/bench.h"
#include "tests/bench/client.h"
#include "tests/server.h"

#define ROWS      100
#define SAMPLES   10000
#define UNDER_WAY 8
#define KILLS_MAX 10000
#define SERVED_US 2100000 /* service before a kill: with less a worker counts as failing, which pauses follow */

struct restart {
    const char *device, *pool;
    size_t kills;
    struct server server;
    struct scand *daemon;
    struct scand_buffer *input, *output;
    uint64_t outage_us; /* total outage at the last kill */
    double result_ms[KILLS_MAX], outage_ms[KILLS_MAX], start_ms[KILLS_MAX];
    atomic_bool ending;
    unsigned long loads_done, loads_lost;
};

static int session_open(const struct restart *self, struct scand **daemon, struct scand_buffer **input,
                        struct scand_buffer **output)
{
    const uint64_t bytes = client_bytes(ROWS, SAMPLES);
    if (client_open(self->server.socket, bytes, daemon, input))
        return 1;
    if (scand_buffer_create(*daemon, SCAND_PLACE_HOST, bytes, output))
        return client_fail("buffer", scand_message(*daemon));
    client_fill(scand_buffer_data(*input), ROWS * SAMPLES);
    return 0;
}

static struct scand_scan scan_of(struct scand_buffer *input, struct scand_buffer *output)
{
    struct scand_scan scan = client_scan(input, ROWS, SAMPLES, 0);
    scan.output.buffer = output;
    return scan;
}

/* A client's thread. Jobs read one buffer and write another, so they are safe to repeat. */
static void *load(void *argument)
{
    struct restart *self = argument;
    struct scand *daemon;
    struct scand_buffer *input, *output;
    struct scand_job *jobs[UNDER_WAY] = {NULL};
    if (session_open(self, &daemon, &input, &output))
        return argument;
    const struct scand_scan scan = scan_of(input, output);
    for (unsigned i = 0; !self->ending; i++) {
        struct scand_job **job = &jobs[i % UNDER_WAY];
        if (*job && scand_wait(*job, -1, NULL))
            self->loads_lost++;
        else if (*job)
            self->loads_done++;
        scand_job_release(*job);
        *job = NULL;
        if (scand_submit(daemon, &scan, job))
            usleep(10000);
    }
    scand_disconnect(daemon);
    return NULL;
}

static int read_outage(struct restart *self, size_t i)
{
    struct scand_counter counters[128];
    size_t count;
    uint64_t outage_us = 0;
    if (scand_stats(self->daemon, counters, sizeof counters[0], 128, &count))
        return client_fail("stats", scand_message(self->daemon));
    for (size_t k = 0; k < count; k++)
        if (strcmp(counters[k].name, "outage_us") == 0)
            outage_us = counters[k].value;
        else if (strcmp(counters[k].name, "start_us") == 0)
            self->start_ms[i] = (double)counters[k].value / 1e3;
    self->outage_ms[i] = (double)(outage_us - self->outage_us) / 1e3;
    self->outage_us = outage_us;
    return 0;
}

static int kill_once(struct restart *self, size_t i)
{
    const struct scand_scan scan = scan_of(self->input, self->output);
    const pid_t worker = server_worker(&self->server);
    if (!worker)
        return client_fail("the daemon's worker", "it is not in /proc");
    usleep(SERVED_US + (useconds_t)(random() % 500000));
    if (client_run(self->daemon, &scan))
        return 1;
    kill(worker, SIGKILL);
    const double begin_ms = bench_now_ms();
    if (client_run(self->daemon, &scan))
        return 1;
    self->result_ms[i] = bench_now_ms() - begin_ms;
    if (!client_row_is_scanned(scand_buffer_data(self->output)))
        return client_fail("restart", "the first row is not what it should be");
    memset(scand_buffer_data(self->output), 0, client_bytes(ROWS, SAMPLES));
    return read_outage(self, i);
}

static void print(const char *what, double *times_ms, size_t count)
{
    const double median_ms = bench_median(times_ms, count); /* sorted by it */
    printf("%-44s %8.1f %8.1f %8.1f\n", what, times_ms[0], median_ms, times_ms[count - 1]);
}

static int run(struct restart *self)
{
    pthread_t loader;
    void *failed = NULL;
    if (session_open(self, &self->daemon, &self->input, &self->output))
        return 1;
    if (pthread_create(&loader, NULL, load, self))
        return client_fail("load", "no thread");
    int r = 0;
    for (size_t i = 0; i < self->kills && !r; i++)
        r = kill_once(self, i);
    self->ending = true;
    pthread_join(loader, &failed);
    scand_disconnect(self->daemon);
    if (r || failed)
        return 1;
    printf("%zu kills of the worker, --device %s --pool %s; jobs of %d x %d beside it: %lu done, %lu lost\n",
           self->kills, self->device, self->pool, ROWS, SAMPLES, self->loads_done, self->loads_lost);
    printf("%-44s %8s %8s %8s\n", "ms", "least", "median", "worst");
    print("from the kill to the next result", self->result_ms, self->kills);
    print("nobody served, by the daemon's count", self->outage_ms, self->kills);
    print("a worker's start, a GPU's context included", self->start_ms, self->kills);
    return 0;
}

static int parse(struct restart *self, int argc, char **argv)
{
    static const struct option names[] = {{"device", required_argument, NULL, 'd'},
                                          {"pool", required_argument, NULL, 'p'},
                                          {"kills", required_argument, NULL, 'k'},
                                          {0}};
    int option;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1)
        if (option == 'd')
            self->device = optarg;
        else if (option == 'p')
            self->pool = optarg;
        else if (option == 'k')
            self->kills = strtoul(optarg, NULL, 10);
        else
            return 64;
    return optind == argc && self->kills >= 1 && self->kills <= KILLS_MAX ? 0 : 64;
}

int bench_restart(const char *scand, int argc, char **argv)
{
    static struct restart self = {.device = "auto", .pool = "1G", .kills = 50};
    int r = parse(&self, argc, argv);
    if (r)
        return r;
    const char *const arguments[] = {"--device", self.device, "--pool", self.pool, NULL};
    r = server_start(&self.server, scand, arguments);
    if (r)
        return r;
    r = run(&self);
    server_stop(&self.server);
    return r;
}

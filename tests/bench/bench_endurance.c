/*
 * scand-bench endurance [OPTION]...: does a daemon hold more after a long life than after a short one,
 * and does it sleep when it has nothing to do? Connections one after another, many at once, and small jobs, a tenth of
 * them as a warm-up first; then nothing. Prints what the worker holds after each part; exit code 1 when something grew
 * each time it was tried.
 *
 *   --connections=N --at-once=N --jobs=N --idle=SECONDS     how much: 10000, 1000, 1000000, 10
 *   --part=connections|crowd|jobs|idle                      only that
 *   --device=NAME                                           the daemon's: cpu
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "protocol/limits.h"
#include "protocol/own_descriptors.h"
#include "tests/bench/bench.h"
#include "tests/bench/visits.h"
#include "tests/bench/vitals.h"
#include "tests/server.h"

#define PIPELINES     8
#define PIPELINE_JOBS 64 /* jobs of each client under way at a time */
#define SAMPLES       1000
#define CROWD_JOBS    4 /* jobs of each of many connections under way at a time */
#define BLOCKER_JOBS  32
#define SETTLE_MS     10000
#define LOOK_MS       100

/*
 * Descriptors and threads must be as many as before. The heap may be larger by some pages, or by 250 KiB that malloc
 * keeps or gives back, as it is cut up differently at another moment; but 10,000 connections that leave the smallest
 * piece of malloc (32 bytes) behind are 312 KiB, and 1,000,000 jobs 30 MiB. Mappings come and go with large pieces of
 * the heap; 10,000 connections import memory 900 times.
 */
#define GROWTH_KIB_MAX 300
#define MAPPINGS_MAX   16
/* Repetitions of a part, each against what was held before it: the heap may reach its largest size at any unlucky
 * moment, but a leak grows every time. */
#define ROUNDS 3
/* The limits of an idle daemon, whose watchdog works: in any two seconds the loop shows twice that it turns, and the
 * supervisor looks twice. */
#define WAKES_PER_S_MAX  2.0
#define BUSY_PERCENT_MAX 0.1
#define IDLE_LOOKS       3

struct endurance {
    uint64_t connections, crowd, jobs, idle_s; /* amount of each part */
    const char *part;                          /* NULL: all */
    const char *device;
    struct server server;
    pid_t worker;
    struct vitals before; /* the next part */
    bool grew;
};

/*
 * Connections one after another.
 */

static int run_connections(struct endurance *self, uint64_t count)
{
    int r = 0;
    for (uint64_t i = 0; i < count && !r; i++)
        r = visit(self->server.socket, i);
    return r;
}

/*
 * Connections at once: each has imported memory and jobs; half of them leave before those are done. Urgent jobs of
 * another connection keep the device until all of theirs wait: so the daemon has as much to hold every time, and needs
 * no more than at the first.
 */

struct member {
    struct scand *daemon;
    struct scand_buffer *buffer;
    struct scand_job *jobs[CROWD_JOBS];
};

static int member_join(struct member *member, const char *socket, int memory)
{
    const uint64_t bytes = SAMPLES * sizeof(float);
    if (scand_connect(socket, "endurance", &member->daemon))
        return visit_fail("one of many connections", scand_connect_message());
    int status = scand_buffer_import(member->daemon, memory, bytes, &member->buffer);
    return status ? visit_fail("one of many connections", scand_message(member->daemon)) : 0;
}

static int member_submit(struct member *member)
{
    const struct scand_scan scan = visit_scan(member->buffer, 0, 1, SAMPLES);
    int status = SCAND_OK;
    for (int i = 0; i < CROWD_JOBS && !status; i++)
        status = scand_submit(member->daemon, &scan, &member->jobs[i]);
    return status ? visit_fail("jobs of many connections", scand_message(member->daemon)) : 0;
}

/* The daemon answers in order: it has taken what was submitted before. */
static int member_ping(struct member *member)
{
    uint64_t microseconds;
    int status = scand_ping(member->daemon, &microseconds);
    return status ? visit_fail("ping of many connections", scand_message(member->daemon)) : 0;
}

static int member_wait(struct member *member)
{
    int status = SCAND_OK;
    for (int i = 0; i < CROWD_JOBS && !status; i++)
        status = scand_wait(member->jobs[i], -1, NULL);
    return status ? visit_fail("jobs of many connections", scand_message(member->daemon)) : 0;
}

static int for_members(struct endurance *self, struct member *members, uint64_t step, int (*act)(struct member *member))
{
    int r = 0;
    for (uint64_t i = 0; i < self->crowd && !r; i += step)
        r = act(&members[i]);
    return r;
}

/* One after another: each needs what the one before has left. They end with the connection. */
static int blocker_begin(const char *socket, struct scand **out)
{
    const uint64_t rows = MIB(64) / (SAMPLES * sizeof(float));
    struct scand_buffer *buffer;
    struct scand_job *job;
    if (scand_connect(socket, "endurance", out))
        return visit_fail("urgent jobs", scand_connect_message());
    int status = scand_buffer_create_wait(*out, MIB(64), SCAND_WAIT_MS_MAX, &buffer);
    struct scand_scan scan = status ? (struct scand_scan){0} : visit_scan(buffer, 0, rows, SAMPLES);
    scan.priority = SCAND_PRIORITY_HIGH;
    for (int i = 0; i < BLOCKER_JOBS && !status; i++)
        status = scand_submit(*out, &scan, &job);
    return status ? visit_fail("urgent jobs", scand_message(*out)) : 0;
}

static int crowd_meet(struct endurance *self, struct member *members, int memory)
{
    struct scand *blocker = NULL;
    int r = 0;
    for (uint64_t i = 0; i < self->crowd && !r; i++)
        r = member_join(&members[i], self->server.socket, memory);
    if (!r)
        r = blocker_begin(self->server.socket, &blocker);
    if (!r)
        r = for_members(self, members, 1, member_submit);
    if (!r)
        r = for_members(self, members, 1, member_ping);
    scand_disconnect(blocker);
    if (!r)
        r = for_members(self, members, 2, member_wait);
    for (uint64_t i = 0; i < self->crowd; i++)
        scand_disconnect(members[i].daemon);
    return r;
}

/* Runs crowds until `count` connections have been there. */
static int run_crowd(struct endurance *self, uint64_t count)
{
    int memory = memfd_create("endurance", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int r = memory < 0 || ftruncate(memory, SAMPLES * sizeof(float)) ? visit_fail("memory", strerror(errno)) : 0;
    for (uint64_t met = 0; met < count && !r; met += self->crowd) {
        struct member *members = calloc(self->crowd, sizeof *members);
        r = members ? crowd_meet(self, members, memory) : visit_fail("memory", strerror(errno));
        free(members);
    }
    close(memory);
    return r;
}

/*
 * Small jobs of several clients, many under way at a time.
 */

struct pipeline {
    pthread_t thread;
    const char *socket;
    uint64_t jobs;
    int result;
};

/* Each job has a row of its own, so that none waits for another. */
static int pipeline_run(struct scand *daemon, struct scand_buffer *buffer, uint64_t count)
{
    struct scand_job *jobs[PIPELINE_JOBS] = {NULL};
    int status = SCAND_OK;
    for (uint64_t i = 0; i < count + PIPELINE_JOBS && !status; i++) {
        struct scand_job **job = &jobs[i % PIPELINE_JOBS];
        const struct scand_scan scan = visit_scan(buffer, i % PIPELINE_JOBS * SAMPLES * sizeof(float), 1, SAMPLES);
        if (*job)
            status = scand_wait(*job, -1, NULL);
        scand_job_release(*job);
        *job = NULL;
        if (!status && i < count)
            status = scand_submit(daemon, &scan, job);
    }
    return status;
}

static void *pipeline_thread(void *argument)
{
    struct pipeline *self = argument;
    struct scand *daemon;
    struct scand_buffer *buffer;
    self->result = 1;
    if (scand_connect(self->socket, "endurance", &daemon)) {
        visit_fail("small jobs", scand_connect_message());
        return NULL;
    }
    int status = scand_buffer_create_wait(daemon, PIPELINE_JOBS * SAMPLES * sizeof(float), SCAND_WAIT_MS_MAX, &buffer);
    if (!status)
        status = pipeline_run(daemon, buffer, self->jobs);
    self->result = status ? visit_fail("small jobs", scand_message(daemon)) : 0;
    scand_disconnect(daemon);
    return NULL;
}

static int run_jobs(struct endurance *self, uint64_t count)
{
    struct pipeline pipelines[PIPELINES];
    int started = 0, r = 0;
    for (; started < PIPELINES && !r; started++) {
        struct pipeline *pipeline = &pipelines[started];
        *pipeline = (struct pipeline){.socket = self->server.socket, .jobs = count / PIPELINES};
        r = pthread_create(&pipeline->thread, NULL, pipeline_thread, pipeline);
        started -= r != 0;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(pipelines[i].thread, NULL);
        r |= pipelines[i].result;
    }
    return r;
}

/*
 * The worker's memory, descriptors, maps and threads.
 */

/* True when the worker holds more than before; threads are compared only if `before` has any. */
static bool has_grown(const struct vitals *now, const struct vitals *before)
{
    return now->descriptors != before->descriptors || (before->threads && now->threads != before->threads) ||
           now->mappings > before->mappings + MAPPINGS_MAX ||
           now->resident_kib > before->resident_kib + GROWTH_KIB_MAX ||
           now->anonymous_kib > before->anonymous_kib + GROWTH_KIB_MAX ||
           now->data_kib > before->data_kib + GROWTH_KIB_MAX;
}

static void print_vitals(const char *what, uint64_t count, const struct vitals *vitals, bool grew)
{
    printf("%-28s %9" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %9" PRIu64 " %12" PRIu64 " %8" PRIu64 "%s\n",
           what, count, vitals->resident_kib, vitals->anonymous_kib, vitals->data_kib, vitals->mappings,
           vitals->descriptors, vitals->threads, grew ? "  grew" : "");
    fflush(stdout);
}

/* Waits up to SETTLE_MS, since the worker still takes down what the last client held. */
static int settle(struct endurance *self, struct vitals *now, const struct vitals *before, bool *grew)
{
    *grew = true;
    for (int waited_ms = 0; *grew && waited_ms < SETTLE_MS; waited_ms += LOOK_MS) {
        usleep(LOOK_MS * 1000);
        if (!vitals_read(self->worker, now))
            return visit_fail("the worker is gone, or /proc does not tell", strerror(errno));
        *grew = has_grown(now, before);
    }
    return 0;
}

/*
 * The parts.
 */

static const struct part {
    const char *word, *name;
    int (*run)(struct endurance *self, uint64_t count);
    size_t count; /* offset of the amount in struct endurance */
} parts[] = {
    {"connections", "connections, one by one", run_connections, offsetof(struct endurance, connections)},
    {"crowd", "connections, many at once", run_crowd, offsetof(struct endurance, connections)},
    {"jobs", "jobs of 1,000 samples", run_jobs, offsetof(struct endurance, jobs)},
};
#define PART_COUNT (sizeof(parts) / sizeof(parts[0]))

static bool is_wanted(const struct endurance *self, const char *word)
{
    return !self->part || strcmp(self->part, word) == 0;
}

static uint64_t part_count(const struct endurance *self, const struct part *part)
{
    return *(const uint64_t *)((const char *)self + part->count);
}

/* A tenth of all, so that whatever is made on first use is there, and the heap as large as it has to be. */
static int warm_up(struct endurance *self)
{
    struct vitals start, within = {UINT64_MAX / 2, UINT64_MAX / 2, UINT64_MAX / 2, UINT64_MAX / 2, 0, 0};
    int r = vitals_read(self->worker, &start) ? 0 : visit_fail("/proc of the worker", strerror(errno));
    if (!r)
        print_vitals("start", 0, &start, false);
    for (size_t i = 0; i < PART_COUNT && !r; i++)
        if (is_wanted(self, parts[i].word))
            r = parts[i].run(self, part_count(self, &parts[i]) / 10);
    within.descriptors = start.descriptors;
    if (!r)
        r = settle(self, &self->before, &within, &self->grew);
    if (!r)
        print_vitals("warm", 0, &self->before, self->grew);
    return r;
}

/* Runs a part until the worker holds no more after it than before. */
static int run_part(struct endurance *self, const struct part *part)
{
    uint64_t count = part_count(self, part);
    bool grew = true;
    int r = 0;
    for (int round = 0; round < ROUNDS && grew && !r; round++) {
        struct vitals now;
        r = part->run(self, count);
        if (!r)
            r = settle(self, &now, &self->before, &grew);
        if (!r)
            print_vitals(part->name, count, &now, grew);
        if (!r && grew)
            self->before = now;
    }
    self->grew |= grew;
    return r;
}

static int run_parts(struct endurance *self)
{
    int r = 0;
    for (size_t i = 0; i < PART_COUNT && !r; i++)
        if (is_wanted(self, parts[i].word))
            r = run_part(self, &parts[i]);
    return r;
}

/* Looks again where the daemon was restless: parts before leave work for a moment later, as lines of the log that were
 * held back, which wakes it once. */
static int run_idle(struct endurance *self)
{
    bool restless = true;
    for (int look = 0; look < IDLE_LOOKS && restless; look++) {
        struct activity idle;
        if (!daemon_watch(&self->server, (unsigned)self->idle_s, &idle))
            return visit_fail("/proc of the daemon", strerror(errno));
        double wakes_per_s = (double)idle.wakes / (double)self->idle_s;
        double busy_percent = (double)idle.busy_ns / (double)self->idle_s / 1e7;
        restless = wakes_per_s > WAKES_PER_S_MAX || busy_percent > BUSY_PERCENT_MAX;
        printf("idle for %" PRIu64 " s: %" PRIu64 " wake-ups (%.2f a second), %.4f %% of a core%s", self->idle_s,
               idle.wakes, wakes_per_s, busy_percent, restless ? "  too much" : "");
        if (idle.driver_wakes)
            printf("; besides, %" PRIu64 " wake-ups of the CUDA driver's thread", idle.driver_wakes);
        printf("\n");
    }
    self->grew |= restless;
    return 0;
}

static int run_all(struct endurance *self)
{
    printf("%-28s %9s %10s %10s %10s %9s %12s %8s\n", "after", "count", "RSS KiB", "heap KiB", "VmData KiB", "mappings",
           "descriptors", "threads");
    int r = warm_up(self);
    if (!r)
        r = run_parts(self);
    if (!r && is_wanted(self, "idle"))
        r = run_idle(self);
    return r ? r : self->grew;
}

/* Starts a daemon, and waits until it takes connections and its worker can be seen. */
static int start(struct endurance *self, const char *scand)
{
    const char *const arguments[] = {"--device", self->device,   "--pool", "256M", "--quota-connections",
                                     "1024",     "--quota-jobs", "4096",   NULL};
    struct scand *daemon;
    if (server_start(&self->server, scand, arguments))
        return 1;
    if (scand_connect(self->server.socket, "endurance", &daemon))
        return visit_fail("connect", scand_connect_message());
    scand_disconnect(daemon);
    usleep(LOOK_MS * 1000);
    self->worker = server_worker(&self->server);
    return self->worker ? 0 : visit_fail("the daemon's worker", "it is not in /proc");
}

static bool parse_count(const char *text, uint64_t most, uint64_t *out)
{
    char *end;
    *out = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && *end == '\0' && *out > 0 && *out <= most)
        return true;
    fprintf(stderr, "scand-bench endurance: \"%s\"; allowed: 1 to %" PRIu64 "\n", text, most);
    return false;
}

static bool parse_part(const char *text, const char **out)
{
    bool known = strcmp(text, "idle") == 0;
    for (size_t i = 0; i < PART_COUNT; i++)
        known |= strcmp(text, parts[i].word) == 0;
    *out = text;
    if (!known)
        fprintf(stderr, "scand-bench endurance: no part \"%s\"; there are connections, crowd, jobs and idle\n", text);
    return known;
}

static bool parse(struct endurance *self, int argc, char **argv)
{
    static const struct option names[] = {{"connections", required_argument, NULL, 'c'},
                                          {"at-once", required_argument, NULL, 'a'},
                                          {"jobs", required_argument, NULL, 'j'},
                                          {"idle", required_argument, NULL, 'i'},
                                          {"part", required_argument, NULL, 'p'},
                                          {"device", required_argument, NULL, 'd'},
                                          {0}};
    bool good = true;
    int option;
    while (good && (option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (option == 'c')
            good = parse_count(optarg, 1000000000, &self->connections);
        else if (option == 'a')
            good = parse_count(optarg, (LIMIT_JOBS - BLOCKER_JOBS) / CROWD_JOBS, &self->crowd);
        else if (option == 'j')
            good = parse_count(optarg, 1000000000000, &self->jobs);
        else if (option == 'i')
            good = parse_count(optarg, 3600, &self->idle_s);
        else if (option == 'd')
            self->device = optarg;
        else
            good = option == 'p' && parse_part(optarg, &self->part);
    }
    return good && optind == argc;
}

int bench_endurance(const char *scand, int argc, char **argv)
{
    struct endurance self = {.connections = 10000, .crowd = 1000, .jobs = 1000000, .idle_s = 10, .device = "cpu"};
    if (!parse(&self, argc, argv))
        return 64;
    own_descriptors_raise_limit(); /* each of many connections at once needs two */
    int r = start(&self, scand);
    if (!r)
        r = run_all(&self);
    server_stop(&self.server);
    return r;
}

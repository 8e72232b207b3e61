/*
 * The processor beside the GPU (--device auto,cpu) against the GPU alone: the main job while nobody else wants the
 * processor, the same while every core is busy, and what that costs who keeps them busy; and small jobs.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/client.h"

#define CORES_MAX 256

/* Programs that each keep a core busy, and count what they get done. */
struct crowd {
    struct counts {
        atomic_uint_fast64_t done[CORES_MAX];
    } * counts; /* shared with the crowd */
    pid_t members[CORES_MAX];
    long count;
    double begin_ms;
    uint64_t begin_done;
};

static uint64_t crowd_done(const struct crowd *crowd)
{
    uint64_t sum = 0;
    for (long i = 0; i < crowd->count; i++)
        sum += atomic_load(&crowd->counts->done[i]);
    return sum;
}

static void work(atomic_uint_fast64_t *done)
{
    for (volatile uint64_t steps = 0;; steps = 0) {
        while (steps < 10000)
            steps = steps + 1;
        atomic_fetch_add(done, 1);
    }
}

static int crowd_start(struct crowd *crowd)
{
    *crowd = (struct crowd){.count = sysconf(_SC_NPROCESSORS_ONLN)};
    crowd->count = crowd->count < CORES_MAX ? crowd->count : CORES_MAX;
    crowd->counts = mmap(NULL, sizeof *crowd->counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (crowd->counts == MAP_FAILED)
        return client_fail("busy cores", "no memory");
    for (long i = 0; i < crowd->count; i++)
        if ((crowd->members[i] = fork()) == 0)
            work(&crowd->counts->done[i]);
    return 0;
}

static void crowd_begin(struct crowd *crowd)
{
    crowd->begin_ms = bench_now_ms();
    crowd->begin_done = crowd_done(crowd);
}

/* Returns the work done in a millisecond, since the begin. */
static double crowd_rate(const struct crowd *crowd)
{
    return (double)(crowd_done(crowd) - crowd->begin_done) / (bench_now_ms() - crowd->begin_ms);
}

static void crowd_stop(struct crowd *crowd)
{
    for (long i = 0; i < crowd->count; i++)
        if (crowd->members[i] > 0)
            kill(crowd->members[i], SIGKILL);
    for (long i = 0; i < crowd->count; i++)
        waitpid(crowd->members[i], NULL, 0);
    munmap(crowd->counts, sizeof *crowd->counts);
}

static void add(struct bench_table *table, const char *name, double milliseconds, double share, double target)
{
    struct bench_row row = {
        .shape = "10000 x 10000", .accumulator = "f64", .milliseconds = milliseconds, .share = share, .target = target};
    snprintf(row.name, sizeof row.name, "%s", name);
    if (share > 0)
        snprintf(row.against, sizeof row.against, "the device alone");
    bench_add(table, &row);
}

/* The main job by either daemon. */
static int measure_idle(struct bench_table *table, const char *alone, const char *helped)
{
    double alone_ms, helped_ms;
    if (bench_time_main_job(alone, &alone_ms) || bench_time_main_job(helped, &helped_ms))
        return 1;
    add(table, "main job by the device alone", alone_ms, 0, 0);
    add(table, "main job with the processor", helped_ms, alone_ms / helped_ms, 1.35);
    return 0;
}

static int measure_busy(struct bench_table *table, const char *alone, const char *helped)
{
    struct crowd crowd;
    double times_ms[2], rates[2];
    const char *const sockets[] = {alone, helped};
    int r = crowd_start(&crowd);
    for (int i = 0; i < 2 && !r; i++) {
        crowd_begin(&crowd);
        r = bench_time_main_job(sockets[i], &times_ms[i]);
        rates[i] = crowd_rate(&crowd);
    }
    crowd_stop(&crowd);
    if (r)
        return r;
    add(table, "the same while every core is busy", times_ms[1], times_ms[0] / times_ms[1], 0.97);
    add(table, "what keeps them busy meanwhile", 0, rates[1] / rates[0], 0.97);
    return 0;
}

int bench_helped(struct bench_table *table, const struct service *service)
{
    struct service helped = *service;
    const char *const arguments[] = {"--device", service_has_gpu(service) ? "auto,cpu" : "cpu,cpu", "--pool", "2G",
                                     NULL};
    if (server_start(&helped.server, service->scand, arguments))
        return 1;
    const char *alone = service->server.socket;
    int r = measure_idle(table, alone, helped.server.socket);
    r = r ? r : measure_busy(table, alone, helped.server.socket);
    r = r ? r : bench_small(table, &helped);
    server_stop(&helped.server);
    return r;
}

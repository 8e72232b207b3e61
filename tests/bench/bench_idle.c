/* The work of a daemon of which nobody wants anything. */
#include <stdio.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/client.h"
#include "tests/bench/vitals.h"

#define SETTLE_S 1 /* after the last client: memory of other users' is replaced on a helper thread */
#define IDLE_S   10

static void add_wakes(struct bench_table *table, const char *name, uint64_t wakes, double target)
{
    struct bench_row row = {.against = "one second", .target = target};
    snprintf(row.name, sizeof row.name, "%s", name);
    row.milliseconds = IDLE_S * 1e3 / (double)(wakes ? wakes : 1);
    row.share = row.milliseconds / 1e3;
    bench_add(table, &row);
}

int bench_idle(struct bench_table *table, const struct service *service)
{
    struct activity idle;
    sleep(SETTLE_S);
    if (!daemon_watch(&service->server, IDLE_S, &idle))
        return client_fail("idle daemon", "/proc does not tell what it does");
    struct bench_row busy = {.name = "idle daemon: core time in 10 s", .target = IDLE_S};
    busy.milliseconds = (double)idle.busy_ns / 1e6;
    bench_add(table, &busy);
    add_wakes(table, "idle daemon: between two wake-ups", idle.wakes, 1);
    if (idle.driver_wakes)
        add_wakes(table, "the CUDA driver's thread likewise", idle.driver_wakes, 0);
    return 0;
}

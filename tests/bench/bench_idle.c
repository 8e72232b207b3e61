/* What a daemon does while nobody wants anything of it. */
#include <stdio.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/client.h"
#include "tests/bench/server.h"
#include "tests/bench/vitals.h"

#define SETTLE_S 1 /* after the last client: memory of other users' is replaced on a helper thread */
#define IDLE_S   10

int bench_idle(struct bench_table *table, const struct server *server)
{
    struct activity idle;
    sleep(SETTLE_S);
    if (!daemon_watch(server->pid, IDLE_S, &idle))
        return client_fail("idle daemon", "/proc does not tell what it does");
    struct bench_row busy = {.name = "idle daemon: core time in 10 s", .target = IDLE_S},
                     wakes = {.name = "idle daemon: between two wake-ups", .against = "one second", .target = 1};
    busy.milliseconds = (double)idle.busy_ns / 1e6;
    wakes.milliseconds = IDLE_S * 1e3 / (double)(idle.wakes ? idle.wakes : 1);
    wakes.share = wakes.milliseconds / 1e3;
    bench_add(table, &busy);
    bench_add(table, &wakes);
    return 0;
}

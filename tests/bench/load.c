/*
 * scand-bench --load SOCKET SECONDS: keeps a daemon busy, for people to look at it. Four clients with jobs of their own
 * kind each, always a few under way; where this is root, two of them are another user's.
 */
#include <stdlib.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/client.h"
#include "tests/bench/programs.h"
#include "tests/bench/team.h"

#define UNDER_WAY  4
#define OTHER_USER 65534

static const struct load {
    uint64_t rows, samples;
    bool other_user;
} loads[] = {{10000, 10000, false}, {1, 1000, false}, {2500, 10000, true}, {100, 1000000, true}};
#define LOAD_COUNT (sizeof(loads) / sizeof(loads[0]))

struct order {
    const char *socket;
    double until_ms;
};

static int run_load(struct team *team, int index, const void *argument)
{
    const struct order *order = argument;
    const struct load *load = &loads[index];
    struct scand_job *jobs[UNDER_WAY] = {0};
    struct scand *daemon;
    struct scand_buffer *buffer;
    if ((load->other_user && geteuid() == 0 && client_become(OTHER_USER)) ||
        client_open(order->socket, client_bytes(load->rows, load->samples), &daemon, &buffer) || team_meet(team))
        return 1;
    const struct scand_scan scan = client_scan(buffer, load->rows, load->samples, 0);
    for (unsigned i = 0; bench_now_ms() < order->until_ms; i++) {
        struct scand_job **job = &jobs[i % UNDER_WAY];
        if (*job && scand_wait(*job, -1, NULL))
            return client_fail("load", scand_message(daemon));
        scand_job_release(*job);
        if (scand_submit(daemon, &scan, job))
            return client_fail("load", scand_message(daemon));
    }
    return 0;
}

int load_clients(int argc, char **argv)
{
    struct team team;
    if (argc != 3)
        return 64;
    const struct order order = {argv[1], bench_now_ms() + atof(argv[2]) * 1e3};
    int r = team_start(&team, LOAD_COUNT, run_load, &order);
    r |= team_end(&team);
    return r;
}

/*
 * Four clients at once, each with the main job again and again: what they get together, against what can be copied, and
 * how much less one of them gets than another. They are one user's, and, where this is root, four users'.
 */
#include <stdio.h>
#include <unistd.h>

#include <scand/scand.h>

#include "tests/bench/bench.h"
#include "tests/bench/client.h"
#include "tests/bench/team.h"

#define CLIENTS    4
#define FIRST_USER 65531
#define FOR_MS     1500

struct shares {
    const char *socket;
    bool users; /* one for each client */
};

/* Gives the jobs a millisecond that it had, up to the end of its last one. */
static int member(struct team *team, int index, const void *argument)
{
    const struct shares *self = argument;
    struct scand *daemon;
    struct scand_buffer *buffer;
    if ((self->users && client_become(FIRST_USER + (unsigned)index)) ||
        client_open(self->socket, client_bytes(MAIN_ROWS, MAIN_SAMPLES), &daemon, &buffer))
        return 1;
    const struct scand_scan scan = client_scan(buffer, MAIN_ROWS, MAIN_SAMPLES, 0);
    if (client_run(daemon, &scan) || team_meet(team))
        return 1;
    double begin_ms = bench_now_ms(), passed_ms = 0;
    int jobs = 0, r = 0;
    for (; passed_ms < FOR_MS && !r; jobs++) {
        r = client_run(daemon, &scan);
        passed_ms = bench_now_ms() - begin_ms;
    }
    team_give(team, index, jobs / passed_ms);
    scand_disconnect(daemon);
    return r;
}

static void add_rows(struct bench_table *table, const char *name, const double rates[CLIENTS],
                     double duplex_gb_per_second)
{
    double least = rates[0], most = rates[0], all = rates[0];
    for (int i = 1; i < CLIENTS; i++) {
        least = rates[i] < least ? rates[i] : least;
        most = rates[i] > most ? rates[i] : most;
        all += rates[i];
    }
    struct bench_row total = {.shape = "10000 x 10000", .accumulator = "f64", .milliseconds = 1 / all};
    struct bench_row spread = {.shape = "10000 x 10000",
                               .accumulator = "f64",
                               .milliseconds = 1 / least,
                               .against = "the client that got most",
                               .share = least / most,
                               .target = 0.95};
    snprintf(total.name, sizeof total.name, "job of four clients of %s", name);
    snprintf(spread.name, sizeof spread.name, "the client of those that got least");
    if (duplex_gb_per_second > 0) {
        snprintf(total.against, sizeof total.against, "copy of 400 MB in both directions");
        total.share = (double)client_bytes(MAIN_ROWS, MAIN_SAMPLES) * all / 1e6 / duplex_gb_per_second;
        total.target = 0.95;
    }
    bench_add(table, &total);
    bench_add(table, &spread);
}

static int measure(struct bench_table *table, const char *name, const struct shares *self, double duplex_gb_per_second)
{
    struct team team;
    int r = team_start(&team, CLIENTS, member, self);
    r |= team_end(&team);
    if (!r)
        add_rows(table, name, team.results, duplex_gb_per_second);
    return r;
}

int bench_shares(struct bench_table *table, const struct service *service)
{
    int r = measure(table, "one user", &(struct shares){service->server.socket, false}, service->duplex_gb_per_second);
    if (r || geteuid() != 0) {
        fprintf(stderr, "%s", r ? "" : "scand-bench: not root, so no clients of four users were measured\n");
        return r;
    }
    return measure(table, "four users", &(struct shares){service->server.socket, true}, service->duplex_gb_per_second);
}

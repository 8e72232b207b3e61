/*
 * The time of a small job while another process streams 40 GB of large ones: a process of the same user, and, where
 * this is root and so can be others, one of another.
 */
#include <stdio.h>
#include <unistd.h>

#include <scand/scand.h>

#include "tests/bench/bench.h"
#include "tests/bench/client.h"
#include "tests/bench/team.h"

#define STREAM_JOBS 100  /* 40 GB */
#define CHUNK_MS    0.33 /* time of 8 MiB, each way; p99 may take three times as long */
#define OTHER_USER  65534

struct stream {
    const char *socket;
    unsigned user;
};

/* Always two jobs under way. */
static int stream(struct team *team, int index, const void *argument)
{
    const struct stream *self = argument;
    struct scand_job *jobs[2] = {0};
    struct scand *daemon;
    struct scand_buffer *buffer;
    (void)index;
    if ((self->user != getuid() && client_become(self->user)) ||
        client_open(self->socket, client_bytes(MAIN_ROWS, MAIN_SAMPLES), &daemon, &buffer))
        return 1;
    struct scand_scan scan = client_scan(buffer, MAIN_ROWS, MAIN_SAMPLES, 0);
    for (int i = 0; i < STREAM_JOBS; i++) {
        struct scand_job **before = &jobs[(i + 1) % 2];
        if (scand_submit(daemon, &scan, &jobs[i % 2]) || (*before && scand_wait(*before, -1, NULL)))
            return client_fail("large job", scand_message(daemon));
        scand_job_release(*before);
        *before = NULL;
        if (i == 1 && team_meet(team))
            return 1;
    }
    return 0;
}

static int measure(struct bench_table *table, const char *name, const struct stream *self)
{
    struct team team;
    double times_ms[ROUND_TRIPS];
    int r = team_start(&team, 1, stream, self);
    team_begin(&team);
    if (!r)
        r = client_round_trips(self->socket, times_ms);
    r |= team_end(&team);
    const double at_ms[] = {times_ms[ROUND_TRIPS / 2], times_ms[ROUND_TRIPS * 99 / 100]};
    for (int i = 0; i < 2 && !r; i++) {
        struct bench_row row = {
            .shape = "1 x 1000", .accumulator = "f64", .milliseconds = at_ms[i], .target = i ? 3 * CHUNK_MS : 0};
        snprintf(row.name, sizeof row.name, "small job beside %s p%d", name, i ? 99 : 50);
        bench_add(table, &row);
    }
    return r;
}

int bench_beside(struct bench_table *table, const struct service *service)
{
    int r = measure(table, "a stream", &(struct stream){service->server.socket, getuid()});
    if (r || geteuid() != 0) {
        fprintf(stderr, "%s", r ? "" : "scand-bench: not root, so no stream of another user's was measured\n");
        return r;
    }
    return measure(table, "another's stream", &(struct stream){service->server.socket, OTHER_USER});
}

/* The daemon as a service: a process of its own, and clients that are others. Each group of figures has a file. */
#include <string.h>

#include <scand/scand.h>

#include "tests/bench/bench.h"
#include "tests/bench/client.h"

static const struct part {
    const char *word;
    bool gpu; /* runs only with a GPU */
    int (*measure)(struct bench_table *table, const struct service *service);
} parts[] = {
    {"main-job", false, bench_main_job}, {"fresh", false, bench_fresh},
#ifdef SCAND_HAVE_CUDA
    {"memfd", true, bench_memfd},        {"staged", true, bench_staged},  {"imported", true, bench_imported},
#endif
    {"small", false, bench_small},       {"beside", false, bench_beside}, {"shares", false, bench_shares},
    {"idle", false, bench_idle},         {"helped", false, bench_helped},
};
#define PART_COUNT (sizeof(parts) / sizeof(parts[0]))

static bool is_part(const char *word)
{
    for (size_t i = 0; i < PART_COUNT; i++)
        if (strcmp(word, parts[i].word) == 0)
            return true;
    fprintf(stderr, "scand-bench: service has no part \"%s\"; there are:", word);
    for (size_t i = 0; i < PART_COUNT; i++)
        fprintf(stderr, " %s", parts[i].word);
    fprintf(stderr, "\n");
    return false;
}

/* Waits until the daemon's pool is filled and it answers. */
static int await(const struct service *service)
{
    struct scand *daemon;
    if (scand_connect(service->server.socket, "scand-bench", &daemon))
        return client_fail("connect", scand_connect_message());
    scand_disconnect(daemon);
    return 0;
}

int bench_service(struct bench_table *table, const char *part, const char *scand, const char *self,
                  double duplex_gb_per_second)
{
    struct service service = {.scand = scand, .self = self, .duplex_gb_per_second = duplex_gb_per_second};
    if (part && !is_part(part))
        return 64;
    if (server_start(&service.server, scand, (const char *const[]){"--device", "auto", "--pool", "2G", NULL}))
        return 1;
    int r = await(&service);
    for (size_t i = 0; i < PART_COUNT && !r; i++)
        if ((!part || strcmp(part, parts[i].word) == 0) && (!parts[i].gpu || service_has_gpu(&service)))
            r = parts[i].measure(table, &service);
    server_stop(&service.server);
    return r;
}

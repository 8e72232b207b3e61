/* The daemon as a service: a process of its own, and clients that are others. Each group of figures has a file. */
#include <stdbool.h>
#include <stdio.h>

#include "tests/bench/bench.h"
#include "tests/server.h"

int bench_service(struct bench_table *table, const char *scand, const char *self, double duplex_gb_per_second)
{
    struct server server;
    const bool gpu = duplex_gb_per_second > 0;
    double kernel_ms = 0;
    int r = server_start(&server, scand, (const char *const[]){"--device", "auto", "--pool", "2G", NULL});
    if (r)
        return r;
    r = bench_main_job(table, &server, duplex_gb_per_second);
    if (!r)
        r = bench_fresh(table, &server, self, gpu);
#ifdef SCAND_HAVE_CUDA
    if (!r && gpu)
        r = bench_memfd(table, &server, duplex_gb_per_second);
    if (!r && gpu)
        r = bench_imported(table, server.socket);
    if (!r && gpu)
        r = bench_mapped_kernel(&kernel_ms);
#endif
    if (!r)
        r = bench_small(table, server.socket, kernel_ms);
    if (!r)
        r = bench_beside(table, &server);
    if (!r)
        r = bench_shares(table, &server, duplex_gb_per_second);
    if (!r)
        r = bench_idle(table, &server);
    server_stop(&server);
    return r;
}

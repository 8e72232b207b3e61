/*
 * The main job on a client's own memory, imported as memfds: warm, and the first one on memory that the daemon has yet
 * to pin, beside how long pinning it takes.
 */
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <scand/scand.h>

#include "protocol/memory.h"
#include "tests/bench/bench.h"
#include "tests/bench/client.h"
#include "tests/bench/job.h"

#define BYTES      client_bytes(MAIN_ROWS, MAIN_SAMPLES)
#define RUNS       9
#define BEYOND_MS  0.5 /* time by which the first job may exceed pinning and a warm job */
#define JOB_TARGET 0.95
#define SETTLE_US  100000 /* time in which released memory is unpinned */

/* A memfd of this process, with all its pages. */
struct own_memory {
    int fd;
    void *base;
};

static int own_memory_init(struct own_memory *memory, uint64_t size_bytes)
{
    *memory = (struct own_memory){.fd = memory_create(size_bytes)};
    if (memory->fd < 0)
        return memory->fd;
    int r = memory_map(&memory->fd, 1, size_bytes, size_bytes, &memory->base);
    if (r)
        close(memory->fd);
    else
        memset(memory->base, 0, size_bytes);
    return r;
}

static void own_memory_finish(struct own_memory *memory, uint64_t size_bytes)
{
    memory_unmap(memory->base, size_bytes);
    close(memory->fd);
}

static int time_warm(struct scand *daemon, const struct own_memory *input, const struct own_memory *output,
                     double *median_ms)
{
    struct scand_buffer *from, *to;
    if (scand_buffer_import(daemon, input->fd, BYTES, &from))
        return client_fail("import", scand_message(daemon));
    if (scand_buffer_import(daemon, output->fd, BYTES, &to))
        return client_fail("import", scand_message(daemon));
    struct scand_scan scan = client_scan(from, MAIN_ROWS, MAIN_SAMPLES, 0);
    scan.output.buffer = to;
    int r = client_time(daemon, &scan, median_ms);
    scand_buffer_release(from);
    scand_buffer_release(to);
    return r;
}

/* Measures from the import to the first job's end: in place, so that there is one memory to pin. */
static int time_first(struct scand *daemon, const struct own_memory *memory, double *median_ms)
{
    double times_ms[RUNS];
    for (int i = 0; i < RUNS; i++) {
        struct scand_buffer *buffer;
        double begin_ms = bench_now_ms();
        if (scand_buffer_import(daemon, memory->fd, BYTES, &buffer))
            return client_fail("import", scand_message(daemon));
        struct scand_scan scan = client_scan(buffer, MAIN_ROWS, MAIN_SAMPLES, 0);
        if (client_run(daemon, &scan))
            return 1;
        times_ms[i] = bench_now_ms() - begin_ms;
        scand_buffer_release(buffer);
        usleep(SETTLE_US);
    }
    *median_ms = bench_median(times_ms, RUNS);
    return 0;
}

/* Measures pinning with a mapping that is new each time. */
static int time_pinning(const struct own_memory *memory, double *median_ms)
{
    double times_ms[RUNS];
    int r = 0;
    for (int i = 0; i < RUNS && !r; i++) {
        void *base;
        r = memory_map(&memory->fd, 1, BYTES, BYTES, &base);
        if (r)
            break;
        double begin_ms = bench_now_ms();
        r = cudaHostRegister(base, BYTES, cudaHostRegisterPortable | cudaHostRegisterMapped);
        times_ms[i] = bench_now_ms() - begin_ms;
        if (!r)
            r = cudaHostUnregister(base);
        memory_unmap(base, BYTES);
    }
    *median_ms = r ? 0 : bench_median(times_ms, RUNS);
    return job_fail("pinning", r);
}

static struct bench_row main_row(const char *name)
{
    struct bench_row row = {
        .shape = "10000 x 10000", .accumulator = "f64", .against = "copy of 400 MB in both directions"};
    snprintf(row.name, sizeof row.name, "%s", name);
    return row;
}

static double share_of(double duplex_gb_per_second, double milliseconds)
{
    return (double)BYTES / milliseconds / 1e6 / duplex_gb_per_second;
}

static int measure_pinned(struct bench_table *table, struct scand *daemon, const struct own_memory memory[2],
                          double duplex_gb_per_second)
{
    struct bench_row warm = main_row("warm main job on an imported memfd"), pinning = {.name = "pinning 400 MB"},
                     first = {
                         .name = "import and first main job in place", .shape = "10000 x 10000", .accumulator = "f64"};
    if (time_warm(daemon, &memory[0], &memory[1], &warm.milliseconds) ||
        time_pinning(&memory[0], &pinning.milliseconds) || time_first(daemon, &memory[1], &first.milliseconds))
        return 1;
    warm.share = share_of(duplex_gb_per_second, warm.milliseconds);
    warm.target = JOB_TARGET;
    first.target = pinning.milliseconds + warm.milliseconds + BEYOND_MS;
    bench_add(table, &warm);
    bench_add(table, &pinning);
    bench_add(table, &first);
    return 0;
}

static int measure_staged(struct bench_table *table, struct scand *daemon, const struct own_memory memory[2],
                          double duplex_gb_per_second)
{
    struct bench_row row = main_row("warm main job on a memfd not pinned");
    if (time_warm(daemon, &memory[0], &memory[1], &row.milliseconds))
        return 1;
    row.share = share_of(duplex_gb_per_second, row.milliseconds);
    bench_add(table, &row);
    return 0;
}

typedef int measure_function(struct bench_table *table, struct scand *daemon, const struct own_memory memory[2],
                             double duplex_gb_per_second);

/* Measures with memory for input and output, and a connection. */
static int measure_with_memory(struct bench_table *table, const char *socket, measure_function *measure_it,
                               double duplex_gb_per_second)
{
    struct own_memory memory[2];
    struct scand *daemon;
    if (scand_connect(socket, "scand-bench", &daemon))
        return client_fail("connect", scand_connect_message());
    int made = 0, r = 0;
    while (made < 2 && !r)
        if ((r = own_memory_init(&memory[made], BYTES)) == 0)
            made++;
    if (r) {
        job_fail("memory of its own", r);
    } else {
        client_fill(memory[0].base, MAIN_ROWS * MAIN_SAMPLES);
        r = measure_it(table, daemon, memory, duplex_gb_per_second);
    }
    while (made > 0)
        own_memory_finish(&memory[--made], BYTES);
    scand_disconnect(daemon);
    return r;
}

int bench_memfd(struct bench_table *table, const struct service *service)
{
    return measure_with_memory(table, service->server.socket, measure_pinned, service->duplex_gb_per_second);
}

int bench_staged(struct bench_table *table, const struct service *service)
{
    struct server server;
    const char *const arguments[] = {"--device", "cuda", "--pool", "32M", "--quota-pinned-memory", "0", NULL};
    if (server_start(&server, service->scand, arguments))
        return 1;
    int r = measure_with_memory(table, server.socket, measure_staged, service->duplex_gb_per_second);
    server_stop(&server);
    return r;
}

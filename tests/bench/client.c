#include "tests/bench/client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/bench.h"

#define WARM_UP 200 /* round trips */
#define RUNS    15

int client_fail(const char *what, const char *message)
{
    fprintf(stderr, "scand-bench: %s: %s\n", what, message);
    return 1;
}

static int connect_to(const char *socket, struct scand **daemon)
{
    struct scand_options *options;
    int status = scand_options_create(&options);
    if (status)
        return status;
    status = scand_options_set(options, "local", socket ? SCAND_LOCAL_NEVER : SCAND_LOCAL_ALWAYS);
    if (!status)
        status = scand_connect_with(options, socket, "scand-bench", daemon);
    scand_options_destroy(options);
    return status;
}

int client_open(const char *socket, uint64_t size_bytes, struct scand **daemon, struct scand_buffer **buffer)
{
    if (connect_to(socket, daemon))
        return client_fail("connect", scand_connect_message());
    if (scand_buffer_create(*daemon, SCAND_PLACE_HOST, size_bytes, buffer))
        return client_fail("buffer", scand_message(*daemon));
    memset(scand_buffer_data(*buffer), 0, size_bytes);
    return 0;
}

struct scand_scan client_scan(struct scand_buffer *buffer, uint64_t rows, uint64_t samples, uint64_t first)
{
    struct scand_tensor tensor = {.buffer = buffer,
                                  .offset = client_bytes(first, samples),
                                  .dtype = SCAND_DTYPE_F32,
                                  .rank = 2,
                                  .shape = {rows, samples}};
    scand_tensor_pack(&tensor);
    return (struct scand_scan){.input = tensor,
                               .output = tensor,
                               .axis = 1,
                               .pass_count = 2,
                               .passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD},
                               .accumulator = SCAND_ACCUMULATOR_F64};
}

struct scan_rows client_rows(void *memory, uint64_t rows, uint64_t samples)
{
    const int64_t stride = (int64_t)client_bytes(1, samples);
    return (struct scan_rows){.rule = {.passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD},
                                       .pass_count = 2,
                                       .accumulator = SCAND_ACCUMULATOR_F64},
                              .length = samples,
                              .row_count = rows,
                              .outer_rank = 1,
                              .outer_shape = {rows},
                              .input_outer_strides = {stride},
                              .output_outer_strides = {stride},
                              .input_stride = sizeof(float),
                              .output_stride = sizeof(float),
                              .input = memory,
                              .output = memory};
}

int client_run(struct scand *daemon, const struct scand_scan *scan)
{
    struct scand_job *job;
    int status = scand_submit(daemon, scan, &job);
    if (status)
        return client_fail("submit", scand_message(daemon));
    status = scand_wait(job, -1, NULL);
    scand_job_release(job);
    return status ? client_fail("wait", scand_message(daemon)) : 0;
}

int client_time(struct scand *daemon, const struct scand_scan *scan, double *median_ms)
{
    double times_ms[RUNS];
    int r = 0;
    for (int i = -2; i < RUNS && !r; i++) {
        double begin_ms = bench_now_ms();
        r = client_run(daemon, scan);
        if (i >= 0)
            times_ms[i] = bench_now_ms() - begin_ms;
    }
    *median_ms = r ? 0 : bench_median(times_ms, RUNS);
    return r;
}

int client_round_trips(const char *socket, double times_ms[ROUND_TRIPS])
{
    struct scand *daemon;
    struct scand_buffer *buffer;
    if (client_open(socket, client_bytes(1, SMALL_SAMPLES), &daemon, &buffer))
        return 1;
    struct scand_scan scan = client_scan(buffer, 1, SMALL_SAMPLES, 0);
    int r = 0;
    for (int i = -WARM_UP; i < ROUND_TRIPS && !r; i++) {
        double begin_ms = bench_now_ms();
        r = client_run(daemon, &scan);
        if (i >= 0)
            times_ms[i] = bench_now_ms() - begin_ms;
    }
    scand_disconnect(daemon);
    bench_median(times_ms, ROUND_TRIPS);
    return r;
}

void client_fill(float *x, size_t count)
{
    uint32_t state = 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)state * 0x1p-31f;
    }
}

bool client_row_is_scanned(const float *row)
{
    static float expected[MAIN_SAMPLES];
    client_fill(expected, MAIN_SAMPLES);
    const struct scan_rows rows = client_rows(expected, 1, MAIN_SAMPLES);
    return scan_reference(&rows, 0, 1) == 0 && memcmp(expected, row, sizeof expected) == 0;
}

int client_become(unsigned user)
{
    return setresuid(user, user, user) ? client_fail("another user", strerror(errno)) : 0;
}

/* The variant that runs on the CPU, on one thread and in host memory, against a copy of the same bytes by that thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/tutorial/scan/variants.h"
#include "tests/bench/exact.h"
#include "tests/bench/variants.h"

#define SAMPLES      10000000
#define BYTES        (SAMPLES * sizeof(float))
#define RUNS         21
#define CHECKED_ROWS 20
#define COPY_NAME    "copy of 40 MB by one host thread"

/* Rows of floats as an exact_source, from the first one on. */
struct host_source {
    struct exact_source source;
    const float *rows;
    uint64_t length;
    double *decoded;
};

static const double *host_read(struct exact_source *source, uint64_t row, uint64_t first, uint64_t count)
{
    struct host_source *host = (struct host_source *)source;
    for (uint64_t i = 0; i < count; i++)
        host->decoded[i] = (double)host->rows[row * host->length + first + i];
    return host->decoded;
}

struct serial {
    float *input, *output, *again;
    double *decoded[2];
};

static int serial_init(struct serial *serial, uint64_t length)
{
    uint32_t random = 1;
    *serial = (struct serial){malloc(BYTES), malloc(BYTES), malloc(BYTES), {NULL}};
    for (int i = 0; i < 2; i++)
        serial->decoded[i] = malloc(length * sizeof(double));
    if (!serial->input || !serial->output || !serial->again || !serial->decoded[0] || !serial->decoded[1])
        return -ENOMEM;
    for (uint64_t i = 0; i < SAMPLES; i++) {
        random = random * 1664525u + 1013904223u;
        serial->input[i] = (float)(int32_t)random * 0x1p-31f;
    }
    memset(serial->output, 0, BYTES);
    memset(serial->again, 0, BYTES);
    return 0;
}

static void serial_finish(struct serial *serial)
{
    free(serial->input);
    free(serial->output);
    free(serial->again);
    free(serial->decoded[0]);
    free(serial->decoded[1]);
}

static double copy_measure(const struct serial *serial)
{
    double times_ms[RUNS];
    for (int i = 0; i < RUNS; i++) {
        double begin_ms = bench_now_ms();
        memcpy(serial->output, serial->input, BYTES);
        times_ms[i] = bench_now_ms() - begin_ms;
    }
    return bench_median(times_ms, RUNS);
}

static int accuracy_find(const struct serial *serial, const struct variant_scan *scan, struct exact_result *exact)
{
    const struct scan_rule rule = {.passes = {scan->passes[0], scan->passes[1]}, .pass_count = scan->pass_count};
    struct host_source input = {{host_read}, serial->input, scan->length, serial->decoded[0]};
    struct host_source output = {{host_read}, serial->output, scan->length, serial->decoded[1]};
    const struct exact_sides sides = {&input.source, &output.source};
    return exact_compare(&rule, CHECKED_ROWS, scan->length, &sides, 1, exact);
}

static int serial_measure(struct serial *serial, struct variant_scan scan, struct bench_row *row)
{
    double times_ms[RUNS];
    struct exact_result exact = {0};
    for (int i = 0; i < RUNS; i++) {
        double begin_ms = bench_now_ms();
        scan.output = i % 2 ? serial->output : serial->again;
        variant_run_cpu(VARIANT_serial_cpu, &scan);
        times_ms[i] = bench_now_ms() - begin_ms;
    }
    row->milliseconds = bench_median(times_ms, RUNS);
    row->same = memcmp(serial->output, serial->again, BYTES) == 0 ? BENCH_SAME : BENCH_DIFFERENT;
    int error = accuracy_find(serial, &scan, &exact);
    row->checked = exact.checked;
    row->rounded = exact.rounded;
    row->worst_ulps = exact.worst_ulps;
    return error;
}

static int rows_measure(struct serial *serial, uint64_t length, struct bench_table *table)
{
    static const char *const words[] = {
        [SCAND_ACCUMULATOR_F32] = "f32", [SCAND_ACCUMULATOR_F64] = "f64", [SCAND_ACCUMULATOR_F2] = "f2"};
    struct variant_scan scan = {.input = serial->input,
                                .rows = SAMPLES / length,
                                .length = length,
                                .input_pitch = (int64_t)(length * sizeof(float)),
                                .output_pitch = (int64_t)(length * sizeof(float)),
                                .passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD},
                                .pass_count = 2};
    struct bench_row copy = {.name = COPY_NAME, .milliseconds = copy_measure(serial)};
    int error = 0;
    bench_add(table, &copy);
    for (int a = SCAND_ACCUMULATOR_F32; a <= SCAND_ACCUMULATOR_F2 && !error; a++) {
        struct bench_row row = {.name = "serial-cpu fb", .against = COPY_NAME};
        snprintf(row.shape, sizeof row.shape, "%llu x %llu", (unsigned long long)scan.rows, (unsigned long long)length);
        snprintf(row.accumulator, sizeof row.accumulator, "%s", words[a]);
        scan.accumulator = (enum scand_accumulator)a;
        error = serial_measure(serial, scan, &row);
        row.share = copy.milliseconds / row.milliseconds;
        if (!error)
            bench_add(table, &row);
    }
    return error;
}

int variant_serial_measure(uint64_t length, struct bench_table *table)
{
    struct serial serial;
    int error = serial_init(&serial, length);
    if (!error)
        error = rows_measure(&serial, length, table);
    serial_finish(&serial);
    if (error)
        fprintf(stderr, "scand-bench: serial-cpu: %s\n", strerror(-error));
    return error;
}

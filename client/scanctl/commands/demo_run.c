#include "client/scanctl/commands/demo_run.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "client/scanctl/commands/demo_gather.h"
#include "client/scanctl/commands/parallel_rows.h"
#include "client/scanctl/stream/remote.h"
#include "client/scanctl/ui/text.h"
#include "protocol/clock.h"

#define ARRAY_ALIGN 4096

enum { OPTION_TRACES = OPTION_OWN, OPTION_SAMPLES, OPTION_SEED };

struct demo_run {
    struct gather gather;
    struct scand *daemon;
    struct scand_buffer *input, *output; /* mostly the same buffer */
    uint64_t output_offset;
    struct scand_times times; /* times of the job that counts */
    uint64_t bytes;           /* bytes of the gather */
    uint64_t made_us, checked_us;
    const char *outcome;
};

const struct option_row demo_options[] = {
    {"traces", OPTION_TRACES, 0, "N", VALUE_FREE, "[10000]"},
    {"samples", OPTION_SAMPLES, 0, "N", VALUE_FREE, "per trace [10000]"},
    {"seed", OPTION_SEED, 0, "N", VALUE_FREE, "of the gather [1]"},
    LOCAL_OPTION,
    COMMON_OPTIONS,
    {0},
};

static int option_handle(void *context, int option, const char *argument, struct error *error)
{
    struct gather *gather = context;
    const char *name = option == OPTION_TRACES ? "traces" : option == OPTION_SAMPLES ? "samples" : "seed";
    uint64_t *number = option == OPTION_TRACES    ? &gather->traces
                       : option == OPTION_SAMPLES ? &gather->samples
                                                  : &gather->seed;
    const bool is_seed = option == OPTION_SEED;
    if (!number_parse(argument, is_seed ? 0 : 1, is_seed ? UINT64_MAX : INT32_MAX, number))
        return fail(error, EX_USAGE, "--%s is \"%s\"; it may be a whole number from %s", name, argument,
                    is_seed ? "0 on" : "1 to 2147483647");
    return 0;
}

static void fill_rows(void *context, uint64_t first, uint64_t count)
{
    const struct demo_run *run = context;
    float *data = scand_buffer_data(run->input);
    gather_fill(&run->gather, first, count, data + first * run->gather.samples);
}

/* Creates two buffers, for arrays that together exceed the limit of one buffer. */
static int demo_buffers_apart(struct demo_run *run)
{
    int status = scand_buffer_create(run->daemon, SCAND_PLACE_HOST, run->bytes, &run->input);
    run->output_offset = 0;
    return status ? status : scand_buffer_create(run->daemon, SCAND_PLACE_HOST, run->bytes, &run->output);
}

/* Creates one buffer for both arrays: two programs at once, each with one of its two buffers, would wait for each
 * other. */
static int demo_buffers(struct demo_run *run, struct error *error)
{
    run->output_offset = (run->bytes + ARRAY_ALIGN - 1) / ARRAY_ALIGN * ARRAY_ALIGN;
    int status = remote_buffer(run->daemon, run->output_offset + run->bytes, &run->input);
    run->output = run->input;
    if (status == SCAND_QUOTA)
        status = demo_buffers_apart(run);
    char bytes[GROUPED_BYTES], doing[80];
    snprintf(doing, sizeof(doing), "making room for two arrays of %s bytes", grouped(run->bytes, bytes));
    return status ? remote_error(run->daemon, status, doing, error) : 0;
}

static char *demo_output(const struct demo_run *run)
{
    return (char *)scand_buffer_data(run->output) + run->output_offset;
}

static int demo_scan(struct demo_run *run, struct error *error)
{
    struct scand_scan scan = {
        .pass_count = 2,
        .passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD},
        .accumulator = SCAND_ACCUMULATOR_F64,
    };
    struct scand_tensor tensor = {
        .dtype = SCAND_DTYPE_F32,
        .rank = 2,
        .shape = {run->gather.traces, run->gather.samples},
    };
    scand_tensor_pack(&tensor);
    struct submission submission = {.daemon = run->daemon,
                                    .compute = compute_scan(&scan),
                                    .operands = {.input = tensor, .output = tensor, .axis = 1}};
    submission.operands.input.buffer = run->input;
    submission.operands.output.buffer = run->output;
    submission.operands.output.offset = run->output_offset;
    int result = submission_start(&submission, error);
    return result ? result : submission_finish(&submission, &run->times, NULL, error);
}

/* Runs a warm-up job, then the one that counts, into memory that is wrong everywhere before. */
static int demo_jobs(struct demo_run *run, struct error *error)
{
    int result = demo_scan(run, error);
    if (result)
        return result;
    memset(demo_output(run), 0xff, run->bytes);
    return demo_scan(run, error);
}

static void report_text(const struct demo_run *run, const struct scand_device *device)
{
    char traces[GROUPED_BYTES], samples[GROUPED_BYTES], a[GROUPED_BYTES], b[GROUPED_BYTES], c[GROUPED_BYTES],
        d[GROUPED_BYTES];
    const struct scand_times *times = &run->times;
    printf("gather made in %s, result checked in %s\n", duration(run->made_us, a), duration(run->checked_us, b));
    printf("one warm-up job, not counted, then: queued %s, upload %s, kernel %s, download %s (they overlap)\n",
           duration(times->queued_us, a), duration(times->upload_us, b), duration(times->kernel_us, c),
           duration(times->download_us, d));
    printf("%s traces x %s samples on %s (%s): %s, %.1f GB/s, %s\n", grouped(run->gather.traces, traces),
           grouped(run->gather.samples, samples), device->name, device->backend, duration(times->total_us, a),
           gigabytes_per_second(2 * run->bytes, times->total_us), run->outcome);
}

static void report_json(const struct demo_run *run, const struct scand_device *device)
{
    struct json json = {.file = stdout};
    json_open(&json, NULL, '{');
    json_unsigned(&json, "traces", run->gather.traces);
    json_unsigned(&json, "samples", run->gather.samples);
    json_unsigned(&json, "seed", run->gather.seed);
    json_text(&json, "device", device->name);
    json_text(&json, "backend", device->backend);
    json_unsigned(&json, "warm_up_jobs", 1);
    json_unsigned(&json, "queued_us", run->times.queued_us);
    json_unsigned(&json, "upload_us", run->times.upload_us);
    json_unsigned(&json, "kernel_us", run->times.kernel_us);
    json_unsigned(&json, "download_us", run->times.download_us);
    json_unsigned(&json, "total_us", run->times.total_us);
    json_unsigned(&json, "input_bytes", run->bytes);
    json_unsigned(&json, "output_bytes", run->bytes);
    json_real(&json, "gb_per_s", gigabytes_per_second(2 * run->bytes, run->times.total_us));
    json_text(&json, "outcome", run->outcome);
    json_close(&json, '}');
    putchar('\n');
}

static int demo_run(struct demo_run *run, bool as_json, demo_check *check, struct error *error)
{
    uint64_t begun_us = clock_us();
    int result = demo_buffers(run, error);
    if (result)
        return result;
    parallel_rows(run->gather.traces, fill_rows, run);
    run->made_us = clock_us() - begun_us;
    result = demo_jobs(run, error);
    if (result)
        return result;
    struct demo demo = {
        .traces = run->gather.traces,
        .samples = run->gather.samples,
        .input = scand_buffer_data(run->input),
        .output = (const float *)demo_output(run),
    };
    begun_us = clock_us();
    result = check(&demo, error);
    run->checked_us = clock_us() - begun_us;
    if (result)
        return result;
    struct scand_device device = remote_device(run->daemon);
    (as_json ? report_json : report_text)(run, &device);
    return 0;
}

void demo_help(const char *name)
{
    printf("usage: %s [OPTION...]\n"
           "Makes a synthetic shot gather, scans it forward and backward with f64 accumulation, and checks the "
           "result.\n\n",
           name);
    options_print(demo_options, stdout);
}

int demo_command(int argc, char **argv, struct common_options *common, demo_check *check, const char *outcome,
                 struct error *error)
{
    struct demo_run run = {.gather = {.traces = 10000, .samples = 10000, .seed = 1}, .outcome = outcome};
    const struct option_set set = {.table = demo_options, .handler = option_handle, .context = &run.gather};
    int result = options_parse_all(argc, argv, &set, common, error);
    if (!result && common->help)
        return 0;
    if (!result)
        result = remote_open_computing(common->socket_path, common->local, &run.daemon, error);
    if (result)
        return result;
    run.bytes = run.gather.traces * run.gather.samples * sizeof(float); /* below 2^64: both are below 2^31 */
    result = demo_run(&run, common->json, check, error);
    scand_disconnect(run.daemon);
    return result;
}

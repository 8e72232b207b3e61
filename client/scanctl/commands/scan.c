#include <inttypes.h>

#include "client/scanctl/commands/commands.h"
#include "client/scanctl/commands/scan_options.h"
#include "client/scanctl/formats/coefficients.h"
#include "client/scanctl/formats/file.h"
#include "client/scanctl/stream/stream.h"
#include "client/scanctl/ui/clock.h"
#include "client/scanctl/ui/text.h"

/* What the parts of a run share. */
struct run {
    struct scan_options *options;
    struct scand_scan scan;
    struct array array;
    struct partition partition;
    struct ragged ragged; /* with --offsets */
    struct input input;
    struct output output;
    struct input coefficients_input; /* where there is a path of it */
    struct array coefficients;
    struct stream stream;
    uint64_t elapsed_us;
};

static void report_bytes(struct json *json, const struct run *run)
{
    uint64_t samples = run->partition.records * run->partition.inner * run->partition.length;
    uint64_t input_bytes = samples * array_sample_bytes(&run->array);
    uint64_t output_bytes = samples * scand_dtype_bytes(run->options->output_dtype);
    json_unsigned(json, "input_bytes", input_bytes);
    json_unsigned(json, "output_bytes", output_bytes);
    json_real(json, "seconds", (double)run->elapsed_us / 1e6);
    json_real(json, "gb_per_s", gigabytes_per_second(input_bytes + output_bytes, run->elapsed_us));
}

static void report(struct run *run, const struct scand_device *device)
{
    struct json json = {.file = stdout};
    const struct scand_scan *scan = &run->scan;
    const struct scand_times *times = &run->stream.times;
    bool ragged = run->options->offsets_path;
    json_open(&json, NULL, '{');
    json_text(&json, "input", run->options->input_path);
    json_text(&json, "output", run->options->output_path);
    json_unsigned(&json, "rows", ragged ? run->ragged.rows : run->partition.records * run->partition.inner);
    json_unsigned(&json, "samples", ragged ? run->ragged.longest : run->partition.length);
    json_open(&json, "passes", '[');
    for (uint32_t i = 0; i < scan->pass_count; i++)
        json_text(&json, NULL, scand_word(SCAND_LIST_PASS, scan->passes[i]));
    json_close(&json, ']');
    json_text(&json, "op", scand_word(SCAND_LIST_OPERATOR, scan->op));
    json_text(&json, "dtype", scand_word(SCAND_LIST_DTYPE, run->array.dtype));
    json_text(&json, "output_dtype", scand_word(SCAND_LIST_DTYPE, run->options->output_dtype));
    json_unsigned(&json, "demean", scan->demean);
    json_text(&json, "kind", scand_word(SCAND_LIST_KIND, scan->kind));
    json_text(&json, "accumulator", scand_word(SCAND_LIST_ACCUMULATOR, scan->accumulator));
    json_text(&json, "algorithm", scan->algorithm ? scan->algorithm : "");
    json_open(&json, "then", '[');
    for (uint32_t i = 0; i < scan->then_count; i++)
        json_text(&json, NULL, run->options->then_text[i]);
    json_close(&json, ']');
    json_text(&json, "device", device->name);
    json_text(&json, "backend", device->backend);
    report_bytes(&json, run);
    json_unsigned(&json, "jobs", run->stream.job_count);
    json_unsigned(&json, "queued_us", times->queued_us);
    json_unsigned(&json, "upload_us", times->upload_us);
    json_unsigned(&json, "kernel_us", times->kernel_us);
    json_unsigned(&json, "download_us", times->download_us);
    json_unsigned(&json, "total_us", times->total_us);
    json_close(&json, '}');
    fputc('\n', stdout);
}

/* An array without samples has a result without samples: no job is needed. */
static int run_samples(struct run *run, struct scand *daemon, uint32_t axis, struct error *error)
{
    if (!array_sample_count(&run->array))
        return input_expect_end(&run->input, error);
    if (run->options->offsets_path)
        partition_make_ragged(&run->partition, &run->array, run->ragged.longest, run->options->output_dtype);
    else
        partition_make(&run->partition, &run->array, axis, run->options->output_dtype);
    if (run->options->coefficients_path)
        partition_add_coefficients(&run->partition, &run->coefficients, axis);
    run->stream = (struct stream){
        .daemon = daemon,
        .array = &run->array,
        .partition = &run->partition,
        .ragged = run->options->offsets_path ? &run->ragged : NULL,
        .scan = &run->scan,
        .input = &run->input,
        .output = &run->output,
        .coefficients = &run->coefficients,
        .coefficients_input = &run->coefficients_input,
    };
    return stream_run(&run->stream, error);
}

static int run_output(struct run *run, struct scand *daemon, uint32_t axis, struct error *error)
{
    int result = output_open(&run->output, run->options->output_path, error);
    if (result)
        return result;
    result = array_write_header(&run->array, run->options->output_dtype, &run->output, error);
    if (!result)
        result = run_samples(run, daemon, axis, error);
    if (result)
        output_discard(&run->output);
    else
        result = output_commit(&run->output, error);
    return result;
}

/* Reads all that comes before samples, so that what is wrong is found before the daemon is asked for anything. */
static int headers_read(struct run *run, uint32_t *axis, struct error *error)
{
    struct scan_options *options = run->options;
    int result = array_read_header(&run->array, &run->input, &options->hints, error);
    if (result)
        return result;
    result = scan_options_types(options, &run->array, error);
    if (result)
        return result;
    run->scan = options->scan;
    if (options->coefficients_path) {
        result = coefficients_read_header(&run->coefficients, &run->coefficients_input, &run->array, &options->hints,
                                          options->input_path, error);
        if (result)
            return result;
    }
    result = axis_resolve(options->axis, options->input_path, run->array.rank, axis, error);
    if (result || !options->offsets_path)
        return result;
    return ragged_read(&run->ragged, options->offsets_path, &run->array, error);
}

static int run_input(struct run *run, struct error *error)
{
    struct scan_options *options = run->options;
    struct scand *daemon;
    uint32_t axis;
    uint64_t begun_us = clock_now_us();
    int result = headers_read(run, &axis, error);
    if (result)
        return result;
    result = remote_open(options->common.socket_path, &daemon, error);
    if (result)
        return result;
    result = run_output(run, daemon, axis, error);
    run->elapsed_us = clock_now_us() - begun_us;
    if (!result && options->common.json) {
        struct scand_device device = remote_device(daemon);
        report(run, &device);
    }
    scand_disconnect(daemon);
    return result;
}

int command_scan(int argc, char **argv, struct common_options *common, struct error *error)
{
    struct scan_options options = {.common = *common};
    int result = scan_options_parse(argc, argv, &options, error);
    if (result)
        return result;
    if (options.common.help) {
        help_print(argv[0]);
        return 0;
    }
    struct run run = {.options = &options};
    result = input_open(&run.input, options.input_path, error);
    if (result)
        return result;
    if (options.coefficients_path)
        result = input_open(&run.coefficients_input, options.coefficients_path, error);
    if (!result) {
        result = run_input(&run, error);
        if (options.coefficients_path)
            input_close(&run.coefficients_input);
    }
    ragged_free(&run.ragged);
    input_close(&run.input);
    return result;
}

#include "client/scanctl/commands/commands.h"
#include "client/scanctl/commands/reduce_options.h"
#include "client/scanctl/formats/file.h"
#include "client/scanctl/stream/stream.h"
#include "client/scanctl/ui/clock.h"
#include "client/scanctl/ui/printer.h"

/* What the parts of a run share. */
struct run {
    struct reduce_options *options;
    struct array array, result;
    struct partition partition;
    struct ragged ragged; /* with --offsets */
    struct input input;
    struct output output;
    struct json json;
    struct printer printer;
    struct stream stream;
    uint32_t axis;
    uint64_t elapsed_us;
};

/* The array of the results: without the axis, or of a row each, in this machine's byte order. */
static void result_make(struct run *run)
{
    const struct array *array = &run->array;
    struct array *result = &run->result;
    *result = (struct array){
        .format = run->options->output_format, .dtype = run->options->output_dtype, .fortran = array->fortran};
    for (uint32_t i = 0; i < array->rank; i++)
        if (i != run->axis)
            result->shape[result->rank++] = array->shape[i];
    if (result->rank == 0)
        result->shape[result->rank++] = run->options->offsets_path ? run->ragged.rows : 1;
}

static void report_begin(struct run *run)
{
    const struct reduce_options *options = run->options;
    struct json *json = &run->json;
    json->file = stdout;
    json_open(json, NULL, '{');
    json_text(json, "input", options->input_path);
    if (options->output_path)
        json_text(json, "output", options->output_path);
    json_text(json, "op", scand_word(SCAND_LIST_REDUCTION, options->reduce.reduction));
    json_text(json, "dtype", scand_word(SCAND_LIST_DTYPE, run->array.dtype));
    json_text(json, "output_dtype", scand_word(SCAND_LIST_DTYPE, options->output_dtype));
    json_text(json, "algorithm", options->reduce.algorithm ? options->reduce.algorithm : "");
    if (!options->output_path)
        json_open(json, "results", '[');
}

static void report_end(struct run *run, const struct scand_device *device)
{
    struct json *json = &run->json;
    const struct scand_times *times = &run->stream.times;
    bool ragged = run->options->offsets_path;
    uint64_t records = run->partition.records * run->partition.inner;
    uint64_t input_bytes = records * run->partition.length * array_sample_bytes(&run->array);
    if (!run->options->output_path)
        json_close(json, ']');
    json_unsigned(json, "rows", ragged ? run->ragged.rows : records);
    json_unsigned(json, "samples", ragged ? run->ragged.longest : run->partition.length);
    json_text(json, "device", device->name);
    json_text(json, "backend", device->backend);
    json_unsigned(json, "input_bytes", input_bytes);
    json_real(json, "seconds", (double)run->elapsed_us / 1e6);
    json_real(json, "gb_per_s", gigabytes_per_second(input_bytes, run->elapsed_us));
    json_unsigned(json, "jobs", run->stream.job_count);
    json_unsigned(json, "queued_us", times->queued_us);
    json_unsigned(json, "upload_us", times->upload_us);
    json_unsigned(json, "kernel_us", times->kernel_us);
    json_unsigned(json, "download_us", times->download_us);
    json_unsigned(json, "total_us", times->total_us);
    json_close(json, '}');
    fputc('\n', stdout);
}

/* Without rows there is nothing to do. */
static int run_samples(struct run *run, struct scand *daemon, struct error *error)
{
    const struct reduce_options *options = run->options;
    if (!array_sample_count(&run->array) && !run->ragged.rows)
        return input_expect_end(&run->input, error);
    if (options->offsets_path)
        partition_make_ragged_reduce(&run->partition, &run->array, run->ragged.longest, ragged_pick_max(&run->ragged),
                                     options->output_dtype);
    else
        partition_make_reduce(&run->partition, &run->array, run->axis, options->output_dtype);
    run->printer.json = options->common.json ? &run->json : NULL;
    run->stream = (struct stream){
        .daemon = daemon,
        .array = &run->array,
        .partition = &run->partition,
        .ragged = options->offsets_path ? &run->ragged : NULL,
        .reduce = &options->reduce,
        .result = &run->result,
        .input = &run->input,
        .output = &run->output,
        .printer = options->output_path ? NULL : &run->printer,
    };
    return stream_run(&run->stream, error);
}

static int run_output(struct run *run, struct scand *daemon, struct error *error)
{
    if (!run->options->output_path)
        return run_samples(run, daemon, error);
    int result = output_open(&run->output, run->options->output_path, error);
    if (result)
        return result;
    result = array_write_header(&run->result, run->options->output_dtype, &run->output, error);
    if (!result)
        result = run_samples(run, daemon, error);
    if (result)
        output_discard(&run->output);
    else
        result = output_commit(&run->output, error);
    return result;
}

/* Reads all that comes before samples, so that what is wrong is found before the daemon is asked for anything. */
static int headers_read(struct run *run, struct error *error)
{
    struct reduce_options *options = run->options;
    int result = array_read_header(&run->array, &run->input, &options->hints, error);
    if (result)
        return result;
    result = reduce_options_types(options, &run->array, error);
    if (result)
        return result;
    result = axis_resolve(options->axis, options->input_path, run->array.rank, &run->axis, error);
    if (result)
        return result;
    if (options->offsets_path)
        return ragged_read(&run->ragged, options->offsets_path, &run->array, error);
    if (run->array.shape[run->axis] == 0)
        return fail(error, EX_DATAERR, "%s: its rows have no samples; there is nothing to reduce", run->input.name);
    return 0;
}

static int run_input(struct run *run, struct error *error)
{
    struct reduce_options *options = run->options;
    struct scand *daemon;
    uint64_t begun_us = clock_now_us();
    int result = headers_read(run, error);
    if (result)
        return result;
    result = remote_open(options->common.socket_path, &daemon, error);
    if (result)
        return result;
    result_make(run);
    struct scand_device device = remote_device(daemon);
    if (options->common.json)
        report_begin(run);
    result = run_output(run, daemon, error);
    run->elapsed_us = clock_now_us() - begun_us;
    if (!result && options->common.json)
        report_end(run, &device);
    scand_disconnect(daemon);
    return result;
}

int command_reduce(int argc, char **argv, struct common_options *common, struct error *error)
{
    struct reduce_options options = {.common = *common};
    int result = reduce_options_parse(argc, argv, &options, error);
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
    result = run_input(&run, error);
    ragged_free(&run.ragged);
    input_close(&run.input);
    return result;
}

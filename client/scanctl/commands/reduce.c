/* scanctl reduce: its results, printed or written. */
#include "client/scanctl/commands/file_job.h"
#include "client/scanctl/commands/reduce_options.h"

/* The array of the results: without the axis, or of a row each, in this machine's byte order. */
static struct array result_make(const struct file_job *job, const struct reduce_options *options)
{
    const struct array *array = &job->array;
    struct array result = {.format = options->output_format, .dtype = options->output_dtype, .fortran = array->fortran};
    for (uint32_t i = 0; i < array->rank; i++)
        if (i != job->axis)
            result.shape[result.rank++] = array->shape[i];
    if (result.rank == 0)
        result.shape[result.rank++] = options->files.offsets_path ? job->ragged.rows : 1;
    return result;
}

static void report_begin(const struct file_job *job, const struct reduce_options *options, struct json *json)
{
    json->file = stdout;
    json_open(json, NULL, '{');
    json_text(json, "input", options->input_path);
    if (options->output_path)
        json_text(json, "output", options->output_path);
    if (options->pipeline)
        pipeline_report(options->pipeline, json);
    else
        json_text(json, "op", scand_word(SCAND_LIST_REDUCTION, options->reduce.reduction));
    json_text(json, "dtype", scand_word(SCAND_LIST_DTYPE, job->array.dtype));
    json_text(json, "output_dtype", scand_word(SCAND_LIST_DTYPE, options->output_dtype));
    if (!options->pipeline)
        json_text(json, "algorithm", options->reduce.algorithm ? options->reduce.algorithm : "");
    if (!options->output_path)
        json_open(json, "results", '[');
}

static void report_end(const struct file_job *job, struct scand *daemon, struct json *json)
{
    struct scand_device device = remote_device(daemon);
    if (!job->output_path)
        json_close(json, ']');
    file_job_report_rows(job, json);
    file_job_report_times(job, &device, false, json);
    json_close(json, '}');
    fputc('\n', stdout);
}

/* Refuses what cannot be reduced, or not be written. */
static int reduce_check(const struct file_job *job, const struct reduce_options *options, struct error *error)
{
    const struct array *array = &job->array;
    if (!options->files.offsets_path && !array->open_ended && array->shape[job->axis] == 0)
        return fail(error, EX_DATAERR, "%s: its rows have no samples; there is nothing to reduce", file_job_name(job));
    if (array->open_ended && options->output_path && options->output_format == FORMAT_NPY)
        return fail(
            error, EX_USAGE,
            "%s: does not say how many rows it brings, as -o %s has to at its beginning; give a name that ends in "
            ".raw, or a file in place of a pipe",
            file_job_name(job), options->output_path);
    return 0;
}

static int reduce_run(struct file_job *job, struct reduce_options *options, struct error *error)
{
    struct scand *daemon;
    struct json json = {.file = NULL};
    struct printer printer = {.json = options->common.json ? &json : NULL};
    struct pipeline pipeline;
    int result = reduce_options_types(options, &job->array, error);
    if (result)
        return result;
    result = reduce_check(job, options, error);
    if (result)
        return result;
    job->compute = compute_reduce(&options->reduce);
    if (options->pipeline)
        result = file_job_steps(job, options->pipeline, &pipeline, error);
    if (!result)
        result = remote_open_computing(options->common.socket_path, options->common.local, &daemon, error);
    if (result)
        return result;
    job->result = result_make(job, options);
    job->printer = options->output_path ? NULL : &printer;
    if (options->common.json)
        report_begin(job, options, &json);
    result = file_job_run(job, daemon, error);
    if (!result && options->common.json)
        report_end(job, daemon, &json);
    scand_disconnect(daemon);
    return result;
}

int reduce_file(struct reduce_options *options, struct error *error)
{
    struct file_job job;
    int result = file_job_open(&job, &options->files, options->input_path, options->output_path, error);
    if (!result)
        result = reduce_run(&job, options, error);
    file_job_close(&job);
    return result;
}

int command_reduce(int argc, char **argv, struct common_options *common, struct error *error)
{
    struct reduce_options options = {.common = *common};
    int result = reduce_options_parse(argc, argv, &options, error);
    *common = options.common;
    return result || common->help ? result : reduce_file(&options, error);
}

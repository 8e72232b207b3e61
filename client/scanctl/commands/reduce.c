/* scanctl reduce: its results, printed or written. */
#include "client/scanctl/commands/file_job.h"
#include "client/scanctl/commands/reduce_options.h"

/* The array of the results: without the axis, or of a row each, in this machine's byte order. */
static struct array result_make(const struct file_job *job, const struct reduce_options *options,
                                enum scand_dtype dtype)
{
    const struct array *array = &job->array;
    struct array result = {.format = options->output_format, .dtype = dtype, .fortran = array->fortran};
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
    json_text(json, "input", job->input_path);
    if (job->output_path)
        json_text(json, "output", job->output_path);
    if (options->pipeline)
        pipeline_report(options->pipeline, json);
    else
        json_text(json, "op", scand_word(SCAND_LIST_REDUCTION, options->reduce.reduction));
    json_text(json, "dtype", scand_word(SCAND_LIST_DTYPE, job->array.dtype));
    json_text(json, "output_dtype", scand_word(SCAND_LIST_DTYPE, job->result.dtype));
    if (!options->pipeline)
        json_text(json, "algorithm", options->reduce.algorithm ? options->reduce.algorithm : "");
    if (!job->output_path)
        json_open(json, "results", '[');
}

/* `failure` is why there are no more results; NULL where there are all. */
static void report_end(const struct file_job *job, struct scand *daemon, const char *failure, struct json *json)
{
    const struct scand_device device = failure ? (struct scand_device){.name = ""} : remote_device(daemon);
    if (!job->output_path)
        json_close(json, ']');
    if (failure)
        json_text(json, "error", failure);
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
    if (array->open_ended && job->output_path && options->output_format == FORMAT_NPY)
        return fail(
            error, EX_USAGE,
            "%s: does not say how many rows it brings, as -o %s has to at its beginning; give a name that ends in "
            ".raw, or a file in place of a pipe",
            file_job_name(job), job->output_path);
    return 0;
}

/* Connects for the first file, whose headers have been read then. */
static int reduce_run(struct file_job *job, const struct reduce_options *options, struct scand **daemon,
                      struct error *error)
{
    struct json json = {.file = NULL};
    struct printer printer = {.json = options->common.json ? &json : NULL,
                              .name = options->batch.count > 1 ? job->input_path : NULL};
    struct pipeline pipeline;
    enum scand_dtype dtype;
    int result = reduce_options_type(options, &job->array, &dtype, error);
    if (!result)
        result = reduce_check(job, options, error);
    job->compute = compute_reduce(&options->reduce);
    if (!result && options->pipeline)
        result = file_job_steps(job, options->pipeline, &pipeline, error);
    if (!result && !*daemon)
        result = remote_open_computing(options->common.socket_path, options->common.local, daemon, error);
    if (result)
        return result;
    job->result = result_make(job, options, dtype);
    job->printer = job->output_path ? NULL : &printer;
    if (options->common.json)
        report_begin(job, options, &json);
    result = file_job_run(job, *daemon, error);
    if (options->common.json)
        report_end(job, *daemon, result ? error->text : NULL, &json);
    return result;
}

static int reduce_file(void *context, const char *input_path, const char *output_path, struct scand **daemon,
                       struct error *error)
{
    const struct reduce_options *options = context;
    struct file_job job;
    int result = file_job_open(&job, &options->files, input_path, output_path, error);
    if (!result)
        result = reduce_run(&job, options, daemon, error);
    file_job_close(&job);
    return result;
}

int reduce_files(struct reduce_options *options, struct error *error)
{
    return batch_run(&options->batch, reduce_file, options, error);
}

int command_reduce(int argc, char **argv, struct common_options *common, struct error *error)
{
    struct reduce_options options = {.common = *common};
    int result = reduce_options_parse(argc, argv, &options, error);
    *common = options.common;
    return result || common->help ? result : reduce_files(&options, error);
}

/* scanctl scan. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/scanctl/commands/file_job.h"
#include "client/scanctl/commands/scan_options.h"

static void report_scan(const struct scand_scan *scan, const struct scan_options *options, struct json *json)
{
    json_open(json, "passes", '[');
    for (uint32_t i = 0; i < scan->pass_count; i++)
        json_text(json, NULL, scand_word(SCAND_LIST_PASS, scan->passes[i]));
    json_close(json, ']');
    json_text(json, "op", scand_word(SCAND_LIST_OPERATOR, scan->op));
    json_unsigned(json, "demean", scan->demean);
    json_text(json, "kind", scand_word(SCAND_LIST_KIND, scan->kind));
    json_text(json, "accumulator", scand_word(SCAND_LIST_ACCUMULATOR, scan->accumulator));
    json_text(json, "algorithm", scan->algorithm ? scan->algorithm : "");
    json_open(json, "then", '[');
    for (uint32_t i = 0; i < scan->then_count; i++)
        json_text(json, NULL, options->then_text[i]);
    json_close(json, ']');
}

static void report(const struct file_job *job, const struct scan_options *options, const struct scaled_scan *scaled,
                   const struct scand_device *device)
{
    struct json json = {.file = stdout};
    json_open(&json, NULL, '{');
    json_text(&json, "input", job->input_path);
    json_text(&json, "output", job->output_path);
    file_job_report_rows(job, &json);
    json_text(&json, "dtype", scand_word(SCAND_LIST_DTYPE, job->array.dtype));
    json_text(&json, "output_dtype", scand_word(SCAND_LIST_DTYPE, job->result.dtype));
    if (options->pipeline)
        pipeline_report(options->pipeline, &json);
    else
        report_scan(&scaled->scan, options, &json);
    if (scaled->scale)
        json_real(&json, "scale", scaled->scale);
    file_job_report_times(job, device, true, &json);
    json_close(&json, '}');
    fputc('\n', stdout);
}

/* Checks the form of an output without the input's headers: its name asks for samples alone, or rows get another
 * length, which those headers would say. */
static int output_form_check(const struct file_job *job, struct error *error)
{
    const struct array *array = &job->array;
    const enum format form = job->form;
    if (form != FORMAT_NPY && form != FORMAT_RAW)
        return fail(error, EX_USAGE,
                    "%s: its rows have %" PRIu64 " samples, and the steps leave %" PRIu64
                    " of them, which headers would not say; give -o a name that ends in .npy or .raw",
                    file_job_name(job), job->lengths[0], job->output_length);
    if (array->open_ended && form == FORMAT_NPY)
        return fail(
            error, EX_USAGE,
            "%s: does not say how many rows it brings, as -o %s has to at its beginning; give a name that ends in "
            ".raw, or a file in place of a pipe",
            file_job_name(job), job->output_path);
    if (array->fortran && array->rank > 1 && form == FORMAT_RAW)
        return fail(error, EX_USAGE,
                    "%s: is in Fortran order, which raw samples cannot say; give -o a name that ends in .npy",
                    file_job_name(job));
    return 0;
}

/* The array of the results: like that of the samples, or without headers. */
static int result_make(struct file_job *job, const struct scan_options *options, enum scand_dtype dtype,
                       struct error *error)
{
    const struct array *array = &job->array;
    job->result = array_result(array, dtype);
    if (!job->converts)
        return 0;
    int result = output_form_check(job, error);
    if (result)
        return result;
    const bool is_named = options->output_dtype != TYPE_LEFT_OUT;
    job->result = (struct array){.format = job->form,
                                 .dtype = is_named ? options->output_dtype : plain_dtype(dtype),
                                 .rank = array->rank,
                                 .fortran = array->fortran};
    memcpy(job->result.shape, array->shape, sizeof(array->shape));
    job->result.shape[job->axis] = job->output_length;
    return array_check_result(job->result.format, job->result.dtype, error);
}

/* The computation of a job, which lives as long as the job. */
struct work {
    struct scaled_scan scaled;
    struct pipeline pipeline;
};

static int work_make(struct file_job *job, const struct scan_options *options, struct work *work, struct error *error)
{
    int result = 0;
    if (options->pipeline)
        return file_job_steps(job, options->pipeline, &work->pipeline, error);
    work->scaled.scale = options->scale;
    if (options->scale_is_dt)
        result = file_job_spacing(job, "--scale is dt", &work->scaled.scale, error);
    job->compute = work->scaled.scale ? compute_scaled_scan(&work->scaled) : compute_scan(&work->scaled.scan);
    return result;
}

/* Connects for the first file, whose headers have been read then. */
static int scan_run(struct file_job *job, const struct scan_options *options, struct scand **daemon,
                    struct error *error)
{
    struct work work = {.scaled = {.scale = 0}};
    enum scand_dtype output;
    int result = scan_options_types(options, &job->array, job->form, &work.scaled.scan, &output, error);
    if (!result)
        result = result_make(job, options, output, error);
    if (!result)
        result = work_make(job, options, &work, error);
    if (!result && !*daemon)
        result = remote_open_computing(options->common.socket_path, options->common.local, daemon, error);
    if (result)
        return result;
    result = file_job_run(job, *daemon, error);
    if (!result && options->common.json) {
        struct scand_device device = remote_device(*daemon);
        report(job, options, &work.scaled, &device);
    }
    return result;
}

static int scan_file(void *context, const char *input_path, const char *output_path, struct scand **daemon,
                     struct error *error)
{
    const struct scan_options *options = context;
    struct file_job job;
    int result = file_job_open(&job, &options->files, input_path, output_path, error);
    if (!result)
        result = scan_run(&job, options, daemon, error);
    file_job_close(&job);
    return result;
}

int scan_files(struct scan_options *options, struct error *error)
{
    return batch_run(&options->batch, scan_file, options, error);
}

int command_scan(int argc, char **argv, struct common_options *common, struct error *error)
{
    struct scan_options options = {.common = *common};
    int result = scan_options_parse(argc, argv, &options, error);
    *common = options.common;
    return result || common->help ? result : scan_files(&options, error);
}

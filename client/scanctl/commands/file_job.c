#include "client/scanctl/commands/file_job.h"

#include <inttypes.h>
#include <string.h>

#include "client/scanctl/formats/operand.h"
#include "client/scanctl/stream/pipeline.h"
#include "client/scanctl/ui/text.h"
#include "protocol/clock.h"

const char *file_job_name(const struct file_job *job)
{
    return strcmp(job->input_path, "-") ? job->input_path : "standard input";
}

/* Finds the result's form: its input's, or that of an array without headers, where the output's name promises one or
 * rows become longer or shorter. */
static int output_form_find(struct file_job *job, struct error *error)
{
    const int promised = job->output_path ? format_of_extension(job->output_path) : -1;
    const bool other = promised >= 0 && promised != (int)job->hints.format;
    job->form = job->hints.format;
    job->converts = job->lengths[0] != job->output_length;
    if (job->options->converts || !other || (!job->converts && promised == format_of_extension(job->input_path)))
        return 0;
    if (!job->converts && promised != FORMAT_NPY && promised != FORMAT_RAW)
        return fail(error, EX_USAGE,
                    "-o is \"%s\", but the result has the form of its input, which is %s; give a name that ends in "
                    ".%s%s for samples alone",
                    job->output_path, format_word(job->form), format_word(job->form),
                    job->form == FORMAT_NPY   ? ", or in .raw"
                    : job->form == FORMAT_RAW ? ", or in .npy"
                                              : ", or in .npy or .raw");
    job->converts = true;
    job->form = (enum format)promised;
    return 0;
}

/* Refuses what cannot be done with a pipe that says nothing of its length. */
static int open_ended_check(const struct file_job *job, struct error *error)
{
    const char *obstacle = job->options->offsets_path ? "--offsets needs its samples"
                           : job->axis == 0           ? "axis 0 counts its rows"
                                                      : NULL;
    if (!job->array.open_ended || !obstacle)
        return 0;
    return fail(error, EX_USAGE, "%s: does not say how many rows it brings, and %s; give a file in place of a pipe",
                file_job_name(job), obstacle);
}

static struct operand_samples samples_of(const struct file_job *job)
{
    return (struct operand_samples){.array = &job->array,
                                    .name = job->input_path,
                                    .hints = &job->hints,
                                    .axis = job->axis,
                                    .ragged = job->options->offsets_path != NULL};
}

/* Finds the lengths of rows behind each step. For ragged rows it is the length of their line, which no step changes. */
static int lengths_find(struct file_job *job, struct error *error)
{
    const struct file_options *options = job->options;
    const struct operand_samples samples = samples_of(job);
    uint64_t vectors[OPERANDS_MAX];
    job->lengths[0] = job->lengths[1] = job->output_length = job->array.shape[job->axis];
    if (!options->pipeline)
        return 0;
    for (uint32_t i = 0; i < options->operand_count; i++)
        vectors[i] = operand_file_length(&options->operands[i], &samples);
    int result = pipeline_lengths(options->pipeline, vectors, job->lengths, error);
    job->output_length = job->lengths[options->pipeline->step_count];
    return result;
}

/* Refuses operands that cannot lie beside rows of several axes. */
static int operand_merge_check(const struct operand_file *file, struct error *error)
{
    const char *why = file->written ? "is written, which steps along several axes do not; leave it out"
                      : file->broadcast
                          ? "holds a number for each sample of one axis; give one for each sample of the input"
                      : !file->shared && strcmp(file->follows, "samples")
                          ? "has elements for each row; with several axes give one dimension, for all rows"
                          : NULL;
    return why ? fail(error, EX_USAGE, "%s=%s: %s", file->name, file->path, why) : 0;
}

static int operands_open(struct file_job *job, bool several_axes, struct error *error)
{
    const struct operand_samples samples = samples_of(job);
    struct operand_file *files = job->options->operands;
    const uint32_t count = job->options->operand_count;
    for (uint32_t i = 0; i < count; i++) {
        int result = operand_file_open(&files[i], &samples, error);
        if (!result && several_axes)
            result = operand_merge_check(&files[i], error);
        if (result)
            return result;
    }
    int result = lengths_find(job, error);
    for (uint32_t i = 0; !result && i < count; i++)
        if (!files[i].written)
            result = operand_file_check(&files[i], &samples, job->lengths[files[i].step], error);
    return result;
}

/* Rows of several axes have no length that a step could change. */
static int steps_merge_check(const struct file_job *job, struct error *error)
{
    const uint32_t count = job->options->pipeline ? job->options->pipeline->step_count : 1;
    for (uint32_t i = 1; i < count; i++)
        if (job->lengths[i] != job->lengths[0])
            return fail(error, EX_USAGE,
                        "--axis is \"%s\", but step %" PRIu32 " makes rows longer or shorter, as along one axis alone; "
                        "name one",
                        job->options->axes, i);
    return 0;
}

/* Merges several axes into one: of the samples, and of the operands that are read beside them, sample by sample. */
static int axes_merge(struct file_job *job, uint32_t axes, struct error *error)
{
    int result = steps_merge_check(job, error);
    for (uint32_t i = 0; !result && i < job->options->operand_count; i++) {
        struct operand_file *file = &job->options->operands[i];
        if (!file->shared)
            result = array_merge_axes(&file->array, axes, file->input.name, error);
    }
    if (!result)
        result = array_merge_axes(&job->array, axes, job->input.name, error);
    return result ? result : lengths_find(job, error);
}

static int headers_read(struct file_job *job, struct error *error)
{
    const struct file_options *options = job->options;
    uint32_t axes;
    int result = format_find(&job->input, &options->hints, &job->hints.format, error);
    if (result)
        return result;
    result = array_read_header(&job->array, &job->input, &job->hints, error);
    if (result)
        return result;
    result = axes_resolve(options, job->input_path, &job->array, &axes, &job->axis, error);
    if (result)
        return result;
    result = open_ended_check(job, error);
    if (result)
        return result;
    result = options->offsets_path ? ragged_read(&job->ragged, options->offsets_path, &job->array, error) : 0;
    if (result)
        return result;
    const bool several_axes = (axes & (axes - 1)) != 0;
    result = operands_open(job, several_axes, error);
    if (!result && several_axes)
        result = axes_merge(job, axes, error);
    return result ? result : output_form_find(job, error);
}

int file_job_open(struct file_job *job, const struct file_options *options, const char *input_path,
                  const char *output_path, struct error *error)
{
    *job = (struct file_job){.options = options,
                             .input_path = input_path,
                             .output_path = output_path,
                             .hints = options->hints,
                             .input = {.fd = -1}};
    int result = input_open(&job->input, input_path, error);
    return result ? result : headers_read(job, error);
}

void file_job_close(struct file_job *job)
{
    input_close(&job->input);
    array_free(&job->array);
    for (uint32_t i = 0; i < job->options->operand_count; i++)
        operand_file_close(&job->options->operands[i]);
    ragged_free(&job->ragged);
}

int file_job_spacing(struct file_job *job, const char *asked, double *out, struct error *error)
{
    job->array.uses_spacing = true;
    *out = job->array.spacing[job->axis];
    if (*out)
        return 0;
    return fail(error, EX_DATAERR,
                "%s: %s, but %s does not say what lies between two samples along axis %" PRIu32
                "; give a number in its place",
                file_job_name(job), asked, job->array.format == FORMAT_RSF ? "its text" : "its header", job->axis);
}

int file_job_steps(struct file_job *job, const struct pipeline *pipeline, struct pipeline *own, struct error *error)
{
    *own = *pipeline;
    job->compute = compute_steps(own);
    return own->wants_dt ? file_job_spacing(job, "a step has dt for a number", &own->dt, error) : 0;
}

static void partition_choose(struct file_job *job)
{
    struct partition *partition = &job->partition;
    const struct ragged *ragged = &job->ragged;
    enum scand_dtype output = job->result.dtype;
    if (job->options->offsets_path && job->compute.reduces)
        partition_make_ragged_reduce(partition, &job->array, ragged->longest, ragged_pick_max(ragged), output);
    else if (job->options->offsets_path)
        partition_make_ragged(partition, &job->array, ragged->longest, output);
    else if (job->compute.reduces)
        partition_make_reduce(partition, &job->array, job->axis, output);
    else
        partition_make(partition, &job->array, job->axis, output);
    if (!job->compute.reduces && job->converts && !job->options->offsets_path)
        partition_set_output(partition, &job->result, job->axis);
    if (job->compute.apart)
        partition->in_place = false;
    for (uint32_t i = 0; i < job->options->operand_count; i++)
        partition_add(partition, &job->options->operands[i].array, job->axis, job->options->operands[i].shared,
                      job->options->operands[i].broadcast);
}

/* True when there is nothing to compute: rows without samples have results in a reduction alone. */
static bool is_empty(const struct file_job *job)
{
    return !job->array.open_ended && !array_sample_count(&job->array) && !(job->compute.reduces && job->ragged.rows);
}

static void begin_tell(void *context, uint64_t number)
{
    const struct file_job *job = context;
    if (job->options->progress)
        fprintf(stderr, "%s: job %" PRIu64 "; scanctl cancel %" PRIu64 " stops it\n", file_job_name(job), number,
                number);
}

/* Returns what lists of jobs show: the program, and the file by its last name, cut at its beginning, since its end
 * tells most. */
static const char *shown_name(const struct file_job *job, char *out, size_t size)
{
    const char *name = strcmp(job->input_path, "-") ? path_name(job->input_path) : "-";
    const size_t length = strlen(name), most = size - sizeof("scanctl ");
    snprintf(out, size, "scanctl %s", length > most ? name + length - most : name);
    return out;
}

static int run_samples(struct file_job *job, struct scand *daemon, struct error *error)
{
    const struct file_options *options = job->options;
    char name[64];
    if (is_empty(job))
        return input_expect_end(&job->input, error);
    partition_choose(job);
    job->stream = (struct stream){
        .daemon = daemon,
        .array = &job->array,
        .partition = &job->partition,
        .ragged = options->offsets_path ? &job->ragged : NULL,
        .compute = job->compute,
        .result = &job->result,
        .input = &job->input,
        .output = &job->output.samples,
        .printer = job->printer,
        .further = options->operands,
        .name = shown_name(job, name, sizeof(name)),
        .begun = begin_tell,
        .context = job,
    };
    int result = stream_run(&job->stream, error);
    job->rows = job->stream.rows_done;
    job->samples = options->offsets_path ? job->ragged.longest : job->partition.length;
    return result;
}

/* Says what there is of a result whose daemon has gone while it was made. */
static void tell_unfinished(const struct file_job *job, struct error *error)
{
    char rows[GROUPED_BYTES];
    if (job->rows == 0 || (error->exit_code != EX_TEMPFAIL && error->exit_code != EX_UNAVAILABLE))
        return;
    if (job->output.samples.target)
        fail_more(error, "%s rows were done, and %s is not written", grouped(job->rows, rows), job->output_path);
    else
        fail_more(error, "%s rows were done and written", grouped(job->rows, rows));
}

static int run_output(struct file_job *job, struct scand *daemon, struct error *error)
{
    int result = result_open(&job->output, &job->result, job->output_path, error);
    if (result)
        return result;
    result = run_samples(job, daemon, error);
    if (!result && job->result.trailer_bytes)
        result = result_copy_trailer(&job->output, &job->array, &job->input, error);
    if (!result)
        return result_commit(&job->output, error);
    tell_unfinished(job, error);
    result_discard(&job->output);
    return result;
}

/* Gives the first `count` of the files that steps write their names, or discards them. */
static int operands_end(struct file_job *job, uint32_t count, bool commit, struct error *error)
{
    int result = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct operand_file *file = &job->options->operands[i];
        if (file->written && commit && !result)
            result = result_commit(&file->output, error);
        else if (file->written)
            result_discard(&file->output);
    }
    return result;
}

/* Begins the files of operands that steps write. On failure none is left. */
static int operands_create(struct file_job *job, struct error *error)
{
    const struct operand_samples samples = samples_of(job);
    int result = 0;
    for (uint32_t i = 0; !result && i < job->options->operand_count; i++) {
        struct operand_file *file = &job->options->operands[i];
        if (file->written)
            result = operand_file_create(file, &samples, job->lengths[file->step + 1], job->result.dtype, error);
        if (result)
            operands_end(job, i, false, error);
    }
    return result;
}

/* Runs the job. Operands' files that it writes are kept only if the results are. */
static int run_all(struct file_job *job, struct scand *daemon, struct error *error)
{
    int result = operands_create(job, error);
    if (result)
        return result;
    result = job->printer ? run_samples(job, daemon, error) : run_output(job, daemon, error);
    const int ended = operands_end(job, job->options->operand_count, !result, error);
    return result ? result : ended;
}

static void end_tell(const struct file_job *job)
{
    char rows[GROUPED_BYTES], samples[GROUPED_BYTES], size[GROUPED_BYTES], took[GROUPED_BYTES];
    uint64_t bytes = job->input.position + job->output.samples_bytes;
    if (!job->options->progress && !job->stream.progress.shown)
        return;
    fprintf(stderr, "%s: %s rows of %s%s samples, %s in %s, %.2f GB/s\n", file_job_name(job), grouped(job->rows, rows),
            job->options->offsets_path ? "up to " : "", grouped(job->samples, samples), binary_size(bytes, size),
            duration(job->elapsed_us, took), gigabytes_per_second(bytes, job->elapsed_us));
}

int file_job_run(struct file_job *job, struct scand *daemon, struct error *error)
{
    uint64_t begun_us = clock_us();
    int result = run_all(job, daemon, error);
    job->elapsed_us = clock_us() - begun_us;
    if (!result)
        end_tell(job);
    return result;
}

void file_job_report_rows(const struct file_job *job, struct json *json)
{
    json_unsigned(json, "rows", job->rows);
    json_unsigned(json, "samples", job->samples);
}

void file_job_report_times(const struct file_job *job, const struct scand_device *device, bool output,
                           struct json *json)
{
    const struct scand_times *times = &job->stream.times;
    uint64_t samples = job->options->offsets_path ? array_sample_count(&job->array) : job->rows * job->samples;
    uint64_t input_bytes = samples * array_sample_bytes(&job->array);
    uint64_t output_bytes = output ? samples * array_sample_bytes(&job->result) : 0;
    json_text(json, "device", device->name);
    json_text(json, "backend", device->backend);
    json_unsigned(json, "input_bytes", input_bytes);
    if (output)
        json_unsigned(json, "output_bytes", output_bytes);
    json_real(json, "seconds", (double)job->elapsed_us / 1e6);
    json_real(json, "gb_per_s", gigabytes_per_second(input_bytes + output_bytes, job->elapsed_us));
    json_unsigned(json, "jobs", job->stream.job_count);
    json_unsigned(json, "queued_us", times->queued_us);
    json_unsigned(json, "upload_us", times->upload_us);
    json_unsigned(json, "kernel_us", times->kernel_us);
    json_unsigned(json, "download_us", times->download_us);
    json_unsigned(json, "total_us", times->total_us);
}

/*
 * A file on its way through the daemon, for every command that reads one and writes another: first the command line's
 * words about files, then everything that comes before samples, then the samples. The command says what is computed.
 */
#ifndef SCANCTL_FILE_JOB_H
#define SCANCTL_FILE_JOB_H

#include "client/scanctl/commands/options.h"
#include "client/scanctl/formats/file.h"
#include "client/scanctl/stream/pipeline.h"
#include "client/scanctl/stream/stream.h"

struct file_job {
    /* Set by file_job_open. */
    const struct file_options *options;
    const char *input_path, *output_path; /* output_path NULL: nothing is written */
    struct array_hints hints;             /* the options' hints, with the format that was found */
    struct input input;
    struct array array;
    struct ragged ragged;                  /* with --offsets */
    uint32_t axis;                         /* the array's axis; several axes that are asked for are merged into it */
    uint64_t lengths[2 + SCAND_STEPS_MAX]; /* lengths of rows before the first step, behind it, and so on */
    uint64_t output_length;                /* the length behind the last step */
    bool converts;                         /* the result is an array without the input's headers */
    enum format form;                      /* the result's form */
    /* Set by the command before file_job_run. */
    struct array result;
    struct compute compute;
    struct printer *printer; /* NULL: the results go to output_path */
    /* Set by file_job_run. */
    struct partition partition;
    struct result_file output;
    struct stream stream;
    uint64_t rows, samples, elapsed_us;
};

/* Opens the files and reads all that comes before samples, so that what is wrong is found before the daemon is asked
 * for anything. End with file_job_close, also after a failure. */
int file_job_open(struct file_job *job, const struct file_options *options, const char *input_path,
                  const char *output_path, struct error *error);
/* What messages call the input: the file that was given, also where its samples are in another. */
const char *file_job_name(const struct file_job *job);
/* Finds the spacing of samples along the axis; EX_DATAERR where the file does not say. `asked` begins the message. */
int file_job_spacing(struct file_job *job, const char *asked, double *out, struct error *error);
/* Sets the steps to be computed: *own is a copy of the pipeline for this file, which lives as long as the job. */
int file_job_steps(struct file_job *job, const struct pipeline *pipeline, struct pipeline *own, struct error *error);
/* Computes and writes the result. */
int file_job_run(struct file_job *job, struct scand *daemon, struct error *error);
void file_job_close(struct file_job *job);

/* Members of a report: how many rows of how many samples there were, and what the jobs took. */
void file_job_report_rows(const struct file_job *job, struct json *json);
void file_job_report_times(const struct file_job *job, const struct scand_device *device, bool output,
                           struct json *json);

#endif

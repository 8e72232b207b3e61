/*
 * The command line of `scanctl scan`.
 */
#ifndef SCANCTL_SCAN_OPTIONS_H
#define SCANCTL_SCAN_OPTIONS_H

#include "client/scanctl/commands/batch.h"
#include "client/scanctl/commands/commands.h"
#include "client/scanctl/stream/pipeline.h"

struct scan_options {
    struct common_options common;
    struct file_options files;
    struct operand_file coefficients; /* files.operands points here where coefficients are given */
    struct batch batch;
    struct scand_scan scan; /* without its tensors and axis */
    struct scand_step then[SCAND_STEPS_MAX];
    const char *then_text[SCAND_STEPS_MAX]; /* the texts of --then */
    enum scand_dtype output_dtype;          /* TYPE_LEFT_OUT: the usual dtype */
    double scale;                           /* factor of the results; 0: none */
    bool scale_is_dt;                       /* the factor is the spacing of the samples */
    bool ieee;                              /* SEG-Y is written with IEEE floats */
    const struct pipeline *pipeline;        /* the steps in place of the scan; NULL: the scan */
};

/* Parses the command line; *options holds zero except `common`. With common.help set, nothing else has been checked. */
int scan_options_parse(int argc, char **argv, struct scan_options *options, struct error *error);
/* Sets the defaults, for a command that has these options with others. */
void scan_options_init(struct scan_options *options);
option_handler scan_option_handle;
/* Checks what can be said of inputs and output before any file is opened. */
int scan_files_check(const struct scan_options *options, struct error *error);
/* Reads, scans and writes each input, on one connection. */
int scan_files(struct scan_options *options, struct error *error);

/* The types of a scan of this array where they were left out: *output, the result's, and the accumulator, which is
 * shown. The daemon has the same rule for the others. `form` is the result's: EX_USAGE where it is the array's own and
 * cannot hold the result. */
int scan_options_types(const struct scan_options *options, const struct array *array, enum format form,
                       struct scand_scan *scan, enum scand_dtype *output, struct error *error);

/* Adds a further step, "forward,backward,op=max". Its types may be left out, until scan_options_types. */
int then_parse(struct scan_options *options, const char *text, struct error *error);

#endif

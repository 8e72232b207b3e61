/*
 * The command line of `scanctl reduce`.
 */
#ifndef SCANCTL_REDUCE_OPTIONS_H
#define SCANCTL_REDUCE_OPTIONS_H

#include "client/scanctl/commands/batch.h"
#include "client/scanctl/commands/commands.h"
#include "client/scanctl/stream/pipeline.h"

struct reduce_options {
    struct common_options common;
    struct file_options files;
    struct batch batch;
    struct scand_reduce reduce;    /* without its tensors and axis */
    enum scand_dtype output_dtype; /* TYPE_LEFT_OUT: the usual dtype */
    enum format output_format;
    const struct pipeline *pipeline; /* the steps, of which the last is the reduction; NULL: the reduction alone */
};

/* Parses the command line; *options holds zero except `common`. With common.help set, nothing else has been checked. */
int reduce_options_parse(int argc, char **argv, struct reduce_options *options, struct error *error);
/* Checks, for a command that has these options with others, what can be said of them before any file is opened. */
int reduce_options_check(struct reduce_options *options, struct error *error);
/* Reads, reduces, and writes or prints, on one connection. */
int reduce_files(struct reduce_options *options, struct error *error);

/* Finds the results' type, once the array's is known. EX_USAGE where such results cannot be written, or printed. */
int reduce_options_type(const struct reduce_options *options, const struct array *array, enum scand_dtype *out,
                        struct error *error);

#endif

/*
 * The command line of `scanctl reduce`.
 */
#ifndef SCANCTL_REDUCE_OPTIONS_H
#define SCANCTL_REDUCE_OPTIONS_H

#include "client/scanctl/commands/commands.h"
#include "client/scanctl/stream/pipeline.h"

struct reduce_options {
    struct common_options common;
    struct file_options files;
    const char *input_path;
    const char *output_path;       /* NULL: the results are printed */
    struct scand_reduce reduce;    /* without its tensors and axis */
    enum scand_dtype output_dtype; /* TYPE_LEFT_OUT: the usual dtype */
    enum format output_format;
    const struct pipeline *pipeline; /* the steps, of which the last is the reduction; NULL: the reduction alone */
};

/* Parses the command line; *options holds zero except `common`. With common.help set, nothing else has been checked. */
int reduce_options_parse(int argc, char **argv, struct reduce_options *options, struct error *error);
/* Checks, for a command that has these options with others, what can be said of them and of `words` inputs before any
 * file is opened. */
int reduce_options_check(struct reduce_options *options, int words, struct error *error);
/* Reads, reduces, and writes or prints. */
int reduce_file(struct reduce_options *options, struct error *error);

/* Fills in the types that were left out, once the array's is known: the results'. EX_USAGE where they cannot be
 * written, or printed. */
int reduce_options_types(struct reduce_options *options, const struct array *array, struct error *error);

#endif

/*
 * The files of one command: what can be checked before any is opened, and one after the other on one connection.
 */
#ifndef SCANCTL_BATCH_H
#define SCANCTL_BATCH_H

#include <scand/scand.h>

#include "client/scanctl/ui/error.h"

struct batch {
    char **inputs; /* count paths */
    int count;
    const char *output_path; /* a file, a folder, or - for standard output; NULL: results are printed */
    const char *extension;   /* of results in a folder, in place of that of their inputs; NULL: they keep it */
};

/* Checks that several outputs go to a folder, where none is that of two inputs. */
int batch_check(const struct batch *batch, struct error *error);

/* One file. *daemon is NULL until the first file that needs it has connected. */
typedef int batch_call(void *context, const char *input_path, const char *output_path, struct scand **daemon,
                       struct error *error);

/* Calls `call` for each file. One of several that fails is named on standard error, and the others go on; the exit code
 * is that of the first failure. */
int batch_run(const struct batch *batch, batch_call *call, void *context, struct error *error);

#endif

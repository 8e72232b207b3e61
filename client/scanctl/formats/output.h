/*
 * A file that appears whole or not at all: written under a temporary name in the same folder, then renamed. Standard
 * output, pipes and devices are written directly. One output at a time per process: SIGINT, SIGTERM, SIGHUP and SIGQUIT
 * remove its temporary file; SIGXFSZ is ignored, so that a limit of file sizes is a failed write.
 */
#ifndef SCANCTL_OUTPUT_H
#define SCANCTL_OUTPUT_H

#include <stdint.h>

#include "client/scanctl/ui/error.h"

struct output {
    int fd;
    const char *name; /* for messages; the caller's */
    char *target;     /* the name that commit gives; NULL when written directly */
    char *temporary;  /* the name until then */
    uint64_t written_bytes;
};

/* Opens a file, or standard output for "-". End with output_commit or output_discard, which both free it. */
int output_open(struct output *output, const char *path, struct error *error);
int output_write(struct output *output, const void *data, uint64_t size_bytes, struct error *error);
/* Gives the file its name, in place of one that was there. On failure the file is discarded. */
int output_commit(struct output *output, struct error *error);
/* Removes the file. */
void output_discard(struct output *output);

#endif

/*
 * A file that appears whole or not at all: written under a temporary name in the same folder, brought to the disk, then
 * renamed. Standard output, pipes and devices are written directly. At most OUTPUTS_MAX at a time per process: SIGINT,
 * SIGTERM, SIGHUP and SIGQUIT remove their temporary files. A temporary file is locked while its process lives, so
 * that what a killed one left is known, and removed by the next that writes to the folder.
 */
#ifndef SCANCTL_OUTPUT_H
#define SCANCTL_OUTPUT_H

#include <stdint.h>

#include "client/scanctl/ui/error.h"

#define OUTPUTS_MAX 2

struct output {
    int fd;           /* -1: not open */
    const char *name; /* for messages; the caller's */
    char *target;     /* the name that commit gives; NULL when written directly */
    char *temporary;  /* the name until then */
    int signal_place; /* the temporary name's place in the list for signals */
    uint64_t written_bytes;
};

/* Opens a file, or standard output for "-". End with output_commit or output_discard, which both free it. */
int output_open(struct output *output, const char *path, struct error *error);
int output_write(struct output *output, const void *data, uint64_t size_bytes, struct error *error);
/* Gives the file its name, in place of one that was there. On failure the file is discarded. */
int output_commit(struct output *output, struct error *error);
/* Removes the file, if it is open. */
void output_discard(struct output *output);

#endif

/*
 * The work of `scanctl scan` and `scanctl reduce`: records go from the input through the daemon to the output in
 * batches, so that a file of any size is scanned in bounded memory. While the daemon scans one batch, the one before is
 * written and the next one read. A batch that the daemon lost, half written, is read again from a file and submitted
 * again.
 */
#ifndef SCANCTL_STREAM_H
#define SCANCTL_STREAM_H

#include "client/scanctl/formats/input.h"
#include "client/scanctl/formats/output.h"
#include "client/scanctl/formats/ragged.h"
#include "client/scanctl/stream/partition.h"
#include "client/scanctl/stream/remote.h"
#include "client/scanctl/ui/printer.h"
#include "client/scanctl/ui/progress.h"

#define SLOTS          2
#define LOST_TRIES_MAX 3 /* submissions of a batch: one that ended three workers will end a fourth */

/* A buffer of the daemon, and the batch in it. */
struct slot {
    struct scand_buffer *buffer;
    uint64_t first, count;                    /* records */
    uint64_t position;                        /* of the batch in the input, */
    uint64_t further_positions[OPERANDS_MAX]; /* and in files of further operands */
    uint32_t tries;                           /* submissions */
    uint64_t first_row, rows;                 /* rows 0: nothing to be finished */
    struct scand_buffer *offsets;             /* of ragged rows, counted from the batch's first sample */
    struct submission submission;
};

struct stream {
    /* Set by the caller. */
    struct scand *daemon;
    const struct array *array;
    const struct partition *partition;
    const struct ragged *ragged; /* NULL: rows of one length */
    struct compute compute;
    const struct array *result; /* as it is written */
    struct input *input;
    struct output *output;
    struct printer *printer;                    /* NULL: into the output; else the results as text */
    struct operand_file *further;               /* as many as the partition has */
    const char *name;                           /* what people are told that this is; NULL: of nobody's interest */
    void (*begun)(void *context, uint64_t job); /* told the number that it has for people; NULL: none is */
    void *context;
    /* Set by stream_run. */
    uint64_t records; /* per batch */
    uint32_t slot_count;
    struct scand_buffer *direct; /* the input, where the daemon reads it itself; NULL: it is read here */
    uint32_t group;              /* that its jobs belong to; 0: the daemon has none */
    struct slot slots[SLOTS];
    struct progress progress;
    uint64_t rows_begun, rows_done;
    bool ended;               /* an open-ended input has */
    uint64_t job_count;       /* that were done */
    struct scand_times times; /* of all jobs, added up */
};

/* Reads from the inputs' positions to their ends, scans, and writes what follows the output's header. Buffers and jobs
 * that are left after a failure end with the connection. */
int stream_run(struct stream *stream, struct error *error);

#endif

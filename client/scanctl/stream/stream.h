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
    uint64_t position;                        /* the batch's position in the input, */
    uint64_t further_positions[OPERANDS_MAX]; /* and in files of further operands */
    uint32_t tries;                           /* submissions */
    uint64_t first_row, rows;                 /* rows 0: no rows to be finished */
    struct scand_buffer *offsets;             /* offsets of ragged rows, counted from the batch's first sample */
    struct submission submission;
};

struct stream {
    /* The caller sets what follows. */
    struct scand *daemon;
    const struct array *array;
    const struct partition *partition;
    const struct ragged *ragged; /* NULL: rows of one length */
    struct compute compute;
    const struct array *result; /* the array that is written */
    struct input *input;
    struct output *output;
    struct printer *printer;                    /* prints results as text; NULL: they go into the output */
    struct operand_file *further;               /* operand files, as many as the partition has */
    const char *name;                           /* name that progress shows; NULL: no progress is shown */
    void (*begun)(void *context, uint64_t job); /* gets the number by which people know the job; NULL: not called */
    void *context;
    /* stream_run sets what follows. */
    uint64_t records; /* per batch */
    uint32_t slot_count;
    struct scand_buffer *direct; /* the input, where the daemon reads it itself; NULL: it is read here */
    uint32_t group;              /* the group that the jobs belong to; 0: the daemon has no groups */
    struct slot slots[SLOTS];
    struct progress progress;
    uint64_t rows_begun, rows_done;
    bool ended;               /* an open-ended input has ended */
    uint64_t job_count;       /* jobs that were done */
    struct scand_times times; /* times of all jobs, added up */
};

/* Reads from the inputs' positions to their ends, scans, and writes what follows the output's header. Buffers and jobs
 * that are left after a failure end with the connection. */
int stream_run(struct stream *stream, struct error *error);

#endif

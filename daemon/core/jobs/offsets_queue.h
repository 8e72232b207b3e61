/*
 * Offsets that helpers copy for jobs: a job keeps its place in its queue meanwhile, and counts like others; nothing of
 * its class and connection starts before it. Of a connection one job's offsets are copied after the other's, in the
 * order of submission, and after the jobs before it that write there have ended.
 */
#ifndef DAEMON_OFFSETS_QUEUE_H
#define DAEMON_OFFSETS_QUEUE_H

#include "daemon/core/service.h"

/* The copying of a job's offsets, among its client's. */
struct reading {
    struct work work;      /* first */
    struct client *client; /* held */
    struct job *job;       /* NULL: it has ended meanwhile */
    struct buffer *buffer; /* held: where they are */
    struct offsets_copy copy;
    struct error error; /* code 0: nothing is wrong with them */
    bool out;           /* helpers have it */
    struct reading *next;
};

/* Goes on with the next of the client's, if it need not wait. */
void reading_next(struct client *client);
/* The job ends, whether or not its offsets are read. */
void reading_forget(struct job *job);
/* Takes a reading out of its client's list, and frees it with the copy. */
void reading_free(struct reading *reading);
/* True when one of these jobs, or an older one, is to write offsets that the job has yet to read. */
bool reading_must_wait(const struct job *older, const struct job *job);
/* The rows of a job, as far as they are known. */
uint64_t reading_row_count(const struct job *job);

/* Counts the memory of offsets. */
void offsets_count(struct client *client, uint64_t bytes);
/* Frees offsets that were counted, unless they are NULL: many by a helper, and they count until then. */
void offsets_drop(struct client *client, uint64_t *values, uint64_t count);

#endif

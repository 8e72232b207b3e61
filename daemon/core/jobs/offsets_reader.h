/*
 * Copying of jobs' offsets by helpers, a unit at a time. A job keeps its place in its queue meanwhile, and counts like
 * others; nothing of its class and connection starts before it. Of a connection one job's offsets are copied after the
 * other's, in the order of submission, and after the jobs before it that write there have ended.
 */
#ifndef DAEMON_OFFSETS_READER_H
#define DAEMON_OFFSETS_READER_H

#include "daemon/core/call.h"

/* Has the offsets of a job, which is not queued yet, copied from the buffer, and takes over the copy's values, on
 * failure too. 0, or -ENOMEM and call->error. */
int reading_begin(struct call *call, struct job *job, struct buffer *buffer, struct offsets_copy *copy);
/* Goes on with the next of the client's, if it need not wait. */
void reading_next(struct client *client);
/* The job ends, whether or not its offsets are read. */
void reading_forget(struct job *job);
/* True when one of these jobs, or an older one, is to write offsets that the job has yet to read. */
bool reading_must_wait(const struct job *older, const struct job *job);
/* The rows of a job, as far as they are known. */
uint64_t reading_row_count(const struct job *job);

/* Counts the memory of offsets. */
void offsets_count(struct client *client, uint64_t bytes);
/* Frees offsets that were counted, unless they are NULL: many by a helper, and they count until then. */
void offsets_drop(struct client *client, uint64_t *values, uint64_t count);

#endif

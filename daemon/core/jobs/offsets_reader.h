/* Copies jobs' offsets by helpers, a unit at a time, in the order of offsets_queue.h. */
#ifndef DAEMON_OFFSETS_READER_H
#define DAEMON_OFFSETS_READER_H

#include "daemon/core/call.h"

/* Has the offsets of a job, which is not queued yet, copied from the buffer, and takes over the copy's values, on
 * failure too. 0, or -ENOMEM and call->error. */
int reading_begin(struct call *call, struct job *job, struct buffer *buffer, struct offsets_copy *copy);

#endif

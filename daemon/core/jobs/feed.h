/*
 * The jobs of users that read files, and how their loads end. schedule/feeder.h begins loads.
 */
#ifndef DAEMON_FEED_H
#define DAEMON_FEED_H

#include "loads.h"

/* Checks that each chunk of a planned job can be read, as far as it is known, and gives the job its loads, if it reads
 * files: 0, or -EINVAL or -ENOMEM and *error. */
int feed_begin(struct job *job, struct error *error);
/* Queues a job that reads files; from now on its bytes are read. */
void feed_join(struct service *service, struct job *job);
/* The job has ended: so do its loads, at once or when they have been read. */
void feed_leave(struct service *service, struct job *job);

/* Frees a load that nobody reads or uses. */
void load_end(struct load *load);
/* A chunk of the job has come back: its load goes with it, unless it is of a row that goes on. */
void feed_return(struct job *job, struct chunk *chunk);

#endif

/* Jobs that came in one message and are answered together. */
#ifndef DAEMON_BATCH_H
#define DAEMON_BATCH_H

#include "daemon/core/service.h"

/* A batch is held by each of its jobs and, until all have been taken, by its handler; the last of them frees it. */
struct batch {
    unsigned holds;
    bool failing; /* some of its jobs have failed */
    struct msg_job_batch_result result;
};

/* A batch of so many jobs, held by its handler; NULL without memory. */
struct batch *batch_create(uint32_t jobs);
/* Lets go of a batch; the last answers for all of its jobs, and frees it. */
void batch_unhold(struct batch *batch, struct client *client, uint32_t msgid);
/* The job at this place, from 0 on, has failed, or was not taken. */
void batch_note_failure(struct batch *batch, struct client *client, uint32_t at, const struct error *error);
/* A job of a batch has ended. */
void batch_note(const struct job *job);

#endif

/* The ends of jobs: they are answered and counted, let go of what they held, and are freed. */
#ifndef DAEMON_ENDING_H
#define DAEMON_ENDING_H

#include "daemon/core/service.h"

/* Answers and frees a job that has ended. When it has failed, jobs that were to read its output end with it, in the
 * order of their submission. */
void job_end(struct service *service, struct job *job);
/* Stops a job for good, now or when its last chunk comes back. */
void job_abandon(struct service *service, struct job *job, int code, const char *message);
/* The offsets of a job that is queued have been copied. It can run now, or has nothing to do and ends. */
void job_go_on(struct service *service, struct job *job, struct offsets_copy *copy);

#endif

/* Small jobs of a program that has a daemon (protocol/local.h), computed in the calling thread on the program's memory:
 * checked and planned as a service does it, but without clients, queues and counters. One thread at a time. */
#ifndef DAEMON_LOCAL_NEAR_H
#define DAEMON_LOCAL_NEAR_H

#include "protocol/local.h"

/* Returns 0, or -errno and *error. */
int near_open(struct near **out, struct error *error);
/* As struct local_library says. */
bool near_compute(struct near *near, const struct local_job *job, struct msg_job_submit_result *result);
void near_close(struct near *near);

#endif

/* Which jobs are taken: within the bounds of queues, quotas and memory, on buffers that are known. */
#ifndef DAEMON_ADMISSION_H
#define DAEMON_ADMISSION_H

#include "daemon/core/call.h"

/* Whether jobs are taken at all, and no others have this msgid: 0, or -errno and call->error. */
int check_submission(struct call *call);
/* Takes a job, at this place of a batch, or alone: NULL and 0. It will be answered when it ends. 0, or -errno and
 * call->error. */
int job_admit(struct call *call, const struct msg_job_submit_params *params, struct batch *batch, uint32_t index);

#endif

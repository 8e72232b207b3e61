/* Which jobs are taken: within the bounds of queues, quotas and memory, on buffers that are known. */
#ifndef DAEMON_ADMISSION_H
#define DAEMON_ADMISSION_H

#include "daemon/core/call.h"

/* Whether jobs are taken at all, and no others have this msgid: 0, or -errno and call->error. submitted: they come by
 * job.submit. */
int check_submission(struct call *call, bool submitted);
/* Each takes a job, which will be answered when it ends: 0, or -errno and call->error. That of job.submit has this
 * place in a batch, or came alone: NULL and 0. */
int job_admit(struct call *call, const struct msg_job_run_params *params);
int job_admit_submit(struct call *call, const struct msg_job_submit_params *params, struct batch *batch,
                     uint32_t index);

#endif

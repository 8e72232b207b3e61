/* Admission of jobs: within the bounds of queues, quotas and memory, on buffers that are known. */
#ifndef DAEMON_ADMISSION_H
#define DAEMON_ADMISSION_H

#include "daemon/core/call.h"

/* Checks that jobs are taken at all, and that no other request has this msgid: 0, or -errno and call->error. submitted:
 * the jobs come by job.submit. */
int check_submission(struct call *call, bool submitted);
/* Each takes a job, which will be answered when it ends: 0, or -errno and call->error. `index` is its place in the
 * batch, from 1 on; a job that came alone has NULL and 0. */
int job_admit(struct call *call, const struct msg_job_run_params *params, struct batch *batch, uint32_t index);
int job_admit_submit(struct call *call, const struct msg_job_submit_params *params, struct batch *batch,
                     uint32_t index);
/* Makes stale what a refused job was to write: its output, and operands of its steps. */
void job_refuse_outputs(struct client *client, const struct msg_job_run_params *params);

#endif

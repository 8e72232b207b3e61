/* job.batch: several jobs in one message, answered together. Each is taken, queued, run and counted as one alone. */
#include <errno.h>
#include <stdlib.h>

#include "call.h"

/* Belongs to its jobs, the last of which frees it, and to its handler while that takes them. */
struct batch {
    unsigned holds;
    struct msg_job_batch_result result;
};

static void batch_unhold(struct batch *batch, struct client *client, uint32_t msgid)
{
    if (--batch->holds > 0)
        return;
    reply_result(client, msgid, &msg_job_batch_result_type, &batch->result);
    free(batch);
}

void batch_note(const struct job *job)
{
    struct msg_job_outcome *outcome = &job->batch->result.jobs[job->index - 1];
    if (job->outcome.code)
        error_to_failure(&job->outcome, &outcome->error);
    else
        outcome->times = job->times;
    batch_unhold(job->batch, job->client, job->msgid);
}

/* A job that is not taken is no reason to refuse the others. */
int handle_job_batch(struct call *call, const struct msg_job_batch_params *params)
{
    int r = check_submission(call);
    if (r)
        return r;
    if (params->jobs_count == 0)
        return error_set(&call->error, -EINVAL, "job.batch: \"jobs\" is empty; allowed: 1 to %d", LIMIT_BATCH_JOBS);
    struct batch *batch = calloc(1, sizeof *batch);
    if (!batch)
        return error_set(&call->error, -ENOMEM, "job.batch: out of memory for more jobs; try again later");
    batch->holds = 1;
    batch->result.jobs_count = params->jobs_count;
    for (uint32_t i = 0; i < params->jobs_count; i++) {
        batch->holds++;
        if (job_admit(call, &params->jobs[i], batch, i + 1) == 0)
            continue;
        error_to_failure(&call->error, &batch->result.jobs[i].error);
        batch->holds--;
    }
    batch_unhold(batch, call->client, call->msgid);
    return 0;
}

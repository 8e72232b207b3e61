/* job.batch: several jobs in one message, answered together. Each is taken, queued, run and counted as one alone. */
#include <errno.h>

#include "daemon/core/jobs/admission.h"
#include "daemon/core/jobs/batch.h"
#include "daemon/core/jobs/stale.h"
#include "handlers.h"

static int batch_begin(struct call *call, const struct msg_job_batch_params *params, struct batch **out)
{
    int r = check_submission(call, true);
    if (r)
        return r;
    if (params->jobs_count == 0)
        return error_set(&call->error, -EINVAL, "job.batch: \"jobs\" is empty; allowed: 1 to %d", LIMIT_BATCH_JOBS);
    *out = batch_create(params->jobs_count);
    if (!*out)
        return error_set(&call->error, -ENOMEM, "job.batch: out of memory for more jobs; try again later");
    return 0;
}

static int job_take(struct call *call, const struct msg_batch_job *job, struct batch *batch, uint32_t index)
{
    return job->runs ? job_admit(call, &job->run, batch, index) : job_admit_submit(call, &job->submit, batch, index);
}

static void job_refuse(struct client *client, const struct msg_batch_job *job)
{
    if (job->runs)
        job_refuse_outputs(client, &job->run);
    else
        stale_refuse(client, &job->submit.output);
}

/* A job that is not taken is no reason to refuse the others. */
int handle_job_batch(struct call *call, const struct msg_job_batch_params *params)
{
    struct batch *batch;
    int r = batch_begin(call, params, &batch);
    for (uint32_t i = 0; r && i < params->jobs_count; i++)
        job_refuse(call->client, &params->jobs[i]);
    if (r)
        return r;
    for (uint32_t i = 0; i < params->jobs_count; i++) {
        batch->holds++;
        if (job_take(call, &params->jobs[i], batch, i + 1) == 0)
            continue;
        batch_note_failure(batch, call->client, i, &call->error);
        batch->holds--;
    }
    batch_unhold(batch, call->client, call->msgid);
    return 0;
}

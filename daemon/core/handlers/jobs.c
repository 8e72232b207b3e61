/* job.submit, job.run and job.cancel. */
#include <errno.h>
#include <inttypes.h>

#include "daemon/core/jobs/admission.h"
#include "daemon/core/jobs/ending.h"
#include "daemon/core/jobs/stale.h"
#include "daemon/core/replies.h"
#include "handlers.h"

int handle_job_submit(struct call *call, const struct msg_job_submit_params *params)
{
    const int r = check_submission(call, true);
    if (r) {
        stale_refuse(call->client, &params->output);
        return r;
    }
    return job_admit_submit(call, params, NULL, 0);
}

int handle_job_run(struct call *call, const struct msg_job_run_params *params)
{
    const int r = check_submission(call, false);
    if (r) {
        job_refuse_outputs(call->client, params);
        return r;
    }
    return job_admit(call, params, NULL, 0);
}

static bool is_meant(const struct job *job, const struct msg_job_id *id)
{
    return job->msgid == id->job && (id->index == 0 || job->index == id->index);
}

/* Cancels one job, or all jobs of a batch that have not ended. */
int handle_job_cancel(struct call *call, const struct msg_job_id *params)
{
    bool found = false;
    for (struct job *job = call->client->jobs, *peer; job; job = peer) {
        peer = job->peer;
        if (!is_meant(job, params))
            continue;
        found = true;
        job_abandon(call->service, job, -ECANCELED, "cancelled by its client; what the output holds is undefined");
    }
    if (!found)
        return error_set(&call->error, -ENOENT,
                         "job.cancel: \"job\" is %" PRIu64 "; no such job of this connection is queued or running",
                         params->job);
    reply_nothing(call->client, call->msgid);
    return 0;
}

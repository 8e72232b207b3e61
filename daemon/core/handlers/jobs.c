/* job.submit and job.cancel. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/core/jobs/admission.h"
#include "daemon/core/jobs/ending.h"
#include "daemon/core/jobs/stale.h"
#include "daemon/core/replies.h"
#include "handlers.h"

int handle_job_submit(struct call *call, const struct msg_job_submit_params *params)
{
    int r = check_submission(call);
    if (r) {
        stale_refuse(call->client, params);
        return r;
    }
    return job_admit(call, params, NULL, 0);
}

/* A scan has fields of its own in job.submit, and those that follow it are its `then`. */
static int copy_scan(struct call *call, const struct msg_scan *step, uint32_t k, struct msg_job_submit_params *out)
{
    if (k > 0 && step->coefficients.shape_count > 0)
        return error_set(&call->error, -EOPNOTSUPP,
                         "job.run: \"steps[%" PRIu32 "].coefficients\" are for the first step", k);
    struct msg_then_step then = {.passes_count = step->passes_count,
                                 .kind = step->kind,
                                 .op = step->op,
                                 .accumulator = step->accumulator,
                                 .intermediate = step->intermediate,
                                 .demean = step->demean,
                                 .coefficient = step->coefficient};
    memcpy(then.passes, step->passes, sizeof then.passes);
    if (k > 0) {
        out->then[out->then_count++] = then;
        return 0;
    }
    memcpy(out->passes, then.passes, sizeof out->passes);
    out->passes_count = then.passes_count;
    out->kind = then.kind;
    out->op = then.op;
    out->accumulator = then.accumulator;
    out->intermediate = then.intermediate;
    out->demean = then.demean;
    out->coefficient = then.coefficient;
    out->coefficients = step->coefficients;
    return 0;
}

static int copy_reduce(struct call *call, const struct msg_job_run_params *params, uint32_t k,
                       struct msg_job_submit_params *out)
{
    if (params->steps_count > 1)
        return error_set(&call->error, -EOPNOTSUPP,
                         "job.run: \"steps[%" PRIu32 "].operation\" is \"reduce\" in a job of %" PRIu32
                         " steps; this daemon takes it alone",
                         k, params->steps_count);
    out->operation = SCAND_OPERATION_REDUCE;
    out->reduction = params->steps[k].reduce.reduction + SCAND_REDUCTION_NONE + 1;
    return 0;
}

int handle_job_run(struct call *call, const struct msg_job_run_params *params)
{
    struct msg_job_submit_params submit = {
        .input = params->input,
        .output = params->output,
        .axis = params->axis,
        .offsets = params->offsets,
        .priority = params->priority,
        .deadline_ms = params->deadline_ms,
        .progress = params->progress,
        .ending = params->ending,
        .after_failure = params->after_failure,
    };
    memcpy(submit.algorithm, params->algorithm, sizeof submit.algorithm);
    int r = 0;
    for (uint32_t k = 0; k < params->steps_count && !r; k++)
        r = params->steps[k].operation == OPERATION_reduce ? copy_reduce(call, params, k, &submit)
                                                           : copy_scan(call, &params->steps[k].scan, k, &submit);
    return r ? r : handle_job_submit(call, &submit);
}

static bool is_meant(const struct job *job, const struct msg_job_id *id)
{
    return job->msgid == id->job && (id->index == 0 || job->index == id->index);
}

/* One job, or all of a batch that have not ended. */
int handle_job_cancel(struct call *call, const struct msg_job_id *params)
{
    bool found = false;
    for (struct job *job = call->client->jobs, *peer; job; job = peer) {
        peer = job->peer;
        if (!is_meant(job, params))
            continue;
        found = true;
        job_abandon(call->service, job, -ECANCELED,
                    "job.submit: cancelled by its client; what the output holds is undefined");
    }
    if (!found)
        return error_set(&call->error, -ENOENT,
                         "job.cancel: \"job\" is %" PRIu64 "; no such job of this connection is queued or running",
                         params->job);
    reply_nothing(call->client, call->msgid);
    return 0;
}

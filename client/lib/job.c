/* Jobs: submitting, waiting, cancelling. */
#include <errno.h>
#include <stdlib.h>

#include "client/lib/internal.h"

/* What is submitted: one of them is not NULL. */
struct submission {
    const struct scand_scan *scan;
    const struct scand_reduce *reduce;
};

/* Who has slept for so long is late to wake: the end of the job is to be announced. */
static bool is_long(const struct msg_job_submit_params *params)
{
    uint64_t bytes = dtype_size_bytes(params->input.dtype);
    for (uint32_t i = 0; i < params->input.shape_count; i++)
        bytes *= params->input.shape[i];
    return bytes >= LONG_BYTES;
}

static struct scand_job *job_create(struct scand *daemon, struct submission what, scand_progress *progress,
                                    void *context)
{
    struct scand_job *job = calloc(1, sizeof *job + SCAN_OPERANDS * sizeof job->operands[0]);
    if (!job) {
        session_fail(daemon, -ENOMEM, "out of memory for a job");
        return NULL;
    }
    *job = (struct scand_job){
        .daemon = daemon, .progress = progress, .context = context, .params.progress = progress != NULL};
    if ((what.scan ? scan_prepare(daemon, what.scan, job) : reduce_prepare(daemon, what.reduce, job)) == 0)
        return job;
    free(job);
    return NULL;
}

struct scand_job *job_new(struct scand *daemon, const struct scand_scan *scan)
{
    return job_create(daemon, (struct submission){.scan = scan}, NULL, NULL);
}

static int submit(struct scand *daemon, struct submission what, scand_progress *progress, void *context,
                  struct scand_job **out)
{
    int code = session_ready(daemon);
    if (code)
        return (int)status_from_errno(code);
    struct scand_job *job = job_create(daemon, what, progress, context);
    if (!job)
        return (int)status_from_errno(daemon->error.code);
    job->params.ending = is_long(&job->params);
    code = job_submit(job);
    if (code) {
        free(job);
        return (int)status_from_errno(code);
    }
    job_list(job);
    *out = job;
    return SCAND_OK;
}

int scand_submit_progress(struct scand *daemon, const struct scand_scan *scan, scand_progress *progress, void *context,
                          struct scand_job **out)
{
    return submit(daemon, (struct submission){.scan = scan}, progress, context, out);
}

int scand_submit_reduce(struct scand *daemon, const struct scand_reduce *reduce, scand_progress *progress,
                        void *context, struct scand_job **out)
{
    return submit(daemon, (struct submission){.reduce = reduce}, progress, context, out);
}

int scand_submit(struct scand *daemon, const struct scand_scan *scan, struct scand_job **out)
{
    return scand_submit_progress(daemon, scan, NULL, NULL, out);
}

/* Returns 0 when the job has ended, or -ETIMEDOUT. */
static int job_wait(struct scand_job *job, int timeout_ms)
{
    struct scand *daemon = job->daemon;
    int64_t deadline_ms = timeout_ms < 0 ? INT64_MAX : clock_ms() + timeout_ms;
    while (!job->done) {
        int code = session_run(daemon, &job->done, deadline_ms);
        if (code == -EPIPE)
            (void)session_ready(daemon); /* failing, it has ended the job */
        if (code == -ECHILD)
            return code;
        if (!job->done && code == -ETIMEDOUT)
            return session_fail(daemon, code, "the job has not ended within %d ms: wait again, or cancel it",
                                timeout_ms);
    }
    return 0;
}

int scand_wait(struct scand_job *job, int timeout_ms, struct scand_times *times)
{
    struct scand *daemon = job->daemon;
    int code = session_check_owner(daemon);
    if (code)
        return (int)status_from_errno(code);
    job->awaited = true;
    code = job_wait(job, timeout_ms);
    job->awaited = false;
    if (session_check_owner(daemon))
        code = -ECHILD; /* a callback has forked: the result is the parent's */
    if (code == 0 && job->error.code) {
        daemon->error = job->error;
        code = job->error.code;
    } else if (code == 0 && times) {
        *times = job->times;
    }
    job_free_unneeded(job);
    return (int)status_from_errno(code);
}

int scand_job_done(const struct scand_job *job)
{
    return job->done || process_is_child(job->daemon);
}

int scand_cancel(struct scand_job *job)
{
    struct scand *daemon = job->daemon;
    int code = session_check_owner(daemon);
    if (code)
        return (int)status_from_errno(code);
    job->cancelled = true;
    /* Reconnecting ends a cancelled job. */
    if (job->done || session_ready(daemon) || job->done)
        return SCAND_OK;
    code = call_run(daemon, &(struct call){.method = METHOD_job_cancel,
                                           .params = &(struct msg_job_id){job->pending.msgid, job->index}});
    /* It may have ended meanwhile; with the connection it ends, too. */
    return code == -ENOENT || code == -EOWNERDEAD ? SCAND_OK : (int)status_from_errno(code);
}

void scand_job_release(struct scand_job *job)
{
    if (!job)
        return;
    job->released = true;
    job_free_unneeded(job);
}

/* Jobs: submitting, waiting, cancelling, and their list, which is in the order of submission. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/internal.h"

struct scand_job *job_find(const struct scand *daemon, uint32_t msgid)
{
    for (struct scand_job *job = daemon->jobs; job && msgid; job = job->next)
        if (job->msgid == msgid && !job->done)
            return job;
    return NULL;
}

struct scand_job *job_find_at(const struct scand *daemon, uint32_t msgid, uint32_t index)
{
    struct scand_job *job = job_find(daemon, msgid);
    while (job && (job->msgid != msgid || job->index != index || job->done))
        job = job->next;
    return job;
}

bool jobs_wait(const struct scand *daemon)
{
    for (const struct scand_job *job = daemon->jobs; job; job = job->next)
        if (!job->done)
            return true;
    return false;
}

static void job_free(struct scand_job *job)
{
    struct scand *daemon = job->daemon;
    struct scand_job **link = &daemon->jobs;
    while (*link != job)
        link = &(*link)->next;
    *link = job->next;
    if (!*link)
        daemon->jobs_end = link;
    free(job);
}

static void job_free_unneeded(struct scand_job *job)
{
    if (job->released && job->done && !job->awaited)
        job_free(job);
}

void jobs_free(struct scand *daemon)
{
    while (daemon->jobs)
        job_free(daemon->jobs);
}

static bool job_reads(const struct scand_job *job, const struct extent *extent)
{
    return extents_overlap(&job->reads, extent) ||
           (job->params.offsets.shape_count > 0 && extents_overlap(&job->offsets_extent, extent)) ||
           (job->params.coefficients.shape_count > 0 && extents_overlap(&job->coefficient_extent, extent));
}

void error_set_stale(struct error *error, const char *outcome)
{
    error_set(
        error, -ESTALE,
        "the job %s, but an earlier job, which was to write what this one reads, has failed: submit both again, or "
        "set after_failure to have it run on what is there",
        outcome);
}

/* The daemon fails those that it had got by then. It cannot tell of later ones that they were sent without an answer to
 * this one; and after a restart it knows nothing of it. */
static void readers_go_stale(const struct scand_job *failed)
{
    for (struct scand_job *job = failed->next; job; job = job->next)
        if (!job->done && !job->params.after_failure && job_reads(job, &failed->writes))
            job->stale = true;
}

void job_end(struct scand_job *job, const struct error *error)
{
    job->done = true;
    job->error = *error;
    if (job->stale && error->code == 0)
        error_set_stale(&job->error, "has been done");
    if (job->error.code && job->daemon->connection) /* else all end */
        readers_go_stale(job);
    job_free_unneeded(job);
}

void job_report(struct scand_job *job, const struct msg_job_progress *progress)
{
    if (!job || !job->progress || job->released || job->daemon->in_callback)
        return;
    struct scand *daemon = job->daemon; /* The job may be released in there. */
    daemon->in_callback = true;
    job->progress(job->context, progress->rows_done, progress->rows);
    daemon->in_callback = false;
}

void job_take_times(struct scand_job *job, const struct msg_job_submit_result *result)
{
    job->times = (struct scand_times){result->queued_us, result->upload_us, result->kernel_us, result->download_us,
                                      result->total_us};
}

int job_take_response(struct scand_job *job, const struct message *message, struct error *error)
{
    struct error outcome = {.code = 0};
    struct msg_job_submit_result result;
    if (message->failed) {
        if (take_failure(message, &outcome, error))
            return -EBADMSG;
    } else {
        if (message_read(message, &msg_job_submit_result_type, &result, error))
            return -EBADMSG;
        job_take_times(job, &result);
    }
    job->daemon->spin_end_us = 0;
    job_end(job, &outcome);
    return 0;
}

/* Its time runs on while the daemon is away. */
static int job_time_left(struct scand_job *job)
{
    int64_t now_ms = clock_ms();
    if (job->params.deadline_ms == 0)
        return 0;
    if (job->attempts == 0)
        job->start_by_ms = now_ms + (int64_t)job->params.deadline_ms;
    if (job->start_by_ms <= now_ms)
        return session_fail(job->daemon, -ETIME,
                            "the time in which the job was to start ended while the daemon's worker was away: submit "
                            "it again");
    job->params.deadline_ms = (uint64_t)(job->start_by_ms - now_ms);
    return 0;
}

static int job_check_steps(const struct scand_job *job)
{
    if (job->params.then_count <= job->daemon->job_steps)
        return 0;
    return session_fail(
        job->daemon, -EOPNOTSUPP,
        "then_count is %u: this daemon (%s) takes %llu further steps: submit them as jobs, or upgrade it",
        (unsigned)job->params.then_count, job->daemon->server, (unsigned long long)job->daemon->job_steps);
}

int job_make_ready(struct scand_job *job)
{
    int code = job_check_steps(job);
    if (code == 0)
        code = job_time_left(job);
    if (code)
        return code;
    job->params.input.buffer = job->input->id;
    job->params.output.buffer = job->output->id;
    if (job->offsets)
        job->params.offsets.buffer = job->offsets->id;
    if (job->coefficients)
        job->params.coefficients.buffer = job->coefficients->id;
    return 0;
}

int job_submit(struct scand_job *job)
{
    struct scand *daemon = job->daemon;
    int code = job_make_ready(job);
    if (code)
        return code;
    job->msgid = session_next_msgid(daemon, 0);
    job->index = 0;
    code = session_send(daemon, job->msgid, &(struct call){.method = METHOD_job_submit, .params = &job->params});
    job->attempts++;
    if (code == 0)
        job->sent = true;
    return code == -EPIPE ? 0 : code; /* reading will show it, and reconnecting submit it again */
}

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
    struct scand_job *job = calloc(1, sizeof *job);
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

void job_list(struct scand_job *job)
{
    *job->daemon->jobs_end = job;
    job->daemon->jobs_end = &job->next;
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
    code = call_run(
        daemon, &(struct call){.method = METHOD_job_cancel, .params = &(struct msg_job_id){job->msgid, job->index}});
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

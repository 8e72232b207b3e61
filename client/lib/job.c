/* Jobs: submitting, waiting, cancelling. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/internal.h"

/* The description of a job to submit: one member is not NULL. */
struct submission {
    const struct scand_scan *scan;
    const struct scand_reduce *reduce;
    const struct scand_task *task;
};

static struct scand_job *job_create(struct scand *daemon, struct submission what, scand_progress *progress,
                                    void *context)
{
    if (!what.scan && !what.reduce && !what.task) {
        session_fail(daemon, -EINVAL, "the job's description is NULL: give a scan, a reduction or a task");
        return NULL;
    }
    const size_t operands = what.task ? task_operand_count(what.task) : SCAN_OPERANDS;
    struct scand_job *job = malloc(sizeof *job + operands * sizeof job->operands[0]);
    if (!job) {
        session_fail(daemon, -ENOMEM, "out of memory for a job");
        return NULL;
    }
    memset(job, 0, offsetof(struct scand_job, error));
    error_clear(&job->error);
    job->daemon = daemon;
    job->progress = progress;
    job->context = context;
    int code = what.scan     ? scan_prepare(daemon, what.scan, job)
               : what.reduce ? reduce_prepare(daemon, what.reduce, job)
                             : task_prepare(daemon, what.task, job);
    if (code) {
        free(job);
        return NULL;
    }
    *job_common(job).progress = progress != NULL;
    job->group = *job_common(job).group;
    return job;
}

struct scand_job *job_new(struct scand *daemon, const struct scand_scan *scan)
{
    return job_create(daemon, (struct submission){.scan = scan}, NULL, NULL);
}

struct scand_job *job_new_of_task(struct scand *daemon, const struct scand_task *task)
{
    return job_create(daemon, (struct submission){.task = task}, NULL, NULL);
}

static bool is_full(const struct scand *daemon)
{
    return daemon->jobs_open >= daemon->client_jobs;
}

static int full(struct scand *daemon)
{
    session_fail(daemon, -EAGAIN,
                 "%zu jobs of this connection have not ended, and the daemon takes %llu at a time: wait for one of "
                 "them, or for room with scand_wait_room",
                 daemon->jobs_open, (unsigned long long)daemon->client_jobs);
    session_error(daemon)->retry_ms = LIMIT_RETRY_MIN_MS;
    return -EAGAIN;
}

/* Answers that have arrived make room. */
int submission_check(struct scand *daemon)
{
    int code = session_ready(daemon);
    while (code == 0 && is_full(daemon)) {
        code = session_advance(daemon, &daemon->has_room, 0);
        if (code == -ETIMEDOUT)
            return full(daemon);
        if (code == 0)
            code = session_ready(daemon);
    }
    return code;
}

static int submit(struct scand *daemon, struct submission what, scand_progress *progress, void *context,
                  struct scand_job **out)
{
    SESSION_GUARD(daemon);
    int code = submission_check(daemon);
    if (code)
        return (int)status_from_errno(code);
    struct scand_job *job = job_create(daemon, what, progress, context);
    if (!job)
        return (int)status_from_errno(session_error(daemon)->code);
    /* The end of a long job is to be announced, since a thread that has slept so long is late to wake. */
    *job_common(job).ending = job_input_bytes(job) >= LONG_BYTES;
    code = near_compute(job) ? 0 : job_submit(job);
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

int scand_task_submit(struct scand *daemon, const struct scand_task *task, scand_progress *progress, void *context,
                      struct scand_job **out)
{
    return submit(daemon, (struct submission){.task = task}, progress, context, out);
}

/* Returns true for a small job whose answer may be awaited without blocking. */
static bool may_spin(struct scand_job *job)
{
    return !job->done && job->daemon->options.spin_us > 0 && job_is_small(job);
}

/* Begins to await a small job's answer without blocking, since falling asleep and waking takes longer than many a small
 * job: for a short time, and only if the answer before came that soon. */
static void begin_spin(struct scand *daemon, uint64_t now_us)
{
    const uint64_t end_us = now_us + daemon->options.spin_us;
    if (daemon->answers_soon && daemon->spin_end_us < end_us)
        daemon->spin_end_us = end_us;
}

/* Returns 0 when the job has ended. */
static int job_wait(struct scand_job *job, int timeout_ms)
{
    struct scand *daemon = job->daemon;
    int64_t deadline_ms = timeout_ms < 0 ? INT64_MAX : clock_ms() + timeout_ms;
    int code = session_check(daemon);
    const bool is_short = code == 0 && may_spin(job);
    const uint64_t begin_us = is_short ? clock_us() : 0;
    if (is_short)
        begin_spin(daemon, begin_us);
    while (code == 0 && !job->done) {
        code = session_advance(daemon, &job->done, deadline_ms);
        if (job->done)
            break; /* perhaps because the session was given up */
        if (code == -ETIMEDOUT)
            session_fail(daemon, code, "the job has not ended within %d ms%s: wait again, or cancel it", timeout_ms,
                         job->refused ? ", since the daemon is about to stop, and the next one is to take it" : "");
    }
    if (process_has_forked(daemon)) /* a callback has forked: the result is the parent's */
        return session_check(daemon);
    if (is_short)
        daemon->answers_soon = job->done && clock_us() - begin_us <= daemon->options.spin_us;
    return job->done ? 0 : code;
}

int scand_wait(struct scand_job *job, int timeout_ms, struct scand_times *times)
{
    struct scand *daemon = job->daemon;
    SESSION_GUARD(daemon);
    job->calls++;
    int code = job_wait(job, timeout_ms);
    job_wait_reported(job);
    job->calls--;
    if (code == 0 && job->error.code) {
        *session_error(daemon) = job->error;
        code = job->error.code;
    } else if (code == 0 && times) {
        *times = job->times;
    }
    job_free_unneeded(job);
    return (int)status_from_errno(code);
}

int scand_job_done(const struct scand_job *job)
{
    SESSION_GUARD(job->daemon);
    return job->done || process_is_child(job->daemon);
}

static int job_cancel(struct scand_job *job)
{
    struct scand *daemon = job->daemon;
    job->cancelled = true;
    if (job->refused && !job->done) {
        struct error error;
        error_set(&error, -ECANCELED, "the job was cancelled before a daemon took it; its output is as it was");
        job_end(job, &error);
    }
    /* Reconnecting ends a cancelled job. */
    if (job->done || session_ready(daemon) || job->done)
        return 0;
    int code = call_run(daemon, &(struct call){.method = METHOD_job_cancel,
                                               .params = &(struct msg_job_id){job->pending.msgid, job->index}});
    /* The job may have ended meanwhile; it also ends with the connection. */
    return code == -ENOENT || code == -EOWNERDEAD ? 0 : code;
}

int scand_cancel(struct scand_job *job)
{
    struct scand *daemon = job->daemon;
    SESSION_GUARD(daemon);
    int code = session_check(daemon);
    if (code)
        return (int)status_from_errno(code);
    job->calls++;
    code = job_cancel(job);
    job->calls--;
    job_free_unneeded(job);
    return (int)status_from_errno(code);
}

void scand_job_release(struct scand_job *job)
{
    if (!job)
        return;
    SESSION_GUARD(job->daemon);
    job_wait_reported(job);
    job->released = true;
    job_free_unneeded(job);
}

int scand_wait_room(struct scand *daemon, int timeout_ms)
{
    SESSION_GUARD(daemon);
    const int64_t deadline_ms = timeout_ms < 0 ? INT64_MAX : clock_ms() + timeout_ms;
    int code = session_ready(daemon);
    while (code == 0 && (is_full(daemon) || clock_ms() < daemon->busy_until_ms)) {
        const bool retries = !is_full(daemon) && daemon->busy_until_ms < deadline_ms;
        code = session_advance(daemon, &daemon->has_room, retries ? daemon->busy_until_ms : deadline_ms);
        if (code == -ETIMEDOUT && retries)
            code = 0;
    }
    if (code == 0)
        code = session_ready(daemon);
    if (code == -ETIMEDOUT)
        session_fail(daemon, code, "the daemon has had no room for another job within %d ms: wait again", timeout_ms);
    return (int)status_from_errno(code);
}

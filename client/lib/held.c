/*
 * Jobs that a daemon refuses since it drains, as at an upgrade: it has not begun them, and the next daemon listens at
 * the same socket. So they are kept until the connection ends, and reconnecting submits them again (reconnect.c).
 */
#include <errno.h>

#include "client/lib/internal.h"

static const char *missing(const struct scand_buffer *buffer)
{
    if (!buffer)
        return "a buffer of it was released meanwhile: submit it again with new ones";
    return buffer->lost                                              ? buffer->lost
           : buffer->place == SCAND_PLACE_DEVICE && !buffer->foreign ? DEVICE_MEMORY_ENDS
                                                                     : NULL;
}

const char *job_missing_memory(const struct scand_job *job)
{
    const char *why = NULL;
    for (uint32_t i = 0; i < job->operand_count && !why; i++)
        why = missing(job->operands[i].buffer);
    return why;
}

/* Notes that the daemon drains. It takes messages in their order, so it has begun none of the jobs that were sent after
 * the one which it has refused. */
static void drain_begin(struct scand_job *refused)
{
    struct scand *daemon = refused->daemon;
    daemon->held_end_ms = clock_ms() + daemon->options.drain_ms;
    for (struct scand_job *job = refused->next; job; job = job->next)
        job->sent = false;
}

/* Returns the time until which the job is kept. */
static int64_t kept_until_ms(const struct scand_job *job)
{
    const int64_t end_ms = job->daemon->held_end_ms;
    return job->start_by_ms > 0 && job->start_by_ms < end_ms ? job->start_by_ms : end_ms;
}

static bool may_be_kept(const struct scand_job *job)
{
    return !job->cancelled && !job->stale && job->attempts < ATTEMPTS_MAX && clock_ms() < job->daemon->held_end_ms;
}

/* Keeps a job that was refused. Returns false where it is to end. */
static bool job_keep(struct scand_job *job)
{
    struct scand *daemon = job->daemon;
    if (daemon->local) /* no other one follows */
        return false;
    if (daemon->held_end_ms == 0)
        drain_begin(job);
    if (!may_be_kept(job) || job_missing_memory(job))
        return false;
    job->pending.msgid = 0;
    job->sent = false;
    job->refused = true;
    if (kept_until_ms(job) < daemon->held_due_ms)
        daemon->held_due_ms = kept_until_ms(job);
    return true;
}

void job_take_answer(struct scand_job *job, const struct error *error)
{
    struct error outcome = *error;
    if (error->code != -ESHUTDOWN) {
        job_answered(job, error);
        return;
    }
    if (job_keep(job))
        return;
    const char *why = job_missing_memory(job);
    if (why)
        error_set(&outcome, -ESHUTDOWN, "the daemon takes no more jobs, it is about to stop, and %s", why);
    job_end(job, &outcome);
}

static void held_end_late(struct scand_job *job)
{
    const struct scand *daemon = job->daemon;
    struct error error;
    if (kept_until_ms(job) < daemon->held_end_ms)
        error_set(&error, -ETIME,
                  "the time in which the job was to start ended while the daemon finished the jobs that it had, before "
                  "it stops: submit it again");
    else
        error_set(
            &error, -ESHUTDOWN,
            "the daemon at %s is about to stop, and has not finished the jobs that it has within %g s (drain_ms): "
            "submit the job to the next daemon, later",
            daemon->path, daemon->options.drain_ms / 1e3);
    job_end(job, &error);
}

void held_check(struct scand *daemon)
{
    const int64_t now_ms = daemon->held_due_ms < INT64_MAX ? clock_ms() : 0;
    if (now_ms < daemon->held_due_ms)
        return;
    daemon->held_due_ms = INT64_MAX;
    for (struct scand_job *job = daemon->jobs, *next; job; job = next) {
        next = job->next;
        if (job->done || !job->refused)
            continue;
        const int64_t until_ms = kept_until_ms(job);
        if (until_ms <= now_ms)
            held_end_late(job);
        else if (until_ms < daemon->held_due_ms)
            daemon->held_due_ms = until_ms;
    }
}

void held_end(struct scand_job *job, const char *why)
{
    struct error error;
    error_set(&error, -ESHUTDOWN, NOT_TAKEN ", and %s", why);
    job_end(job, &error);
}

void held_reset(struct scand *daemon)
{
    daemon->held_end_ms = 0;
    daemon->held_due_ms = INT64_MAX;
}

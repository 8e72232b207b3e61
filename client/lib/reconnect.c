/*
 * After a broken connection: the daemon's worker ended, and the next one listens at the same socket, soon or now. Host
 * buffers and this program's own device memory are imported again from what is kept here, and jobs that had no answer
 * are submitted again where that gives what the first try would have given: all their memory is still here, and nothing
 * that had no answer, the job itself included, may have written over their input. Other jobs end as lost.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/lib/internal.h"

static int session_hello(struct scand *daemon)
{
    struct msg_hello_params params = {.version_min = 1, .version_max = PROTOCOL_VERSION};
    struct msg_hello_result result;
    memcpy(params.client, daemon->name, sizeof params.client);
    int code = call_try(daemon, &(struct call){.method = METHOD_hello, .params = &params, .result = &result});
    if (code)
        return code;
    if (result.version < 1 || result.version > PROTOCOL_VERSION)
        return session_fail(
            daemon, -EPROTONOSUPPORT,
            "the daemon at %s chose protocol version %llu; this library speaks 1 to %d: upgrade one of them",
            daemon->path, (unsigned long long)result.version, PROTOCOL_VERSION);
    /* Its limits are for it to enforce: what it refuses, it explains. But fields that it does not know, it ignores. */
    daemon->job_steps = result.limits.job_steps;
    daemon->batch_jobs = result.limits.batch_jobs;
    memcpy(daemon->server, result.server, sizeof daemon->server);
    return 0;
}

int session_open(struct scand *daemon)
{
    int code = session_connect(daemon);
    if (code == 0)
        code = session_hello(daemon);
    if (code == -EPIPE)
        session_fail(daemon, code, "the daemon at %s closed the connection before it answered: its log says why",
                     daemon->path);
    if (code == -ETIMEDOUT)
        session_fail(
            daemon, code,
            "the daemon at %s took the connection but did not answer within %d s: it hangs, or starts too slowly",
            daemon->path, CALL_MS / 1000);
    if (code)
        session_drop(daemon);
    return code;
}

/* One that may have written to what the operand reads, or NULL. */
static const struct scand_job *writer_find(const struct scand *daemon, const struct operand *operand)
{
    for (const struct scand_job *job = daemon->jobs; job && !operand->is_written; job = job->next)
        if (!job->done && job->sent && job_writes(job, &operand->extent))
            return job;
    return NULL;
}

static void set_unrepeatable(struct scand_job *job, const char *why)
{
    error_set(&job->error, -EOWNERDEAD, "the daemon's worker ended while the job ran, and %s", why);
}

static void set_overwritten(struct scand_job *job, const struct operand *operand, bool by_itself)
{
    char why[160];
    snprintf(why, sizeof why, "%s its %s, which may be half overwritten: fill that again and submit anew",
             by_itself ? "it works in place on" : "another job wrote to", operand->name);
    set_unrepeatable(job, why);
}

/* The job's error tells whether it can be submitted again, and why not. */
static void job_check_repeatable(struct scand_job *job)
{
    for (uint32_t i = 0; i < job->operand_count; i++) {
        const struct scand_buffer *buffer = job->operands[i].buffer;
        if (!buffer || buffer->lost) {
            set_unrepeatable(job, buffer ? buffer->lost
                                         : "a buffer of it was released meanwhile: submit it again with new ones");
            return;
        }
    }
    if (!job->sent)
        return;
    if (job->attempts >= ATTEMPTS_MAX) {
        set_unrepeatable(job, "so it did each time this job was submitted: the daemon's log says why");
        return;
    }
    for (uint32_t i = 0; i < job->operand_count; i++) {
        const struct scand_job *writer = writer_find(job->daemon, &job->operands[i]);
        if (writer) {
            set_overwritten(job, &job->operands[i], writer == job);
            return;
        }
    }
}

/* Decides for all jobs before one of them ends: an ended one is not looked at any more. */
static void jobs_end_unrepeatable(struct scand *daemon)
{
    for (struct scand_job *job = daemon->jobs; job; job = job->next)
        if (!job->done)
            job_check_repeatable(job);
    for (struct scand_job *job = daemon->jobs, *next; job; job = next) {
        struct error error;
        next = job->next;
        if (job->done)
            continue;
        if (job->cancelled)
            error_set(&error, -ECANCELED, "the job was cancelled; its output may be half written");
        else if (job->error.code)
            error = job->error;
        else if (job->stale)
            error_set_stale(&error, "was to be repeated");
        else
            continue;
        job_end(job, &error);
    }
}

static void buffers_lose_device(struct scand *daemon)
{
    for (struct scand_buffer *buffer = daemon->buffers; buffer; buffer = buffer->next)
        if (buffer->place == SCAND_PLACE_DEVICE && !buffer->foreign)
            buffer->lost =
                "device memory ends with the daemon's worker: release the buffer, create one, and fill it again";
}

static int buffers_import_again(struct scand *daemon)
{
    for (struct scand_buffer *buffer = daemon->buffers; buffer; buffer = buffer->next) {
        int code = buffer->lost ? 0 : buffer_import(buffer, call_try);
        if (code && !daemon->connection)
            return code;
        if (code)
            buffer->lost = "the restarted daemon did not take it over: release the buffer and create one";
    }
    return 0;
}

static void jobs_submit_again(struct scand *daemon)
{
    for (struct scand_job *job = daemon->jobs, *next; job; job = next) {
        struct error error;
        next = job->next;
        if (job->done)
            continue;
        if (job->stale)
            error_set_stale(&error, "was to be repeated"); /* by one of these, which could not be submitted */
        else if (job_submit(job))
            error = daemon->error;
        else
            continue;
        job_end(job, &error);
    }
}

static int reconnect_once(struct scand *daemon)
{
    int code = session_open(daemon);
    if (code == 0)
        code = buffers_import_again(daemon);
    return code;
}

static bool reconnect_may_help(int code)
{
    return code == -ECONNREFUSED || code == -EPERM || code == -EPIPE || code == -EAGAIN;
}

int session_ready(struct scand *daemon)
{
    int code = session_check_owner(daemon);
    if (code || daemon->connection)
        return code;
    const struct timespec pause = {.tv_nsec = RECONNECT_PAUSE_MS * 1000000};
    int64_t deadline_ms = clock_ms() + (daemon->gone ? 0 : RECONNECT_MS);
    buffers_lose_device(daemon);
    code = reconnect_once(daemon);
    while (reconnect_may_help(code) && clock_ms() < deadline_ms) {
        nanosleep(&pause, NULL);
        code = reconnect_once(daemon);
    }
    if (reconnect_may_help(code) && !daemon->gone)
        code = session_fail(daemon, -ECONNREFUSED, "no daemon came back at %s within %d s: start one with \"scand\"",
                            daemon->path, RECONNECT_MS / 1000);
    else if (code == -EPIPE)
        code = session_fail(daemon, -ECONNREFUSED, "the daemon at %s closes its connections: its log says why",
                            daemon->path);
    if (code)
        return session_give_up(daemon);
    daemon->gone = false;
    jobs_end_unrepeatable(daemon);
    jobs_submit_again(daemon);
    return 0;
}

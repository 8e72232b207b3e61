/* Several jobs in one message. Each is a job like others; only the sending and the answer are shared. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/internal.h"

static int outcome_apply(struct scand_job *job, const struct msg_job_batch_result *result, struct error *error)
{
    if (job->index > result->jobs_count)
        return error_set(error, -EBADMSG, "the answer to a batch says nothing of its job %u", (unsigned)job->index);
    const struct msg_job_outcome *outcome = &result->jobs[job->index - 1];
    struct error ended;
    error_clear(&ended);
    if (outcome->error.code)
        error_from_failure(&outcome->error, &ended);
    else
        job_set_times(job, &outcome->times);
    job_take_answer(job, &ended);
    return 0;
}

static int batch_done(struct scand *daemon, struct pending *pending, const struct message *message, struct error *error)
{
    (void)pending;
    struct msg_job_batch_result result;
    struct error all = {.code = 0};
    int code = message->failed ? answer_read_failure(message, &all, error)
                               : answer_read(message, &msg_job_batch_result_type, &result, error);
    for (struct scand_job *job = daemon->jobs, *next; job && !code; job = next) {
        next = job->next;
        if (job->pending.msgid != message->msgid || job->done)
            continue;
        if (message->failed)
            job_take_answer(job, &all);
        else
            code = outcome_apply(job, &result, error);
    }
    return code;
}

static int params_fill(struct msg_job_batch_params *params, struct scand_job **jobs, size_t count)
{
    params->jobs_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        int code = job_make_ready(jobs[i]);
        if (code)
            return code;
        params->jobs[i].runs = jobs[i]->method == METHOD_job_run;
        if (params->jobs[i].runs)
            params->jobs[i].run = jobs[i]->params.run;
        else
            params->jobs[i].submit = jobs[i]->params.submit;
    }
    return 0;
}

/* Sends jobs in one message. *sent counts them. Returns -EMSGSIZE when the message has no room for so many tasks. */
static int batch_send(struct scand *daemon, struct scand_job **jobs, size_t count, size_t *sent)
{
    struct msg_job_batch_params *params = malloc(sizeof *params); /* too large for a thread's stack */
    if (!params)
        return session_fail(daemon, -ENOMEM, "out of memory for a message of %zu jobs", count);
    uint32_t msgid = session_next_msgid(daemon, 0);
    int code = params_fill(params, jobs, count);
    if (!code)
        code = session_send(daemon, msgid, &(struct call){.method = METHOD_job_batch, .params = params});
    free(params);
    if (code && code != -EPIPE)
        return code;
    for (size_t i = 0; i < count; i++) {
        jobs[i]->pending = (struct pending){.msgid = msgid, .done = batch_done};
        jobs[i]->index = (uint32_t)i + 1;
        job_set_sent(jobs[i], code == 0);
    }
    pending_add(daemon, &jobs[0]->pending);
    if (code == 0 && job_is_small(jobs[0]))
        rings_consider(daemon, (unsigned)count);
    *sent += count;
    return 0; /* a broken connection shows when reading; reconnecting then submits the jobs again */
}

static int one_send(struct scand_job *job, size_t *sent)
{
    int code = job_submit(job);
    *sent += code == 0;
    return code;
}

static size_t batch_most(const struct scand *daemon, const struct scand_job *job)
{
    if (job->method == METHOD_job_run && !daemon->batches_tasks)
        return 1;
    return daemon->batch_jobs < LIMIT_BATCH_JOBS ? daemon->batch_jobs : LIMIT_BATCH_JOBS;
}

/* Sends jobs in as few messages as the daemon takes; to an older daemon, one by one. A message has room for the largest
 * number of scans, but for fewer tasks of many steps. Jobs before the first that goes to the daemon may be computed in
 * this process. */
static int jobs_send(struct scand *daemon, struct scand_job **jobs, size_t count, size_t *sent)
{
    size_t most = batch_most(daemon, jobs[0]);
    int code = 0;
    while (*sent < count && near_compute(jobs[*sent]))
        ++*sent;
    for (size_t first = *sent; first < count && !code; first = *sent) {
        size_t next = count - first < most ? count - first : most;
        code = next > 1 ? batch_send(daemon, jobs + first, next, sent) : one_send(jobs[first], sent);
        if (code == -EMSGSIZE && next > 1) {
            most = next / 2;
            code = 0;
        }
    }
    return code;
}

static void jobs_drop(struct scand_job **jobs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(jobs[i]);
}

/* Submits jobs. Once some were sent, the others end by the error that kept them from being sent. */
static int jobs_submit(struct scand *daemon, struct scand_job **jobs, size_t count)
{
    size_t sent = 0;
    int code = jobs_send(daemon, jobs, count, &sent);
    if (code && sent == 0) {
        jobs_drop(jobs, count);
        return code;
    }
    struct error error = *session_error(daemon);
    for (size_t i = 0; i < count; i++) {
        job_list(jobs[i]);
        if (i >= sent)
            job_end(jobs[i], &error);
    }
    return 0;
}

/* The jobs to submit: one of the lists is not NULL. */
struct many {
    const struct scand_scan *scans;
    const struct scand_task *const *tasks;
};

static struct scand_job *job_of(struct scand *daemon, struct many what, size_t i)
{
    return what.scans ? job_new(daemon, &what.scans[i]) : job_new_of_task(daemon, what.tasks[i]);
}

/* Makes all jobs or none: then the message says which description is wrong. */
static int jobs_make(struct scand *daemon, struct many what, size_t count, struct scand_job **jobs)
{
    size_t made = 0;
    while (made < count && (jobs[made] = job_of(daemon, what, made)))
        made++;
    if (made == count)
        return 0;
    struct error error = *session_error(daemon);
    jobs_drop(jobs, made);
    return session_fail(daemon, error.code, "%s %zu: %s", what.scans ? "scan" : "task", made, error.message);
}

static int submit_many(struct scand *daemon, struct many what, size_t count, struct scand_job **out)
{
    SESSION_GUARD(daemon);
    int code = submission_check(daemon);
    if (code)
        return (int)status_from_errno(code);
    if (count == 0)
        return SCAND_OK;
    struct scand_job **jobs = calloc(count, sizeof *jobs);
    if (!jobs)
        return (int)status_from_errno(session_fail(daemon, -ENOMEM, "out of memory for %zu jobs", count));
    code = jobs_make(daemon, what, count, jobs);
    if (!code)
        code = jobs_submit(daemon, jobs, count);
    if (code == 0)
        memcpy(out, jobs, count * sizeof *jobs);
    free(jobs);
    return (int)status_from_errno(code);
}

int scand_submit_many(struct scand *daemon, const struct scand_scan *scans, size_t count, struct scand_job **out)
{
    return submit_many(daemon, (struct many){.scans = scans}, count, out);
}

int scand_task_submit_many(struct scand *daemon, const struct scand_task *const *tasks, size_t count,
                           struct scand_job **out)
{
    return submit_many(daemon, (struct many){.tasks = tasks}, count, out);
}

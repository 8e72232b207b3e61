/* The list of jobs, in the order of submission, and what happens to a job that ends. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/internal.h"

struct scand_job *job_find(const struct scand *daemon, uint32_t msgid, uint32_t index)
{
    for (struct scand_job *job = daemon->jobs; job && msgid; job = job->next)
        if (job->pending.msgid == msgid && job->index == index && !job->done)
            return job;
    return NULL;
}

/* The daemon takes another job, as far as is known. */
static void room_set(struct scand *daemon)
{
    daemon->has_room = daemon->jobs_open < daemon->client_jobs && daemon->busy_until_ms == 0;
}

void job_list(struct scand_job *job)
{
    *job->daemon->jobs_end = job;
    job->daemon->jobs_end = &job->next;
    if (job->done) {
        job->daemon->has_news = job->daemon->is_watched;
        return;
    }
    if (job->daemon->jobs_open++ == 0) {
        job->daemon->first_open = job;
        session_hears(job->daemon); /* the daemon's silence counts from now on */
    }
    room_set(job->daemon);
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
    if (daemon->first_open == job)
        daemon->first_open = job->next;
    free(job);
}

void job_free_unneeded(struct scand_job *job)
{
    if (job->released && job->done && !job->calls)
        job_free(job);
}

void jobs_free(struct scand *daemon)
{
    while (daemon->jobs)
        job_free(daemon->jobs);
}

struct common_params job_common(struct scand_job *job)
{
#define COMMON(PARAMS)                                                                                              \
    (struct common_params)                                                                                          \
    {                                                                                                               \
        &(PARAMS)->input, &(PARAMS)->progress, &(PARAMS)->ending, &(PARAMS)->deadline_ms, &(PARAMS)->after_failure, \
            &(PARAMS)->group                                                                                        \
    }
    return job->method == METHOD_job_run ? COMMON(&job->params.run) : COMMON(&job->params.submit);
#undef COMMON
}

static bool job_touches(const struct scand_job *job, const struct extent *extent, bool writing)
{
    for (uint32_t i = 0; i < job->operand_count; i++)
        if (job->operands[i].is_written == writing && extents_overlap(&job->operands[i].extent, extent))
            return true;
    return false;
}

bool job_reads(const struct scand_job *job, const struct extent *extent)
{
    return job_touches(job, extent, false);
}

bool job_writes(const struct scand_job *job, const struct extent *extent)
{
    return job_touches(job, extent, true);
}

bool job_is_ragged(const struct scand_job *job)
{
    for (uint32_t i = 0; i < job->operand_count; i++)
        if (strcmp(job->operands[i].name, "offsets") == 0)
            return true;
    return false;
}

static bool job_reads_of(const struct scand_job *job, const struct scand_job *writer)
{
    for (uint32_t i = 0; i < writer->operand_count; i++)
        if (writer->operands[i].is_written && job_reads(job, &writer->operands[i].extent))
            return true;
    return false;
}

/* The daemon fails the jobs that it had got by then. It cannot tell of later ones that they were sent without an answer
 * to this one; and after a restart it knows nothing of it. */
static void readers_go_stale(const struct scand_job *failed)
{
    for (struct scand_job *job = failed->next; job; job = job->next)
        if (!job->done && !*job_common(job).after_failure && job_reads_of(job, failed))
            job->stale = true;
}

void job_end(struct scand_job *job, const struct error *error)
{
    struct scand *daemon = job->daemon;
    daemon->jobs_open--;
    daemon->has_news = daemon->is_watched;
    daemon->busy_until_ms = error->code == -EAGAIN && error->retry_ms ? clock_ms() + error->retry_ms : 0;
    room_set(daemon);
    job->done = true;
    job->error = *error;
    if (job->stale && error->code == 0)
        error_set_stale(&job->error, "has been done");
    if (job->error.code && daemon->connection) /* without a connection all jobs end */
        readers_go_stale(job);
    job_free_unneeded(job);
}

/* True when the daemon runs one of the jobs only after the other has ended. */
static bool jobs_conflict(const struct scand_job *a, const struct scand_job *b)
{
    for (uint32_t i = 0; i < a->operand_count; i++)
        if (a->operands[i].is_written ? job_reads(b, &a->operands[i].extent) || job_writes(b, &a->operands[i].extent)
                                      : job_writes(b, &a->operands[i].extent))
            return true;
    return false;
}

bool job_may_have_to_wait(const struct scand_job *job)
{
    const struct scand *daemon = job->daemon;
    const struct scand_job *listed = daemon->jobs_open > 0 ? daemon->first_open : NULL;
    for (unsigned looked = 0; listed; listed = listed->next)
        if (++looked > JOBS_LOOKED_MAX || (!listed->done && jobs_conflict(job, listed)))
            return true;
    return false;
}

/* Jobs of a batch have no answer before all of them have ended, so later jobs may have one. */
static void overtake(const struct scand_job *ended)
{
    struct scand_job **first = &ended->daemon->first_open;
    while ((*first)->done) /* stops at the one that is about to end */
        *first = (*first)->next;
    for (struct scand_job *job = *first; job != ended; job = job->next)
        if (!job->done && job->sent && jobs_conflict(ended, job))
            job->overtaken = true;
}

void job_answered(struct scand_job *job, const struct error *error)
{
    if (error->code == 0 || error->code == -EIO || error->code == -ECANCELED) /* the job may have written */
        overtake(job);
    job_end(job, error);
}

void job_report(struct scand_job *job, const struct msg_job_progress *progress)
{
    if (!job || !job->progress || job->released || !job->daemon->is_quiet)
        return;
    struct scand *daemon = job->daemon; /* The job may be released in there. */
    scand_progress *function = job->progress;
    void *context = job->context;
    daemon->is_quiet = false;
    daemon->reported = job;
    daemon->reporter = pthread_self();
    session_unlock(daemon);
    function(context, progress->rows_done, progress->rows);
    session_lock(daemon);
    daemon->reported = NULL;
    daemon->is_quiet = true;
}

void job_wait_reported(const struct scand_job *job)
{
    struct scand *daemon = job->daemon;
    while (daemon->reported == job && !pthread_equal(daemon->reporter, pthread_self()) && !process_is_child(daemon))
        (void)session_sleep(daemon, &daemon->is_quiet, false, INT64_MAX);
}

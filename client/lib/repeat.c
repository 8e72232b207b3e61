/*
 * Jobs that can be submitted again after a worker's end: a second try gives what the first would have given.
 *
 * A job without an answer may have begun to write, so the memory that it writes holds anything. A job that reads such
 * memory is repeated only if jobs before it, which are repeated as well, write all of that again first: the daemon runs
 * jobs that share memory in the order of submission. So all jobs of a pipeline are repeated from its first one on.
 */
#include <errno.h>
#include <stdio.h>

#include "client/lib/internal.h"

#define PARTS_MAX 8 /* separate parts of an operand's bytes; with more of them the job is lost */

/* The bytes of an operand that may hold anything, because no job before its own has written them again. */
struct parts {
    struct extent all[PARTS_MAX];
    size_t count;
};

static bool may_have_written(const struct scand_job *job, const struct extent *extent)
{
    return !job->done && job->sent && job_writes(job, extent);
}

/* Adds a part, if it has bytes. Returns false when there is no room. */
static bool parts_add(struct parts *parts, const struct extent *like, uint64_t begin, uint64_t end)
{
    if (begin >= end)
        return true;
    if (parts->count == PARTS_MAX)
        return false;
    parts->all[parts->count] = *like;
    parts->all[parts->count].begin = begin;
    parts->all[parts->count++].end = end;
    return true;
}

static bool parts_subtract(struct parts *parts, const struct extent *extent)
{
    const struct parts before = *parts;
    bool fits = true;
    parts->count = 0;
    for (size_t i = 0; i < before.count; i++) {
        const struct extent *part = &before.all[i];
        if (!extents_overlap(part, extent)) {
            fits &= parts_add(parts, part, part->begin, part->end);
            continue;
        }
        fits &= parts_add(parts, part, part->begin, extent->begin < part->end ? extent->begin : part->end);
        fits &= parts_add(parts, part, extent->end > part->begin ? extent->end : part->begin, part->end);
    }
    return fits;
}

/* Removes what the job writes. A tensor with gaps counts as written for a tensor of the same layout. For ragged rows
 * only the offsets say what is written. Returns false when there are too many parts. */
static bool parts_restore(struct parts *parts, const struct scand_job *job, const struct operand *read)
{
    bool fits = true;
    for (uint32_t i = 0; i < job->operand_count; i++) {
        const struct operand *operand = &job->operands[i];
        if (!operand->is_written || job_is_ragged(job))
            continue;
        if (operands_coincide(operand, read))
            parts->count = 0;
        else if (operand_is_dense(operand))
            fits &= parts_subtract(parts, &operand->extent);
    }
    return fits;
}

/* Returns a job that may have written to the remaining parts, or NULL. */
static const struct scand_job *parts_writer(const struct parts *parts, const struct scand *daemon)
{
    for (size_t i = 0; i < parts->count; i++)
        for (const struct scand_job *job = daemon->jobs; job; job = job->next)
            if (may_have_written(job, &parts->all[i]))
                return job;
    return NULL;
}

static bool is_repeated(const struct scand_job *job)
{
    return !job->done && !job->cancelled && !job->stale && job->error.code == 0;
}

/* Returns a job because of which the operand is not what it was at the first try, or NULL. The jobs before `job` are
 * checked. */
static const struct scand_job *spoiler_find(const struct scand_job *job, const struct operand *operand)
{
    struct parts parts = {{operand->extent}, 1};
    const struct scand_job *spoiler = operand->is_written ? NULL : parts_writer(&parts, job->daemon);
    if (!spoiler)
        return NULL;
    bool fits = true;
    for (const struct scand_job *earlier = job->daemon->jobs; earlier != job; earlier = earlier->next) {
        if (is_repeated(earlier))
            fits &= parts_restore(&parts, earlier, operand);
        else if (may_have_written(earlier, &operand->extent))
            parts = (struct parts){{operand->extent}, 1};
    }
    return fits ? parts_writer(&parts, job->daemon) : spoiler;
}

static void set_unrepeatable(struct scand_job *job, const char *why)
{
    if (job->refused)
        error_set(&job->error, -ESHUTDOWN, NOT_TAKEN ", and %s", why);
    else
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
    const char *missing = job_missing_memory(job);
    if (missing) {
        set_unrepeatable(job, missing);
        return;
    }
    if (job->attempts >= ATTEMPTS_MAX) {
        set_unrepeatable(job, "so it did each time this job was submitted: the daemon's log says why");
        return;
    }
    if (!job->sent)
        return;
    if (job->overtaken) {
        set_unrepeatable(job, "a later job has used its memory since: submit it again");
        return;
    }
    for (uint32_t i = 0; i < job->operand_count; i++) {
        const struct scand_job *spoiler = spoiler_find(job, &job->operands[i]);
        if (spoiler) {
            set_overwritten(job, &job->operands[i], spoiler == job);
            return;
        }
    }
}

/* Ends a job that is not to be repeated. */
static void job_end_unrepeatable(struct scand_job *job)
{
    struct error error = job->error;
    if (job->cancelled)
        error_set(&error, -ECANCELED, "the job was cancelled; its output may be half written");
    else if (job->error.code == 0)
        error_set_stale(&error, "was to be repeated");
    job_end(job, &error);
}

/* Decides for all jobs before one of them ends: an ended one is not looked at any more. */
void jobs_end_unrepeatable(struct scand *daemon)
{
    for (struct scand_job *job = daemon->jobs; job; job = job->next)
        if (!job->done)
            job_check_repeatable(job);
    for (struct scand_job *job = daemon->jobs, *next; job; job = next) {
        next = job->next;
        if (!job->done && !is_repeated(job))
            job_end_unrepeatable(job);
    }
}

void jobs_submit_again(struct scand *daemon)
{
    for (struct scand_job *job = daemon->jobs, *next; job; job = next) {
        struct error error;
        next = job->next;
        if (job->done)
            continue;
        if (job->stale)
            error_set_stale(&error, "was to be repeated"); /* by one of the jobs above, which could not be submitted */
        else if (job_submit(job))
            error = *session_error(daemon);
        else
            continue;
        job_end(job, &error);
    }
}

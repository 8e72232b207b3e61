#include "ending.h"

#include "batch.h"
#include "daemon/core/clients.h"
#include "daemon/core/loop.h"
#include "daemon/core/memory/client_buffers.h"
#include "daemon/core/replies.h"
#include "daemon/core/stats/counters.h"
#include "feed.h"
#include "offsets_queue.h"
#include "stale.h"

static void client_forget_job(struct client *client, struct job *job)
{
    if (job->peer_before)
        job->peer_before->peer = job->peer;
    else
        client->jobs = job->peer;
    if (job->peer)
        job->peer->peer_before = job->peer_before;
    client->job_count--;
    client->jobs_by_msgid[job->msgid % CLIENT_MSGIDS]--;
    user_subtract(client->user, QUOTA_JOBS, 1);
    if (job->group)
        group_remove(job->group, job);
}

static void job_answer(struct job *job)
{
    struct client *client = job->client;
    if (job->outcome.code)
        reply_failure(client, job->msgid, &job->outcome);
    else if (!client->connection || !client->take_result || !client->take_result(client->peer, job->msgid, &job->times))
        reply_result(client, job->msgid, &msg_job_submit_result_type, &job->times);
}

/* Answers, lets go of everything, frees it. */
static void job_finish(struct service *service, struct job *job)
{
    struct client *client = job->client;
    scheduler_remove(&service->scheduler, job);
    deadlines_remove(&service->deadlines, &job->deadline);
    client_forget_job(client, job);
    job->times.total_us = service->now_us - job->arrived_us;
    counters_add_job(service, job);
    event_log_add_job(service, job);
    if (job->outcome.code)
        error_prefix(&job->outcome, request_method(job->submitted));
    if (job->batch)
        batch_note(job);
    else
        job_answer(job);
    for (uint32_t i = 0; i < job->operand_count; i++)
        if (job->operands[i].buffer)
            buffer_unhold(service, job->operands[i].buffer);
    feed_leave(service, job);
    reading_forget(job);
    offsets_drop(client, job_disown_offsets(job), job->rows.row_count + 1);
    reading_next(client); /* the next may have waited for this one */
    client_unhold(client);
    job_destroy(&service->spare_jobs, job);
    service_check_drained(service);
}

void job_end(struct service *service, struct job *job)
{
    struct job *younger = job->outcome.code && stale_spread(service, job) ? job->peer_before : NULL, *next;
    job_finish(service, job);
    for (; younger; younger = next) {
        next = younger->peer_before;
        if (younger->state == JOB_ENDED)
            job_finish(service, younger);
    }
}

void job_abandon(struct service *service, struct job *job, int code, const char *message)
{
    bool ended = job_stop(job, code, message);
    scheduler_stop(&service->scheduler, job);
    if (ended)
        job_end(service, job);
    else
        scheduler_drop(&service->scheduler, job);
}

void job_go_on(struct service *service, struct job *job, struct offsets_copy *copy)
{
    struct buffer *offsets = job->operands[OPERAND_OFFSETS].buffer;
    scheduler_make_ragged(&service->scheduler, job, copy);
    buffer_unhold(service, offsets);
    if (job_is_empty(job))
        job_end(service, job);
}

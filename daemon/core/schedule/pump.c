#include "pump.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "daemon/core/jobs/ending.h"
#include "daemon/core/jobs/feed.h"
#include "daemon/core/loop.h"
#include "daemon/core/memory/client_buffers.h"
#include "daemon/core/replies.h"
#include "daemon/core/stats/counters.h"
#include "daemon/core/trust.h"
#include "feeder.h"

/*
 * Deadlines.
 */

static void job_expire(struct service *service, struct job *job)
{
    char message[LIMIT_ERROR_BYTES];
    if (job->state != JOB_QUEUED)
        return;
    snprintf(message, sizeof message,
             "\"deadline_ms\" is %" PRIu64 ", and the job could not start by then, so nothing was written; "
             "submit it again, with more time or a higher \"priority\"",
             (job->deadline.at_us - job->arrived_us) / 1000);
    job_abandon(service, job, -ETIME, message);
}

static void expire(struct service *service, struct deadline *deadline)
{
    char *at = (char *)deadline;
    if (deadline->kind == DEADLINE_JOB)
        job_expire(service, (struct job *)(at - offsetof(struct job, deadline)));
    else
        waiting_expire(service, (struct waiting *)(at - offsetof(struct waiting, deadline)));
}

static void expire_loads(struct service *service, uint64_t now_us)
{
    if (service->load_due_us <= now_us)
        service->load_due_us = feeder_expire(service, now_us);
}

static uint64_t earlier(uint64_t a_us, uint64_t b_us)
{
    return a_us < b_us ? a_us : b_us;
}

static void expire_all(struct service *service, uint64_t now_us)
{
    struct deadline *due;
    while ((due = deadlines_pop(&service->deadlines, now_us)))
        expire(service, due);
    expire_loads(service, now_us);
    uint64_t next_us = earlier(deadlines_first_us(&service->deadlines), service->load_due_us);
    next_us = earlier(next_us, scheduler_rested_us(&service->scheduler, now_us));
    if (service->draining && now_us < service->drain_end_us)
        next_us = earlier(next_us, service->drain_end_us);
    service_wake_at(service, next_us);
}

void service_tick(struct service *service)
{
    service_pump(service);
    service_check_drained(service);
    service_wake_at(service, service->wake_us); /* again, should this have come too early */
}

/*
 * Chunks, there and back.
 */

/* Returns the weight by which a chunk is charged the device's time. */
static uint64_t weight_of(const struct chunk *chunk)
{
    if (!chunk->small)
        return DEVICE_TIME_WEIGHT;
    return device_time_weight(job_bytes(chunk->owner, chunk->first, chunk->count), chunk->device->info.chunk_bytes);
}

/* The last chunk is with a device that is quick about it: a client that waits is told, so that it is awake when the
 * answer comes. */
static void report_ending(const struct job *job, const struct device *device)
{
    const struct msg_job_id id = {.job = job->msgid, .index = job->index};
    if (job->wants_ending && job->state == JOB_ENDING && job->in_flight == 1 && device->info.spin_us > 0)
        notify(job->client, METHOD_job_ending, &msg_job_id_type, &id);
}

/* A chunk is on its way. */
static void count_start(struct service *service, struct chunk *chunk, uint64_t now_us)
{
    const struct job *job = chunk->owner;
    device_time_begin(&device_counters_of(service, chunk->device)->device_time, &job->client->counters.device_busy_ns,
                      weight_of(chunk), now_us);
    chunk->handed_us = now_us;
    chunk->job = job->number;
    chunk->user = job->client->user->uid;
}

/* Chooses all that can be handed out, which pump_start does. */
static void choose(struct service *service, uint64_t now_us)
{
    struct chunk *chunk;
    service->now_us = now_us;
    if (service->wake_us <= now_us)
        expire_all(service, now_us);
    while ((chunk = scheduler_next(&service->scheduler, now_us))) {
        count_start(service, chunk, now_us);
        report_ending(chunk->owner, chunk->device);
        chunk_queue_push(&service->chosen, chunk);
    }
    feeder_pump(service); /* what has been handed out leaves room */
}

bool pump_start(struct service *service)
{
    struct chunk *chosen = chunk_queue_pop_all(&service->chosen);
    if (chosen)
        service->ops->start(service->context, chosen);
    return chosen != NULL;
}

void service_pump(struct service *service)
{
    choose(service, service->ops->now_us(service->context));
    pump_start(service);
}

static void report_progress(const struct job *job)
{
    struct msg_job_progress progress = {
        .job = job->msgid, .index = job->index, .rows_done = job->rows_done, .rows = job->rows.row_count};
    notify(job->client, METHOD_job_progress, &msg_job_progress_type, &progress);
}

static bool has_neighbours(const struct service *service, const struct user *user)
{
    return service->stats.clients_open > user->connections;
}

void pump_return(struct service *service, struct chunk *chunk, uint64_t now_us)
{
    struct job *job = chunk->owner;
    const struct device *device = chunk->device;
    service->now_us = now_us;
    device_time_end(&device_counters_of(service, chunk->device)->device_time, &job->client->counters.device_busy_ns,
                    weight_of(chunk), now_us);
    event_log_add_chunk(service, job, chunk);
    chunk->away_us = now_us - chunk->handed_us;
    bool ended = job_return(job, chunk);
    if (chunk->status)
        scheduler_stop(&service->scheduler, job);
    else if (!chunk->rest && !chunk->below)
        counters_add_chunk(service, job, chunk);
    const bool done = !chunk->rest && !chunk->below;
    feed_return(job, chunk);
    if (has_neighbours(service, job->client->user) && !trust_excuses(service, job->client->user, chunk->handed_us))
        service_wake_by(service, scheduler_rest(chunk, now_us));
    scheduler_return(&service->scheduler, chunk);
    if (ended)
        job_end(service, job);
    else if (job->wants_progress && done)
        report_progress(job);
    if (!ended)
        report_ending(job, device);
    choose(service, now_us);
}

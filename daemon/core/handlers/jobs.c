/* job.submit and job.cancel, and a job's way through the scheduler and back. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/core/call.h"
#include "daemon/core/jobs/offsets_reader.h"
#include "daemon/core/jobs/stale.h"

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
}

static void count_outcome(struct service *service, const struct job *job)
{
    struct msg_stats_result *stats = &service->stats;
    stats->jobs_open--;
    if (job->outcome.code == 0) {
        stats->jobs_done++;
        job->client->tally.jobs_done++;
        histogram_add(&service->histograms, &service->histograms.job_queued, job->times.queued_us);
        histogram_add(&service->histograms, &service->histograms.job_duration, job->times.total_us);
    } else if (job->outcome.code == -ECANCELED) {
        stats->jobs_cancelled++;
    } else {
        stats->jobs_failed++;
        stats->jobs_expired += job->outcome.code == -ETIME;
    }
}

static void trace_job(struct service *service, const struct job *job)
{
    trace_add(&service->trace, &(struct msg_trace_event){
                                   .kind = SCAND_EVENT_JOB,
                                   .job = job->number,
                                   .client = job->client->number,
                                   .user = job->client->user->uid,
                                   .begin_us = job->arrived_us,
                                   .end_us = job->arrived_us + job->times.total_us,
                                   .started_us = job->started_us,
                                   .rows = job->rows.row_count,
                                   .code = job->outcome.code ? (uint64_t)status_from_errno(job->outcome.code) : 0,
                               });
}

static struct device_tally *tally_of(struct service *service, const struct chunk *chunk)
{
    return &service->tallies[chunk->device->number];
}

static void trace_chunk(struct service *service, const struct job *job, const struct chunk *chunk)
{
    trace_add(&service->trace,
              &(struct msg_trace_event){
                  .kind = SCAND_EVENT_CHUNK,
                  .job = job->number,
                  .client = job->client->number,
                  .user = job->client->user->uid,
                  .begin_us = chunk->handed_us,
                  .end_us = tally_of(service, chunk)->meter.read_us,
                  .rows = chunk->rest ? 0 : chunk->count,
                  .slot = (uint64_t)(chunk - service->scheduler.stations[chunk->device->number].chunks),
                  .upload_us = chunk->upload_us,
                  .kernel_us = chunk->kernel_us,
                  .download_us = chunk->download_us,
                  .device = chunk->device->number,
                  .code = chunk->status ? (uint64_t)status_from_errno(chunk->status) : 0,
              });
}

/* Answers, lets go of everything, frees it. */
static void job_finish(struct service *service, struct job *job)
{
    struct client *client = job->client;
    scheduler_remove(&service->scheduler, job);
    client_forget_job(client, job);
    job->times.total_us = service->ops->now_us(service->context) - job->arrived_us;
    count_outcome(service, job);
    trace_job(service, job);
    if (job->batch)
        batch_note(job);
    else if (job->outcome.code)
        reply_failure(client, job->msgid, &job->outcome);
    else
        reply_result(client, job->msgid, &msg_job_submit_result_type, &job->times);
    buffer_unhold(service, job->input);
    buffer_unhold(service, job->output);
    if (job->coefficients)
        buffer_unhold(service, job->coefficients);
    reading_forget(job);
    offsets_drop(client, job_take_offsets(job), job->rows.row_count + 1);
    reading_next(client); /* it may have waited for this one */
    client_unhold(client);
    job_destroy(job);
    if (service->draining && service->stats.jobs_open == 0)
        service->ops->drained(service->context);
}

/* An ended job. When it has failed, jobs that were to read its output end with it, in the order of their submission. */
static void job_end(struct service *service, struct job *job)
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

/*
 * Deadlines.
 */

static void set_wake(struct service *service, uint64_t at_us)
{
    service->wake_us = at_us;
    service->ops->wake(service->context, at_us);
}

void service_wake_by(struct service *service, uint64_t at_us)
{
    if (at_us < service->wake_us)
        set_wake(service, at_us);
}

static void job_expire(struct service *service, struct job *job)
{
    char message[LIMIT_ERROR_BYTES];
    snprintf(message, sizeof message,
             "job.submit: \"deadline_ms\" is %" PRIu64 ", and the job could not start by then, so nothing was written; "
             "submit it again, with more time or a higher \"priority\"",
             (job->deadline_us - job->arrived_us) / 1000);
    job_abandon(service, job, -ETIME, message);
}

/* Ends a client's jobs that have not started in time. The earliest deadline of the others. */
static uint64_t expire_jobs(struct service *service, struct client *client, uint64_t now_us)
{
    uint64_t earliest_us = UINT64_MAX;
    for (struct job *job = client->jobs, *peer; job; job = peer) {
        peer = job->peer;
        if (job->state != JOB_QUEUED)
            continue;
        if (job->deadline_us <= now_us)
            job_expire(service, job);
        else if (job->deadline_us < earliest_us)
            earliest_us = job->deadline_us;
    }
    return earliest_us;
}

/* Jobs are looked at when the earliest deadline has come, which may be that of one that has started since: rarely
 * enough for a walk over all of them. */
static void expire_all(struct service *service, uint64_t now_us)
{
    uint64_t earliest_us = waiting_expire(service, now_us);
    for (struct client *client = service->clients; client; client = client->next) {
        uint64_t at_us = expire_jobs(service, client, now_us);
        if (at_us < earliest_us)
            earliest_us = at_us;
    }
    set_wake(service, earliest_us);
}

void service_tick(struct service *service)
{
    service_pump(service);
    set_wake(service, service->wake_us); /* again, should this have come too early */
}

/* What it is charged of the device's time. */
static uint64_t weight_of(const struct chunk *chunk)
{
    if (!chunk->small)
        return METER_WEIGHT;
    return meter_weight(job_bytes(chunk->owner, chunk->first, chunk->count), chunk->device->info.chunk_bytes);
}

/* The last chunk is with a device that is quick about it: a client that waits is told, so that it is awake when the
 * answer comes. */
static void report_ending(const struct job *job, const struct device *device)
{
    const struct msg_job_id id = {.job = job->msgid, .index = job->index};
    if (job->wants_ending && job->state == JOB_ENDING && job->in_flight == 1 && device->info.spin_us > 0)
        notify(job->client, METHOD_job_ending, &msg_job_id_type, &id);
}

static void pump(struct service *service, uint64_t now_us)
{
    struct chunk *chunk;
    if (service->wake_us <= now_us)
        expire_all(service, now_us);
    while ((chunk = scheduler_next(&service->scheduler, now_us))) {
        const struct job *job = chunk->owner;
        meter_begin(&tally_of(service, chunk)->meter, &job->client->tally.device_busy_ns, weight_of(chunk), now_us);
        chunk->handed_us = now_us;
        chunk->job = job->number;
        chunk->user = job->client->user->uid;
        service->ops->start(service->context, chunk);
        report_ending(job, chunk->device);
    }
}

void service_pump(struct service *service)
{
    pump(service, service->ops->now_us(service->context));
}

static void report_progress(const struct job *job)
{
    struct msg_job_progress progress = {
        .job = job->msgid, .index = job->index, .rows_done = job->rows_done, .rows = job->rows.row_count};
    notify(job->client, METHOD_job_progress, &msg_job_progress_type, &progress);
}

static void count_chunk(struct service *service, const struct job *job, const struct chunk *chunk)
{
    struct client_tally *tally = &job->client->tally;
    struct msg_stats_result *stats = &service->stats;
    struct msg_histograms_result *histograms = &service->histograms;
    uint64_t samples = job_chunk_samples(job, chunk);
    stats->rows_scanned += chunk->count;
    tally->rows_scanned += chunk->count;
    stats->samples_scanned += samples;
    tally->samples_scanned += samples;
    tally_of(service, chunk)->upload_bytes += job_upload_bytes(job, chunk);
    tally_of(service, chunk)->download_bytes += job_download_bytes(job, chunk);
    histogram_add(histograms, &histograms->chunk_upload, chunk->upload_us);
    histogram_add(histograms, &histograms->chunk_kernel, chunk->kernel_us);
    histogram_add(histograms, &histograms->chunk_download, chunk->download_us);
}

void service_chunk_done(struct service *service, struct chunk *chunk)
{
    struct job *job = chunk->owner;
    const struct device *device = chunk->device;
    const uint64_t now_us = service->ops->now_us(service->context);
    meter_end(&tally_of(service, chunk)->meter, &job->client->tally.device_busy_ns, weight_of(chunk), now_us);
    trace_chunk(service, job, chunk);
    bool ended = job_take_back(job, chunk);
    if (chunk->status)
        scheduler_stop(&service->scheduler, job);
    else if (!chunk->rest)
        count_chunk(service, job, chunk);
    const bool done = !chunk->rest;
    scheduler_take_back(&service->scheduler, chunk);
    if (ended)
        job_end(service, job);
    else if (job->wants_progress && done)
        report_progress(job);
    if (!ended)
        report_ending(job, device);
    pump(service, now_us);
}

void service_drain(struct service *service)
{
    service->draining = true;
    service->ops->draining(service->context);
    if (service->stats.jobs_open == 0)
        service->ops->drained(service->context);
}

/* When about half of what is ahead is likely to be done, so that the queue is not empty before the client is back. */
static uint32_t retry_ms(uint64_t backlog_us)
{
    uint64_t ms = backlog_us / 2 / 1000;
    if (ms < LIMIT_RETRY_MIN_MS)
        return LIMIT_RETRY_MIN_MS;
    return ms < LIMIT_RETRY_MAX_MS ? (uint32_t)ms : LIMIT_RETRY_MAX_MS;
}

static int check_queues(struct call *call)
{
    const struct scheduler *scheduler = &call->service->scheduler;
    size_t own = call->client->job_count;
    uint64_t all = call->service->stats.jobs_open;
    if (own < LIMIT_CLIENT_JOBS && all < LIMIT_JOBS)
        return 0;
    uint32_t ms = retry_ms(all < LIMIT_JOBS ? scheduler_user_backlog_us(scheduler, call->client->lane.share)
                                            : scheduler_backlog_us(scheduler));
    error_set(&call->error, -EAGAIN,
              "job.submit: %zu jobs of this connection and %" PRIu64 " in all are waiting; at most %d and %d may; "
              "try again in %" PRIu32 " ms",
              own, all, LIMIT_CLIENT_JOBS, LIMIT_JOBS, ms);
    call->error.retry_ms = ms;
    return -EAGAIN;
}

static int check_quota(struct call *call)
{
    int r = user_check(call->client->user, QUOTA_JOBS, 1, "job.submit", &call->error);
    if (r)
        call->error.retry_ms = retry_ms(scheduler_user_backlog_us(&call->service->scheduler, call->client->lane.share));
    return r;
}

static bool client_has_job(const struct client *client, uint32_t msgid)
{
    const struct job *job = client->jobs_by_msgid[msgid % CLIENT_MSGIDS] > 0 ? client->jobs : NULL;
    while (job && job->msgid != msgid)
        job = job->peer;
    return job != NULL;
}

int check_submission(struct call *call)
{
    if (call->service->draining)
        return error_set(&call->error, -ESHUTDOWN,
                         "job.submit: the daemon takes no more jobs, it is about to stop; submit to the next one");
    if (client_has_job(call->client, call->msgid))
        return error_set(&call->error, -EINVAL,
                         "job.submit: msgid %" PRIu32 " is that of a job that still runs; use another", call->msgid);
    return 0;
}

static int find_buffer(struct call *call, const char *field, uint64_t id, struct buffer **out)
{
    *out = client_find_buffer(call->client, id);
    if (*out)
        return 0;
    return error_set(&call->error, -ENOENT,
                     "job.submit: \"%s.buffer\" is %" PRIu64 "; this connection has no such buffer", field, id);
}

static void job_set_deadline(struct service *service, struct job *job, uint64_t deadline_ms)
{
    job->deadline_us = deadline_ms ? job->arrived_us + deadline_ms * 1000 : UINT64_MAX;
    service_wake_by(service, job->deadline_us);
}

static bool has_nothing_to_do(const struct job *job)
{
    return job->rows.row_count == 0 || (job->rows.length == 0 && job->rows.rule.operation == SCAND_OPERATION_SCAN);
}

static void job_begin(struct call *call, struct job *job, uint64_t deadline_ms)
{
    struct client *client = call->client;
    job->client = client;
    job->msgid = call->msgid;
    job->arrived_us = call->service->ops->now_us(call->service->context);
    job_set_deadline(call->service, job, deadline_ms);
    job->peer = client->jobs;
    if (job->peer)
        job->peer->peer_before = job;
    client->jobs = job;
    client->job_count++;
    client->jobs_by_msgid[job->msgid % CLIENT_MSGIDS]++;
    user_add(client->user, QUOTA_JOBS, 1);
    client_hold(client);
    buffer_hold(job->input);
    buffer_hold(job->output);
    if (job->coefficients)
        buffer_hold(job->coefficients);
    job->number = ++call->service->stats.jobs_submitted;
    call->service->stats.jobs_open++;
    if (!job->reading && has_nothing_to_do(job))
        job_end(call->service, job);
    else
        scheduler_add(&call->service->scheduler, &client->lane, job);
}

void job_go_on(struct service *service, struct job *job, struct offsets_copy *copy)
{
    scheduler_make_ragged(&service->scheduler, job, copy);
    if (has_nothing_to_do(job))
        job_end(service, job);
}

static int check_offsets_room(struct call *call, uint64_t count)
{
    const struct client *client = call->client;
    uint64_t bytes = count * sizeof(uint64_t), own = client->offsets_bytes, users = client->user->offsets_bytes,
             all = call->service->offsets_bytes;
    if (own + bytes <= LIMIT_CLIENT_OFFSETS_BYTES && users + bytes <= LIMIT_USER_OFFSETS_BYTES &&
        all + bytes <= LIMIT_OFFSETS_BYTES)
        return 0;
    uint32_t ms = retry_ms(scheduler_backlog_us(&call->service->scheduler));
    error_set(&call->error, -EAGAIN,
              "job.submit: jobs of this connection have %" PRIu64 " bytes of offsets, those of user %u %" PRIu64
              " and all %" PRIu64 ", and %" PRIu64 " more are too many; at most %" PRIu64 ", %" PRIu64 " and %" PRIu64
              " are allowed; try again in %" PRIu32 " ms, when some of those jobs have ended",
              own, (unsigned)client->user->uid, users, all, bytes, LIMIT_CLIENT_OFFSETS_BYTES, LIMIT_USER_OFFSETS_BYTES,
              LIMIT_OFFSETS_BYTES, ms);
    call->error.retry_ms = ms;
    return -EAGAIN;
}

static int find_offsets(struct call *call, struct job *job, const struct msg_job_submit_params *params,
                        struct buffer **buffer)
{
    int r = find_buffer(call, "offsets", params->offsets.buffer, buffer);
    if (!r)
        r = offsets_check(params, &(*buffer)->span, &job->offsets_extent, &call->error);
    if (!r)
        job->offsets_in = *buffer;
    return r;
}

/* Few offsets are read here and now, others by a helper, and all that an earlier job is to write after that one. */
static int take_offsets(struct call *call, struct job *job, const struct msg_job_submit_params *params,
                        struct buffer *buffer)
{
    struct offsets_copy copy;
    const struct extent *extent = &job->offsets_extent;
    int r = check_offsets_room(call, params->offsets.shape[0]);
    if (!r)
        r = offsets_begin(params, &buffer->span, &copy, &call->error);
    if (r)
        return r;
    bool few = copy.count <= LIMIT_LOOP_OFFSETS && extent->end - extent->begin <= LIMIT_LOOP_OFFSETS_BYTES;
    if (!few || reading_must_wait(call->client->jobs, job))
        return reading_begin(call, job, buffer, &copy);
    r = offsets_continue(&copy, copy.count, &call->error);
    if (!r) {
        offsets_count(call->client, copy.count * sizeof *copy.values);
        job_make_ragged(job, &copy);
    }
    free(copy.values);
    return r;
}

/* What any of the devices can take at a time. What never crosses to host memory takes larger chunks: a launch for each
 * small one would take longer than they do. But then nothing hides how long several steps take. */
static uint64_t chunk_bytes(const struct device_set *devices, bool resident, uint32_t steps)
{
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < devices->count; i++) {
        const struct device_info *info = &devices->devices[i]->info;
        uint64_t bytes = resident ? info->resident_chunk_bytes / steps : info->chunk_bytes;
        least = bytes < least ? bytes : least;
    }
    return least;
}

static struct job_chunks chunks_of(const struct device_set *devices, bool resident, uint32_t steps)
{
    const struct device_info *info = &devices->devices[0]->info; /* the others are of its kind */
    const uint64_t bytes = chunk_bytes(devices, resident, steps);
    return (struct job_chunks){
        .bytes = bytes, .long_bytes = info->slice_us ? 2 * bytes : 0, .work_per_byte = info->work_per_byte};
}

static bool is_resident(const struct buffer *buffer)
{
    return buffer->span.place == SCAND_PLACE_DEVICE;
}

static int job_take(struct call *call, const struct msg_job_submit_params *params, struct batch *batch, uint32_t index)
{
    struct buffer *input, *output, *coefficients = NULL, *offsets = NULL;
    int r = check_queues(call);
    if (!r)
        r = check_quota(call);
    if (!r)
        r = find_buffer(call, "input", params->input.buffer, &input);
    if (!r)
        r = find_buffer(call, "output", params->output.buffer, &output);
    if (!r && params->coefficients.shape_count > 0)
        r = find_buffer(call, "coefficients", params->coefficients.buffer, &coefficients);
    if (r)
        return r;
    struct job *job = calloc(1, sizeof *job);
    if (!job)
        return error_set(&call->error, -ENOMEM, "job.submit: out of memory for another job; try again later");
    bool resident = is_resident(input) && is_resident(output) && (!coefficients || is_resident(coefficients));
    struct job_chunks chunks = chunks_of(call->service->devices, resident, 1 + params->then_count);
    r = job_plan(job, params, input, output, coefficients, &chunks, &call->error);
    if (!r && params->offsets.shape_count > 0)
        r = find_offsets(call, job, params, &offsets);
    if (!r)
        r = stale_check(call, job);
    if (!r && offsets)
        r = take_offsets(call, job, params, offsets);
    if (r) {
        job_destroy(job);
        return r;
    }
    job->batch = batch;
    job->index = index;
    stale_replace(call->client, job);
    job_begin(call, job, params->deadline_ms);
    reading_next(call->client);
    return 0;
}

int job_admit(struct call *call, const struct msg_job_submit_params *params, struct batch *batch, uint32_t index)
{
    int r = job_take(call, params, batch, index);
    if (r)
        stale_refuse(call->client, params);
    return r;
}

int handle_job_submit(struct call *call, const struct msg_job_submit_params *params)
{
    int r = check_submission(call);
    if (!r)
        return job_admit(call, params, NULL, 0);
    stale_refuse(call->client, params);
    return r;
}

static bool is_meant(const struct job *job, const struct msg_job_id *id)
{
    return job->msgid == id->job && (id->index == 0 || job->index == id->index);
}

/* One job, or all of a batch that have not ended. */
int handle_job_cancel(struct call *call, const struct msg_job_id *params)
{
    bool found = false;
    for (struct job *job = call->client->jobs, *peer; job; job = peer) {
        peer = job->peer;
        if (!is_meant(job, params))
            continue;
        found = true;
        job_abandon(call->service, job, -ECANCELED,
                    "job.submit: cancelled by its client; what the output holds is undefined");
    }
    if (!found)
        return error_set(&call->error, -ENOENT,
                         "job.cancel: \"job\" is %" PRIu64 "; no such job of this connection is queued or running",
                         params->job);
    reply_nothing(call->client, call->msgid);
    return 0;
}

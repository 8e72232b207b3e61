#include "admission.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/core/clients.h"
#include "daemon/core/loop.h"
#include "daemon/core/memory/client_buffers.h"
#include "ending.h"
#include "offsets_queue.h"
#include "offsets_reader.h"
#include "stale.h"

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
    uint32_t ms = retry_ms(all < LIMIT_JOBS ? scheduler_user_backlog_us(scheduler, call->client->lane.user)
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
        call->error.retry_ms = retry_ms(scheduler_user_backlog_us(&call->service->scheduler, call->client->lane.user));
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

static void job_begin(struct call *call, struct job *job, uint64_t deadline_ms)
{
    struct client *client = call->client;
    job->client = client;
    job->msgid = call->msgid;
    job->arrived_us = call->service->message_us;
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
    if (!job->reading && job_is_empty(job))
        job_end(call->service, job);
    else
        scheduler_add(&call->service->scheduler, &client->lane, job);
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
    if (r)
        return r;
    r = offsets_check(params, &(*buffer)->span, &job->offsets_extent, &call->error);
    if (r)
        return r;
    job->offsets_in = *buffer;
    return 0;
}

/* Few offsets are read here and now, others by a helper, and all that an earlier job is to write after that one. */
static int accept_offsets(struct call *call, struct job *job, const struct msg_job_submit_params *params,
                          struct buffer *buffer)
{
    struct offsets_copy copy;
    const struct extent *extent = &job->offsets_extent;
    int r;
    if ((r = check_offsets_room(call, params->offsets.shape[0])) ||
        (r = offsets_begin(params, &buffer->span, &copy, &call->error)))
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

/* What can only be checked of a planned job: its offsets, and whether what it reads is stale. */
static int check_planned(struct call *call, struct job *job, const struct msg_job_submit_params *params)
{
    struct buffer *offsets = NULL;
    int r;
    if (params->offsets.shape_count > 0 && (r = find_offsets(call, job, params, &offsets)))
        return r;
    r = stale_check(call, job);
    return r || !offsets ? r : accept_offsets(call, job, params, offsets);
}

static int job_accept(struct call *call, const struct msg_job_submit_params *params, struct batch *batch,
                      uint32_t index)
{
    struct buffer *input, *output, *coefficients = NULL;
    int r;
    if ((r = check_queues(call)) || (r = check_quota(call)) ||
        (r = find_buffer(call, "input", params->input.buffer, &input)) ||
        (r = find_buffer(call, "output", params->output.buffer, &output)))
        return r;
    if (params->coefficients.shape_count > 0 &&
        (r = find_buffer(call, "coefficients", params->coefficients.buffer, &coefficients)))
        return r;
    struct job *job = calloc(1, sizeof *job);
    if (!job)
        return error_set(&call->error, -ENOMEM, "job.submit: out of memory for another job; try again later");
    bool resident = is_resident(input) && is_resident(output) && (!coefficients || is_resident(coefficients));
    struct job_chunks chunks = chunks_of(call->service->devices, resident, 1 + params->then_count);
    r = job_plan(job, params, input, output, coefficients, &chunks, &call->error);
    r = r ? r : check_planned(call, job, params);
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
    int r = job_accept(call, params, batch, index);
    if (r)
        stale_refuse(call->client, params);
    return r;
}

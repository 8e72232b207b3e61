#include "admission.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/core/clients.h"
#include "daemon/core/loop.h"
#include "daemon/core/memory/client_buffers.h"
#include "ending.h"
#include "feed.h"
#include "offsets_queue.h"
#include "offsets_reader.h"
#include "protocol/describe.h"
#include "stale.h"

/* Returns when about half of what is ahead is likely to be done, so that the queue is not empty before the client is
 * back. */
static uint32_t retry_ms(uint64_t backlog_us)
{
    uint64_t ms = backlog_us / 2 / 1000;
    if (ms < LIMIT_RETRY_MIN_MS)
        return LIMIT_RETRY_MIN_MS;
    return ms < LIMIT_RETRY_MAX_MS ? (uint32_t)ms : LIMIT_RETRY_MAX_MS;
}

/* Returns how many jobs a user may have, so that queues have room for whoever comes next. */
static uint64_t user_most_jobs(const struct service *service, const struct user *user)
{
    const struct stock jobs = {.most = LIMIT_JOBS, .used = service->stats.jobs_open};
    return stock_allowed_half(&jobs, user->used[QUOTA_JOBS]);
}

static int check_queues(struct call *call, const char *method)
{
    const struct scheduler *scheduler = &call->service->scheduler;
    const struct user *user = call->client->user;
    const size_t own = call->client->job_count;
    const uint64_t users = user->used[QUOTA_JOBS], most = user_most_jobs(call->service, user);
    if (own < LIMIT_CLIENT_JOBS && users < most)
        return 0;
    uint32_t ms =
        retry_ms(users > 0 ? scheduler_user_backlog_us(scheduler, &user->fair) : scheduler_backlog_us(scheduler));
    error_set(&call->error, -EAGAIN,
              "%s: %zu jobs of this connection, %" PRIu64 " of user %u and %" PRIu64
              " in all are waiting; at most %d, %" PRIu64 " and %d may; try again in %" PRIu32 " ms",
              method, own, users, (unsigned)user->uid, call->service->stats.jobs_open, LIMIT_CLIENT_JOBS, most,
              LIMIT_JOBS, ms);
    call->error.retry_ms = ms;
    return -EAGAIN;
}

static int check_quota(struct call *call, const char *method)
{
    const struct user *user = call->client->user;
    int r = user_check(user, QUOTA_JOBS, 1, method, &call->error);
    if (r && call->error.retry_ms)
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

static int refuse_drained(struct call *call)
{
    call->client->knows_drain = true;
    service_check_drained(call->service);
    return error_set(&call->error, -ESHUTDOWN,
                     "the daemon takes no more jobs, it is about to stop; submit to the next one");
}

static int check_daemon(struct call *call)
{
    if (call->service->draining)
        return refuse_drained(call);
    if (client_has_job(call->client, call->msgid))
        return error_set(&call->error, -EINVAL, "msgid %" PRIu32 " is that of a job that still runs; use another",
                         call->msgid);
    return 0;
}

int check_submission(struct call *call, bool submitted)
{
    int r = check_daemon(call);
    if (r)
        error_prefix(&call->error, request_method(submitted));
    return r;
}

static int find_buffers(struct call *call, const struct request *request, struct job *job)
{
    for (uint32_t i = 0; i < request->operand_count; i++) {
        const struct msg_tensor *tensor = request->operands[i].tensor;
        char name[FIELD_NAME_BYTES];
        struct buffer *buffer = tensor ? client_find_buffer(call->client, tensor->buffer) : NULL;
        if (tensor && !buffer)
            return error_set(&call->error, -ENOENT, "\"%s.buffer\" is %" PRIu64 "; this connection has no such buffer",
                             request_operand_name(request, i, name), tensor->buffer);
        job->operands[i].buffer = buffer;
    }
    return 0;
}

static void job_set_deadline(struct service *service, struct job *job, uint64_t deadline_ms)
{
    if (deadline_ms == 0)
        return;
    job->deadline = (struct deadline){.at_us = job->arrived_us + deadline_ms * 1000, .kind = DEADLINE_JOB};
    deadlines_add(&service->deadlines, &job->deadline);
    service_wake_by(service, job->deadline.at_us);
}

static void job_begin(struct call *call, struct job *job, uint64_t deadline_ms)
{
    struct client *client = call->client;
    job->client = client;
    job->msgid = call->msgid;
    job->arrived_us = call->service->now_us;
    job_set_deadline(call->service, job, deadline_ms);
    job->peer = client->jobs;
    if (job->peer)
        job->peer->peer_before = job;
    client->jobs = job;
    client->job_count++;
    client->jobs_by_msgid[job->msgid % CLIENT_MSGIDS]++;
    user_add(client->user, QUOTA_JOBS, 1);
    client_hold(client);
    for (uint32_t i = 0; i < job->operand_count; i++)
        if (job->operands[i].buffer)
            buffer_hold(job->operands[i].buffer);
    job->number = ++call->service->stats.jobs_numbered;
    call->service->stats.jobs_submitted++;
    if (job->group)
        group_add(job->group, job);
    call->service->stats.jobs_open++;
    feed_join(call->service, job);
    if (!job->reading && job_is_empty(job))
        job_end(call->service, job);
    else
        scheduler_add(&call->service->scheduler, &client->lane, job);
    if (client->user->fair.rests_until_us > call->service->now_us)
        service_wake_by(call->service, client->user->fair.rests_until_us);
}

/* Returns how many bytes of offsets the jobs of a user may have: no more than half of what others leave. */
static uint64_t user_most_offsets_bytes(const struct service *service, const struct user *user)
{
    const struct stock bytes = {.most = LIMIT_OFFSETS_BYTES, .used = service->offsets_bytes};
    const uint64_t half = stock_allowed_half(&bytes, user->offsets_bytes);
    return half < LIMIT_USER_OFFSETS_BYTES ? half : LIMIT_USER_OFFSETS_BYTES;
}

static int check_offsets_room(struct call *call, uint64_t count)
{
    const struct client *client = call->client;
    const uint64_t bytes = count * sizeof(uint64_t), own = client->offsets_bytes, users = client->user->offsets_bytes,
                   most = user_most_offsets_bytes(call->service, client->user);
    if (own + bytes <= LIMIT_CLIENT_OFFSETS_BYTES && users + bytes <= most)
        return 0;
    uint32_t ms = retry_ms(scheduler_backlog_us(&call->service->scheduler));
    error_set(&call->error, -EAGAIN,
              "jobs of this connection have %" PRIu64 " bytes of offsets, those of user %u %" PRIu64 " and all %" PRIu64
              ", and %" PRIu64 " more are too many; at most %" PRIu64 ", %" PRIu64 " and %" PRIu64
              " are allowed; try again in %" PRIu32 " ms, when some of those jobs have ended",
              own, (unsigned)client->user->uid, users, call->service->offsets_bytes, bytes, LIMIT_CLIENT_OFFSETS_BYTES,
              most, LIMIT_OFFSETS_BYTES, ms);
    call->error.retry_ms = ms;
    return -EAGAIN;
}

/* Offsets say how many rows there are, so they are checked before the rows are laid out; their values are not read yet.
 */
static int check_offsets(struct call *call, const struct request *request, struct job *job)
{
    struct operand *offsets = &job->operands[OPERAND_OFFSETS];
    offsets->access = ACCESS_READ;
    offsets->follows = FOLLOWS_JOB;
    if (!offsets->buffer)
        return 0;
    if (buffer_is_file(offsets->buffer))
        return error_set(&call->error, -EINVAL,
                         "\"offsets.buffer\" is %" PRIu64
                         ", a file (buffer.import_file); allowed: memory; copy them into a buffer of buffer.create",
                         offsets->buffer->id);
    return offsets_check(request->params, &offsets->buffer->span, &offsets->extent, &call->error);
}

/* Reads few offsets at once; a helper reads others, and any that an earlier job is to write, after that job. */
static int accept_offsets(struct call *call, struct job *job, const struct msg_job_run_params *params)
{
    struct offsets_copy copy;
    struct buffer *buffer = job->operands[OPERAND_OFFSETS].buffer;
    const struct extent *extent = &job->operands[OPERAND_OFFSETS].extent;
    int r;
    if (!buffer)
        return 0;
    if ((r = check_offsets_room(call, params->offsets.shape[0])) ||
        (r = offsets_begin(params, &buffer->span, &copy, &call->error)))
        return r;
    const bool few = copy.count <= LIMIT_LOOP_OFFSETS && !buffer->span.large && !call->client->user->distrusted &&
                     extent->end - extent->begin <= LIMIT_LOOP_OFFSETS_BYTES;
    if (!few || reading_must_wait(call->client->jobs, job))
        return reading_begin(call, job, buffer, &copy);
    r = offsets_continue(&copy, copy.count, &call->error);
    r = r ? r : job_check_ragged(job, copy.longest, &call->error);
    if (!r) {
        offsets_count(call->client, copy.count * sizeof *copy.values);
        job_make_ragged(job, &copy);
    }
    free(copy.values);
    return r;
}

/* The largest chunk that every device can take. Chunks on device memory alone are larger, since launches of small ones
 * take longer than their kernels; but smaller for several steps, whose time nothing hides. */
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

static bool is_resident(const struct job *job)
{
    for (uint32_t i = 0; i < job->operand_count; i++) {
        const struct buffer *buffer = job->operands[i].buffer;
        if (i != OPERAND_OFFSETS && buffer && buffer->span.place != SCAND_PLACE_DEVICE)
            return false;
    }
    return true;
}

/* Slices and the cost of work are the first device's: others are of its kind, or take only what they can. */
static struct job_chunks chunks_of(const struct device_set *devices, const struct job *job, uint32_t steps)
{
    const struct device_info *info = &devices->devices[0]->info;
    const uint64_t bytes = chunk_bytes(devices, is_resident(job), steps);
    return (struct job_chunks){.bytes = bytes,
                               .long_bytes = info->slice_us ? 2 * bytes : 0,
                               .work_per_byte = info->work_per_byte,
                               .row_work = info->chunk_row_work};
}

static int job_prepare(struct call *call, struct request *request, struct job *job)
{
    int r;
    if ((r = group_of_field(call->client, request->params->group, &job->group, &call->error)) ||
        (r = find_buffers(call, request, job)) || (r = check_offsets(call, request, job)))
        return r;
    const struct job_chunks chunks = chunks_of(call->service->devices, job, request->params->steps_count);
    if ((r = job_plan(job, request, &chunks, &call->error)) || (r = stale_check(call, job)) ||
        (r = feed_begin(job, &call->error)))
        return r;
    return accept_offsets(call, job, request->params);
}

static int job_accept(struct call *call, struct request *request, struct batch *batch, uint32_t index)
{
    struct job *job = job_create(&call->service->spare_jobs, request->operand_count);
    if (!job)
        return error_set(&call->error, -ENOMEM, "out of memory for another job; try again later");
    int r = job_prepare(call, request, job);
    if (r) {
        job_destroy(&call->service->spare_jobs, job);
        return r;
    }
    job->batch = batch;
    job->index = index;
    stale_replace(call->client, job);
    job_begin(call, job, request->params->deadline_ms);
    reading_next(call->client);
    return 0;
}

void job_refuse_outputs(struct client *client, const struct msg_job_run_params *params)
{
    stale_refuse(client, &params->output);
    for (uint32_t i = 0; i < params->steps_count; i++)
        for (const struct operand_row *row = operand_rows[params->steps[i].operation]; row->name; row++) {
            const struct msg_tensor *tensor = (const void *)((const char *)&params->steps[i] + row->offset);
            if (row->access == ACCESS_WRITE && tensor->shape_count > 0)
                stale_refuse(client, tensor);
        }
}

/* Checks that there is room for a job of that method. */
static int check_room(struct call *call, const char *method)
{
    int r = check_quota(call, method);
    return r ? r : check_queues(call, method);
}

/* Makes a job of the request unless `r` says why not. Puts the method's name before an error. */
static int request_accept(struct call *call, struct request *request, int r, struct batch *batch, uint32_t index)
{
    r = r ? r : job_accept(call, request, batch, index);
    if (r)
        error_prefix(&call->error, request_method(request->submitted));
    return r;
}

int job_admit(struct call *call, const struct msg_job_run_params *params, struct batch *batch, uint32_t index)
{
    struct request request = {.submitted = false};
    struct msg_job_run_params expanded;
    int r = check_room(call, request_method(false));
    if (!r)
        r = request_accept(call, &request, request_init(&request, params, &expanded, &call->error), batch, index);
    if (r)
        job_refuse_outputs(call->client, params);
    return r;
}

int job_admit_submit(struct call *call, const struct msg_job_submit_params *params, struct batch *batch, uint32_t index)
{
    struct request request = {.submitted = true};
    struct msg_job_run_params run;
    int r = check_room(call, request_method(true));
    if (!r)
        r = request_accept(call, &request, request_init_submit(&request, params, &run, &call->error), batch, index);
    if (r)
        stale_refuse(call->client, &params->output);
    return r;
}

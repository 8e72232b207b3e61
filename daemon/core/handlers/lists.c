/*
 * Requests by which people look at the daemon and its jobs, and stop them: server.jobs, server.clients, server.users,
 * server.trace and server.cancel. Everybody sees who uses how much. The names and processes of programs, and what they
 * compute, are for their own user, root and the daemon's own user.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/core/clients.h"
#include "daemon/core/jobs/ending.h"
#include "daemon/core/jobs/offsets_queue.h"
#include "daemon/core/replies.h"
#include "daemon/core/stats/counters.h"
#include "handlers.h"

/* The LIMIT_MAPS things with the lowest numbers from `from` on, in order, and one more: where the next page begins. */
struct page {
    uint64_t from;
    uint32_t count;
    struct page_row {
        uint64_t number;
        const struct client *client;
        const void *thing; /* a job or a group of the client; NULL: the client itself */
        bool is_group;
    } rows[LIMIT_MAPS + 1];
};

static void page_offer(struct page *page, struct page_row row)
{
    bool full = page->count > LIMIT_MAPS;
    if (row.number < page->from || (full && row.number > page->rows[LIMIT_MAPS].number))
        return;
    uint32_t at = full ? LIMIT_MAPS : page->count++;
    for (; at > 0 && page->rows[at - 1].number > row.number; at--)
        page->rows[at] = page->rows[at - 1];
    page->rows[at] = row;
}

static uint32_t page_length(const struct page *page)
{
    return page->count < LIMIT_MAPS ? page->count : LIMIT_MAPS;
}

static uint64_t page_next(const struct page *page)
{
    return page->count > LIMIT_MAPS ? page->rows[LIMIT_MAPS].number : 0;
}

static bool may_see(const struct client *client, const struct client *other)
{
    return client->user == other->user || client_may_manage(client);
}

static enum scand_job_state describe_state(const struct job *job)
{
    if (job->state == JOB_QUEUED)
        return SCAND_JOB_STATE_QUEUED;
    return job->outcome.code ? SCAND_JOB_STATE_STOPPING : SCAND_JOB_STATE_RUNNING;
}

static void describe_job(const struct call *call, const struct job *job, struct msg_job_row *out)
{
    uint64_t now_us = call->service->ops->now_us(call->service->context);
    *out = (struct msg_job_row){
        .job = job->number,
        .client = job->client->number,
        .user = job->client->user->uid,
        .state = describe_state(job),
        .rows = reading_row_count(job),
        .rows_done = job->rows_done,
        .bytes = job_extent_bytes(job),
        .age_us = now_us - job->arrived_us,
        .running_us = job->state == JOB_QUEUED ? 0 : now_us - job->started_us,
        .priority = job->priority,
    };
    if (!may_see(call->client, job->client))
        return;
    memcpy(out->name, job->client->name, sizeof out->name);
    job_describe(job, out->operation, sizeof out->operation);
}

static void describe_group(const struct call *call, const struct client *client, const struct group *group,
                           struct msg_job_row *out)
{
    const uint64_t now_us = call->service->ops->now_us(call->service->context);
    uint64_t rows_done = group->rows_done, started_us = group->started_us;
    for (const struct job *job = client->jobs; job; job = job->peer) {
        if (job->group != group)
            continue;
        rows_done += job->rows_done;
        if (job->state != JOB_QUEUED && (started_us == 0 || job->started_us < started_us))
            started_us = job->started_us;
    }
    *out = (struct msg_job_row){
        .job = group->number,
        .client = client->number,
        .user = client->user->uid,
        .state = group->cancelled ? SCAND_JOB_STATE_STOPPING
                 : started_us     ? SCAND_JOB_STATE_RUNNING
                                  : SCAND_JOB_STATE_QUEUED,
        .rows = group->rows,
        .rows_done = rows_done,
        .bytes = group->bytes,
        .age_us = now_us - group->begun_us,
        .running_us = started_us ? now_us - started_us : 0,
        .priority = group->priority,
    };
    if (!may_see(call->client, client))
        return;
    memcpy(out->name, group->name[0] ? group->name : client->name, sizeof out->name);
    memcpy(out->operation, group->operation, sizeof out->operation);
}

/* A job of a group is not listed: the group is, also where it has none at the moment. */
static void offer_jobs(struct page *page, const struct client *client)
{
    for (const struct job *job = client->jobs; job; job = job->peer)
        if (!job->group)
            page_offer(page, (struct page_row){job->number, client, job, false});
    for (uint32_t i = 0; i < LIMIT_CLIENT_GROUPS; i++)
        if (client->groups[i].number > 0)
            page_offer(page, (struct page_row){client->groups[i].number, client, &client->groups[i], true});
}

int handle_server_jobs(struct call *call, const struct msg_page_params *params)
{
    struct page page = {.from = params->from};
    for (const struct client *client = call->service->clients; client; client = client->next)
        offer_jobs(&page, client);
    struct msg_jobs_result result = {.jobs_count = page_length(&page), .next = page_next(&page)};
    for (uint32_t i = 0; i < result.jobs_count; i++) {
        const struct page_row *row = &page.rows[i];
        if (row->is_group)
            describe_group(call, row->client, row->thing, &result.jobs[i]);
        else
            describe_job(call, row->thing, &result.jobs[i]);
    }
    reply_result(call->client, call->msgid, &msg_jobs_result_type, &result);
    return 0;
}

static void add_jobs(const struct client *client, struct msg_client_row *out)
{
    for (const struct job *job = client->jobs; job; job = job->peer)
        *(job->state == JOB_QUEUED ? &out->jobs_queued : &out->jobs_running) += 1;
}

static void add_buffers(const struct client *client, struct msg_client_row *out)
{
    for (const struct buffer *buffer = client->buffers; buffer; buffer = buffer->next) {
        bool on_device = buffer->span.place == SCAND_PLACE_DEVICE;
        out->buffers++;
        if (buffer->source != BUFFER_FOREIGN && !buffer_is_file(buffer)) /* these are no memory of the daemon's */
            *(on_device ? &out->device_bytes : &out->host_bytes) += buffer->span.size_bytes;
    }
}

static void describe_client(const struct call *call, const struct client *client, struct msg_client_row *out)
{
    const struct client_counters *counters = &client->counters;
    const struct user *user = client->user;
    *out = (struct msg_client_row){
        .client = client->number,
        .user = user->uid,
        .age_us = call->service->ops->now_us(call->service->context) - client->opened_us,
        .jobs_done = counters->jobs_done,
        .rows_scanned = counters->rows_scanned,
        .samples_scanned = counters->samples_scanned,
        .device_busy_us = counters->device_busy_ns / 1000,
        .user_host_bytes = user->used[QUOTA_HOST_MEMORY],
        .quota_host_bytes = user->most[QUOTA_HOST_MEMORY],
        .user_device_bytes = user->used[QUOTA_DEVICE_MEMORY],
        .quota_device_bytes = user->most[QUOTA_DEVICE_MEMORY],
        .user_jobs = user->used[QUOTA_JOBS],
        .quota_jobs = user->most[QUOTA_JOBS],
        .user_connections = user->used[QUOTA_CONNECTIONS],
        .quota_connections = user->most[QUOTA_CONNECTIONS],
    };
    add_jobs(client, out);
    add_buffers(client, out);
    if (!may_see(call->client, client))
        return;
    memcpy(out->name, client->name, sizeof out->name);
    out->pid = (uint64_t)client->pid;
}

int handle_server_clients(struct call *call, const struct msg_page_params *params)
{
    struct service *service = call->service;
    struct page page = {.from = params->from};
    for (const struct client *client = service->clients; client; client = client->next)
        page_offer(&page, (struct page_row){client->number, client, NULL, false});
    service_charge_devices(service);
    struct msg_clients_result result = {.clients_count = page_length(&page), .next = page_next(&page)};
    for (uint32_t i = 0; i < result.clients_count; i++)
        describe_client(call, page.rows[i].client, &result.clients[i]);
    reply_result(call->client, call->msgid, &msg_clients_result_type, &result);
    return 0;
}

int handle_server_users(struct call *call, const struct msg_page_params *params)
{
    struct msg_users_result result = {.next = params->from};
    result.users_count = service_describe_users(call->service, &result.next, result.users);
    reply_result(call->client, call->msgid, &msg_users_result_type, &result);
    return 0;
}

int handle_server_trace(struct call *call, const struct msg_page_params *params)
{
    struct msg_trace_result result;
    event_log_read(&call->service->event_log, params->from, &result);
    reply_result(call->client, call->msgid, &msg_trace_result_type, &result);
    return 0;
}

/* A job, or a group, of that number. */
struct found {
    struct client *client; /* NULL: there is none */
    struct job *job;
    struct group *group;
};

static struct found find_job(const struct service *service, uint64_t number)
{
    for (struct client *client = service->clients; client && number > 0; client = client->next) {
        for (struct job *job = client->jobs; job; job = job->peer)
            if (job->number == number)
                return (struct found){.client = client, .job = job};
        for (uint32_t i = 0; i < LIMIT_CLIENT_GROUPS; i++)
            if (client->groups[i].number == number)
                return (struct found){.client = client, .group = &client->groups[i]};
    }
    return (struct found){.job = NULL};
}

/* Cancels the jobs that it has; later ones are refused. */
static void group_cancel(struct service *service, struct client *client, struct group *group)
{
    group->cancelled = true;
    for (struct job *job = client->jobs, *peer; job; job = peer) {
        peer = job->peer;
        if (job->group == group)
            job_abandon(service, job, -ECANCELED, "cancelled by server.cancel; what the output holds is undefined");
    }
}

int handle_server_cancel(struct call *call, const struct msg_job_number *params)
{
    const struct found found = find_job(call->service, params->job);
    if (!found.client)
        return error_set(&call->error, -ENOENT,
                         "server.cancel: \"job\" is %" PRIu64
                         "; no such job is queued or running: it has ended, or never was; server.jobs lists all",
                         params->job);
    if (!may_see(call->client, found.client))
        return error_set(
            &call->error, -EPERM,
            "server.cancel: \"job\" is %" PRIu64
            ", which is not a job of user %u; its own user, root and the daemon's own user %u may cancel it",
            params->job, (unsigned)call->client->user->uid, (unsigned)call->service->owner);
    if (found.group)
        group_cancel(call->service, found.client, found.group);
    else
        job_abandon(call->service, found.job, -ECANCELED,
                    "cancelled by server.cancel; what the output holds is undefined");
    reply_nothing(call->client, call->msgid);
    return 0;
}

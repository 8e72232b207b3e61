/* Questions about the daemon. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/internal.h"
#include "protocol/metrics.h"
#include "protocol/report.h"

int scand_ping(struct scand *daemon, uint64_t *round_trip_us)
{
    SESSION_GUARD(daemon);
    /* The clock starts after reconnecting, which is no part of a round trip. */
    int code = session_ready(daemon);
    uint64_t begin_us = clock_us();
    if (code == 0)
        code = call_run(daemon, &(struct call){.method = METHOD_server_ping, .params = &(struct msg_nothing){}});
    if (code == 0 && round_trip_us)
        *round_trip_us = clock_us() - begin_us;
    return (int)status_from_errno(code);
}

/* Calls a method without params, once the rows are checked. */
static int rows_ask(struct scand *daemon, const struct rows *rows, enum method method, void *result)
{
    int code = rows_check(daemon, rows);
    return code ? code
                : call_run(daemon,
                           &(struct call){.method = method, .params = &(struct msg_nothing){}, .result = result});
}

int scand_devices(struct scand *daemon, struct scand_device *devices, size_t row_bytes, size_t capacity, size_t *count)
{
    SESSION_GUARD(daemon);
    struct msg_devices_result result;
    struct rows rows = {devices, row_bytes, capacity, 0};
    int code = rows_ask(daemon, &rows, METHOD_server_devices, &result);
    if (code)
        return (int)status_from_errno(code);
    for (uint32_t i = 0; i < result.devices_count && !rows_are_full(&rows); i++) {
        struct scand_device device;
        report_device(&result.devices[i], &device);
        rows_add(&rows, &device, sizeof device);
    }
    *count = rows.count;
    return SCAND_OK;
}

#define PAGES_MAX 4096 /* of a list: a daemon has some thousand jobs and events at most */

/* A page of any list that comes in pages. */
union page {
    struct msg_kernels_result kernels;
    struct msg_users_result users;
    struct msg_jobs_result jobs;
    struct msg_clients_result clients;
    struct msg_trace_result trace;
};

/* Adds a page's rows, as many as fit, and returns where the list goes on: at the next one; 0: nowhere. */
typedef uint64_t add_page(const union page *page, struct rows *rows);

/* Reads a list from `from` on until the rows are full. *next, which may be NULL, is where the list goes on, or 0. */
static int list_read(struct scand *daemon, enum method method, add_page *add, struct rows rows, uint64_t from,
                     size_t *count, uint64_t *next)
{
    union page page;
    unsigned pages = 0;
    int code = rows_check(daemon, &rows);
    if (code)
        return (int)status_from_errno(code);
    do {
        struct msg_page_params params = {from};
        if (pages++ == PAGES_MAX)
            return (int)status_from_errno(session_fail(daemon, -EBADMSG,
                                                       "the daemon's list goes on after %d pages: make sure that it is "
                                                       "scand",
                                                       PAGES_MAX));
        code = call_run(daemon, &(struct call){.method = method, .params = &params, .result = &page});
        if (code)
            return (int)status_from_errno(code);
        const uint64_t after = add(&page, &rows);
        from = after > from || rows.capacity == 0 ? after : 0; /* an answer that leads back ends the list */
    } while (from && !rows_are_full(&rows));
    *count = rows.count;
    if (next)
        *next = from;
    return SCAND_OK;
}

/* Returns the operation of a word; one that enum scand_operation does not have is SCAND_OPERATION_COUNT. */
static void kernel_fill(struct scand_kernel *kernel, const struct msg_kernel *from)
{
    const char *operation = *from->operation ? from->operation : scand_word(SCAND_LIST_OPERATION, SCAND_OPERATION_SCAN);
    const int known = scand_word_find(SCAND_LIST_OPERATION, operation);
    *kernel = (struct scand_kernel){.repeatable = from->repeatable != 0,
                                    .operation = known < 0 ? SCAND_OPERATION_COUNT : (enum scand_operation)known};
    snprintf(kernel->name, sizeof kernel->name, "%.*s", (int)sizeof kernel->name - 1, from->name);
    snprintf(kernel->line, sizeof kernel->line, "%.*s", (int)sizeof kernel->line - 1, from->line);
    snprintf(kernel->backend, sizeof kernel->backend, "%.*s", (int)sizeof kernel->backend - 1, from->backend);
    snprintf(kernel->step, sizeof kernel->step, "%.*s", (int)sizeof kernel->step - 1, operation);
    snprintf(kernel->dtype, sizeof kernel->dtype, "%.*s", (int)sizeof kernel->dtype - 1,
             *from->dtype ? from->dtype : scand_word(SCAND_LIST_DTYPE, SCAND_DTYPE_F32));
    for (uint32_t i = 0; i < from->accumulators_count; i++)
        kernel->accumulators |= 1u << from->accumulators[i];
    for (uint32_t i = 0; i < from->reductions_count; i++)
        kernel->reductions |= 1u << from->reductions[i];
}

/* A program whose struct ends before `step` knows of scans and reductions alone. */
static uint64_t add_kernels(const union page *page, struct rows *rows)
{
    for (uint32_t i = 0; i < page->kernels.kernels_count && !rows_are_full(rows); i++) {
        struct scand_kernel kernel;
        kernel_fill(&kernel, &page->kernels.kernels[i]);
        if (kernel.operation != SCAND_OPERATION_COUNT || rows->row_bytes > offsetof(struct scand_kernel, step))
            rows_add(rows, &kernel, sizeof kernel);
    }
    return page->kernels.next;
}

int scand_kernels(struct scand *daemon, struct scand_kernel *kernels, size_t row_bytes, size_t capacity, size_t *count)
{
    SESSION_GUARD(daemon);
    const struct rows rows = {kernels, row_bytes, capacity, 0};
    return list_read(daemon, METHOD_server_kernels, add_kernels, rows, 0, count, NULL);
}

int scand_stats(struct scand *daemon, struct scand_counter *counters, size_t row_bytes, size_t capacity, size_t *count)
{
    SESSION_GUARD(daemon);
    struct msg_stats_result result;
    struct scand_counter all[REPORT_COUNTERS];
    struct rows rows = {counters, row_bytes, capacity, 0};
    int code = rows_ask(daemon, &rows, METHOD_server_stats, &result);
    if (code)
        return (int)status_from_errno(code);
    size_t known = report_counters(&result, all, REPORT_COUNTERS);
    for (size_t i = 0; i < known && !rows_are_full(&rows); i++)
        rows_add(&rows, &all[i], sizeof all[i]);
    *count = rows.count;
    return SCAND_OK;
}

int scand_histograms(struct scand *daemon, struct scand_histogram *histograms, size_t row_bytes, size_t capacity,
                     size_t *count)
{
    SESSION_GUARD(daemon);
    struct msg_histograms_result result;
    struct scand_histogram all[REPORT_HISTOGRAMS];
    struct rows rows = {histograms, row_bytes, capacity, 0};
    int code = rows_ask(daemon, &rows, METHOD_server_histograms, &result);
    if (code)
        return (int)status_from_errno(code);
    size_t known = report_histograms(&result, all, REPORT_HISTOGRAMS);
    for (size_t i = 0; i < known && !rows_are_full(&rows); i++)
        rows_add(&rows, &all[i], sizeof all[i]);
    *count = rows.count;
    return SCAND_OK;
}

static uint64_t add_users(const union page *page, struct rows *rows)
{
    for (uint32_t i = 0; i < page->users.users_count && !rows_are_full(rows); i++) {
        struct scand_user_info user;
        report_user(&page->users.users[i], &user);
        rows_add(rows, &user, sizeof user);
    }
    return page->users.next;
}

int scand_users(struct scand *daemon, struct scand_user_info *users, size_t row_bytes, size_t capacity, size_t *count)
{
    SESSION_GUARD(daemon);
    const struct rows rows = {users, row_bytes, capacity, 0};
    return list_read(daemon, METHOD_server_users, add_users, rows, 0, count, NULL);
}

/* `users`: room for LIMIT_USERS. */
static int metrics_collect(struct scand *daemon, struct metrics *metrics, struct scand_user_info *users)
{
    *metrics = (struct metrics){.server = daemon->server, .users = users};
    int status =
        scand_stats(daemon, metrics->counters, sizeof *metrics->counters, METRICS_COUNTERS, &metrics->counter_count);
    if (status)
        return status;
    status = scand_histograms(daemon, metrics->histograms, sizeof *metrics->histograms, METRICS_HISTOGRAMS,
                              &metrics->histogram_count);
    if (status)
        return status;
    status = scand_devices(daemon, metrics->devices, sizeof *metrics->devices, LIMIT_MAPS, &metrics->device_count);
    if (status)
        return status;
    status = scand_users(daemon, users, sizeof *users, LIMIT_USERS, &metrics->user_count);
    return status == SCAND_UNKNOWN_METHOD ? SCAND_OK : status; /* from a daemon that is older than this call */
}

/* The metrics as a string of their own, or NULL without memory. */
static char *metrics_text(const struct metrics *metrics)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        return NULL;
    metrics_print(file, metrics);
    if (!fclose(file))
        return text;
    free(text);
    return NULL;
}

int scand_metrics(struct scand *daemon, char **text)
{
    struct metrics metrics;
    struct scand_user_info *users = malloc(LIMIT_USERS * sizeof *users);
    int status = users ? metrics_collect(daemon, &metrics, users) : SCAND_OK;
    char *made = users && !status ? metrics_text(&metrics) : NULL;
    free(users);
    if (status)
        return status;
    if (!made)
        return (int)status_from_errno(session_fail(daemon, -ENOMEM, "out of memory for the metrics"));
    *text = made;
    return SCAND_OK;
}

static void job_fill(struct scand_job_info *job, const struct msg_job_row *from)
{
    *job = (struct scand_job_info){
        .job = from->job,
        .client = from->client,
        .user = (uint32_t)from->user,
        .state = (enum scand_job_state)from->state,
        .rows = from->rows,
        .rows_done = from->rows_done,
        .bytes = from->bytes,
        .age_us = from->age_us,
        .running_us = from->running_us,
        .priority = (enum scand_priority)from->priority,
    };
    memcpy(job->name, from->name, sizeof job->name);
    memcpy(job->operation, from->operation, sizeof job->operation);
}

static void client_fill(struct scand_client_info *client, const struct msg_client_row *from)
{
    *client = (struct scand_client_info){
        .client = from->client,
        .user = (uint32_t)from->user,
        .pid = (uint32_t)from->pid,
        .age_us = from->age_us,
        .buffers = from->buffers,
        .host_bytes = from->host_bytes,
        .device_bytes = from->device_bytes,
        .jobs_queued = from->jobs_queued,
        .jobs_running = from->jobs_running,
        .jobs_done = from->jobs_done,
        .rows_scanned = from->rows_scanned,
        .samples_scanned = from->samples_scanned,
        .device_busy_us = from->device_busy_us,
        .user_host_bytes = from->user_host_bytes,
        .quota_host_bytes = from->quota_host_bytes,
        .user_device_bytes = from->user_device_bytes,
        .quota_device_bytes = from->quota_device_bytes,
        .user_jobs = from->user_jobs,
        .quota_jobs = from->quota_jobs,
        .user_connections = from->user_connections,
        .quota_connections = from->quota_connections,
    };
    memcpy(client->name, from->name, sizeof client->name);
}

_Static_assert(sizeof(((struct scand_job_info *)0)->operation) == LIMIT_NAME_BYTES &&
                   sizeof(((struct scand_client_info *)0)->name) == LIMIT_NAME_BYTES &&
                   SCAND_BUCKETS_MAX == LIMIT_BUCKETS,
               "what is shown has the sizes of the wire");

static uint64_t add_jobs(const union page *page, struct rows *rows)
{
    const struct msg_jobs_result *result = &page->jobs;
    uint32_t i = 0;
    for (; i < result->jobs_count && !rows_are_full(rows); i++) {
        struct scand_job_info job;
        job_fill(&job, &result->jobs[i]);
        rows_add(rows, &job, sizeof job);
    }
    return i < result->jobs_count ? result->jobs[i].job : result->next;
}

int scand_jobs(struct scand *daemon, uint64_t from, struct scand_job_info *jobs, size_t row_bytes, size_t capacity,
               size_t *count, uint64_t *next)
{
    SESSION_GUARD(daemon);
    const struct rows rows = {jobs, row_bytes, capacity, 0};
    return list_read(daemon, METHOD_server_jobs, add_jobs, rows, from, count, next);
}

static uint64_t add_clients(const union page *page, struct rows *rows)
{
    const struct msg_clients_result *result = &page->clients;
    uint32_t i = 0;
    for (; i < result->clients_count && !rows_are_full(rows); i++) {
        struct scand_client_info client;
        client_fill(&client, &result->clients[i]);
        rows_add(rows, &client, sizeof client);
    }
    return i < result->clients_count ? result->clients[i].client : result->next;
}

int scand_clients(struct scand *daemon, uint64_t from, struct scand_client_info *clients, size_t row_bytes,
                  size_t capacity, size_t *count, uint64_t *next)
{
    SESSION_GUARD(daemon);
    const struct rows rows = {clients, row_bytes, capacity, 0};
    return list_read(daemon, METHOD_server_clients, add_clients, rows, from, count, next);
}

static void event_fill(struct scand_event *event, const struct msg_trace_event *from)
{
    *event = (struct scand_event){
        .event = from->event,
        .kind = (enum scand_event_kind)from->kind,
        .user = (uint32_t)from->user,
        .job = from->job,
        .client = from->client,
        .begin_us = from->begin_us,
        .end_us = from->end_us,
        .started_us = from->started_us,
        .rows = from->rows,
        .slot = from->slot,
        .device = from->device,
        .upload_us = from->upload_us,
        .kernel_us = from->kernel_us,
        .download_us = from->download_us,
        .status = (uint32_t)from->code,
        .group = from->group,
    };
}

static uint64_t add_events(const union page *page, struct rows *rows)
{
    const struct msg_trace_result *result = &page->trace;
    uint32_t i = 0;
    for (; i < result->events_count && !rows_are_full(rows); i++) {
        struct scand_event event;
        memset(&event, 0, sizeof event); /* what lies between members, too */
        event_fill(&event, &result->events[i]);
        rows_add(rows, &event, sizeof event);
    }
    return i < result->events_count ? result->events[i].event : result->next;
}

int scand_trace(struct scand *daemon, uint64_t from, struct scand_event *events, size_t row_bytes, size_t capacity,
                size_t *count, uint64_t *next)
{
    SESSION_GUARD(daemon);
    const struct rows rows = {events, row_bytes, capacity, 0};
    return list_read(daemon, METHOD_server_trace, add_events, rows, from, count, next);
}

int scand_cancel_job(struct scand *daemon, uint64_t job)
{
    SESSION_GUARD(daemon);
    struct msg_job_number params = {job};
    return (int)status_from_errno(call_run(daemon, &(struct call){.method = METHOD_server_cancel, .params = &params}));
}

int scand_drain(struct scand *daemon)
{
    SESSION_GUARD(daemon);
    return (int)status_from_errno(
        call_run(daemon, &(struct call){.method = METHOD_server_drain, .params = &(struct msg_nothing){}}));
}

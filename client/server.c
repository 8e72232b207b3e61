/* Questions about the daemon. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/internal.h"
#include "protocol/report.h"

static uint64_t clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

int scand_ping(struct scand *daemon, uint64_t *round_trip_us)
{
    /* Reconnecting is no part of a round trip. */
    int code = session_ready(daemon);
    uint64_t begin_us = clock_us();
    if (code == 0)
        code = call_run(daemon, &(struct call){.method = METHOD_server_ping, .params = &(struct msg_nothing){}});
    if (code == 0 && round_trip_us)
        *round_trip_us = clock_us() - begin_us;
    return (int)status_from_errno(code);
}

int scand_devices(struct scand *daemon, struct scand_device *devices, size_t capacity, size_t *count)
{
    struct msg_devices_result result;
    int code = call_run(
        daemon, &(struct call){.method = METHOD_server_devices, .params = &(struct msg_nothing){}, .result = &result});
    if (code)
        return (int)status_from_errno(code);
    size_t n = result.devices_count < capacity ? result.devices_count : capacity;
    for (size_t i = 0; i < n; i++)
        report_device(&result.devices[i], &devices[i]);
    *count = n;
    return SCAND_OK;
}

static void kernel_fill(struct scand_kernel *kernel, const struct msg_kernel *from)
{
    *kernel = (struct scand_kernel){.repeatable = from->repeatable != 0, .operation = from->operation};
    snprintf(kernel->name, sizeof kernel->name, "%.*s", (int)sizeof kernel->name - 1, from->name);
    snprintf(kernel->line, sizeof kernel->line, "%.*s", (int)sizeof kernel->line - 1, from->line);
    snprintf(kernel->backend, sizeof kernel->backend, "%.*s", (int)sizeof kernel->backend - 1, from->backend);
    for (uint32_t i = 0; i < from->accumulators_count; i++)
        kernel->accumulators |= 1u << from->accumulators[i];
    for (uint32_t i = 0; i < from->reductions_count; i++)
        kernel->reductions |= 1u << from->reductions[i];
}

int scand_kernels(struct scand *daemon, struct scand_kernel *kernels, size_t capacity, size_t *count)
{
    struct msg_kernels_result result;
    int code = call_run(
        daemon, &(struct call){.method = METHOD_server_kernels, .params = &(struct msg_nothing){}, .result = &result});
    if (code)
        return (int)status_from_errno(code);
    size_t n = result.kernels_count < capacity ? result.kernels_count : capacity;
    for (size_t i = 0; i < n; i++)
        kernel_fill(&kernels[i], &result.kernels[i]);
    *count = n;
    return SCAND_OK;
}

int scand_stats(struct scand *daemon, struct scand_counter *counters, size_t capacity, size_t *count)
{
    struct msg_stats_result result;
    int code = call_run(
        daemon, &(struct call){.method = METHOD_server_stats, .params = &(struct msg_nothing){}, .result = &result});
    if (code)
        return (int)status_from_errno(code);
    *count = report_counters(&result, counters, capacity);
    return SCAND_OK;
}

int scand_histograms(struct scand *daemon, struct scand_histogram *histograms, size_t capacity, size_t *count)
{
    struct msg_histograms_result result;
    int code = call_run(
        daemon,
        &(struct call){.method = METHOD_server_histograms, .params = &(struct msg_nothing){}, .result = &result});
    if (code)
        return (int)status_from_errno(code);
    *count = report_histograms(&result, histograms, capacity);
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

/* Where the list goes on after a page; one that leads back is the last. */
static uint64_t page_after(uint64_t from, uint64_t next)
{
    return next > from ? next : 0;
}

int scand_jobs(struct scand *daemon, uint64_t from, struct scand_job_info *jobs, size_t capacity, size_t *count,
               uint64_t *next)
{
    struct msg_jobs_result page;
    size_t n = 0;
    do {
        struct msg_page_params params = {from};
        int code = call_run(daemon, &(struct call){.method = METHOD_server_jobs, .params = &params, .result = &page});
        if (code)
            return (int)status_from_errno(code);
        uint32_t i = 0;
        while (i < page.jobs_count && n < capacity)
            job_fill(&jobs[n++], &page.jobs[i++]);
        from = i < page.jobs_count ? page.jobs[i].job : page_after(from, page.next);
    } while (from && n < capacity);
    *count = n;
    *next = from;
    return SCAND_OK;
}

int scand_clients(struct scand *daemon, uint64_t from, struct scand_client_info *clients, size_t capacity,
                  size_t *count, uint64_t *next)
{
    struct msg_clients_result page;
    size_t n = 0;
    do {
        struct msg_page_params params = {from};
        int code =
            call_run(daemon, &(struct call){.method = METHOD_server_clients, .params = &params, .result = &page});
        if (code)
            return (int)status_from_errno(code);
        uint32_t i = 0;
        while (i < page.clients_count && n < capacity)
            client_fill(&clients[n++], &page.clients[i++]);
        from = i < page.clients_count ? page.clients[i].client : page_after(from, page.next);
    } while (from && n < capacity);
    *count = n;
    *next = from;
    return SCAND_OK;
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
    };
}

int scand_trace(struct scand *daemon, uint64_t from, struct scand_event *events, size_t capacity, size_t *count,
                uint64_t *next)
{
    struct msg_trace_result page;
    size_t n = 0;
    do {
        struct msg_page_params params = {from};
        int code = call_run(daemon, &(struct call){.method = METHOD_server_trace, .params = &params, .result = &page});
        if (code)
            return (int)status_from_errno(code);
        uint32_t i = 0;
        while (i < page.events_count && n < capacity)
            event_fill(&events[n++], &page.events[i++]);
        from = i < page.events_count ? page.events[i].event : page_after(from, page.next);
    } while (from && n < capacity);
    *count = n;
    *next = from;
    return SCAND_OK;
}

int scand_cancel_job(struct scand *daemon, uint64_t job)
{
    struct msg_job_number params = {job};
    return (int)status_from_errno(call_run(daemon, &(struct call){.method = METHOD_server_cancel, .params = &params}));
}

int scand_drain(struct scand *daemon)
{
    return (int)status_from_errno(
        call_run(daemon, &(struct call){.method = METHOD_server_drain, .params = &(struct msg_nothing){}}));
}

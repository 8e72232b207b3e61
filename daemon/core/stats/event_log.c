#include "event_log.h"

#include "counters.h"

struct msg_trace_event *event_log_next(struct event_log *log)
{
    return &log->events[++log->last % LIMIT_TRACE];
}

void event_log_read(const struct event_log *log, uint64_t from, struct msg_trace_result *out)
{
    uint64_t oldest = log->last > LIMIT_TRACE ? log->last - LIMIT_TRACE + 1 : 1;
    *out = (struct msg_trace_result){.events_count = 0};
    if (from < oldest)
        from = oldest;
    while (from <= log->last && out->events_count < LIMIT_MAPS)
        out->events[out->events_count++] = log->events[from++ % LIMIT_TRACE];
    if (from <= log->last)
        out->next = from;
}

void event_log_add_job(struct service *service, const struct job *job)
{
    struct event_log *log = &service->event_log;
    struct msg_trace_event *place = event_log_next(log);
    *place = (struct msg_trace_event){
        .event = log->last,
        .kind = SCAND_EVENT_JOB,
        .job = job->number,
        .group = job->group ? job->group->number : 0,
        .client = job->client->number,
        .user = job->client->user->uid,
        .begin_us = job->arrived_us,
        .end_us = job->arrived_us + job->times.total_us,
        .started_us = job->started_us,
        .rows = job->rows.row_count,
        .code = job->outcome.code ? (uint64_t)status_from_errno(job->outcome.code) : 0,
    };
}

void event_log_add_chunk(struct service *service, const struct job *job, const struct chunk *chunk)
{
    struct event_log *log = &service->event_log;
    struct msg_trace_event *place = event_log_next(log);
    *place = (struct msg_trace_event){
        .event = log->last,
        .kind = SCAND_EVENT_CHUNK,
        .job = job->number,
        .group = job->group ? job->group->number : 0,
        .client = job->client->number,
        .user = job->client->user->uid,
        .begin_us = chunk->handed_us,
        .end_us = device_counters_of(service, chunk->device)->device_time.read_us,
        .rows = chunk->rest || chunk->below ? 0 : chunk->count,
        .slot = (uint64_t)(chunk - service->scheduler.stations[chunk->device->number].chunks),
        .upload_us = chunk->upload_us,
        .kernel_us = chunk->kernel_us,
        .download_us = chunk->download_us,
        .device = chunk->device->number,
        .code = chunk->status ? (uint64_t)status_from_errno(chunk->status) : 0,
    };
}

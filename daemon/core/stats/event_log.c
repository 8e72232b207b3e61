#include "event_log.h"

void trace_add(struct trace *trace, const struct msg_trace_event *event)
{
    struct msg_trace_event *place = &trace->events[++trace->last % LIMIT_TRACE];
    *place = *event;
    place->event = trace->last;
}

void trace_read(const struct trace *trace, uint64_t from, struct msg_trace_result *out)
{
    uint64_t oldest = trace->last > LIMIT_TRACE ? trace->last - LIMIT_TRACE + 1 : 1;
    *out = (struct msg_trace_result){.events_count = 0};
    if (from < oldest)
        from = oldest;
    while (from <= trace->last && out->events_count < LIMIT_MAPS)
        out->events[out->events_count++] = trace->events[from++ % LIMIT_TRACE];
    if (from <= trace->last)
        out->next = from;
}

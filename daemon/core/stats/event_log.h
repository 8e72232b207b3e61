/*
 * The latest LIMIT_TRACE jobs and chunks that ended, for whoever wants to see where their time went. Events have
 * numbers from 1 on; older ones are forgotten.
 */
#ifndef DAEMON_EVENT_LOG_H
#define DAEMON_EVENT_LOG_H

#include "protocol/messages.h"

struct chunk;
struct job;
struct service;

struct event_log {
    uint64_t last; /* event's number */
    struct msg_trace_event events[LIMIT_TRACE];
};

/* Returns the place of a further event, whose number is log->last then, for the caller to fill in all of it: a copy
 * would have to wait for what was just written. */
struct msg_trace_event *event_log_next(struct event_log *log);
/* The page of events that begins with number `from`, or with the oldest one that is left. */
void event_log_read(const struct event_log *log, uint64_t from, struct msg_trace_result *out);

/* A job of a service has ended, or a chunk has come back: an event of it. */
void event_log_add_job(struct service *service, const struct job *job);
void event_log_add_chunk(struct service *service, const struct job *job, const struct chunk *chunk);

#endif

/*
 * Requests of the core to the loop around it, through service_ops: slow work on helper threads, and a call of
 * service_tick at a certain time.
 */
#ifndef DAEMON_LOOP_H
#define DAEMON_LOOP_H

#include "service.h"

/* Has helpers do slow work, in turns between users; the work is held until it is done. */
void service_defer(struct service *service, struct user *user, struct work *work);
/* Has readers do work on files of clients, which may take any length of time. */
void service_read(struct service *service, struct user *user, struct work *work);
/* Hands helpers and readers as much of the work that waits as may be out. */
void service_pump_helpers(struct service *service);

/* Has service_tick called at this time, or before. */
void service_wake_by(struct service *service, uint64_t at_us);

/* Ends a drain, if this has removed what held it up: the last job, or the last group. */
void service_check_drained(struct service *service);
/* Has service_tick called at this time, in place of all times that were asked for before. */
void service_wake_at(struct service *service, uint64_t at_us);

#endif

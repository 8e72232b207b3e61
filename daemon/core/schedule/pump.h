/*
 * Hands devices what they can take, and takes it back: service_tick of service.h is here, too.
 */
#ifndef DAEMON_PUMP_H
#define DAEMON_PUMP_H

#include "daemon/core/service.h"

/* Ends the jobs whose time to start has passed, and hands the device what it can take. */
void service_pump(struct service *service);
/* Handles a chunk that has come back, at that time, and chooses what devices can take instead, for pump_start. */
void pump_return(struct service *service, struct chunk *chunk, uint64_t now_us);
/* Hands devices the chunks that have been chosen, together: a thread may have to be woken each time. True: some were.
 */
bool pump_start(struct service *service);

#endif

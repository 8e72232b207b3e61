/*
 * Hands devices what they can take, and takes it back: service_chunk_done and service_tick of service.h are here, too.
 */
#ifndef DAEMON_PUMP_H
#define DAEMON_PUMP_H

#include "daemon/core/service.h"

/* Ends the jobs whose time to start has passed, and hands the device what it can take. */
void service_pump(struct service *service);

#endif

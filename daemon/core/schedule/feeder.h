/*
 * Which chunks are read of files next, for jobs whose input is there (jobs/loads.h).
 *
 * 1. What the next LIMIT_JOB_LOADS chunks of a job need is read before devices ask for it, so that disks, readers and
 *    devices work at the same time; of a user's first LIMIT_USER_FED jobs, the more urgent ones first.
 * 2. Nothing is read before all earlier jobs of the connection that are to write some of it have ended.
 * 3. The number of loads and their memory are bounded for each user and, by the rule of stock.h, so that others have
 *    some. A load for which there is no room waits, and so do those of the user's jobs behind it.
 * 4. Readers are threads of which users take turns (helpers.h).
 */
#ifndef DAEMON_FEEDER_H
#define DAEMON_FEEDER_H

#include "daemon/core/service.h"

/* Begins to read as much as may be. */
void feeder_pump(struct service *service);

#endif

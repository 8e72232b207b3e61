/*
 * The choice of the chunks that are read of files next, for jobs with operands in files (jobs/loads.h).
 *
 * 1. What the next LIMIT_JOB_LOADS chunks of a job need is read before devices ask for it, so that disks, readers and
 *    devices work at the same time; of a user's first LIMIT_USER_FED jobs, the more urgent ones first.
 * 2. Nothing is read before all earlier jobs of the connection that are to write some of it have ended.
 * 3. The number of loads and their memory are bounded for each user and, by the rule of stock.h, so that others have
 *    some. A load for which there is no room waits, and so do those of the user's jobs behind it.
 * 4. Readers are threads of which users take turns (helpers.h).
 * 5. A load that is not read in LIMIT_LOAD_MS ends its job, so that a file system which hangs keeps no daemon from
 *    draining.
 */
#ifndef DAEMON_FEEDER_H
#define DAEMON_FEEDER_H

#include "daemon/core/service.h"

/* Begins to read as much as may be. */
void feeder_pump(struct service *service);
/* Ends jobs that wait for a file for too long. The earliest time at which that is so of others. */
uint64_t feeder_expire(struct service *service, uint64_t now_us);

#endif

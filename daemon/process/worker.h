/* The worker: the process that does everything but own the socket. */
#ifndef DAEMON_WORKER_H
#define DAEMON_WORKER_H

#include "options.h"
#include "pool_store.h"
#include "shared_page.h"

/* The descriptors and the pool that a worker inherits. */
struct worker_ends {
    int listen_fd;
    int metrics_fd;                 /* -1: no metrics over HTTP */
    int channel_fd;                 /* leads to the supervisor (channel.h) */
    const struct pool_store *store; /* store of the pool; its descriptors are inherited, too */
};

/* Serves clients and metrics until it is told to drain (SIGTERM, or a client's server.drain) and has done so. Returns
 * an exit code: EX_UNAVAILABLE when the device or the pool cannot be had. WORKER_LOST ends the process from within. */
int worker_run(const struct options *options, const struct worker_ends *ends, struct shared_page *shared_page);

#define WORKER_LOST 3 /* exit code: the device is lost, but a new process can go on */

#endif

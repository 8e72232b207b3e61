/* The worker: the process that does everything but own the socket. */
#ifndef DAEMON_WORKER_H
#define DAEMON_WORKER_H

#include <stdatomic.h>

#include "options.h"

/* Serves clients on listen_fd until it is told to drain (SIGTERM, or a client's server.drain) and has done so. Writes a
 * byte to ready_fd once it takes jobs, and sets *draining once it takes no more: memory that outlives this process.
 * Returns an exit code; WORKER_LOST ends the process from within. */
int worker_run(const struct options *options, int listen_fd, int ready_fd, atomic_bool *draining);

#define WORKER_LOST 3 /* exit code: the device is lost, a new process can go on */

#endif

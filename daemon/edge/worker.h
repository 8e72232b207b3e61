/* The worker: the process that does everything but own the socket. */
#ifndef DAEMON_WORKER_H
#define DAEMON_WORKER_H

#include <stdatomic.h>

#include "options.h"

/* Memory that the supervisor shares with its workers, and that outlives them. Grants are there twice: the supervisor
 * writes those that are not current, makes them so, and sends the worker SIGHUP. */
struct shared {
    atomic_bool draining; /* set by a worker once it takes no more jobs */
    struct grants grants[2];
    atomic_uint current;
};

/* Serves clients on listen_fd, and metrics on metrics_fd unless that is -1, until it is told to drain (SIGTERM, or a
 * client's server.drain) and has done so. Writes a byte to ready_fd once it takes jobs. Returns an exit code;
 * WORKER_LOST ends the process from within. */
int worker_run(const struct options *options, int listen_fd, int metrics_fd, int ready_fd, struct shared *shared);

#define WORKER_LOST 3 /* exit code: the device is lost, a new process can go on */

#endif

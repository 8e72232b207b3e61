/* The worker: the process that does everything but own the socket. */
#ifndef DAEMON_WORKER_H
#define DAEMON_WORKER_H

#include "options.h"
#include "shared_page.h"

/* Serves clients on listen_fd, and metrics on metrics_fd unless that is -1, until it is told to drain (SIGTERM, or a
 * client's server.drain) and has done so. Writes a byte to ready_fd once it takes jobs. Returns an exit code;
 * WORKER_LOST ends the process from within. */
int worker_run(const struct options *options, int listen_fd, int metrics_fd, int ready_fd,
               struct shared_page *shared_page);

#define WORKER_LOST 3 /* exit code: the device is lost, a new process can go on */

#endif

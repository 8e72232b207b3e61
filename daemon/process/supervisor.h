/*
 * The supervisor: a small process that owns the socket and keeps one worker running. A worker that ends by a fault is
 * followed by another, to which clients reconnect at the same socket: at once, or after a pause where one has failed
 * after another, and for as long as it takes. The log and the service manager are told the cause.
 */
#ifndef DAEMON_SUPERVISOR_H
#define DAEMON_SUPERVISOR_H

#include "options.h"

/* Runs until the worker has drained, or the first worker cannot have what the settings ask for. A byte goes to ready_fd
 * when the first worker takes jobs. SIGHUP changes the options' grants. Returns an exit code. */
int supervisor_run(struct options *options, int ready_fd);

#endif

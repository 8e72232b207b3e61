/*
 * A socket that a service manager has made and passes on (sd_listen_fds(3)): clients connect, and wait in it, while no
 * daemon runs.
 */
#ifndef DAEMON_ACTIVATION_H
#define DAEMON_ACTIVATION_H

#include <stddef.h>

struct error;

/* How many descriptors from 3 on a manager has passed to this process, as $LISTEN_PID and $LISTEN_FDS say; 0: none. To
 * be called before others are opened. Programs that this one starts are not told. */
size_t activation_count(void);
/* Takes over the one that there is to be: a Unix stream socket that listens, whose path goes to `path`. 0, or -EINVAL
 * and *error. */
int activation_accept(size_t count, int *listen_fd, char *path, size_t size, struct error *error);

#endif

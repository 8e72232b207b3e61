/*
 * A socket that a service manager has made and passes on (sd_listen_fds(3)): clients connect, and wait in it, while no
 * daemon runs.
 */
#ifndef DAEMON_ACTIVATION_H
#define DAEMON_ACTIVATION_H

#include <stddef.h>

struct error;

/* Returns how many descriptors from number 3 on a service manager has passed to this process, as $LISTEN_PID and
 * $LISTEN_FDS say; 0: none. Must be called before this process opens descriptors. Unsets these variables, so that
 * programs started from here do not see them. */
size_t activation_count(void);
/* Accepts the one passed descriptor, which must be a Unix stream socket that listens; its path goes to `path`. Returns
 * 0, or -EINVAL and *error. */
int activation_accept(size_t count, int *listen_fd, char *path, size_t size, struct error *error);

#endif

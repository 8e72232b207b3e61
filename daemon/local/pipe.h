/* Bytes and descriptors on their way within a process, as a socket would have them. One thread at a time. */
#ifndef DAEMON_LOCAL_PIPE_H
#define DAEMON_LOCAL_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"

struct pipe {
    size_t start, end; /* range of the bytes in it */
    size_t fd_count;   /* descriptors that came with the first of them */
    int fds[LIMIT_MESSAGE_FDS];
    uint8_t bytes[LIMIT_MESSAGE_BYTES];
};

bool pipe_is_empty(const struct pipe *pipe);
/* Takes some of the bytes, with all descriptors, and returns how many; -EAGAIN while there is no room. */
int pipe_write(struct pipe *pipe, const uint8_t *bytes, size_t size, const int *fds, size_t fd_count);
/* Gives some of the bytes, with all descriptors, and returns how many; -EAGAIN without any. */
int pipe_read(struct pipe *pipe, uint8_t *bytes, size_t size, int *fds, size_t *fd_count);
/* Closes the descriptors that nobody has taken. */
void pipe_finish(struct pipe *pipe);

#endif

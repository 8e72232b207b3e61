#include "pipe.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

bool pipe_is_empty(const struct pipe *pipe)
{
    return pipe->start == pipe->end;
}

static void compact(struct pipe *pipe)
{
    memmove(pipe->bytes, pipe->bytes + pipe->start, pipe->end - pipe->start);
    pipe->end -= pipe->start;
    pipe->start = 0;
}

/* Descriptors come with the first byte of their message, so they wait until all before it is read. */
static size_t make_room(struct pipe *pipe, size_t fd_count)
{
    if (!pipe_is_empty(pipe) && fd_count > 0)
        return 0;
    if (pipe->start > 0)
        compact(pipe);
    return sizeof pipe->bytes - pipe->end;
}

int pipe_write(struct pipe *pipe, const uint8_t *bytes, size_t size, const int *fds, size_t fd_count)
{
    const size_t most = make_room(pipe, fd_count), taken = size < most ? size : most;
    if (taken == 0)
        return -EAGAIN;
    memcpy(pipe->bytes + pipe->end, bytes, taken);
    pipe->end += taken;
    if (fd_count > 0) {
        memcpy(pipe->fds, fds, fd_count * sizeof fds[0]);
        pipe->fd_count = fd_count;
    }
    return (int)taken;
}

int pipe_read(struct pipe *pipe, uint8_t *bytes, size_t size, int *fds, size_t *fd_count)
{
    const size_t left = pipe->end - pipe->start, taken = size < left ? size : left;
    *fd_count = 0;
    if (taken == 0)
        return -EAGAIN;
    memcpy(bytes, pipe->bytes + pipe->start, taken);
    memcpy(fds, pipe->fds, pipe->fd_count * sizeof fds[0]);
    *fd_count = pipe->fd_count;
    pipe->fd_count = 0;
    pipe->start += taken;
    if (pipe_is_empty(pipe))
        pipe->start = pipe->end = 0;
    return (int)taken;
}

void pipe_finish(struct pipe *pipe)
{
    for (size_t i = 0; i < pipe->fd_count; i++)
        close(pipe->fds[i]);
    pipe->fd_count = 0;
}

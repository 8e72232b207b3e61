#include "channel.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

int channel_open(struct channel *channel)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        return -errno;
    *channel = (struct channel){ends[0], ends[1]};
    return 0;
}

static void end_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void channel_close(struct channel *channel)
{
    end_close(&channel->supervisor_fd);
    end_close(&channel->worker_fd);
}

int channel_send(int fd, const struct channel_message *message)
{
    ssize_t n;
    do
        n = send(fd, message, sizeof *message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

int channel_receive(int fd, struct channel_message *message)
{
    ssize_t n;
    do
        n = recv(fd, message, sizeof *message, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof *message;
}

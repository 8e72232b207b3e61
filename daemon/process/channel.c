#include "channel.h"

#include <errno.h>
#include <string.h>
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

void channel_end_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void channel_close(struct channel *channel)
{
    channel_end_close(&channel->supervisor_fd);
    channel_end_close(&channel->worker_fd);
}

/* Control data with room for one descriptor. */
union control {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
};

int channel_send(int fd, const struct channel_message *message)
{
    struct iovec bytes = {.iov_base = (void *)message, .iov_len = sizeof *message};
    union control control = {.bytes = {0}};
    struct msghdr header = {.msg_iov = &bytes, .msg_iovlen = 1};
    ssize_t n;
    if (message->fd >= 0) {
        header.msg_control = control.bytes;
        header.msg_controllen = sizeof control.bytes;
        control.align = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.align), &message->fd, sizeof message->fd);
    }
    do
        n = sendmsg(fd, &header, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

int channel_receive(int fd, struct channel_message *message)
{
    struct iovec bytes = {.iov_base = message, .iov_len = sizeof *message};
    union control control;
    struct msghdr header = {
        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t n;
    do
        n = recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof *message)
        return n == 0 ? -EPIPE : 0;
    message->fd = -1;
    struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
    if (rights && rights->cmsg_type == SCM_RIGHTS)
        memcpy(&message->fd, CMSG_DATA(rights), sizeof message->fd);
    return 1;
}

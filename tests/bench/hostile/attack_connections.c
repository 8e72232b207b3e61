/* Connections that are there, and do nothing. */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/hostile/attack.h"

#define MANY 1100 /* more than the daemon takes */

/* The beginning of a request, with as many descriptors as a message may have. */
static bool begin_message(int fd, const void *with)
{
    uint8_t byte = 0x94;
    struct iovec bytes = {&byte, 1};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(LIMIT_MESSAGE_FDS * sizeof(int))];
    } control = {0};
    struct msghdr message = {
        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.room};
    struct cmsghdr *part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(LIMIT_MESSAGE_FDS * sizeof(int));
    for (size_t i = 0; i < LIMIT_MESSAGE_FDS; i++)
        memcpy(CMSG_DATA(part) + i * sizeof(int), with, sizeof(int));
    return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

void attack_half_messages(struct attacker *self)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    hold_run(self, &(struct hold){.connections = 158, .begin = begin_message, .with = &null});
}

void attack_silent_250_users(struct attacker *self)
{
    hold_run(self, &(struct hold){.connections = MANY, .users = 250});
}

void attack_silent_4_users(struct attacker *self)
{
    hold_run(self, &(struct hold){.connections = MANY, .users = 4});
}

static bool encode_hello(struct encoded *out)
{
    const struct msg_hello_params hello = {.version_min = 1, .version_max = PROTOCOL_VERSION, .client = "attack"};
    return encode_request(out, 1, METHOD_hello, &msg_hello_params_type, &hello) == 0;
}

static bool begin_hello(int fd, const void *with)
{
    uint8_t bytes[256];
    struct encoded out = {bytes, 0, sizeof bytes};
    (void)with;
    return encode_hello(&out) && send(fd, bytes, out.size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)out.size;
}

void attack_greeted_254_users(struct attacker *self)
{
    hold_run(self, &(struct hold){.connections = MANY, .users = 254, .begin = begin_hello});
}

void attack_over_quota(struct attacker *self)
{
    hold_run(self, &(struct hold){.connections = 300, .begin = begin_hello});
}

/* Sends as many questions as fit the socket. */
static bool begin_questions(int fd, const void *with)
{
    static uint8_t bytes[KIB(128)];
    struct encoded out = {bytes, 0, sizeof bytes};
    (void)with;
    if (!encode_hello(&out))
        return false;
    while (encode_request(&out, 2, METHOD_server_histograms, &msg_nothing_type, NULL) == 0)
        ;
    return send(fd, bytes, out.size, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
}

void attack_unread(struct attacker *self)
{
    hold_run(self, &(struct hold){.connections = 200, .begin = begin_questions, .deaf = true});
}

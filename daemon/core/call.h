/* A request of a client that is being handled. */
#ifndef DAEMON_CALL_H
#define DAEMON_CALL_H

#include "service.h"

struct call {
    struct service *service;
    struct client *client;
    uint32_t msgid;
    uint64_t position; /* position of the call's message, in bytes that the client has sent */
    struct error error;
    /* The descriptors that came with it. A handler that takes them sets fd_count to 0; the others are closed. */
    int fds[LIMIT_MESSAGE_FDS];
    size_t fd_count;
};

#endif

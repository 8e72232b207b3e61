/*
 * Requests for memory of the pool that wait until some is free. Users take turns; the requests of a user keep their
 * order. A request that need not wait passes those that wait, so one that does not fit holds up none that does.
 * Requests are queued here, and served by client_buffers.c.
 */
#ifndef DAEMON_WAITING_H
#define DAEMON_WAITING_H

#include "daemon/core/call.h"

struct waiting {
    struct waiting *next, *before; /* of the same user */
    struct client *client;
    uint32_t msgid;
    uint64_t size_bytes;
    struct deadline deadline;
};

/* Lets a request for memory of the pool wait. 0: it is answered later. -EAGAIN: no more may wait. */
int buffer_wait(struct call *call, uint64_t size_bytes, uint64_t wait_ms);
/* Takes a request out of its user's queue. The caller frees it. */
void waiting_remove(struct service *service, struct waiting *self);
/* The client is gone: forgets its requests. */
void waiting_drop(struct client *client);

#endif

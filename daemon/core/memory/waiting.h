/*
 * Requests for memory of the pool that wait until some is free. Users take turns; a user's own come in their order.
 * Those that fit are not held up by one that does not: what waits is passed by requests that need not. Here they are
 * queued; client_buffers.h serves them.
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

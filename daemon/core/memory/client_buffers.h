/*
 * The lives of clients' buffers: begun and prepared, given to the client, pinned, and dismantled when the last hold is
 * let go. Memory that becomes free goes to requests that wait for it, which begin buffers: so all of that is one file.
 */
#ifndef DAEMON_CLIENT_BUFFERS_H
#define DAEMON_CLIENT_BUFFERS_H

#include "daemon/core/call.h"
#include "waiting.h"

/* The time after which to try again when the pool is full, for want of a measure of how long it stays full. */
#define RETRY_MS 20

void buffer_hold(struct buffer *buffer);
void buffer_unhold(struct service *service, struct buffer *buffer); /* dismantles and frees it after the last */
/* Prepares a new buffer, at once where that is quick, and answers: 0, or -errno and call->error. Helpers pin what is
 * not pinned yet afterwards; jobs may come meanwhile. */
int buffer_begin(struct call *call, struct buffer *buffer);

/* Gives memory of the pool that is free again to requests that wait for it, in turns. */
void waiting_pump(struct service *service);
/* Ends a request that has waited for long enough: answers it, and frees it. */
void waiting_expire(struct service *service, struct waiting *self);

#endif

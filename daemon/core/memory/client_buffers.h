/*
 * The lives of clients' buffers: begun and prepared, given to the client, pinned, and dismantled when the last hold is
 * let go. Memory that becomes free goes to requests that wait for it, which begin buffers: so all of that is one file.
 */
#ifndef DAEMON_CLIENT_BUFFERS_H
#define DAEMON_CLIENT_BUFFERS_H

#include "daemon/core/call.h"

/* For want of a measure of how long the pool stays full: when a client that is told so should try again. */
#define RETRY_MS 20

void buffer_hold(struct buffer *buffer);
void buffer_unhold(struct service *service, struct buffer *buffer); /* dismantles and frees it after the last */
/* Prepares a new buffer, at once where that is quick, and answers: 0, or -errno and call->error. Helpers pin what is
 * not pinned yet afterwards; jobs may come meanwhile. */
int buffer_begin(struct call *call, struct buffer *buffer);

/* Memory of the pool is free again: gives it to requests that wait for it, in turns. */
void waiting_pump(struct service *service);
/* Ends what has waited for long enough. The earliest end of the others. */
uint64_t waiting_expire(struct service *service, uint64_t now_us);

#endif

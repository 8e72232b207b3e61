/*
 * The edge to the sockets: accepts connections, reads them when they are readable, flushes them when they are writable,
 * and ends those that break off or stall. All on the loop's thread.
 *
 * Nothing is read from a client that leaves too many of its answers unread (it is paused) or has broken the protocol
 * (it is closed when it has what it was answered).
 */
#ifndef DAEMON_SERVER_H
#define DAEMON_SERVER_H

#include <uv.h>

#include "daemon/logic/service.h"

struct peer;

struct server {
    struct service *service;
    uv_loop_t *loop;
    uv_poll_t listening;
    uv_prepare_t flushing; /* before the loop waits: sends what has been answered */
    int listen_fd;
    int spare_fd; /* given up for a moment to turn a connection away when descriptors run out */
    struct peer *to_flush;
    struct peer *peers;
};

/* Begins to accept on listen_fd, which stays the caller's. 0 or -errno. */
int server_start(struct server *server, uv_loop_t *loop, struct service *service, int listen_fd);
/* For service_ops: the client has output. */
void server_output(struct server *server, struct client *client);
/* Sends what is left for clients for as long as they take it, timeout_ms at most. Blocks, and neither reads nor closes
 * anything: for the end, when nobody else waits. */
void server_flush(struct server *server, unsigned timeout_ms);
/* Closes everything; the loop must run once more. */
void server_stop(struct server *server);

#endif

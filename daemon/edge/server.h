/*
 * The edge to the sockets: accepts connections, reads them when they are readable, flushes them when they are writable,
 * and ends those that break off or stall. All on the loop's thread.
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
/* Sends what the sockets take and closes everything; the loop must run once more. */
void server_stop(struct server *server);

#endif

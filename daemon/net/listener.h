/*
 * The edge to the sockets: accepts connections, lets those that have something take turns, flushes them when they are
 * writable, and ends those that break off or stall. All on the loop's thread.
 *
 * Sockets are watched through an epoll set of the server's own, of which the loop knows one descriptor: libuv ends the
 * process when it cannot watch a socket, here one connection fails. In each round of the loop clients have
 * LIMIT_TURN_US together, then what devices and sockets have is looked at again.
 *
 * Nothing is read from a client that leaves too many of its answers unread (it is paused) or has broken the protocol
 * (it is closed when it has what it was answered).
 */
#ifndef DAEMON_LISTENER_H
#define DAEMON_LISTENER_H

#include <uv.h>

#include "daemon/core/service.h"

struct peer;

struct server {
    struct service *service;
    uv_loop_t *loop;
    int epoll_fd;          /* of the listening socket and the clients' */
    uv_poll_t watching;    /* it */
    uv_prepare_t flushing; /* before the loop waits: sends what has been answered */
    uv_check_t turning;    /* after it has waited: accepts, and gives turns */
    uv_idle_t hurry;       /* active while clients are ready: the loop does not wait */
    uv_timer_t resting;    /* runs while connections cannot be accepted */
    int listen_fd;
    bool arriving; /* connections wait to be accepted, as far as is known */
    int spare_fd;  /* given up for a moment to turn a connection away when descriptors run out; -1: there is none */
    struct peer *to_flush;
    struct peer *peers;
};

/* Begins to accept on listen_fd, which stays the caller's. 0 or -errno: nothing has begun, and no handle is open. */
int server_start(struct server *server, uv_loop_t *loop, struct service *service, int listen_fd);
/* For service_ops: the client has output. */
void server_output(struct server *server, struct client *client);
/* Sends what is left for clients for as long as they take it, timeout_ms at most. Blocks, and neither reads nor closes
 * anything: for the end, when nobody else waits. */
void server_flush(struct server *server, unsigned timeout_ms);
/* Closes everything; the loop must run once more. */
void server_stop(struct server *server);

#endif

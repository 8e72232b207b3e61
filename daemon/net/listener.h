/*
 * The listening socket and its connections: accepts connections, lets those that have something take turns, flushes
 * them when they are writable, and ends those that break off or stall. All on the loop's thread.
 *
 * Sockets are watched through an epoll set of the listener's own: libuv ends the process when it cannot watch a socket,
 * here one connection fails. The thread waits for that set, in which libuv's loop is one descriptor, so that a message
 * takes one call to be heard of; libuv is run when it has something to do. In each round clients have LIMIT_TURN_US
 * together, then what devices and sockets have is looked at again.
 *
 * Nothing is read from a client that leaves too many of its answers unread (it is paused) or has broken the protocol
 * (it is closed when it has what it was answered).
 */
#ifndef DAEMON_LISTENER_H
#define DAEMON_LISTENER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

#include "daemon/core/service.h"

struct peer;

struct listener {
    struct service *service;
    uv_loop_t *loop;
    int epoll_fd;       /* of the listening socket, the clients', wake_fd and the loop */
    int wake_fd;        /* an eventfd, which is only ever written to: each time is an event */
    atomic_bool woken;  /* such an event is on its way */
    bool due;           /* the loop has something to do */
    uv_timer_t resting; /* runs while connections cannot be accepted */
    int listen_fd;
    bool arriving; /* connections wait to be accepted, as far as is known */
    int spare_fd;  /* given up for a moment to turn a connection away when descriptors run out; -1: there is none */
    struct peer *to_flush;
    struct peer *peers;
};

/* Begins to accept on listen_fd, which stays the caller's. 0 or -errno: nothing has begun, and no handle is open. The
 * loop's own descriptors are those that it has by now, and those that its callbacks add. */
int listener_start(struct listener *listener, uv_loop_t *loop, struct service *service, int listen_fd);
/* The first half of a round: sends what has been answered, sees what has come, and runs the loop's callbacks. Waits for
 * something if it may, and if no client is ready. */
void listener_wait(struct listener *listener, bool may_wait);
/* The second half: gives turns, and accepts. */
void listener_serve(struct listener *listener);
/* From any thread: listener_wait returns, now or the next time. */
void listener_wake(struct listener *listener);
/* Sends what is left for clients for as long as they take it, timeout_ms at most. Blocks, and neither reads nor closes
 * anything: for the end, when nobody else waits. */
void listener_flush(struct listener *listener, unsigned timeout_ms);
/* Closes everything; the loop must run once more. */
void listener_stop(struct listener *listener);

#endif

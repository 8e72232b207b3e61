/*
 * The listening socket and its connections: accepts connections, gives turns to those that have sent something, flushes
 * them when they are writable, and ends those that break off or stall. Everything runs on the loop's thread.
 *
 * Sockets are watched through an epoll set of the listener's own: libuv ends the process when it cannot watch a socket,
 * whereas here only one connection fails. The thread waits for that set, in which libuv's loop is one descriptor, so
 * that one call suffices to hear of a message; libuv is run when it has something to do. In each round all clients
 * together have LIMIT_TURN_US, then devices and sockets are looked at again.
 *
 * Rings have no descriptor: those of clients that were served lately are looked at in each round, and all others'
 * clients are told to use the socket, as everybody is before the thread waits.
 *
 * A client that leaves too many of its answers unread is paused: nothing is read from it. A client that has broken the
 * protocol is closed once it has its answers.
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
    int epoll_fd;       /* watches the listening socket, the clients', wake_fd and the loop */
    int wake_fd;        /* an eventfd that is only ever written to: each write is an event */
    atomic_bool woken;  /* an event of wake_fd is on its way */
    bool due;           /* libuv's loop has something to do */
    uv_timer_t resting; /* runs while connections cannot be accepted */
    int listen_fd;
    bool arriving; /* connections may wait to be accepted */
    int spare_fd;  /* closed for a moment to turn a connection away when descriptors run out; -1: none */
    struct peer *to_flush;
    struct peer *awake; /* peers whose rings are looked at in each round */
    struct peer *peers;
};

/* Begins to accept on listen_fd, which stays the caller's. Returns 0, or -errno: nothing has begun, and no handle is
 * open. The loop must have all its descriptors by now, except for what its callbacks add. */
int listener_start(struct listener *listener, uv_loop_t *loop, struct service *service, int listen_fd);
/* Runs the first half of a round: sends answers, notes what has arrived, and runs the loop's callbacks. Waits for an
 * event if it may, and if no client is ready. */
void listener_wait(struct listener *listener, bool may_wait);
/* Runs the second half of a round: gives clients their turns, and accepts connections. */
void listener_serve(struct listener *listener);
/* Charges the user for what the loop has done since that time, between trust_begin (core/trust.h) and this. Returns the
 * time now. */
uint64_t listener_end_turn(struct listener *listener, struct user *user, uint64_t since_us);
/* Makes listener_wait return, now or at its next call. Any thread may call this. */
void listener_wake(struct listener *listener);
/* Handles what clients have sent until now, for about timeout_ms at most; from then on they can send nothing. For the
 * end of a drain: a job that is refused will be another daemon's, and one of which nothing was said may have begun. */
void listener_end_input(struct listener *listener, unsigned timeout_ms);
/* Sends what is left for clients for as long as they take it, timeout_ms at most. Blocks, and neither reads nor closes
 * anything: for the end, when no client is served any more. */
void listener_flush(struct listener *listener, unsigned timeout_ms);
/* Closes everything; the loop must run once more. */
void listener_stop(struct listener *listener);

#endif

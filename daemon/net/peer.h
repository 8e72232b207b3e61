/*
 * One connection's end at the loop: what its socket has told, its timers, reading and sending. A peer is made when a
 * connection is accepted, and freed when libuv has closed its timers. For the loop's thread only.
 */
#ifndef DAEMON_PEER_H
#define DAEMON_PEER_H

#include "listener.h"

/* The time between two tries to send descriptors while too many are on their way: no event tells when they have
 * arrived. */
#define RESEND_MS 20

struct peer {
    struct listener *listener;
    struct client *client; /* NULL once closed */
    bool readable;         /* true when the socket may have something */
    bool ending;           /* the end of what its socket has is due */
    bool deaf;             /* the client takes no answers any more, but what it sent before still counts */
    bool wants_room;       /* true when the socket is watched for room to write, too */
    bool completed;        /* a message has ended since patience was last looked at */
    uv_timer_t patience;   /* runs while hello is awaited, or the rest of a message */
    uv_timer_t unread;     /* runs while output waits */
    uint64_t taken_ms;     /* time at which the client last took some of its output, or the output began to wait */
    unsigned open_handles;
    bool awake;     /* its ring is looked at in each round, */
    unsigned looks; /* and has had nothing in so many of them */
    struct peer *next_awake;
    bool flush_queued;
    uint64_t flushed_us; /* time at which something was last sent to the client */
    struct peer *next_flush;
    struct peer *next, **link; /* in the listener's list of peers */
};

/* Begins to watch the client's socket. Returns 0, or -errno and nothing has changed. */
int peer_open(struct listener *listener, struct client *client);
/* Sends what its socket takes at once, and closes the client at the end of the process, which leaves what the client
 * has yet to read. */
void peer_end(struct peer *peer);
/* Logs that the loop touches no memory of the user any more (core/trust.h). */
void peer_log_slept(const struct user *user);
/* Looks at a ring. Returns false where the next look is needless: its socket will tell, or its client's next turn. With
 * `sleeps` the loop is about to wait. */
bool peer_look(struct peer *peer, bool sleeps);
/* Has the client's sends fail from now on; what it has sent by then can still be read. */
void peer_shut(struct peer *peer);
/* Handles messages of a peer that is shut, until end_us. Returns false after the last one. */
bool peer_last_turn(struct peer *peer, uint64_t end_us);
/* Queues a client that has output, which is sent at the end of the round; for service_ops. */
void peer_output(struct listener *listener, struct client *client);
/* Notes what epoll tells of the peer's socket. */
void peer_notice(struct peer *peer, uint32_t events);
/* Reads once unless a message waits, and handles messages until end_us, a time of ops->now_us. May close the peer. */
void peer_turn(struct peer *peer, uint64_t end_us);
/* Sends what the socket takes, and goes on with what waited for that. May close the peer. */
void peer_flush(struct peer *peer);

#endif

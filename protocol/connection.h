/*
 * Bytes and descriptors over a Unix stream socket, or over what carries them in its place within a process. Knows
 * neither an event loop nor what messages mean, except where each ends.
 *
 * A connection owns its socket, the descriptors that have arrived and were not taken, and duplicates of those that wait
 * to be sent. It never blocks and never raises SIGPIPE. Functions return 0 or -errno unless stated. One thread at a
 * time.
 */
#ifndef PROTOCOL_CONNECTION_H
#define PROTOCOL_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "limits.h"

struct connection;
struct rings;

/* Takes over the connected socket `fd` and makes it non-blocking. NULL and errno: it stays the caller's. */
struct connection *connection_create(int fd);
void connection_destroy(struct connection *connection);
/* -1: it has no socket. */
int connection_fd(const struct connection *connection);

/* Functions that carry a connection's bytes without a socket. None of them waits. */
struct carrier {
    /* Takes some of the bytes, and with the first of them all descriptors, the carrier's from then on. Returns how many
     * bytes, or -EAGAIN, or another -errno when the connection is over. */
    int (*write)(void *context, const uint8_t *bytes, size_t size, const int *fds, size_t fd_count);
    /* Gives bytes that have arrived, and the descriptors that came with them, LIMIT_MESSAGE_FDS at most, the caller's
     * from then on. Returns how many bytes, 0 at the end, or -EAGAIN. */
    int (*read)(void *context, uint8_t *bytes, size_t size, int *fds, size_t *fd_count);
    void (*close)(void *context);
};

/* A connection over a carrier, which it closes at its end; NULL without memory, and nothing is closed. */
struct connection *connection_create_on(const struct carrier *carrier, void *context);

/*
 * Reads what has arrived, at most LIMIT_FIRST_READ_BYTES the first time and what its buffer holds later. Returns the
 * number of bytes, 0 at the end of the stream, -EAGAIN when there is nothing now, -EMFILE when descriptors were lost
 * because the process has no room for more, -EBADF when more descriptors arrived than a message may announce, or
 * another -errno. After -EMFILE and -EBADF the bytes have been taken in, and the descriptors that came with them belong
 * to no message (connection_take_lost). -ENOBUFS: nothing more fits before the messages that are complete have been
 * consumed.
 */
int connection_receive(struct connection *connection);

/* True when the latest connection_receive has left nothing that had arrived by then. */
bool connection_is_drained(const struct connection *connection);

/*
 * Looks at the next message: returns 1 with *bytes and *size set when one is complete, else 0 when more must arrive
 * first, or what walk() says of it, with *bytes and *size set to what has arrived. The bytes stay valid until
 * connection_consume, which drops the message, or connection_receive.
 */
int connection_peek(struct connection *connection, const uint8_t **bytes, size_t *size);
void connection_consume(struct connection *connection);
/* True when a message has begun to arrive and is not complete. */
bool connection_is_partial(const struct connection *connection);
/* True when bytes behind the last consumed message have arrived, to which later descriptors may belong. */
bool connection_has_more(struct connection *connection);

/* Bytes before the first that was not consumed, since the connection began: where the next message is, or will be. */
uint64_t connection_position(const struct connection *connection);
/* All bytes that have arrived since the connection began, those included that wait in the socket. */
uint64_t connection_arrived_bytes(const struct connection *connection);

/* Moves the first `count` arrived descriptors to fds, the caller's from then on; -EBADF, and nothing moved, when there
 * are fewer. */
int connection_pop_fds(struct connection *connection, int *fds, size_t count);
/* Descriptors that have arrived and were not taken. */
size_t connection_fd_count(const struct connection *connection);

/* Moves descriptors that belong to no message to fds, LOST_FDS at most, the caller's from then on. Returns how many.
 * The end of a descriptor may take as long as its sender likes, so whoever serves others does not leave it to
 * connection_destroy. */
#define LOST_FDS 253 /* the most that one recvmsg can bring on Linux */
size_t connection_take_lost(struct connection *connection, int *fds);
/* Ends the socket, both ways. Returns it, the caller's from then on, where something waits in it that was not read:
 * descriptors perhaps, which end with it. -1: nothing does, and connection_destroy closes it. */
int connection_end(struct connection *connection);

/* Queues one message with its descriptors (duplicated; the caller keeps its own), or nothing: -ENOBUFS when more than
 * LIMIT_OUTBOX_BYTES, or LIMIT_OUTBOX_FDS, would wait; -EMFILE when the process has no room for the duplicates. */
int connection_send(struct connection *connection, const uint8_t *bytes, size_t size, const int *fds, size_t fd_count);
/* Writes what the socket takes. 0: nothing waits any more; -EAGAIN: something does, until the socket is writable;
 * -ETOOMANYREFS: something does, until peers have taken descriptors that this user sent them, which no socket tells;
 * -EPIPE or another: the connection is over. */
int connection_flush(struct connection *connection);
bool connection_has_output(const struct connection *connection);
/* Bytes that wait to be written, and descriptors that go with them. */
size_t connection_output_bytes(const struct connection *connection);
size_t connection_output_fds(const struct connection *connection);
/* True when more than LIMIT_UNREAD_BYTES wait, or so many descriptors that another message's might not fit: time to
 * stop asking for more. */
bool connection_is_clogged(const struct connection *connection);
/* Bytes written since the connection began. */
uint64_t connection_sent_bytes(const struct connection *connection);

/*
 * Rings (rings.h), for a connection with a socket: from some message on, its bytes take the rings, and the socket what
 * has descriptors, what wakes a reader, and what finds no room. All functions above go on as before, with two more
 * results: -EPROTO of connection_receive and connection_flush, the other end broke the rules of rings; -ETOOMANYREFS of
 * connection_flush also while a ring is full of the socket's announcements, which no socket tells either.
 */

/* Holds back what is queued from now on, until connection_use_rings, or connection_release. */
void connection_hold(struct connection *connection);
void connection_release(struct connection *connection);
/* True when nothing has arrived behind the message at hand, so that what comes next may come by rings. */
bool connection_may_have_rings(const struct connection *connection);
/* Takes over the rings: for what arrives behind the message at hand, and for what is queued from now on or, on a
 * connection that holds it back, since then. Only where connection_may_have_rings. */
void connection_use_rings(struct connection *connection, struct rings *rings);
bool connection_has_rings(const struct connection *connection);
/* True when the ring has something for connection_receive: a look at memory. What comes through the socket, the socket
 * tells. */
bool connection_is_ready(const struct connection *connection);
/* True while the other end waits for its socket. */
bool connection_peer_sleeps(const struct connection *connection);
/* Says before this end waits for its socket that what comes is to wake it. False: something is there already. Without
 * rings, true. */
bool connection_sleep(struct connection *connection);
/* Says that this end looks at its ring again. */
void connection_rise(struct connection *connection);
/* Takes the rings away, the caller's from then on, of a connection that is about to end. NULL: it has none. */
struct rings *connection_take_rings(struct connection *connection);

#endif

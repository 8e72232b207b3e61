/*
 * Two rings of bytes in memory that two processes share, one for each direction: what a connection may have beside its
 * socket. Knows neither sockets nor messages. PROTOCOL.md says how the bytes lie.
 *
 * A ring carries frames. A frame has bytes of the stream in it, or tells how many of them the socket brings next: so
 * the stream has one order, whichever way its bytes take. A reader that is about to sleep says so in the ring, and then
 * the next bytes come through the socket, which wakes it.
 *
 * The other end may write anything at any time. So positions are copied once and checked, bytes are copied before
 * anybody looks at them, and each end keeps its own positions to itself. -EPROTO: the other end broke the rules. One
 * thread at a time; functions never wait.
 */
#ifndef PROTOCOL_RINGS_H
#define PROTOCOL_RINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rings; /* one end */

/* Makes the memory, and the first end of it; *fd, the caller's, is for the other end. Returns 0 or -errno. */
int rings_create(struct rings **out, int *fd);
/* Makes the second end of memory of that descriptor, which stays the caller's. Returns 0, -EPROTO for what is no such
 * memory, or another -errno. */
int rings_attach(int fd, struct rings **out);
void rings_destroy(struct rings *rings);
/* Gives the memory back to the system, also where the other end keeps it open: for its owner, when the other end needs
 * nothing of it any more. */
void rings_wipe(struct rings *rings);

/* Takes some of the bytes into a frame. Returns how many; 0: they have to go through the socket, since the reader
 * sleeps, or there is no room; or -EPROTO. */
int rings_write(struct rings *rings, const uint8_t *bytes, size_t size);
/* Tells that the socket brings `size` bytes next, RINGS_SOCKET_BYTES at most; to be called before they are sent.
 * Returns 0, -EAGAIN while there is no room even for that, or -EPROTO. */
int rings_announce(struct rings *rings, size_t size);
#define RINGS_SOCKET_BYTES ((size_t)1 << 30)

/* Copies bytes of frames that have arrived, of so many frames at most, since a frame of one byte takes as long as some
 * hundred bytes of a larger one. Returns how many; 0: none now, or the socket has the next; or -EPROTO. */
#define RINGS_FRAMES 256
int rings_read(struct rings *rings, uint8_t *bytes, size_t size);
/* Bytes that are to be read of the socket before the ring goes on, as rings_read has found. */
size_t rings_due_bytes(const struct rings *rings);
/* So many of them were read. */
void rings_took(struct rings *rings, size_t size);
/* True when rings_read may find something: bytes, a frame, or broken rules. A look at memory. */
bool rings_is_ready(const struct rings *rings);
/* Bytes in frames that have arrived and were not read; those that the socket brings are not among them. */
uint64_t rings_unread_bytes(const struct rings *rings);

/* True while the other end says that it sleeps. */
bool rings_reader_sleeps(const struct rings *rings);

/* Says that this end goes to sleep: from then on bytes come through the socket. False, and nothing is said: something
 * is there already. */
bool rings_sleep(struct rings *rings);
/* Says that it is awake. */
void rings_rise(struct rings *rings);

#endif

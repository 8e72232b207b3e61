/*
 * Finds where a MessagePack object ends, and refuses hostile ones, without allocating: before msgpack-c, which
 * allocates whatever a sender claims, sees a byte.
 */
#ifndef PROTOCOL_WALK_H
#define PROTOCOL_WALK_H

#include <stddef.h>
#include <stdint.h>

/*
 * Walks the first object in bytes[0..size). Returns
 *   0 and sets *length to its bytes: one complete object, nested at most LIMIT_MESSAGE_DEPTH deep;
 *   -EAGAIN: the beginning of such an object; *length is the least that it can have, more than size, so that a message
 *     which trickles in is walked a few times, not once a byte;
 *   -EMSGSIZE: it is, or claims to hold elements that would make it, longer than LIMIT_MESSAGE_BYTES;
 *   -EBADMSG: no MessagePack, nested too deep, or an extension type.
 */
int walk(const uint8_t *bytes, size_t size, size_t *length);

#endif

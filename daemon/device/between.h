/*
 * Where the values between a chunk's steps lie: in its output, or, where that has no place for them (between_bytes), in
 * memory of the device's, densely and in the order of the rows.
 */
#ifndef DAEMON_BETWEEN_H
#define DAEMON_BETWEEN_H

#include "device.h"

/* The chunk's rows as its step takes and leaves them; between: memory of between_bytes, aligned for any sample. */
struct scan_rows chunk_step_rows(const struct chunk *chunk, uint32_t step, void *between);

#endif

/*
 * Which bytes of its buffers a run of a job's rows touches: all of them, and of others only those between its lowest
 * and its highest. Pure functions.
 */
#ifndef DAEMON_FOOTPRINT_H
#define DAEMON_FOOTPRINT_H

#include "operand.h"

/* Of rows first <= r < first + count, bytes from the beginning of the operand's buffer. The operand must have an origin
 * in it. */
struct extent operand_footprint(const struct operand *operand, const struct scan_rows *rows, uint64_t first,
                                uint64_t count);

#endif

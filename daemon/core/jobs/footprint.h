/*
 * The bytes of its buffers that a run of a job's rows touches: of operands for the whole job all, of others those
 * between the lowest and the highest. Pure functions.
 */
#ifndef DAEMON_FOOTPRINT_H
#define DAEMON_FOOTPRINT_H

#include "operand.h"

/* Returns the bytes, from the beginning of the operand's buffer, of rows first <= r < first + count. The operand must
 * have an origin in the buffer. */
struct extent operand_footprint(const struct operand *operand, const struct scan_rows *rows, uint64_t first,
                                uint64_t count);

#endif

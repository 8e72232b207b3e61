/*
 * Which bytes of its buffers a run of a job's rows touches: all of them, and of others only those between its lowest
 * and its highest. Pure functions.
 */
#ifndef DAEMON_FOOTPRINT_H
#define DAEMON_FOOTPRINT_H

#include "tensor_layout.h"

/* What rows have in a buffer. */
enum array { ARRAY_INPUT, ARRAY_OUTPUT, ARRAY_COEFFICIENTS, ARRAYS };

/* Of rows first <= r < first + count, in a buffer that begins at `base`. The rows must have such an array. */
struct extent rows_footprint(const struct scan_rows *rows, enum array array, const void *base, uint64_t first,
                             uint64_t count);

#endif

/*
 * Ranges of chunks for a profiler: an NVTX range around the launch of each, in domain "scand", that says whose it is.
 * Without a profiler no range is made.
 */
#ifndef DAEMON_RANGE_H
#define DAEMON_RANGE_H

#include "daemon/device/device.h"

/* Called by one thread before any other uses the rest. */
void cuda_range_init(void);
/* Ranges nest, by thread. */
void cuda_range_begin(const struct chunk *chunk);
void cuda_range_end(void);

#endif

/* The segments that a pool has of each class: pool_ready_for of pool.h is built on these. */
#ifndef DAEMON_POOL_READY_H
#define DAEMON_POOL_READY_H

#include "pool.h"

/* The memory of a pool for which size_bytes were asked for: whole large segments, and one for small ones. */
uint64_t pool_whole_bytes(uint64_t size_bytes);
/* Returns the most segments of a class. */
size_t pool_class_most(uint64_t pool_bytes, unsigned number);

#endif

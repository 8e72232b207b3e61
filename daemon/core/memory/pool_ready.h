/* How much a pool has of each class: what pool.h says of segments that are made beforehand is built on this. */
#ifndef DAEMON_POOL_READY_H
#define DAEMON_POOL_READY_H

#include "pool.h"

/* The memory of a pool for which size_bytes were asked for: whole large segments, and one for small ones. */
uint64_t pool_whole_bytes(uint64_t size_bytes);
/* How many segments of a class there can be. */
size_t pool_class_most(uint64_t pool_bytes, unsigned number);

#endif

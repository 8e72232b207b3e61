/* Whether the daemon can have what its settings promise: looked at before it takes any of it. */
#ifndef DAEMON_PROVISION_H
#define DAEMON_PROVISION_H

#include <stddef.h>
#include <stdint.h>

struct error;

/* The largest pool for which so much memory suffices. */
uint64_t provision_pool_most(uint64_t available_bytes);
/* 0; or -ENOMEM and *error when the pool needs more than is available. `limit` says of what, as memory_available_below
 * does. */
int provision_memory(uint64_t pool_bytes, uint64_t available_bytes, const char *limit, struct error *error);
/* 0; or -EMFILE and *error when a process that has so many descriptors open may not open one for each of the segments
 * and a few for clients. */
int provision_files(size_t open, size_t segments, uint64_t most, struct error *error);

/* What is left for clients of a process that may have `most` descriptors, has so many open and is to open so many more:
 * how many of them for connections, and how many for what else clients make it open. */
void provision_descriptors(uint64_t most, uint64_t open, uint64_t to_open, uint64_t *connections, uint64_t *others);

/* Descriptors that this process has open, or a guess. */
size_t descriptors_count(void);

#endif

/* Checks whether the daemon can have what its settings promise, before it allocates any of it. */
#ifndef DAEMON_PROVISION_H
#define DAEMON_PROVISION_H

#include <stddef.h>
#include <stdint.h>

struct error;

/* Returns the largest pool for which available_bytes of memory suffice. */
uint64_t provision_pool_most(uint64_t available_bytes);
/* Returns 0, or -ENOMEM and *error when the pool needs more than is available. `limit` names the limit, as
 * memory_available_below does. */
int provision_memory(uint64_t pool_bytes, uint64_t available_bytes, const char *limit, struct error *error);
/* Returns 0, or -EMFILE and *error when a process with `open` descriptors may not open one more for each of the
 * segments and a few for clients. */
int provision_files(size_t open, size_t segments, uint64_t most, struct error *error);

/* Returns 0, or -ENOMEM and *error when stacks of `most` bytes, RLIM_INFINITY for any, are too small for its threads.
 */
int provision_stacks(uint64_t most, struct error *error);

/* Divides what a process with `open` descriptors may still open, out of `most` and less the `to_open` that it is still
 * to open: how many for clients' connections, and how many for what else clients make it open. */
void provision_descriptors(uint64_t most, uint64_t open, uint64_t to_open, uint64_t *connections, uint64_t *others);

/* Returns how many descriptors this process has open, or a guess. */
size_t descriptors_count(void);

#endif

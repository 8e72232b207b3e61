/*
 * The memory of the pool as the supervisor has it: a memfd for each segment that is made beforehand. It outlives the
 * workers, so the next one finds pages where the last one made them. What a client may have written to goes to that
 * user alone, as the segments' records say (pool.h).
 *
 * The supervisor's; a worker inherits the descriptors, and writes the records.
 */
#ifndef DAEMON_POOL_STORE_H
#define DAEMON_POOL_STORE_H

#include "daemon/core/memory/pool.h"

struct pool_store {
    uint64_t pool_bytes; /* as the settings say */
    size_t count;
    int *fds;                    /* -1: none */
    struct pool_record *records; /* shared with workers */
};

/* Memfds without pages yet, for a pool of about that size. 0 or -errno, with *error. */
int pool_store_create(struct pool_store *store, uint64_t pool_bytes, struct error *error);
/* A worker has replaced a segment's memory; takes over the descriptor, -1 for none. */
void pool_store_replace(struct pool_store *store, size_t index, int fd);
/* A worker has ended: memory that its clients may still work on goes from the pool to them, and so does whatever the
 * records do not describe. New memory comes in its place. Returns how many segments that were. */
size_t pool_store_settle(struct pool_store *store);
void pool_store_destroy(struct pool_store *store);

#endif

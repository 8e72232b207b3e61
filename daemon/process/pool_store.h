/*
 * The pool's memory as the supervisor keeps it: a memfd for each segment that is made beforehand. It outlives the
 * workers, so the next worker finds pages where the last one made them. Memory that a client may have written to goes
 * to that client's user alone, as the segments' records say (pool.h).
 *
 * The store belongs to the supervisor; a worker inherits the descriptors, and writes the records.
 */
#ifndef DAEMON_POOL_STORE_H
#define DAEMON_POOL_STORE_H

#include "daemon/core/memory/pool.h"

struct pool_store {
    uint64_t pool_bytes; /* the size that the settings ask for */
    size_t count;
    int *fds;                    /* -1: none */
    struct pool_record *records; /* shared with workers */
};

/* Creates the memfds, still without pages, for a pool of about pool_bytes. Returns 0 or -errno, with *error. */
int pool_store_create(struct pool_store *store, uint64_t pool_bytes, struct error *error);
/* Replaces a segment's memory, as a worker has; takes over the descriptor, -1 for none. */
void pool_store_replace(struct pool_store *store, size_t index, int fd);
/* Settles the store after a worker's end: memory that its clients may still use, or that the records do not describe,
 * leaves the pool, and new memory comes in its place. Returns how many segments were replaced. */
size_t pool_store_settle(struct pool_store *store);
void pool_store_destroy(struct pool_store *store);

#endif

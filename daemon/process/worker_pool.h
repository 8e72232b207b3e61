/*
 * The pool of a worker, in memory that the supervisor keeps (pool_store.h): made by several threads when the worker
 * starts, and freed by several when it ends.
 */
#ifndef DAEMON_WORKER_POOL_H
#define DAEMON_WORKER_POOL_H

#include "pool_store.h"
#include "punches.h"

struct worker_pool {
    struct pool pool;
    struct pool_keeper keeper; /* keeps the pool's memory: the supervisor */
    int channel_fd;            /* leads to the supervisor */
    struct punches punches;    /* frees memory that clients may still have */
};

/* Makes as many segments as are enough to begin with; later a helper makes the rest (pool_filler.h). Returns 0, or
 * -errno with *error; segments that were made by then stay, since the process ends. */
int worker_pool_make(struct worker_pool *self, const struct device_set *devices, const struct pool_store *store,
                     int channel_fd, struct error *error);
void worker_pool_free(struct worker_pool *self);

#endif

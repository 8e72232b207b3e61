/*
 * The pool of host memory: segments that were faulted in, attached to the device and sealed before anyone asked.
 *
 * Segments of a class lie side by side in one reserved range of addresses, each a memfd of its own, so that any run of
 * them is contiguous here and, mapped in order, in a client. A client that gave memory back may still have it mapped.
 * So a segment goes again only to the user who had it; before another user gets it, its memfd is replaced by a new one.
 *
 * Called from the loop's thread, but for pool_make and pool_renew, which helpers may run on segments that nobody else
 * uses.
 */
#ifndef DAEMON_POOL_H
#define DAEMON_POOL_H

#include <stdbool.h>
#include <sys/types.h>

#include "alias.h"
#include "device.h"
#include "room.h"

struct segment {
    int fd;           /* -1: not made, or making it failed */
    struct file file; /* its memfd; the index says nothing */
    uid_t user;       /* who had it last; POOL_NOBODY: nobody */
    bool taken;
};

#define POOL_NOBODY ((uid_t)-1)

struct pool_class {
    uint64_t segment_bytes;
    size_t count;
    struct segment *segments;
    unsigned char *base; /* of the first segment; NULL without segments */
};

struct pool {
    const struct device_set *devices;
    struct pool_class classes[2]; /* small, large */
    struct room room;             /* for pages of imported memory */
};

/* A run of segments that make a buffer. */
struct pool_run {
    struct pool_class *class;
    size_t first, count;
};

/* Reserves addresses for about size_bytes (0: none). Returns 0 or -ENOMEM. Then make every segment. */
int pool_init(struct pool *pool, const struct device_set *devices, uint64_t size_bytes);
size_t pool_segment_count(const struct pool *pool);
/* Makes segment `index` of all: faulted in, sealed, attached. Returns 0 or -errno. */
int pool_make(struct pool *pool, size_t index);
void pool_finish(struct pool *pool);
uint64_t pool_size_bytes(const struct pool *pool);

/* Takes a run for size_bytes. Returns 0; -EAGAIN when none is free now; -EDQUOT when the pool could never hold it. */
int pool_take(struct pool *pool, uint64_t size_bytes, struct pool_run *run);
/* True when a segment of the run was another user's or is missing: pool_renew must come before anyone sees it. */
bool pool_needs_renewal(const struct pool_run *run, uid_t user);
/* Replaces one of those segments. Slow: page faults and pinning. 1: another one is left. 0 or -errno: that was all; the
 * run stays taken. */
int pool_renew(struct pool *pool, const struct pool_run *run, uid_t user);
/* Gives a run to `user`, or back. */
void pool_assign(const struct pool_run *run, uid_t user);
void pool_give_back(const struct pool_run *run);

void *pool_run_base(const struct pool_run *run);

#endif

/*
 * One segment of the pool (pool.h): its memfd, mapped at its place in its class, its pages, and what its
 * record says. Functions that make or drop a segment may run on any thread, while nobody else uses it.
 */
#ifndef DAEMON_SEGMENT_H
#define DAEMON_SEGMENT_H

#include "pool.h"

#define CLASS_LARGE (POOL_CLASSES - 1)

/* Reserves a range of addresses, which has no memory: anywhere, or in place of what is mapped there. MAP_FAILED. */
void *addresses_reserve(void *at, uint64_t size_bytes);

bool segment_is_small(const struct segment *segment);
unsigned char *segment_address(const struct pool_class *class, const struct segment *segment);
/* Set a member of the segment and of its record, where somebody keeps one. */
void segment_set_user(struct segment *segment, uid_t user);
void segment_set_taken(struct segment *segment, bool taken);
void segment_set_released(struct segment *segment, bool released);
/* Adds a segment to the memory that the pool has made, or takes it out: sign is 1 or -1. */
void segment_count_made(struct pool *pool, const struct segment *segment, int sign);

/* Maps the memfd, whose pages are still to come, in the segment's place. 0 or -errno: it stays the caller's. */
int segment_map(struct pool *pool, struct segment *segment, int fd);
/* Does a unit of making it: 1 while more is left, 0 or -errno. */
int segment_make(struct pool *pool, struct segment *segment);
/* Has the system put large pages in place of a unit of a large segment's pages, where it can. */
void segment_collapse(struct pool *pool, struct segment *segment);
/* Gives up its memory. Whoever released it and still has it mapped finds zeros from now on, and the pages are free; who
 * left without releasing it may still read its results. */
void segment_drop(struct pool *pool, struct segment *segment);

#endif

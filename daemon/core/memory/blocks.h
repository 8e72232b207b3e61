/*
 * Memory of the daemon's own into which bytes of files are read, before a device gets them: pinned where the system
 * allows it, and kept for the next who needs some. Clients never see it, and of a block nothing is used but what was
 * read into it since.
 *
 * block_make runs on a reader's thread, while nothing else touches the block; everything else on the loop's thread.
 */
#ifndef DAEMON_BLOCKS_H
#define DAEMON_BLOCKS_H

#include "daemon/core/service.h"

struct block {
    struct work work; /* first; its end */
    struct service *service;
    struct user *user;     /* held, at its end */
    unsigned char *base;   /* NULL: not made yet */
    uint64_t size_bytes;   /* whole pages */
    uint64_t pinned_bytes; /* from the beginning; all of it unless `staged` */
    bool staged;           /* true when the block could not be pinned */
    struct block *next;
};

/* A block of so many bytes or more, perhaps one that has yet to be made; NULL without memory. */
struct block *blocks_pop(struct blocks *blocks, uint64_t size_bytes);
/* Makes a block ready, a unit at a time: 1: more is left. 0, or -ENOMEM and *error: that was all. */
int block_make(struct block *block, const struct device_set *devices, struct page_budget *budget, struct error *error);
/* Gives back a block: it is kept for the next user, or a helper frees its memory, on the user's account. */
void blocks_push(struct service *service, struct user *user, struct block *block);

#endif

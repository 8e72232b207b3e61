/*
 * Makes what is left of a pool's segments while clients are served: helpers do it, unit by unit, in turns with the
 * users whose slow work they do. Memory that a client asks for before its turn has come is made for that client.
 */
#ifndef DAEMON_POOL_FILLER_H
#define DAEMON_POOL_FILLER_H

#include "daemon/core/service.h"

#define FILLERS 2 /* segments made at a time; users keep a helper and the one that is kept for them */

struct filler {
    struct work work; /* first */
    struct pool_filler *owner;
    struct segment *segment;
    int status;
};

/* All zeros before it begins. It must outlive the service. */
struct pool_filler {
    struct service *service;
    struct work_queue queue;
    size_t next; /* the index of the first segment that nobody has looked at */
    struct filler fillers[FILLERS];
    unsigned busy;     /* fillers with a segment */
    unsigned failures; /* segments that could not be made: clients may find room for them later */
    void (*done)(struct pool_filler *filler); /* is called at the end, on the service's thread */
};

void pool_filler_start(struct pool_filler *self, struct service *service, void (*done)(struct pool_filler *filler));

#endif

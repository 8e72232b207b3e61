/*
 * A user's accounts with the scheduler, and the rings in which users and their lanes stand: see scheduler.h. Whoever
 * has a struct fair_user sets its weight, and leaves the rest to the scheduler.
 */
#ifndef DAEMON_FAIR_QUEUE_H
#define DAEMON_FAIR_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include <scand/types.h>

#include "protocol/limits.h"

/* Begins what stands in a ring. A ring is known by the pointer to whose turn it is; NULL: nobody is there. */
struct ring {
    struct ring *next, *previous;
};

/* Bytes, and the device time that they took. Older ones fade. */
struct rate {
    double bytes, us;
};

struct job;

struct fair_user {
    struct ring ring;  /* first; among the users with a queue */
    struct ring *turn; /* lane whose turn it is, of those with a queue; NULL: the user stands in no ring */
    uint64_t weight;   /* from 1 */
    /* Device time had, on all devices, divided by the weight: users are compared by it, on each device by its own. */
    uint64_t account_ns[LIMIT_DEVICES];
    uint64_t queued_bytes;                      /* bytes of rows that are not handed out, or, of long ones, not done */
    struct job *long_job[SCAND_PRIORITY_COUNT]; /* by class, the job with a long row out or left off; NULL: none */
    struct rate rate;                           /* the rate of its own chunks */
};

/* Joins a ring behind all others. */
static inline void ring_join(struct ring **turn, struct ring *node)
{
    struct ring *first = *turn ? *turn : node, *last = *turn ? first->previous : node;
    node->next = first;
    node->previous = last;
    first->previous = last->next = node;
    *turn = first;
}

static inline void ring_leave(struct ring **turn, struct ring *node)
{
    if (*turn == node)
        *turn = node->next == node ? NULL : node->next;
    node->previous->next = node->next;
    node->next->previous = node->previous;
}

#endif

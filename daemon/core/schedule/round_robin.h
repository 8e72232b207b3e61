/*
 * Those who take turns, in a circle: users, their lanes, queues of work. A round is known by the pointer to whose turn
 * it is; NULL: nobody is there.
 */
#ifndef DAEMON_ROUND_ROBIN_H
#define DAEMON_ROUND_ROBIN_H

#include <stddef.h>

/* The first member of whatever stands in a round. */
struct round_robin {
    struct round_robin *next, *previous;
};

/* Joins a round behind all others. */
static inline void round_robin_join(struct round_robin **turn, struct round_robin *node)
{
    struct round_robin *first = *turn ? *turn : node, *last = *turn ? first->previous : node;
    node->next = first;
    node->previous = last;
    first->previous = last->next = node;
    *turn = first;
}

static inline void round_robin_leave(struct round_robin **turn, struct round_robin *node)
{
    if (*turn == node)
        *turn = node->next == node ? NULL : node->next;
    node->previous->next = node->next;
    node->next->previous = node->previous;
}

#endif

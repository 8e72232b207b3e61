/*
 * The choice of the user whose slow work helper threads do next: page faults, pinning, unmapping, whatever would hold
 * up the loop. It is done in units of a few milliseconds, and users take turns with them, so that nobody's large import
 * holds up another's small buffer.
 *
 * 1. A user's work stands in a queue. A turn is one unit of its first work, which then goes to the end, if more is
 * left.
 * 2. Users with work that waits stand in a round.
 * 3. The last free thread is kept for a user of whose work none is out, and for units that do not last.
 * 4. Where units may last for ever, as reading of files does, a user has so many threads at most, and no more than are
 *    left for others.
 *
 * So a user with nothing out waits for at most one unit of each other user, and for none while a single user keeps
 * helpers busy. No clock and no thread of its own: all on the service's thread, but for work_run.
 */
#ifndef DAEMON_HELPERS_H
#define DAEMON_HELPERS_H

#include <stdbool.h>
#include <stddef.h>

#include "round_robin.h"

/* Slow work, in units. The caller who defers it keeps it, and the user of its queue, until `done`. */
struct work {
    bool (*run)(struct work *work);       /* does a unit, on a helper thread; true: more is left */
    void (*done)(struct work *work);      /* comes after the last unit, on the service's thread */
    bool (*is_wanted)(struct work *work); /* is asked between units, on the service's thread; false: no more of them.
                                             NULL: always wanted */
    bool lasts;                           /* a unit of it may take much longer than others do, and cannot be cut */
    bool more;                            /* the helpers': the result of run */
    struct helpers *helpers;              /* the helpers': they themselves */
    struct work_queue *queue;             /* the helpers': the queue of its user */
    struct work *next;                    /* the helpers' */
};

/* Work that is linked by next, in the order in which it came; all zeros is none. */
struct work_list {
    struct work *first, *last;
};

static inline void work_list_push(struct work_list *list, struct work *work)
{
    work->next = NULL;
    *(list->first ? &list->last->next : &list->first) = work;
    list->last = work;
}

/* Returns the first work, or NULL. */
static inline struct work *work_list_pop(struct work_list *list)
{
    struct work *work = list->first;
    if (work)
        list->first = work->next;
    return work;
}

/* The work of a user. All zeros is empty. */
struct work_queue {
    struct round_robin node; /* first; among the queues with work that waits */
    struct work_list waiting;
    unsigned out; /* units that helpers have */
};

struct helpers {
    struct round_robin *turn;
    unsigned most; /* units that may be out at a time: as many as there are threads */
    unsigned each; /* units of one user that may be out; 0: any number */
    unsigned out;
};

/* Queues work, or the rest of it. */
void helpers_add(struct helpers *helpers, struct work_queue *queue, struct work *work);
/* The work whose next unit is to be handed to a thread. NULL: no waiting work may be handed out now. */
struct work *helpers_next(struct helpers *helpers);
/* A unit has come back, to the helpers whose it was. */
void helpers_return(struct work *work);

/* Does a unit; on a helper's thread. */
static inline void work_run(struct work *work)
{
    work->more = work->run(work);
}

#endif

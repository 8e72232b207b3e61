/*
 * Deadlines of what waits, in a heap by time: what comes to its end is found without a look at the others, of which
 * clients may have thousands.
 */
#ifndef DAEMON_DEADLINES_H
#define DAEMON_DEADLINES_H

#include <stdint.h>

#include "protocol/limits.h"

enum deadline_kind { DEADLINE_JOB, DEADLINE_WAITING };

/* A deadline: a member of a job, or of a request that waits for memory. All zeros: it is in no heap. */
struct deadline {
    uint64_t at_us;
    uint32_t place; /* in the heap, from 1 on; 0: it is in none */
    enum deadline_kind kind;
};

#define DEADLINES_MAX (LIMIT_JOBS + LIMIT_CLIENTS * LIMIT_CLIENT_WAITS)

/* All zeros is none. None is later than those whose places are twice its own, and twice that and one. */
struct deadlines {
    uint32_t count;
    struct deadline *heap[DEADLINES_MAX + 1];
};

void deadlines_add(struct deadlines *deadlines, struct deadline *deadline);
/* Takes one out, if it is in. */
void deadlines_remove(struct deadlines *deadlines, struct deadline *deadline);
/* Returns the earliest time; UINT64_MAX: there is none. */
static inline uint64_t deadlines_first_us(const struct deadlines *deadlines)
{
    return deadlines->count > 0 ? deadlines->heap[1]->at_us : UINT64_MAX;
}
/* Takes out the earliest one if it is due; NULL: none is. */
struct deadline *deadlines_pop(struct deadlines *deadlines, uint64_t now_us);

#endif

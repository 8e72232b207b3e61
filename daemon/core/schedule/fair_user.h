/*
 * A user's accounts with the scheduler: see scheduler.h. Whoever has a struct fair_user sets its weight, and leaves the
 * rest to the scheduler.
 */
#ifndef DAEMON_FAIR_USER_H
#define DAEMON_FAIR_USER_H

#include <stdint.h>

#include <scand/types.h>

#include "protocol/limits.h"

#include "round_robin.h"

/* Bytes, and the device time that they took. Older ones fade. */
struct rate {
    double bytes, us;
};

struct job;

struct fair_user {
    struct round_robin node;  /* first; among the users with a queue */
    struct round_robin *turn; /* lane whose turn it is, of those with a queue; NULL: the user stands in no round */
    uint64_t weight;          /* from 1 */
    /* Device time had, on all devices, divided by the weight: users are compared by it, on each device by its own. */
    uint64_t account_ns[LIMIT_DEVICES];
    uint64_t queued_bytes;                      /* bytes of rows that are not handed out, or, of long ones, not done */
    struct job *long_job[SCAND_PRIORITY_COUNT]; /* by class, the job with a long row out or left off; NULL: none */
    struct rate rate;                           /* the rate of its own chunks */
    uint64_t rests_until_us;                    /* until then it has no turn (scheduler_rest) */
    /* The scheduler's `changes` when none of the user's jobs could run, if nothing has happened to these since; else 0.
     */
    uint64_t nothing_since;
};

#endif

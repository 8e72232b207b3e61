/*
 * Processes of a benchmark that begin together. They are forks, so they must not use CUDA where the benchmark has.
 */
#ifndef TESTS_BENCH_TEAM_H
#define TESTS_BENCH_TEAM_H

#include <sys/types.h>

#define TEAM_MAX 8

struct team {
    pid_t members[TEAM_MAX];
    int count;
    int ready[2], begin[2];
    double *shared; /* results, in memory that all members have */
    double results[TEAM_MAX];
};

/* The work of member `index`, which calls team_meet once, when it is ready. Returns its exit status. */
typedef int team_work(struct team *team, int index, const void *argument);

/* Starts members and waits until all are ready. 0, or 1 after a line on stderr; either way team_end comes last. */
int team_start(struct team *team, int count, team_work *work, const void *argument);
/* Lets the members begin. */
void team_begin(struct team *team);
/* Waits for all, and then has what they gave as results. 0, or nonzero where one failed. */
int team_end(struct team *team);

/* Waits, in a member, until all may begin. Returns 0, or 1 when the benchmark is gone. */
int team_meet(struct team *team);
void team_give(struct team *team, int index, double result);

#endif

/*
 * Tells whether a process stands still for want of a processor or a disk: then it does not hang, however long it takes.
 */
#ifndef DAEMON_STARVATION_H
#define DAEMON_STARVATION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define STARVATION_THREADS 512 /* threads that are looked at, at most */

/* A thread's times as Linux tells them: how long it ran, how long it was ready and had to wait, how often it ran. */
struct thread_time {
    int id;
    uint64_t ran_ns, waited_ns, turns;
};

/* The threads' times at the last check. */
struct starvation {
    struct thread_time first, others[STARVATION_THREADS];
    unsigned other_count;
};

/* Checks the process's first thread, period_ms after the previous check. True when the thread was ready to run for half
 * of the time and had no processor; false also where Linux does not tell. */
bool starvation_check(struct starvation *starvation, pid_t pid, uint64_t period_ms);
/* True while the process's first thread waits for a disk, a driver or memory: it cannot even be killed then. */
bool starvation_sleeps(pid_t pid);
/* Checks the other threads in the same way. True when one of them had no processor, or waits for a disk or a driver. */
bool starvation_check_others(struct starvation *starvation, pid_t pid, uint64_t period_ms);

#endif

/*
 * Whether a process stands still for want of a processor: then it does not hang, however long it takes.
 */
#ifndef DAEMON_STARVATION_H
#define DAEMON_STARVATION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct starvation {
    uint64_t ran_ns; /* how long the first thread has had a processor, at the last check */
};

/* A check, period_ms after the one before. True when the process's first thread is ready to run and had a processor for
 * less than half of the time since; false also where Linux does not tell. */
bool starvation_check(struct starvation *starvation, pid_t pid, uint64_t period_ms);

#endif

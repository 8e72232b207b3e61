/*
 * Finds out whether a worker hangs: its loop makes no turn, or a device does not give back a chunk. It counts checks,
 * not time: while supervisor and worker both stand still, as on a suspended machine, there are no checks.
 */
#ifndef DAEMON_WATCHDOG_H
#define DAEMON_WATCHDOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "progress.h"

#define WATCHDOG_CHECKS    4      /* a worker hangs after so many checks without a turn of its loop */
#define WATCHDOG_ASLEEP    6      /* so many times as many while its thread waits for memory that a client gives back */
#define WATCHDOG_START_MS  300000 /* the longest start of a worker: a driver may compile kernels first */
#define WATCHDOG_ENDING_MS 60000  /* the longest end of a worker that has drained or lost its device */

struct watchdog {
    uint64_t period_ms; /* the time between two checks; 0: no checks */
    bool asleep;        /* by the caller, before each check: the loop's thread cannot be ended now, and may go on */
    uint64_t turns, loop_ms;
    struct {
        uint64_t handed_us, held_ms, served_ms;
    } devices[LIMIT_DEVICES];
};

/* Starts watching a new worker. limit_ms: the longest time without a turn of the loop; 0: unlimited. */
void watchdog_init(struct watchdog *watchdog, uint64_t limit_ms);
/* True when the next check depends on whether the worker's threads have processors: a device has a chunk whose limit
 * does. */
bool watchdog_watches_threads(const struct progress *progress);
/* Checks the worker, period_ms after the previous check. True when the worker hangs; `cause` then says what hangs and
 * for how long. `service` is the worker's, in shared memory. starved: threads of the worker had no processors
 * meanwhile. */
bool watchdog_check(struct watchdog *watchdog, const struct progress *progress, const struct service *service,
                    bool starved, char *cause, size_t size);

#endif

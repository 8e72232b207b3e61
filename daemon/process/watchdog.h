/*
 * Tells whether a worker stands still: its loop, as a whole, or a chunk that a device does not give back. It counts
 * looks, not time: while supervisor and worker both stand still, as in a machine that is suspended, nobody looks.
 */
#ifndef DAEMON_WATCHDOG_H
#define DAEMON_WATCHDOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "progress.h"

#define WATCHDOG_LOOKS     4      /* without a turn of the loop, after which it hangs */
#define WATCHDOG_START_MS  300000 /* for a worker to begin to serve: a driver may compile kernels first */
#define WATCHDOG_ENDING_MS 60000  /* for it to end, once it has drained or lost its device */

struct watchdog {
    uint64_t period_ms; /* between two looks; 0: nobody looks */
    uint64_t turns, loop_ms;
    struct {
        uint64_t handed_us, held_ms;
    } devices[LIMIT_DEVICES];
};

/* limit_ms: for which the loop may make no turn; 0: for ever. Begins with a new worker, too. */
void watchdog_init(struct watchdog *watchdog, uint64_t limit_ms);
/* A look, period_ms after the one before. True when the worker hangs; `cause` says what and for how long. The service
 * is the worker's, in shared memory. */
bool watchdog_look(struct watchdog *watchdog, const struct progress *progress, const struct service *service,
                   char *cause, size_t size);

#endif

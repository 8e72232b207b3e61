/*
 * A worker's progress, in memory that its supervisor maps, too: the supervisor checks it from time to time, and ends a
 * worker that hangs.
 */
#ifndef DAEMON_PROGRESS_H
#define DAEMON_PROGRESS_H

#include <stdatomic.h>

#include "daemon/core/service.h"

enum phase { PHASE_STARTING, PHASE_SERVING, PHASE_ENDING };

/* The chunk that a device has had for longest. */
struct progress_device {
    _Atomic uint64_t handed_us; /* time at which it was handed over; 0: the device has none */
    _Atomic uint64_t job;
    _Atomic uint32_t user;
    _Atomic uint64_t allowed_ms; /* time that the chunk may take, and */
    _Atomic uint64_t served_ms;  /* for how long threads of the worker may have processors meanwhile */
};

struct progress {
    _Atomic enum phase phase;
    _Atomic uint64_t turns; /* grows while the loop runs */
    struct progress_device devices[LIMIT_DEVICES];
};

/* Resets the progress before a worker is started. */
void progress_init(struct progress *progress);
/* Publishes the progress, from the loop while it serves. limit_ms: the longest time of a turn. */
void progress_show(struct progress *progress, const struct service *service, uint64_t limit_ms);
/* Returns the time that a device may take for any chunk, however small: limit_ms, so that a hang is found within twice
 * that time; six times as long for tutorials' variants, which are slow. Threads that compute may have to wait for
 * processors, which prolongs the limit to six times at most; with `served`, the result limits only the time in which
 * the threads have processors. */
uint64_t progress_floor_ms(const struct chunk *chunk, uint64_t limit_ms, bool served);

/* Returns the chunk that a device has had for longest; NULL: the device has none. The supervisor may call this for a
 * worker that hangs, but must not follow the chunk's job. */
const struct chunk *progress_oldest(const struct station *station);

#endif

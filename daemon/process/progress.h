/*
 * What a worker shows of its progress, in memory that it shares with its supervisor: the supervisor looks now and then,
 * and ends a worker that stands still.
 */
#ifndef DAEMON_PROGRESS_H
#define DAEMON_PROGRESS_H

#include <stdatomic.h>

#include "daemon/core/service.h"

enum phase { PHASE_STARTING, PHASE_SERVING, PHASE_ENDING };

/* The chunk that a device has had for longest. */
struct progress_device {
    _Atomic uint64_t handed_us; /* when it was handed over; 0: the device has none */
    _Atomic uint64_t job;
    _Atomic uint32_t user;
    _Atomic uint64_t allowed_ms; /* for which it may take, if nothing is wrong */
};

struct progress {
    _Atomic enum phase phase;
    _Atomic uint64_t turns; /* goes up while the loop runs */
    struct progress_device devices[LIMIT_DEVICES];
};

/* A worker is about to be started. */
void progress_init(struct progress *progress);
/* From the loop, while it serves. limit_ms: what the loop may take. */
void progress_show(struct progress *progress, const struct service *service, uint64_t limit_ms);
/* What a device may take for a chunk however little it is: half as long again as the loop, so that a hang is seen
 * within twice that time. Where it computes by threads, these may wait for processors; and tutorials' variants are
 * slow. Then it is six times as long. */
uint64_t progress_floor_ms(const struct chunk *chunk, uint64_t limit_ms);

/* The chunk that a device has had for longest, of those that are out; NULL: none is. Also of a worker that stands
 * still, from outside: its job is not to be followed then. */
const struct chunk *progress_oldest(const struct station *station);

#endif

#include "watchdog.h"

#include <inttypes.h>
#include <stdio.h>

void watchdog_init(struct watchdog *watchdog, uint64_t limit_ms)
{
    *watchdog = (struct watchdog){.period_ms = limit_ms / WATCHDOG_CHECKS};
}

/* Describes the job that a device is at, if there is one. Before a worker serves there is none: the shared memory may
 * still hold an earlier worker's jobs. */
static void describe_job(const struct service *service, bool serves, char *out, size_t size)
{
    snprintf(out, size, "no job is with a device");
    for (unsigned i = 0; serves && i < LIMIT_DEVICES; i++) {
        const struct chunk *chunk = progress_oldest(&service->scheduler.stations[i]);
        if (!chunk)
            continue;
        snprintf(out, size, "device %u has job %" PRIu64 " of user %" PRIu32, i, chunk->job, chunk->user);
        return;
    }
}

static bool loop_hangs(struct watchdog *self, const struct progress *progress, const struct service *service,
                       char *cause, size_t size)
{
    static const struct {
        const char *what;
        uint64_t limit_ms;
    } phases[] = {[PHASE_STARTING] = {"has not begun to serve", WATCHDOG_START_MS},
                  [PHASE_SERVING] = {"does nothing", 0},
                  [PHASE_ENDING] = {"does not end", WATCHDOG_ENDING_MS}};
    char job[96];
    const enum phase phase = atomic_load(&progress->phase);
    const uint64_t turns = atomic_load(&progress->turns);
    const uint64_t served_ms = self->period_ms * WATCHDOG_CHECKS * (self->asleep ? WATCHDOG_ASLEEP : 1);
    const uint64_t limit_ms = phase == PHASE_SERVING ? served_ms : phases[phase].limit_ms;
    self->loop_ms = turns != self->turns ? 0 : self->loop_ms + self->period_ms;
    self->turns = turns;
    if (self->loop_ms < limit_ms)
        return false;
    describe_job(service, phase != PHASE_STARTING, job, sizeof job);
    snprintf(cause, size, "the worker %s for %.1f s; %s", phases[phase].what, (double)self->loop_ms / 1000, job);
    return true;
}

static bool device_hangs(struct watchdog *self, unsigned i, const struct progress_device *device, bool starved,
                         char *cause, size_t size)
{
    const uint64_t handed_us = atomic_load(&device->handed_us), allowed_ms = atomic_load(&device->allowed_ms),
                   served_ms = atomic_load(&device->served_ms);
    if (handed_us == 0 || handed_us != self->devices[i].handed_us) {
        self->devices[i].handed_us = handed_us;
        self->devices[i].held_ms = self->devices[i].served_ms = 0;
        return false;
    }
    self->devices[i].held_ms += self->period_ms;
    self->devices[i].served_ms += starved ? 0 : self->period_ms;
    if (self->devices[i].held_ms < allowed_ms && self->devices[i].served_ms < served_ms)
        return false;
    snprintf(cause, size,
             "device %u has had a chunk of job %" PRIu64 " of user %" PRIu32 " for %.1f s, where %.1f s are allowed", i,
             atomic_load(&device->job), atomic_load(&device->user), (double)self->devices[i].held_ms / 1000,
             (double)(self->devices[i].held_ms < allowed_ms ? served_ms : allowed_ms) / 1000);
    return true;
}

bool watchdog_watches_threads(const struct progress *progress)
{
    for (unsigned i = 0; i < LIMIT_DEVICES; i++)
        if (atomic_load(&progress->devices[i].handed_us) > 0 &&
            atomic_load(&progress->devices[i].served_ms) < atomic_load(&progress->devices[i].allowed_ms))
            return true;
    return false;
}

bool watchdog_check(struct watchdog *watchdog, const struct progress *progress, const struct service *service,
                    bool starved, char *cause, size_t size)
{
    if (loop_hangs(watchdog, progress, service, cause, size))
        return true;
    if (atomic_load(&progress->phase) != PHASE_SERVING)
        return false;
    for (unsigned i = 0; i < LIMIT_DEVICES; i++)
        if (device_hangs(watchdog, i, &progress->devices[i], starved, cause, size))
            return true;
    return false;
}

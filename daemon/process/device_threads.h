/*
 * The threads of all devices, as the worker's loop sees them: it gives them chunks, collects what they return, and may
 * look for more without blocking ("spinning") where waking would take longer than the wait.
 *
 * Called from the loop's thread alone.
 */
#ifndef DAEMON_DEVICE_THREADS_H
#define DAEMON_DEVICE_THREADS_H

#include "daemon/core/service.h"
#include "daemon/device/device_thread.h"
#include "device_set.h"

/* Chunks that a device has returned and that are not handled yet, oldest first. */
struct returned {
    struct chunk *first, *last;
};

struct device_threads {
    struct service *service; /* which handles what devices return */
    unsigned count;
    struct device_thread threads[LIMIT_DEVICES];
    struct returned returned[LIMIT_DEVICES]; /* by the device's number */
    void (*notify)(void *context);
    void *context;
    uint64_t spin_end_us;
    atomic_bool spinning; /* until then completed chunks are looked for without blocking, and nobody announces them */
};

/* Starts them. They call `notify`, from their own threads, for chunks that have come back while nobody spins. 0 or
 * -errno. */
int device_threads_start(struct device_threads *self, const struct device_set *devices, struct service *service,
                         void (*notify)(void *context), void *context);
/* Waits for the chunks that are out, which can still be collected, and ends the threads. */
void device_threads_stop(struct device_threads *self);
/* After device_threads_stop: frees what is left. */
void device_threads_finish(struct device_threads *self);
void device_threads_submit(struct device_threads *self, struct chunk *chunk);
/* Handles a turn of what devices have returned, or all of it. Returns false when a device is lost; all else that came
 * back is handled then. */
bool device_threads_collect(struct device_threads *self, bool all);
/* Ends the spinning when its time has come. True when it did: what came back meanwhile was not announced. */
bool device_threads_end_spin(struct device_threads *self);
/* True when the loop may block: nobody spins, and no chunk waits to be handled. */
bool device_threads_may_block(const struct device_threads *self);

#endif

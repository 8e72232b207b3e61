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

struct device_threads {
    struct service *service; /* handles what devices return */
    unsigned count;
    struct device_thread threads[LIMIT_DEVICES];
    struct chunk_queue returned[LIMIT_DEVICES]; /* by devices, by number, and not handled yet */
    struct chunk *now;                          /* a small chunk that the loop is to compute; NULL: none */
    void (*notify)(void *context);
    void *context;
    uint64_t spin_end_us;
    atomic_bool spinning; /* until spin_end_us the loop does not block and is not notified of completed chunks */
};

/* Starts one thread per device. The threads call `notify` for chunks that have come back while the loop does not spin.
 * Returns 0 or -errno. */
int device_threads_start(struct device_threads *self, const struct device_set *devices, struct service *service,
                         void (*notify)(void *context), void *context);
/* Waits for the chunks that the devices have, which can still be collected, and ends the threads. */
void device_threads_stop(struct device_threads *self);
/* Frees what is left after device_threads_stop. */
void device_threads_finish(struct device_threads *self);
/* Hands chunks, linked by next, to their devices. */
void device_threads_submit(struct device_threads *self, struct chunk *chunks);
/* The user of a small chunk that the loop is to compute by device_threads_run_now, before it waits; NULL: there is
 * none.
 */
struct user *device_threads_user_now(const struct device_threads *self);
void device_threads_run_now(struct device_threads *self);
/* Handles what devices have returned: all of it, or as much as a turn of the loop allows. Returns false when a device
 * is lost; all other chunks that came back are handled then. */
bool device_threads_collect(struct device_threads *self, bool all);
/* Ends the spinning when its time has come. Returns true when it ended: chunks may have come back without a notice. */
bool device_threads_end_spin(struct device_threads *self);
/* True when the loop may block: it does not spin, and no chunk waits to be handled. */
bool device_threads_may_block(const struct device_threads *self);

#endif

/*
 * The device's own thread: it alone starts chunks and waits for them. Chunks go in and come back through two lists
 * under one lock. With nothing to do it looks for more for as long as the device's info says, then blocks.
 */
#ifndef DAEMON_DEVICE_THREAD_H
#define DAEMON_DEVICE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "device.h"

struct device_thread {
    struct device *device;
    void (*notify)(void *context); /* from the thread: some have come back, perhaps many */
    void *context;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct chunk *incoming, **incoming_end;
    struct chunk *completed, **completed_end;
    bool stopping, blocked;
    unsigned out;                  /* submitted and not yet collected: the submitter's */
    atomic_bool arrived, returned; /* whether the lists have something: to look without the lock */
};

/* Starts the thread. 0 or -errno. */
int device_thread_start(struct device_thread *device_thread, struct device *device, void (*notify)(void *context),
                        void *context);
/* Waits for the chunks that are out, which can still be collected, and ends the thread. */
void device_thread_stop(struct device_thread *device_thread);
/* After device_thread_stop: frees what is left. */
void device_thread_finish(struct device_thread *device_thread);
void device_thread_submit(struct device_thread *device_thread, struct chunk *chunk);
/* All chunks that have come back since the last call, linked by next, oldest first. */
struct chunk *device_thread_collect(struct device_thread *device_thread);

#endif

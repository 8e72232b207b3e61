/*
 * The device's own thread: it alone starts chunks and waits for them. Chunks go in and come back through two queues
 * under one lock. Without chunks the thread spins for as long as the device's info says, then blocks.
 */
#ifndef DAEMON_DEVICE_THREAD_H
#define DAEMON_DEVICE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "device.h"

struct device_thread {
    struct device *device;
    void (*notify)(void *context); /* called by the thread when chunks have come back, perhaps many */
    void *context;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct chunk_queue incoming, completed;
    bool stopping, blocked;
    unsigned out;                  /* chunks submitted and not yet collected; the submitter's */
    atomic_bool arrived, returned; /* the queues have something: for a look without the lock */
};

/* Starts the thread. Returns 0 or -errno. */
int device_thread_start(struct device_thread *device_thread, struct device *device, void (*notify)(void *context),
                        void *context);
/* Waits for the chunks that the device has, which can still be collected, and ends the thread. */
void device_thread_stop(struct device_thread *device_thread);
/* Frees what is left after device_thread_stop. */
void device_thread_finish(struct device_thread *device_thread);
/* Hands over chunks that are linked by next. */
void device_thread_submit(struct device_thread *device_thread, struct chunk *chunks);
/* Returns all chunks that have come back since the last call, linked by next, oldest first. */
struct chunk *device_thread_collect(struct device_thread *device_thread);

#endif

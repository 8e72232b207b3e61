/*
 * The device's own thread: it alone starts chunks and waits for them. Chunks go in and come back through two lists
 * under one lock. With nothing to do it looks for more for as long as the device's info says, then blocks.
 */
#ifndef DAEMON_DEVICE_THREAD_H
#define DAEMON_DEVICE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "device.h"

struct runner {
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
int runner_start(struct runner *runner, struct device *device, void (*notify)(void *context), void *context);
/* Waits for the chunks that are out, which can still be collected, and ends the thread. */
void runner_stop(struct runner *runner);
/* After runner_stop: frees what is left. */
void runner_finish(struct runner *runner);
void runner_submit(struct runner *runner, struct chunk *chunk);
/* All chunks that have come back since the last call, linked by next, oldest first. */
struct chunk *runner_collect(struct runner *runner);

#endif

/*
 * Threads for what is not done at once: those of a second CPU device, which begin with the first chunk that is handed
 * to it. Chunks are those of the service's device, of whose kind it is.
 */
#ifndef DAEMON_LOCAL_FAR_H
#define DAEMON_LOCAL_FAR_H

#include "daemon/device/device_thread.h"

struct far {
    void (*wake)(void *context); /* from the device's thread: some have come back */
    void *context;
    struct device *device; /* NULL: none was needed */
    struct device_thread thread;
};

void far_init(struct far *far, void (*wake)(void *context), void *context);
/* Hands over a chunk. -errno where threads cannot be had. */
int far_submit(struct far *far, struct chunk *chunk);
/* True when chunks have come back. */
bool far_is_ready(const struct far *far);
/* Returns the chunks that have come back, linked by next, oldest first. */
struct chunk *far_collect(struct far *far);
/* Waits for the chunks that are out, which can still be collected. */
void far_stop(struct far *far);
void far_finish(struct far *far);

#endif

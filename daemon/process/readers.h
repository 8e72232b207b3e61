/*
 * Threads that read files of clients, and do whatever else a file system may hold up for any length of time, so that
 * the loop and other clients are not held up. The service says how many readers may be busy for a user; threads are
 * started as they are needed, and stay.
 *
 * All functions are for the loop's thread.
 */
#ifndef DAEMON_READERS_H
#define DAEMON_READERS_H

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/core/schedule/helpers.h"

struct readers {
    pthread_mutex_t lock;
    pthread_cond_t wake, news;      /* wake: for the threads; news: for readers_wait */
    struct work_list waiting, done; /* units, and units that have been done */
    unsigned threads, idle, out;    /* out: units that are in the lists or with a thread */
    atomic_bool returned;           /* some units have been done */
    void (*notify)(void *context);  /* called on a thread that has the lock; NULL: nobody is notified any more */
    void *context;
};

/* Starts the first thread. Returns 0 or -errno. */
int readers_start(struct readers *readers, void (*notify)(void *context), void *context);
/* Stops notifying from now on. */
void readers_silence(struct readers *readers);
/* Hands a unit of work to the threads. At most LIMIT_READERS units are out. */
void readers_submit(struct readers *readers, struct work *work);
/* Returns the units that have been done, linked by `next`. `notify` has been called for these, and will be for later
 * ones. */
struct work *readers_collect(struct readers *readers);
/* Waits until a unit has been done and returns true; false when no unit is out, or none was done in timeout_ms. */
bool readers_wait(struct readers *readers, int timeout_ms);
/* Returns how many units are out. */
unsigned readers_out(struct readers *readers);

#endif

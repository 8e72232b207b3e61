/* Threads that nobody joins, since they may never end, and conditions on which whoever needs them waits for a while. */
#ifndef DAEMON_DETACHED_H
#define DAEMON_DETACHED_H

#include <pthread.h>
#include <stddef.h>
#include <time.h>

/* Returns 0 or -errno. */
int detached_start(void *(*run)(void *argument), void *argument, size_t stack_bytes);

/* A condition for pthread_cond_timedwait until detached_deadline. */
void detached_condition_init(pthread_cond_t *condition);
struct timespec detached_deadline(int timeout_ms);

#endif

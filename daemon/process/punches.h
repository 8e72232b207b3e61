/*
 * Frees pages of memory whose descriptor a client may still have, which has to wait while that client writes to its
 * file: for as long as the client likes, in a state that no signal ends. So a thread of its own does it, and whoever
 * asks waits for that thread, but not for long.
 */
#ifndef DAEMON_PUNCHES_H
#define DAEMON_PUNCHES_H

#include <pthread.h>
#include <stdint.h>

#define PUNCH_MS     100 /* for so long the caller waits for the thread, and then leaves it behind */
#define PUNCHES_LEFT 16  /* where so many have been left behind, nothing is freed: pages stay with who has the file */

struct punches {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    unsigned left; /* threads for which nobody waits any more */
};

void punches_init(struct punches *punches);
/* Frees the pages of a descriptor, which stays the caller's, from its beginning on. Any thread may call this. */
void punches_free(struct punches *punches, int fd, uint64_t size_bytes);

#endif

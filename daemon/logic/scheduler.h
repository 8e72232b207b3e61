/*
 * Whose rows the device gets next. Every client has a lane, a queue of its jobs; chunks are taken from the lanes in
 * turn, so that a newcomer waits for the chunks in flight, never for another client's job. Inside a lane jobs start in
 * the order of submission, and a job that touches what an earlier one writes waits until that one has ended.
 *
 * Pure logic: no clock, no threads, no memory of its own beyond a fixed number of chunks.
 */
#ifndef DAEMON_SCHEDULER_H
#define DAEMON_SCHEDULER_H

#include "job.h"

struct lane {
    struct job *queue;  /* with rows to hand out, oldest first */
    struct job *active; /* started and not ended, without rows to hand out */
    struct lane *next;  /* among the lanes with a queue, a ring */
};

struct scheduler {
    struct lane *turn; /* the lane whose turn it is; NULL: no lane has a queue */
    struct chunk chunks[LIMIT_CHUNKS_IN_FLIGHT];
    struct chunk *free;
};

/* At most `depth` chunks are out at a time. */
void scheduler_init(struct scheduler *scheduler, unsigned depth);

/* Queues a job that has rows. */
void scheduler_add(struct scheduler *scheduler, struct lane *lane, struct job *job);
/* Hands out no more of a job's rows; later jobs still wait for those that are out. */
void scheduler_stop(struct scheduler *scheduler, struct lane *lane, struct job *job);
/* Takes an ended job out of its lane. */
void scheduler_remove(struct scheduler *scheduler, struct lane *lane, struct job *job);
/* The next chunk to run, or NULL: nothing can be handed out now. */
struct chunk *scheduler_next(struct scheduler *scheduler, uint64_t now_us);
/* Takes a chunk back for reuse. */
void scheduler_recycle(struct scheduler *scheduler, struct chunk *chunk);

#endif

/*
 * Threads that copy rows between clients' memory that is not pinned and memory of the device's that is, while its own
 * thread goes on. One thread copies no more than a fifth of what PCIe does, so each of them has a part of every task.
 */
#ifndef DAEMON_STAGE_H
#define DAEMON_STAGE_H

#include <stdatomic.h>

#include "copy.h"

#define STAGE_SIDES LIMIT_JOB_OPERANDS

/* Sides to be copied; the caller's, and left alone until it is done. */
struct stage_task {
    enum staging staging;
    struct stage_side {
        const struct side *side; /* NULL: none */
        unsigned char *memory;
    } sides[STAGE_SIDES];
    atomic_uint left; /* threads that have yet to do their part */
};

struct cuda_stage;

/* At most LIMIT_CHUNKS_IN_FLIGHT tasks are out at a time. NULL: no memory, or no threads. */
struct cuda_stage *cuda_stage_create(void);
/* Ends the threads, after what they are at. NULL is none. */
void cuda_stage_destroy(struct cuda_stage *stage);
void cuda_stage_start(struct cuda_stage *stage, struct stage_task *task);

static inline bool stage_task_is_done(struct stage_task *task)
{
    return atomic_load(&task->left) == 0;
}

#endif

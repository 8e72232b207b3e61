#include "scheduler.h"

#include <assert.h>

void scheduler_init(struct scheduler *scheduler, unsigned depth)
{
    *scheduler = (struct scheduler){0};
    for (unsigned i = 0; i < depth && i < LIMIT_CHUNKS_IN_FLIGHT; i++)
        scheduler_recycle(scheduler, &scheduler->chunks[i]);
}

void scheduler_recycle(struct scheduler *scheduler, struct chunk *chunk)
{
    chunk->next = scheduler->free;
    scheduler->free = chunk;
}

/* The ring is walked to the lane before `lane`; lanes are as many as clients with queued jobs. */
static struct lane *ring_before(const struct lane *lane)
{
    struct lane *before = lane->next;
    while (before->next != lane)
        before = before->next;
    return before;
}

static void ring_insert(struct scheduler *scheduler, struct lane *lane)
{
    if (!scheduler->turn) {
        scheduler->turn = lane->next = lane;
        return;
    }
    struct lane *last = ring_before(scheduler->turn);
    last->next = lane;
    lane->next = scheduler->turn;
}

static void ring_remove(struct scheduler *scheduler, struct lane *lane)
{
    if (lane->next == lane) {
        scheduler->turn = NULL;
    } else {
        ring_before(lane)->next = lane->next;
        if (scheduler->turn == lane)
            scheduler->turn = lane->next;
    }
    lane->next = NULL;
}

static void list_append(struct job **list, struct job *job)
{
    while (*list)
        list = &(*list)->next;
    job->next = NULL;
    *list = job;
}

static bool list_remove(struct job **list, struct job *job)
{
    while (*list && *list != job)
        list = &(*list)->next;
    if (!*list)
        return false;
    *list = job->next;
    job->next = NULL;
    return true;
}

void scheduler_add(struct scheduler *scheduler, struct lane *lane, struct job *job)
{
    assert(job_has_rows(job));
    if (!lane->queue)
        ring_insert(scheduler, lane);
    list_append(&lane->queue, job);
}

static bool queue_remove(struct scheduler *scheduler, struct lane *lane, struct job *job)
{
    bool found = list_remove(&lane->queue, job);
    if (found && !lane->queue)
        ring_remove(scheduler, lane);
    return found;
}

void scheduler_stop(struct scheduler *scheduler, struct lane *lane, struct job *job)
{
    if (queue_remove(scheduler, lane, job))
        list_append(&lane->active, job);
}

void scheduler_remove(struct scheduler *scheduler, struct lane *lane, struct job *job)
{
    if (!queue_remove(scheduler, lane, job))
        list_remove(&lane->active, job);
}

static bool lane_is_blocked(const struct lane *lane)
{
    for (const struct job *earlier = lane->active; earlier; earlier = earlier->next)
        if (job_conflicts(lane->queue, earlier))
            return true;
    return false;
}

struct chunk *scheduler_next(struct scheduler *scheduler, uint64_t now_us)
{
    struct chunk *chunk = scheduler->free;
    struct lane *first = scheduler->turn, *lane = first;
    if (!chunk || !lane)
        return NULL;
    while (lane_is_blocked(lane)) {
        lane = lane->next;
        if (lane == first)
            return NULL;
    }
    scheduler->free = chunk->next;
    scheduler->turn = lane->next;
    struct job *job = lane->queue;
    job_next_chunk(job, chunk, now_us);
    if (!job_has_rows(job))
        scheduler_stop(scheduler, lane, job);
    return chunk;
}

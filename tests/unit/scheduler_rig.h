/* The rig of the scheduler's tests: a scheduler, devices, users with a lane each, and jobs that a test adds, steps
 * through and ends as the service does. */
#ifndef TESTS_SCHEDULER_RIG_H
#define TESTS_SCHEDULER_RIG_H

#include "daemon/core/schedule/scheduler.h"

#include "tests/check.h"

#define LANES        4
#define JOBS         40
#define BUFFER_COUNT 6
#define DEVICES      3

#define LOW  SCAND_PRIORITY_LOW
#define HIGH SCAND_PRIORITY_HIGH

static struct scheduler scheduler;
static struct device devices[DEVICES];
static struct fair_user fair_users[LANES]; /* a user for each lane */
static struct lane lanes[LANES];
static struct job jobs[JOBS];
static struct buffer buffers[BUFFER_COUNT];
static unsigned rests; /* long rows that are left off */

static inline void discard(struct device *device, void *rest)
{
    CHECK(rest == device && rests > 0);
    rests--;
}

static const struct device_ops ops = {.discard = discard};

/* Begins with `count` devices, each with room for `depth` chunks. */
static inline void begin_devices(unsigned count, unsigned depth)
{
    struct device_set set = {.count = count};
    for (unsigned i = 0; i < count; i++) {
        devices[i] = (struct device){.ops = &ops, .info = {.slots = depth, .slice_us = 100}, .number = i};
        set.devices[i] = &devices[i];
    }
    scheduler_init(&scheduler, &set);
    memset(lanes, 0, sizeof lanes);
    memset(fair_users, 0, sizeof fair_users);
    memset(jobs, 0, sizeof jobs);
    for (unsigned i = 0; i < LANES; i++) {
        fair_users[i].weight = 1;
        lanes[i].user = &fair_users[i];
    }
}

static inline void begin(unsigned depth)
{
    begin_devices(1, depth);
}

/* A job of `rows` rows, one to a chunk, that reads one whole buffer and writes another. */
static inline struct job *add_sized(unsigned lane, enum scand_priority priority, unsigned number, uint64_t rows,
                                    uint64_t row_bytes, unsigned input, unsigned output)
{
    static const int ranks[] = {
#define X(NAME, WORD, RANK) RANK,
        SCAND_PRIORITIES(X)
#undef X
    };
    jobs[number] = (struct job){
        .plain = true,
        .rank = ranks[priority],
        .rows = {.length = 1, .row_count = rows},
        .operands = {[OPERAND_INPUT] = {.buffer = &buffers[input], .extent = {0, 100}, .access = ACCESS_READ},
                     [OPERAND_OUTPUT] = {.buffer = &buffers[output], .extent = {0, 100}, .access = ACCESS_WRITE}},
        .operand_count = OPERAND_FURTHER,
        .chunk_rows = 1,
        .sample_bytes = row_bytes};
    scheduler_add(&scheduler, &lanes[lane], &jobs[number]);
    return &jobs[number];
}

/* Adds a job of long rows. */
static inline struct job *add_long(unsigned lane, enum scand_priority priority, unsigned number, uint64_t rows,
                                   unsigned input, unsigned output)
{
    struct job *job = add_sized(lane, priority, number, rows, 1000, input, output);
    job->long_bytes = 100;
    return job;
}

static inline struct job *add_class(unsigned lane, enum scand_priority priority, unsigned number, uint64_t rows,
                                    unsigned input, unsigned output)
{
    return add_sized(lane, priority, number, rows, 4, input, output);
}

static inline struct job *add(unsigned lane, unsigned number, uint64_t rows, unsigned input, unsigned output)
{
    return add_class(lane, SCAND_PRIORITY_NORMAL, number, rows, input, output);
}

static inline bool lane_is_empty(const struct lane *lane)
{
    for (int i = 0; i < SCAND_PRIORITY_COUNT; i++)
        if (lane->queue[i].first)
            return false;
    return !lane->active.first && !lane->user->turn && lane->user->queued_bytes == 0;
}

/* Ends a chunk as the service does. */
static inline void end(struct chunk *chunk, int status)
{
    struct job *job = chunk->owner;
    chunk->status = status;
    bool ended = job_return(job, chunk);
    if (status)
        scheduler_stop(&scheduler, job);
    scheduler_return(&scheduler, chunk);
    if (ended)
        scheduler_remove(&scheduler, job);
}

/* A slice is over. */
static inline void leave_off(struct chunk *chunk)
{
    CHECK(chunk->slice_us > 0);
    chunk->rest = chunk->device;
    rests++;
    end(chunk, 0);
}

/* A device goes on with what was left off. */
static inline void go_on(struct chunk *chunk)
{
    if (!chunk->rest)
        return;
    CHECK(chunk->rest == chunk->device && rests > 0);
    chunk->rest = NULL;
    rests--;
}

static inline struct job *owner_of(struct chunk *chunk)
{
    return chunk ? chunk->owner : NULL;
}

/* Starts and ends one chunk; which job's it was. */
static inline struct job *step(void)
{
    struct chunk *chunk = scheduler_next(&scheduler, 1);
    struct job *job = owner_of(chunk);
    if (chunk)
        end(chunk, 0);
    return job;
}

#endif

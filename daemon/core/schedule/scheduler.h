/*
 * The choice of the user whose rows a device gets next: deficit round-robin over users by device time.
 *
 * 1. Users with queued jobs stand in a round. A turn is one chunk; whoever joins stands last.
 * 2. An account says how much device time a user has had, divided by its weight. A user takes a turn if its account is
 *    not above the device's level. When all users with something to run there are above it, it rises to the lowest.
 * 3. A chunk's time goes on the account when it is handed out, as an estimate from its bytes and the rate of the user's
 *    latest chunks, of LIMIT_ESTIMATE_MS at most. When the chunk comes back, its true time takes the estimate's place.
 * 4. An account of a user that has nothing to run is raised to the level: idleness earns nothing. Nor does it cost:
 *    when nobody is left, the level rises to the highest account. Where all that a user has is left to other devices
 *    (below), its account may be LIMIT_OWED_MS of device time below the level.
 * 5. Inside a user the most urgent class goes first, and the lanes (connections) with jobs of it take turns. In a lane
 *    jobs of one class start in the order of submission. A job that touches memory which an unfinished earlier job
 *    writes waits; the jobs that it waits for, and those before them in their class, go first in its place. Jobs that
 *    need not wait overtake a job whose next rows lie in memory that is not pinned yet, but not a job whose offsets
 *    have yet to be read.
 *
 * So (a) a user whose account is not above the level, above all a new one, waits for the chunks in flight and one
 * chunk of each other user, and (b) of two users i, j that always have something to run, device times T grow such that
 * |Ti/wi - Tj/wj| <= 2 D (Ci/wi + Cj/wj): D chunks in flight, C the largest time or estimate of a user's chunks.
 *
 * Of several devices that have room, the one that can start a chunk first gets the next one: the one with the least
 * time outstanding, by its bytes and the rate of its latest chunks; of equal ones the fastest. A job that touches
 * device memory runs on that device; independent jobs of its lane may overtake it on other devices. A device
 * leaves a job's next chunk to another one that would finish the whole rest of the job before this one finishes the
 * chunk. Each device has a level, and an account for each user, which only that level raises; but time on any device is
 * charged to all of a user's accounts. So users who need a certain device get it by weight, whatever the levels of the
 * other devices are; and a user who can use another device, and has had more time there, leaves it to those who
 * cannot.
 *
 * A device may have small slots besides, for chunks of small jobs, so that these wait for no other job's copies. While
 * only such slots are free, the turn goes to a user with a small job that is next by rule 5; accounts and level are
 * compared as always, and no account is raised. A small job is charged by its bytes, at the rate of other slots: most
 * of its time is waiting, which delays nobody. Of several devices with such slots, a small job goes to the one from
 * which small jobs come back soonest; the times of other devices fade, so that they are tried again.
 * Together, small slots hold LIMIT_SMALL_OUT_BYTES and one job more at most, and so cost others no more than a chunk or
 * two.
 *
 * Where a processor's threads have slept at a chunk's memory, since its client gave that back, the user has no turn for
 * LIMIT_REST_PARTS times as long: others need not wait for it for more than such a part of the time.
 *
 * A long row, of more than two chunks' bytes, is with a device for a slice at a time (LIMIT_SLICE_MS), where that can
 * leave it off. Then it comes back and takes turns as if each slice were a chunk, so others wait for one of them at
 * most. It goes on where it has begun; until it is done, no other long row of its user and class is begun.
 *
 * Pure: no clock, no threads, no memory of its own beyond a fixed number of chunks.
 */
#ifndef DAEMON_SCHEDULER_H
#define DAEMON_SCHEDULER_H

#include "daemon/core/jobs/job.h"
#include "fair_user.h"

struct job_list {
    struct job *first, *last;
};

struct lane {
    struct round_robin node; /* first; among the user's lanes with a queue */
    struct fair_user *user;
    struct job_list queue[SCAND_PRIORITY_COUNT]; /* with rows to hand out, by class, oldest first */
    struct job_list active;                      /* jobs that have started and not ended, without rows to hand out */
    uint64_t last_order;
    uint64_t ended; /* jobs that have left it */
};

/* A device, its room for chunks, and what accounts are compared with there. */
struct station {
    struct device *device;
    struct chunk chunks[LIMIT_CHUNKS_IN_FLIGHT + LIMIT_SMALL_CHUNKS];
    struct chunk *free, *free_small;
    unsigned out;             /* chunks in flight */
    uint64_t out_bytes;       /* bytes to be moved for them, */
    uint64_t small_out_bytes; /* and of that, for those in small slots */
    struct rate rate;         /* rate of its chunks */
    double small_us;          /* time that small chunks took lately; 0: there was none */
    uint64_t level_ns, highest_ns;
};

struct scheduler {
    struct round_robin *turn;               /* user whose turn it is, of those with a queue */
    struct rate rate;                       /* rate of all chunks, for users and devices that have none yet */
    struct station stations[LIMIT_DEVICES]; /* by the device's number */
    unsigned station_count;
    uint64_t small_bytes; /* the size of a small job, at most, at some device */
    bool small_ragged;    /* rows of a small job may be ragged, at some device */
    unsigned small_count; /* small jobs queued */
    uint64_t changes;     /* from 1, of memory that jobs may have waited for */
};

/* Begins with devices; at most as many chunks as a device has slots, of either kind, are with it at a time. */
void scheduler_init(struct scheduler *scheduler, const struct device_set *devices);

/* Memory that jobs may have waited for is there, pinned or read. */
void scheduler_look_again(struct scheduler *scheduler);
/* Queues a job that has rows. */
void scheduler_add(struct scheduler *scheduler, struct lane *lane, struct job *job);
/* A queued job's offsets have been read (job_make_ragged). It may have no rows now: it is to be removed then. */
void scheduler_make_ragged(struct scheduler *scheduler, struct job *job, struct offsets_copy *copy);
/* Hands out no more of a job's rows; later jobs still wait for rows that are out. */
void scheduler_stop(struct scheduler *scheduler, struct job *job);
/* Takes an ended job out of its lane. */
void scheduler_remove(struct scheduler *scheduler, struct job *job);
/* True when no earlier job of its lane is to write what a queued job reads, or to read or write what it writes. */
bool scheduler_may_begin(struct job *job);
/* The next chunk to run, and on which device; or NULL: nothing can be handed out now. */
struct chunk *scheduler_next(struct scheduler *scheduler, uint64_t now_us);
/* Tells devices that nobody wants what a job's chunks that are out make. */
void scheduler_drop(struct scheduler *scheduler, const struct job *job);
/* Returns a chunk, after job_return: its user's account is settled. The job must exist. */
void scheduler_return(struct scheduler *scheduler, struct chunk *chunk);

/* Has the user of a chunk rest that a device has returned, if the device slept at its memory: a device that sleeps
 * computes nobody's chunks. Returns until when; UINT64_MAX: the user does not rest. */
uint64_t scheduler_rest(const struct chunk *chunk, uint64_t now_us);
/* The first time at which a user with a queue has rested; UINT64_MAX: none rests. */
uint64_t scheduler_rested_us(const struct scheduler *scheduler, uint64_t now_us);

/* Estimates of how long the devices will be busy with all queued jobs, and with a user's queued jobs while others take
 * their turns. */
uint64_t scheduler_backlog_us(const struct scheduler *scheduler);
uint64_t scheduler_user_backlog_us(const struct scheduler *scheduler, const struct fair_user *user);

#endif

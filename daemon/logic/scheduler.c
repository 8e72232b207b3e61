#include "scheduler.h"

#include <assert.h>

/* Until a chunk has come back: a GB/s. It weighs as much as a small chunk. */
static const struct rate rate_guess = {.bytes = 1000, .us = 1};

static void rate_add(struct rate *rate, uint64_t bytes, uint64_t us)
{
    const double fade = 7.0 / 8;
    rate->bytes = rate->bytes * fade + (double)bytes;
    rate->us = rate->us * fade + (double)us;
}

static uint64_t estimate_us(const struct scheduler *scheduler, const struct share *share, uint64_t bytes)
{
    const struct rate *rate = share->rate.bytes > 0 ? &share->rate : &scheduler->rate;
    return (uint64_t)((double)bytes * rate->us / rate->bytes);
}

/* Its longest step: those of different chunks overlap. */
static uint64_t chunk_us(const struct chunk *chunk)
{
    uint64_t copy_us = chunk->upload_us > chunk->download_us ? chunk->upload_us : chunk->download_us;
    return chunk->kernel_us > copy_us ? chunk->kernel_us : copy_us;
}

void scheduler_init(struct scheduler *scheduler, unsigned depth)
{
    *scheduler = (struct scheduler){.rate = rate_guess};
    for (unsigned i = 0; i < depth && i < LIMIT_CHUNKS_IN_FLIGHT; i++) {
        scheduler->chunks[i].next = scheduler->free;
        scheduler->free = &scheduler->chunks[i];
    }
}

/*
 * Accounts.
 */

/* A chunk costs something, however short it is. */
static uint64_t account_charge(struct scheduler *scheduler, struct share *share, uint64_t us)
{
    uint64_t charge_ns = (us ? us : 1) * 1000 / share->weight;
    share->account_ns += charge_ns;
    if (share->account_ns > scheduler->highest_ns)
        scheduler->highest_ns = share->account_ns;
    return charge_ns;
}

static void account_raise(struct share *share, uint64_t level_ns)
{
    if (share->account_ns < level_ns)
        share->account_ns = level_ns;
}

/*
 * Queues.
 */

static void list_append(struct job_list *list, struct job *job)
{
    job->next = NULL;
    if (list->first)
        list->last->next = job;
    else
        list->first = job;
    list->last = job;
}

static bool list_remove(struct job_list *list, struct job *job)
{
    struct job **at = &list->first, *before = NULL;
    for (; *at && *at != job; at = &(*at)->next)
        before = *at;
    if (!*at)
        return false;
    *at = job->next;
    if (list->last == job)
        list->last = before;
    return true;
}

static bool lane_has_queue(const struct lane *lane)
{
    for (int rank = 0; rank < SCAND_PRIORITY_COUNT; rank++)
        if (lane->queue[rank].first)
            return true;
    return false;
}

static void lane_join(struct scheduler *scheduler, struct lane *lane)
{
    struct share *share = lane->share;
    if (!share->turn) {
        ring_join(&scheduler->turn, &share->ring);
        account_raise(share, scheduler->level_ns);
    }
    ring_join(&share->turn, &lane->ring);
}

static void lane_leave(struct scheduler *scheduler, struct lane *lane)
{
    struct share *share = lane->share;
    ring_leave(&share->turn, &lane->ring);
    if (!share->turn)
        ring_leave(&scheduler->turn, &share->ring);
}

void scheduler_add(struct scheduler *scheduler, struct lane *lane, struct job *job)
{
    assert(job_has_rows(job));
    if (!lane_has_queue(lane))
        lane_join(scheduler, lane);
    job->lane = lane;
    job->order = ++lane->last_order;
    list_append(&lane->queue[job->rank], job);
    lane->share->queued_bytes += job_bytes(job, 0, job->rows.row_count);
}

static bool queue_remove(struct scheduler *scheduler, struct job *job)
{
    struct lane *lane = job->lane;
    if (!list_remove(&lane->queue[job->rank], job))
        return false;
    lane->share->queued_bytes -= job_bytes(job, job->next_row, job->rows.row_count - job->next_row);
    if (!lane_has_queue(lane))
        lane_leave(scheduler, lane);
    return true;
}

void scheduler_stop(struct scheduler *scheduler, struct job *job)
{
    if (queue_remove(scheduler, job))
        list_append(&job->lane->active, job);
}

void scheduler_remove(struct scheduler *scheduler, struct job *job)
{
    if (job->lane && !queue_remove(scheduler, job))
        list_remove(&job->lane->active, job);
}

/*
 * Choosing.
 */

/* An earlier job with rows to hand out that the job must wait for. */
static struct job *queued_before(const struct lane *lane, const struct job *job)
{
    for (int rank = 0; rank < SCAND_PRIORITY_COUNT; rank++)
        for (struct job *earlier = lane->queue[rank].first; earlier && earlier->order < job->order;
             earlier = earlier->next)
            if (job_conflicts(job, earlier))
                return earlier;
    return NULL;
}

static bool waits_for_active(const struct lane *lane, const struct job *job)
{
    for (const struct job *earlier = lane->active.first; earlier; earlier = earlier->next)
        if (job_conflicts(job, earlier))
            return true;
    return false;
}

/* The job to run next for the sake of a class: its first, or what that waits for. Ends, since each is earlier. */
static struct job *lane_choose(const struct lane *lane, int rank)
{
    struct job *job = lane->queue[rank].first, *before;
    while (job && (before = queued_before(lane, job)))
        job = lane->queue[before->rank].first;
    return job && !waits_for_active(lane, job) ? job : NULL;
}

static struct job *share_choose(const struct share *share)
{
    for (int rank = 0; rank < SCAND_PRIORITY_COUNT; rank++) {
        struct ring *at = share->turn;
        do {
            struct job *job = lane_choose((struct lane *)at, rank);
            if (job)
                return job;
            at = at->next;
        } while (at != share->turn);
    }
    return NULL;
}

/* Of the first user in turn that may run something, or else of the lowest account, to which the level rises. */
static struct job *scheduler_choose(struct scheduler *scheduler)
{
    struct share *lowest = NULL;
    struct job *lowest_job = NULL;
    struct ring *at = scheduler->turn;
    do {
        struct share *share = (struct share *)at;
        struct job *job = share_choose(share);
        if (!job)
            account_raise(share, scheduler->level_ns);
        else if (share->account_ns <= scheduler->level_ns)
            return job;
        else if (!lowest || share->account_ns < lowest->account_ns) {
            lowest = share;
            lowest_job = job;
        }
        at = at->next;
    } while (at != scheduler->turn);
    if (lowest)
        scheduler->level_ns = lowest->account_ns;
    return lowest_job;
}

struct chunk *scheduler_next(struct scheduler *scheduler, uint64_t now_us)
{
    struct chunk *chunk = scheduler->free;
    struct job *job = chunk && scheduler->turn ? scheduler_choose(scheduler) : NULL;
    if (!job)
        return NULL;
    struct lane *lane = job->lane;
    struct share *share = lane->share;
    scheduler->free = chunk->next;
    scheduler->out++;
    scheduler->turn = share->ring.next;
    share->turn = lane->ring.next;
    job_next_chunk(job, chunk, now_us);
    uint64_t bytes = job_bytes(job, chunk->first, chunk->count);
    chunk->charge_ns = account_charge(scheduler, share, estimate_us(scheduler, share, bytes));
    share->queued_bytes -= bytes;
    if (!job_has_rows(job))
        scheduler_stop(scheduler, job);
    return chunk;
}

void scheduler_take_back(struct scheduler *scheduler, struct chunk *chunk)
{
    const struct job *job = chunk->owner;
    struct share *share = job->lane->share;
    if (chunk->status == 0) { /* else the estimate stands: failing is not free */
        uint64_t bytes = job_bytes(job, chunk->first, chunk->count), us = chunk_us(chunk);
        share->account_ns -= chunk->charge_ns;
        account_charge(scheduler, share, us);
        rate_add(&share->rate, bytes, us);
        rate_add(&scheduler->rate, bytes, us);
    }
    chunk->next = scheduler->free;
    scheduler->free = chunk;
    scheduler->out--;
    if (scheduler->out == 0 && !scheduler->turn)
        scheduler->level_ns = scheduler->highest_ns;
}

/*
 * Backlogs.
 */

uint64_t scheduler_backlog_us(const struct scheduler *scheduler)
{
    uint64_t us = 0;
    const struct ring *at = scheduler->turn;
    if (!at)
        return 0;
    do {
        const struct share *share = (const struct share *)at;
        us += estimate_us(scheduler, share, share->queued_bytes);
        at = at->next;
    } while (at != scheduler->turn);
    return us;
}

static uint64_t weights(const struct scheduler *scheduler)
{
    uint64_t sum = 0;
    const struct ring *at = scheduler->turn;
    do {
        sum += ((const struct share *)at)->weight;
        at = at->next;
    } while (at != scheduler->turn);
    return sum;
}

uint64_t scheduler_user_backlog_us(const struct scheduler *scheduler, const struct share *share)
{
    if (!share->turn)
        return 0;
    uint64_t own_us = estimate_us(scheduler, share, share->queued_bytes), all_us = scheduler_backlog_us(scheduler);
    uint64_t shared_us = own_us * weights(scheduler) / share->weight;
    return shared_us < all_us ? shared_us : all_us; /* users that get done leave theirs to the others */
}

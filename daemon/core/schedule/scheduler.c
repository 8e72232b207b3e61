#include "scheduler.h"

#include <assert.h>

/* The rate that is guessed until a chunk has come back: a GB/s, weighing as much as a small chunk. */
static const struct rate rate_guess = {.bytes = 1000, .us = 1};

/* The most that a small chunk is charged: the time of so few bytes on a slow processor. Its estimate may be of others'
 * rates, which are as low as they like to make them. */
#define SMALL_CHARGE_US 200

static void rate_add(struct rate *rate, uint64_t bytes, uint64_t us)
{
    const double fade = 7.0 / 8;
    rate->bytes = rate->bytes * fade + (double)bytes;
    rate->us = rate->us * fade + (double)us;
}

/* Returns the time of so many bytes at this rate, or at that of all chunks where there is none yet. */
static double rate_us(const struct scheduler *scheduler, const struct rate *rate, uint64_t bytes)
{
    if (!(rate->bytes > 0))
        rate = &scheduler->rate;
    return (double)bytes * rate->us / rate->bytes;
}

/* The longest time that is estimated, some days, so that sums of estimates are in range: a job of many rows that all
 * read the same samples may count more bytes than a machine has. */
#define ESTIMATE_MOST_US (UINT64_C(1) << 40)

static uint64_t estimate_us(const struct scheduler *scheduler, const struct fair_user *user, uint64_t bytes)
{
    const double us = rate_us(scheduler, &user->rate, bytes);
    return us < (double)ESTIMATE_MOST_US ? (uint64_t)us : ESTIMATE_MOST_US;
}

/* Returns what a chunk is charged until it has come back. An estimate that is too high raises the level, which does not
 * sink when the truth is known: then the user would be below it, and have the device to itself until it had made up for
 * that. So the bound is a chunk's time, as chunks should be. */
static uint64_t charged_us(const struct scheduler *scheduler, const struct fair_user *user, const struct chunk *chunk)
{
    const uint64_t us = estimate_us(scheduler, user, chunk->bytes);
    const uint64_t most_us = chunk->small ? SMALL_CHARGE_US : LIMIT_ESTIMATE_MS * UINT64_C(1000);
    return us < most_us ? us : most_us;
}

/* Returns a chunk's time: that of its longest step, since steps of different chunks overlap. */
static uint64_t chunk_us(const struct chunk *chunk)
{
    uint64_t copy_us = chunk->upload_us > chunk->download_us ? chunk->upload_us : chunk->download_us;
    return chunk->kernel_us > copy_us ? chunk->kernel_us : copy_us;
}

static void slot_free(struct chunk **list, struct chunk *chunk)
{
    chunk->owner = NULL;
    chunk->next = *list;
    *list = chunk;
}

static struct chunk *slot_pop(struct chunk **list)
{
    struct chunk *chunk = *list;
    *list = chunk->next;
    return chunk;
}

static void station_init(struct station *station, struct device *device)
{
    station->device = device;
    for (unsigned i = 0; i < device->info.slots && i < LIMIT_CHUNKS_IN_FLIGHT; i++)
        slot_free(&station->free, &station->chunks[i]);
    for (unsigned i = 0; i < device->info.small_slots && i < LIMIT_SMALL_CHUNKS; i++)
        slot_free(&station->free_small, &station->chunks[LIMIT_CHUNKS_IN_FLIGHT + i]);
}

void scheduler_init(struct scheduler *scheduler, const struct device_set *devices)
{
    *scheduler = (struct scheduler){.rate = rate_guess, .station_count = devices->count, .changes = 1};
    for (unsigned i = 0; i < devices->count; i++) {
        const struct device_info *info = &devices->devices[i]->info;
        station_init(&scheduler->stations[i], devices->devices[i]);
        if (info->small_bytes > scheduler->small_bytes)
            scheduler->small_bytes = info->small_bytes;
        scheduler->small_ragged |= info->small_ragged;
    }
}

/*
 * Accounts.
 */

/* A chunk costs something, however short it is. */
static uint64_t account_charge(struct scheduler *scheduler, struct fair_user *user, uint64_t us)
{
    uint64_t charge_ns = (us ? us : 1) * 1000 / user->weight;
    for (unsigned i = 0; i < scheduler->station_count; i++) {
        struct station *station = &scheduler->stations[i];
        user->account_ns[i] += charge_ns;
        if (user->account_ns[i] > station->highest_ns)
            station->highest_ns = user->account_ns[i];
    }
    return charge_ns;
}

static void account_refund(struct scheduler *scheduler, struct fair_user *user, uint64_t charge_ns)
{
    for (unsigned i = 0; i < scheduler->station_count; i++)
        user->account_ns[i] -= charge_ns;
}

/* Raises an account to the level, less what the user is owed. */
static void account_raise(struct fair_user *user, const struct station *station, uint64_t owed_ns)
{
    uint64_t *account_ns = &user->account_ns[station->device->number];
    if (*account_ns + owed_ns < station->level_ns)
        *account_ns = station->level_ns - owed_ns;
}

/*
 * Queues.
 */

static void list_append(struct job_list *list, struct job *job)
{
    job->next = NULL;
    job->before = list->last;
    if (list->first)
        list->last->next = job;
    else
        list->first = job;
    list->last = job;
}

static void list_remove(struct job_list *list, struct job *job)
{
    if (job->before)
        job->before->next = job->next;
    else
        list->first = job->next;
    if (job->next)
        job->next->before = job->before;
    else
        list->last = job->before;
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
    struct fair_user *user = lane->user;
    if (!user->turn) {
        round_robin_join(&scheduler->turn, &user->node);
        for (unsigned i = 0; i < scheduler->station_count; i++)
            account_raise(user, &scheduler->stations[i], 0);
    }
    round_robin_join(&user->turn, &lane->node);
}

static void lane_leave(struct scheduler *scheduler, struct lane *lane)
{
    struct fair_user *user = lane->user;
    round_robin_leave(&user->turn, &lane->node);
    if (!user->turn)
        round_robin_leave(&scheduler->turn, &user->node);
}

/* Counts the cost of a job's rows that are not handed out, or takes it off again: when it leaves the queue or its rows
 * become others. */
static void count_rows(struct job *job, int sign)
{
    job->lane->user->queued_bytes += (uint64_t)sign * job_left_bytes(job);
}

static void count_small(struct scheduler *scheduler, struct job *job)
{
    job->small = job_is_small(job, scheduler->small_bytes, scheduler->small_ragged);
    scheduler->small_count += job->small;
}

void scheduler_look_again(struct scheduler *scheduler)
{
    scheduler->changes++;
}

void scheduler_add(struct scheduler *scheduler, struct lane *lane, struct job *job)
{
    assert(job_has_rows(job));
    lane->user->nothing_since = 0;
    if (!lane_has_queue(lane))
        lane_join(scheduler, lane);
    job->lane = lane;
    job->order = ++lane->last_order;
    list_append(&lane->queue[job->rank], job);
    job->queued = true;
    job_find_reach(job);
    count_small(scheduler, job);
    count_rows(job, 1);
}

/* Lets another job of its class have its long row out. */
static void long_end(struct job *job)
{
    struct job **long_job = &job->lane->user->long_job[job->rank];
    if (*long_job == job && !job->long_out)
        *long_job = NULL;
}

static bool queue_remove(struct scheduler *scheduler, struct job *job)
{
    struct lane *lane = job->lane;
    lane->user->nothing_since = 0;
    if (!job->queued)
        return false;
    list_remove(&lane->queue[job->rank], job);
    long_end(job);
    job->queued = false;
    count_rows(job, -1);
    scheduler->small_count -= job->small;
    if (!lane_has_queue(lane))
        lane_leave(scheduler, lane);
    return true;
}

void scheduler_make_ragged(struct scheduler *scheduler, struct job *job, struct offsets_copy *copy)
{
    assert(job->queued && !job->small);
    job->lane->user->nothing_since = 0;
    count_rows(job, -1);
    job_make_ragged(job, copy);
    job_find_reach(job);
    count_rows(job, 1);
    count_small(scheduler, job);
}

void scheduler_stop(struct scheduler *scheduler, struct job *job)
{
    if (queue_remove(scheduler, job))
        list_append(&job->lane->active, job);
}

void scheduler_remove(struct scheduler *scheduler, struct job *job)
{
    if (!job->lane)
        return;
    if (!queue_remove(scheduler, job))
        list_remove(&job->lane->active, job);
    job->lane->ended++;
}

/*
 * Choosing.
 */

/* An earlier job of a class with rows to hand out that the job must wait for. */
static struct job *class_before(const struct lane *lane, struct job *job, int rank)
{
    struct job *earlier = lane->queue[rank].first;
    for (; earlier && earlier->order < job->order; earlier = earlier->next) {
        if (earlier->order <= job->apart.order[rank])
            continue;
        if (job_conflicts(job, earlier))
            return earlier;
        job->apart.order[rank] = earlier->order;
    }
    return NULL;
}

/* The same of any class. */
static struct job *queued_before(const struct lane *lane, struct job *job)
{
    struct job *before = NULL;
    for (int rank = 0; rank < SCAND_PRIORITY_COUNT && !before && !job->apart.of_queued; rank++)
        before = class_before(lane, job, rank);
    job->apart.of_queued = !before;
    return before;
}

static bool is_active(const struct lane *lane, uint64_t order)
{
    const struct job *job = lane->active.first;
    while (job && job->order != order)
        job = job->next;
    return job;
}

/* True where a job without rows to hand out keeps it waiting. Later ones do not: it was looked whether they had to wait
 * for this one. */
static bool waits_for_active(const struct lane *lane, struct job *job)
{
    if (job->apart.of_all)
        return false;
    if (job->apart.waits_for > 0 && is_active(lane, job->apart.waits_for))
        return true;
    for (const struct job *earlier = lane->active.first; earlier; earlier = earlier->next)
        if (job_conflicts(job, earlier)) {
            job->apart.waits_for = earlier->order;
            return true;
        }
    job->apart.of_all = true;
    return false;
}

bool scheduler_may_begin(struct job *job)
{
    return !queued_before(job->lane, job) && !waits_for_active(job->lane, job);
}

/* True unless the job's next row is long and must wait: one job of a user's class may have a long row out or left off,
 * which bounds what devices keep of such rows. */
static bool long_can_run(const struct job *job, const struct device *device)
{
    const struct job *long_job = job->lane->user->long_job[job->rank];
    if (!job_next_is_long(job))
        return true;
    return !job->long_out && (!long_job || long_job == job) && (!job->rest || job->rest_device == device);
}

static bool station_takes_small(const struct station *station)
{
    return station->free_small && station->small_out_bytes < LIMIT_SMALL_OUT_BYTES;
}

/* Memory may have turned out not to be pinned since the job was queued. */
static bool goes_small(const struct station *station, const struct job *job)
{
    const struct device_info *info = &station->device->info;
    return job->small && station_takes_small(station) && job_is_small(job, info->small_bytes, info->small_ragged);
}

/* Returns when a station would be done with so many more bytes. */
static double done_us(const struct scheduler *scheduler, const struct station *station, uint64_t bytes)
{
    return rate_us(scheduler, &station->rate, station->out_bytes + bytes);
}

/* True when `other` would end the job's next part sooner than `station`. */
static bool ends_sooner(const struct scheduler *scheduler, const struct station *other, const struct station *station,
                        const struct job *job)
{
    if (goes_small(station, job))
        return goes_small(other, job) && other->small_us < station->small_us;
    return other->rate.bytes > 0 && /* else nobody knows */
           done_us(scheduler, other, job_left_bytes(job)) < done_us(scheduler, station, job_next_bytes(job));
}

/* True when a job's next part is left to another device. That is never so at all devices: not at the one that would be
 * done with the next chunk first. */
static bool is_left_to_others(const struct scheduler *scheduler, const struct station *station, const struct job *job)
{
    for (unsigned i = 0; i < scheduler->station_count; i++) {
        const struct station *other = &scheduler->stations[i];
        if (other != station && job_fits_device(job, other->device) && ends_sooner(scheduler, other, station, job))
            return !job->rest;
    }
    return false;
}

static bool can_run(const struct scheduler *scheduler, const struct job *job, const struct station *station)
{
    const struct device *device = station->device;
    return !job->reading && !job->values.out && long_can_run(job, device) && job_fits_device(job, device) &&
           job_is_ready(job) && !is_left_to_others(scheduler, station, job);
}

/* Returns the first job of a list that can run, but none behind a job whose rows are not known yet. */
static struct job *list_first(const struct scheduler *scheduler, const struct job_list *list,
                              const struct station *station)
{
    struct job *job = list->first;
    while (job && !job->reading && !can_run(scheduler, job, station))
        job = job->next;
    return job && !job->reading ? job : NULL;
}

/* Returns the job of a class that has left off a row on this device, if it can go on. */
static struct job *left_off(const struct scheduler *scheduler, const struct lane *lane, int rank,
                            const struct station *station)
{
    struct job *job = lane->user->long_job[rank];
    const bool is_here = job && job->lane == lane && job->queued && job->rest;
    return is_here && can_run(scheduler, job, station) ? job : NULL;
}

/* The job to run next for the sake of a class: its first, or what that waits for. Ends, since each is earlier. Where
 * that waits, a job that has left off a row goes on, which waits for none: else jobs that it keeps from their long rows
 * might keep it waiting. */
static struct job *lane_choose(const struct scheduler *scheduler, const struct lane *lane, int rank,
                               const struct station *station)
{
    struct job *job = list_first(scheduler, &lane->queue[rank], station), *before;
    while (job && (before = queued_before(lane, job)))
        job = can_run(scheduler, before, station) ? list_first(scheduler, &lane->queue[before->rank], station) : NULL;
    return job && !waits_for_active(lane, job) ? job : left_off(scheduler, lane, rank, station);
}

static bool station_has_room(const struct station *station, const struct job *job)
{
    return station->free || goes_small(station, job);
}

/* A job that is next but finds no room holds up the less urgent. */
static struct job *user_choose(const struct scheduler *scheduler, const struct fair_user *user,
                               const struct station *station)
{
    bool held = false;
    for (int rank = 0; rank < SCAND_PRIORITY_COUNT && !held; rank++) {
        struct round_robin *at = user->turn;
        do {
            struct job *job = lane_choose(scheduler, (struct lane *)at, rank, station);
            if (job && station_has_room(station, job))
                return job;
            held |= job != NULL;
            at = at->next;
        } while (at != user->turn);
    }
    return NULL;
}

/* The same, but for a user of whose jobs none could run, since when nothing has happened to them: others may have many
 * that wait, and everybody's messages come here. Which device takes a job depends on other users, too. */
static struct job *user_next(const struct scheduler *scheduler, struct fair_user *user, const struct station *station)
{
    if (user->nothing_since == scheduler->changes)
        return NULL;
    struct job *job = user_choose(scheduler, user, station);
    if (!job && station->free && scheduler->station_count == 1)
        user->nothing_since = scheduler->changes;
    return job;
}

/* Returns the time that a user may be owed by a device on which it runs nothing now: 0 unless the user has a job that
 * another device would finish sooner, and never more than others can wait for. */
static uint64_t owed_ns(const struct scheduler *scheduler, const struct fair_user *user, const struct station *station)
{
    const struct round_robin *at = user->turn;
    if (scheduler->station_count == 1)
        return 0;
    do {
        const struct lane *lane = (const struct lane *)at;
        for (int rank = 0; rank < SCAND_PRIORITY_COUNT; rank++) {
            const struct job *job = lane->queue[rank].first;
            if (job && job_fits_device(job, station->device) && is_left_to_others(scheduler, station, job))
                return UINT64_C(1000000) * LIMIT_OWED_MS / user->weight;
        }
        at = at->next;
    } while (at != user->turn);
    return 0;
}

/* Chooses a job of the first user in turn that may run something, or else of the lowest account, to which the level
 * rises. */
static struct job *scheduler_choose(struct scheduler *scheduler, struct station *station, uint64_t now_us)
{
    const unsigned number = station->device->number;
    struct fair_user *lowest = NULL;
    struct job *lowest_job = NULL;
    struct round_robin *at = scheduler->turn;
    do {
        struct fair_user *user = (struct fair_user *)at;
        struct job *job = user->rests_until_us > now_us ? NULL : user_next(scheduler, user, station);
        if (!job && station->free) { /* not just for want of room */
            if (user->account_ns[number] < station->level_ns)
                account_raise(user, station, owed_ns(scheduler, user, station));
        } else if (job && user->account_ns[number] <= station->level_ns) {
            return job;
        } else if (job && (!lowest || user->account_ns[number] < lowest->account_ns[number])) {
            lowest = user;
            lowest_job = job;
        }
        at = at->next;
    } while (at != scheduler->turn);
    if (lowest)
        station->level_ns = lowest->account_ns[number];
    return lowest_job;
}

/* True when `a` can start a chunk before `b`, or as soon and is faster. */
static bool starts_sooner(const struct scheduler *scheduler, const struct station *a, const struct station *b)
{
    double a_us = rate_us(scheduler, &a->rate, a->out_bytes), b_us = rate_us(scheduler, &b->rate, b->out_bytes);
    if (a_us != b_us)
        return a_us < b_us;
    return rate_us(scheduler, &a->rate, MIB(1)) < rate_us(scheduler, &b->rate, MIB(1));
}

/* The first station with room for some job that waits, but for the stations in `without` (a bit each). */
static struct station *station_first(struct scheduler *scheduler, uint32_t without)
{
    struct station *first = NULL;
    for (unsigned i = 0; i < scheduler->station_count; i++) {
        struct station *station = &scheduler->stations[i];
        bool room = station->free || (scheduler->small_count > 0 && station_takes_small(station));
        if (room && !(without >> i & 1) && (!first || starts_sooner(scheduler, station, first)))
            first = station;
    }
    return first;
}

/* A slice counts as what can be done in it, or less. */
static void hand_out_long(const struct scheduler *scheduler, const struct station *station, struct chunk *chunk)
{
    struct job *job = chunk->owner;
    struct fair_user *user = job->lane->user;
    chunk->slice_us = station->device->info.slice_us;
    user->long_job[job->rank] = job;
    const uint64_t row_bytes = job_bytes(job, chunk->first, chunk->count),
                   row_us = estimate_us(scheduler, user, row_bytes);
    chunk->bytes = row_us > chunk->slice_us ? row_bytes / row_us * chunk->slice_us : row_bytes;
}

static struct chunk *hand_out(struct scheduler *scheduler, struct station *station, struct job *job, uint64_t now_us)
{
    const bool small = goes_small(station, job);
    struct chunk *chunk = slot_pop(small ? &station->free_small : &station->free);
    struct lane *lane = job->lane;
    struct fair_user *user = lane->user;
    station->out++;
    scheduler->turn = user->node.next;
    user->turn = lane->node.next;
    job_next_chunk(job, chunk, now_us);
    chunk->device = station->device;
    chunk->small = small;
    if (chunk->below)
        chunk->bytes = values_chunk_bytes(chunk); /* the rows are still queued */
    else if (job->long_out)
        hand_out_long(scheduler, station, chunk);
    else
        user->queued_bytes -= chunk->bytes = job_bytes(job, chunk->first, chunk->count);
    station->out_bytes += chunk->bytes;
    station->small_out_bytes += small ? chunk->bytes : 0;
    chunk->charge_ns = account_charge(scheduler, user, charged_us(scheduler, user, chunk));
    if (!job_has_rows(job))
        scheduler_stop(scheduler, job);
    return chunk;
}

struct chunk *scheduler_next(struct scheduler *scheduler, uint64_t now_us)
{
    uint32_t without = 0; /* devices for which there is nothing */
    struct station *station;
    static_assert(LIMIT_DEVICES <= 32, "a bit for each device");
    while (scheduler->turn && (station = station_first(scheduler, without))) {
        struct job *job = scheduler_choose(scheduler, station, now_us);
        if (job)
            return hand_out(scheduler, station, job, now_us);
        without |= UINT32_C(1) << station->device->number;
    }
    return NULL;
}

/* Forgives what users have had of each other's time when no chunk is left. */
static void settle(struct scheduler *scheduler)
{
    for (unsigned i = 0; i < scheduler->station_count; i++)
        if (scheduler->stations[i].out > 0)
            return;
    for (unsigned i = 0; i < scheduler->station_count; i++)
        scheduler->stations[i].level_ns = scheduler->stations[i].highest_ns;
}

/* The bytes that a chunk did in so long, for its rate: of a long row only its last slice counts. */
static uint64_t done_bytes(const struct job *job, const struct chunk *chunk, uint64_t us)
{
    if (!chunk->slice_us)
        return chunk->bytes;
    const double row_bytes = (double)job_bytes(job, chunk->first, chunk->count);
    return (uint64_t)(row_bytes * (double)us / (double)(job->long_us > us ? job->long_us : us + !us));
}

static void learn_rates(struct scheduler *scheduler, struct station *station, const struct chunk *chunk, uint64_t us)
{
    const struct job *job = chunk->owner;
    const uint64_t bytes = done_bytes(job, chunk, us);
    rate_add(&job->lane->user->rate, bytes, us);
    rate_add(&station->rate, bytes, us);
    rate_add(&scheduler->rate, bytes, us);
}

static void learn_small(struct scheduler *scheduler, struct station *station, uint64_t away_us)
{
    const double us = (double)away_us;
    for (unsigned i = 0; i < scheduler->station_count; i++)
        scheduler->stations[i].small_us *= 1 - 1.0 / 256;
    station->small_us = station->small_us > 0 ? station->small_us + (us - station->small_us) / 8 : us;
}

/* A long row is counted as queued until it is done. */
static void return_long(struct scheduler *scheduler, struct job *job, const struct chunk *chunk)
{
    if (!job->rest)
        long_end(job);
    if (!job->queued || chunk->rest || chunk->status)
        return;
    job->lane->user->queued_bytes -= job_bytes(job, chunk->first, chunk->count);
    if (!job_has_rows(job))
        scheduler_stop(scheduler, job);
}

void scheduler_return(struct scheduler *scheduler, struct chunk *chunk)
{
    struct job *job = chunk->owner;
    struct fair_user *user = job->lane->user;
    struct station *station = &scheduler->stations[chunk->device->number];
    const uint64_t us = chunk_us(chunk);
    user->nothing_since = 0;
    /* Failing is not free, and a small chunk runs beside others: the estimate stands, or the time if it is longer. */
    if (!chunk->small && (chunk->status == 0 || us * 1000 / user->weight > chunk->charge_ns)) {
        account_refund(scheduler, user, chunk->charge_ns);
        account_charge(scheduler, user, us);
    }
    if (!chunk->small && chunk->status == 0 && !chunk->rest)
        learn_rates(scheduler, station, chunk, us);
    if (chunk->status == 0 && chunk->small && scheduler->station_count > 1)
        learn_small(scheduler, station, chunk->away_us);
    if (chunk->slice_us)
        return_long(scheduler, job, chunk);
    station->out--;
    station->out_bytes -= chunk->bytes;
    station->small_out_bytes -= chunk->small ? chunk->bytes : 0;
    slot_free(chunk->small ? &station->free_small : &station->free, chunk);
    if (!scheduler->turn)
        settle(scheduler);
}

uint64_t scheduler_rest(const struct chunk *chunk, uint64_t now_us)
{
    struct fair_user *user = ((struct job *)chunk->owner)->lane->user;
    if (chunk->slept_us < LIMIT_SLEEP_US)
        return UINT64_MAX;
    const uint64_t from_us = user->rests_until_us > now_us ? user->rests_until_us : now_us;
    return user->rests_until_us = from_us + chunk->slept_us * LIMIT_REST_PARTS;
}

uint64_t scheduler_rested_us(const struct scheduler *scheduler, uint64_t now_us)
{
    uint64_t first_us = UINT64_MAX;
    const struct round_robin *at = scheduler->turn;
    if (!at)
        return first_us;
    do {
        const uint64_t until_us = ((const struct fair_user *)at)->rests_until_us;
        if (until_us > now_us && until_us < first_us)
            first_us = until_us;
        at = at->next;
    } while (at != scheduler->turn);
    return first_us;
}

void scheduler_drop(struct scheduler *scheduler, const struct job *job)
{
    for (unsigned i = 0; i < scheduler->station_count; i++)
        for (unsigned k = 0; k < LIMIT_CHUNKS_IN_FLIGHT; k++)
            if (scheduler->stations[i].chunks[k].owner == job)
                chunk_drop(&scheduler->stations[i].chunks[k]);
}

/*
 * Backlogs.
 */

uint64_t scheduler_backlog_us(const struct scheduler *scheduler)
{
    uint64_t us = 0;
    const struct round_robin *at = scheduler->turn;
    if (!at)
        return 0;
    do {
        const struct fair_user *user = (const struct fair_user *)at;
        us += estimate_us(scheduler, user, user->queued_bytes);
        at = at->next;
    } while (at != scheduler->turn);
    return us / scheduler->station_count;
}

static uint64_t weights(const struct scheduler *scheduler)
{
    uint64_t sum = 0;
    const struct round_robin *at = scheduler->turn;
    do {
        sum += ((const struct fair_user *)at)->weight;
        at = at->next;
    } while (at != scheduler->turn);
    return sum;
}

uint64_t scheduler_user_backlog_us(const struct scheduler *scheduler, const struct fair_user *user)
{
    if (!user->turn)
        return 0;
    uint64_t own_us = estimate_us(scheduler, user, user->queued_bytes) / scheduler->station_count,
             all_us = scheduler_backlog_us(scheduler);
    uint64_t shared_us = own_us * weights(scheduler) / user->weight;
    return shared_us < all_us ? shared_us : all_us; /* users that get done leave theirs to the others */
}

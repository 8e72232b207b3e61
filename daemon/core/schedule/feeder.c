#include "feeder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/core/jobs/ending.h"
#include "daemon/core/jobs/feed.h"
#include "daemon/core/loop.h"
#include "daemon/core/memory/client_buffers.h"

static bool load_is_wanted(struct work *work)
{
    const struct loads *loads = ((struct load *)work)->loads;
    return loads && loads->job->state <= JOB_RUNNING;
}

static void hold_files(struct load *load)
{
    for (uint32_t i = 0; i < LIMIT_JOB_OPERANDS; i++)
        if (load->parts[i].buffer)
            buffer_hold(load->parts[i].buffer);
}

static void unhold_files(struct load *load)
{
    for (uint32_t i = 0; i < LIMIT_JOB_OPERANDS; i++)
        if (load->parts[i].buffer)
            buffer_unhold(load->service, load->parts[i].buffer);
}

/* Ends a load that has been read, which then waits for its chunk. A job whose file cannot be read ends. */
static void load_done(struct work *work)
{
    struct load *load = (struct load *)work;
    struct service *service = load->service;
    const struct error error = load->error;
    struct job *job = load->loads ? load->loads->job : NULL;
    load->done = true;
    service->stats.file_read_bytes += load->read_bytes;
    unhold_files(load);
    if (!job)
        load_end(load);
    else if (error.code)
        job_abandon(service, job, error.code, error.message);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool has_room(const struct service *service, const struct feed_queue *queue, uint64_t size_bytes)
{
    return queue->loads < least(LIMIT_USER_LOADS, stock_allowed_half(&service->loads, queue->loads)) &&
           queue->load_bytes + size_bytes <=
               least(LIMIT_USER_LOAD_BYTES, stock_allowed_half(&service->load_bytes, queue->load_bytes));
}

static void load_start(struct service *service, struct loads *loads, struct load *load)
{
    struct load **end = &loads->first;
    struct user *user = loads->job->client->user;
    while (*end)
        end = &(*end)->next;
    *end = load;
    loads->count++;
    if (!load->of_values)
        loads->next_row += load->count;
    load->until_us = service->ops->now_us(service->context) + (uint64_t)LIMIT_LOAD_MS * 1000;
    service->load_due_us = least(service->load_due_us, load->until_us);
    service_wake_by(service, load->until_us);
    load->work = (struct work){.run = load_run, .done = load_done, .is_wanted = load_is_wanted};
    load->loads = loads;
    load->service = service;
    load->user = user;
    user->feed.loads++;
    user->feed.load_bytes += load->block->size_bytes;
    service->loads.used++;
    service->load_bytes.used += load->block->size_bytes;
    user_hold(user);
    hold_files(load);
    service_read(service, user, &load->work);
}

static struct load *load_create(const struct loads *loads)
{
    const struct job *job = loads->job;
    struct load *load = calloc(1, sizeof *load);
    if (!load)
        return NULL;
    load->of_values = values_are_left(job);
    load->first = loads->next_row;
    load->count = load->of_values ? 0 : job_chunk_count(job, load->first);
    return load;
}

static int without_memory(struct error *error)
{
    return error_set(error, -ENOMEM, "out of memory to read a file; try again later");
}

/* Begins a load. Returns 1 when there is no room for it now, 0, or -errno and *error, which is the job's. */
static int load_begin(struct service *service, struct loads *loads, struct error *error)
{
    struct user *user = loads->job->client->user;
    struct load *load = load_create(loads);
    if (!load)
        return without_memory(error);
    int r = load_lay_out(load, loads->job, error);
    load->block = r ? NULL : blocks_pop(&service->blocks, load->size_bytes);
    if (!r && !load->block)
        r = without_memory(error);
    if (!r && !has_room(service, &user->feed, load->block->size_bytes)) {
        blocks_push(service, user, load->block);
        r = 1;
    }
    if (!r)
        load_start(service, loads, load);
    else
        free(load);
    return r;
}

/* True when no earlier job is to write what this one reads. Once true, it stays true; before, it changes when a job has
 * ended. */
static bool is_clear(struct loads *loads)
{
    struct job *job = loads->job;
    if (loads->clear || loads->seen == job->lane->ended + 1)
        return loads->clear;
    loads->seen = job->lane->ended + 1;
    loads->clear = scheduler_may_begin(job);
    return loads->clear;
}

static bool wants_more(struct loads *loads)
{
    const struct job *job = loads->job;
    if (!job->queued || job->reading || !job_has_rows(job) || loads->count >= LIMIT_JOB_LOADS || !is_clear(loads))
        return false;
    return values_are_left(job) ? loads->count == 0 && !job->values.out : loads->next_row < job->rows.row_count;
}

/* Feeds a user's jobs. Returns one that fails, with *error; NULL: none does. */
static struct job *user_feed(struct service *service, struct feed_queue *queue, struct error *error)
{
    unsigned seen = 0;
    for (struct loads *loads = queue->first; loads && seen < LIMIT_USER_FED; loads = loads->next, seen++)
        while (wants_more(loads)) {
            int r = load_begin(service, loads, error);
            if (r)
                return r < 0 ? loads->job : NULL;
        }
    return NULL;
}

/* Feeds the first user's jobs; then it is the next user's turn. The end of a job may end others, so it comes last. */
static bool feed_first(struct service *service)
{
    struct error error;
    struct feed_queue *queue = (struct feed_queue *)service->feeding;
    struct job *failed = user_feed(service, queue, &error);
    if (!failed) {
        service->feeding = service->feeding->next;
        return true;
    }
    job_abandon(service, failed, error.code, error.message);
    return false;
}

void feeder_pump(struct service *service)
{
    unsigned users = 0;
    const struct round_robin *at = service->feeding;
    if (!at)
        return;
    do
        users++;
    while ((at = at->next) != service->feeding);
    while (service->feeding && users > 0)
        users -= feed_first(service);
}

/* The first of a user's jobs whose time is over, if there is one; lowers *earliest_us to that of the others. */
static struct job *late_job(const struct feed_queue *queue, uint64_t now_us, uint64_t *earliest_us)
{
    for (const struct loads *loads = queue->first; loads; loads = loads->next)
        for (const struct load *load = loads->first; load; load = load->next) {
            if (!load->done && load->until_us <= now_us && loads->job->outcome.code == 0)
                return loads->job;
            if (!load->done && load->until_us > now_us)
                *earliest_us = least(*earliest_us, load->until_us);
        }
    return NULL;
}

static void job_expire(struct service *service, struct job *job)
{
    char message[LIMIT_ERROR_BYTES];
    snprintf(message, sizeof message,
             "a file that it reads did not give a chunk in %d s; the output is incomplete: see whether its file system "
             "answers, and submit it again",
             LIMIT_LOAD_MS / 1000);
    job_abandon(service, job, -ETIMEDOUT, message);
}

uint64_t feeder_expire(struct service *service, uint64_t now_us)
{
    uint64_t earliest_us = UINT64_MAX;
    struct round_robin *at = service->feeding;
    while (at) {
        struct job *late = late_job((struct feed_queue *)at, now_us, &earliest_us);
        if (late)
            job_expire(service, late); /* which may end others, and empty queues: all over again */
        at = late ? service->feeding : at->next == service->feeding ? NULL : at->next;
    }
    return earliest_us;
}

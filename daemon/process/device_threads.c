#include "device_threads.h"

#include <errno.h>

#include "protocol/clock.h"

#define LAST_US 400 /* time that a device's last chunk takes to come back, unless it is large */

/* Wakes the loop for completed chunks, on a device's thread, unless the loop is spinning. */
static void chunks_completed(void *context)
{
    struct device_threads *self = context;
    if (!atomic_load(&self->spinning))
        self->notify(self->context);
}

int device_threads_start(struct device_threads *self, const struct device_set *devices, struct service *service,
                         void (*notify)(void *context), void *context)
{
    self->service = service;
    self->notify = notify;
    self->context = context;
    self->count = devices->count;
    for (unsigned i = 0; i < self->count; i++) {
        int r = device_thread_start(&self->threads[i], devices->devices[i], chunks_completed, self);
        if (r)
            return r;
    }
    return 0;
}

void device_threads_stop(struct device_threads *self)
{
    for (unsigned i = 0; i < self->count; i++)
        device_thread_stop(&self->threads[i]);
}

void device_threads_finish(struct device_threads *self)
{
    for (unsigned i = 0; i < self->count; i++)
        device_thread_finish(&self->threads[i]);
}

/* Lets the loop spin for us microseconds more at least. */
static void spin(struct device_threads *self, uint64_t us)
{
    if (us == 0)
        return;
    const uint64_t end_us = clock_us() + us;
    if (self->spin_end_us < end_us)
        self->spin_end_us = end_us;
    atomic_store(&self->spinning, true);
}

bool device_threads_end_spin(struct device_threads *self)
{
    if (!atomic_load(&self->spinning) || clock_us() < self->spin_end_us)
        return false;
    atomic_store(&self->spinning, false);
    return true;
}

/* True for a chunk on device memory alone, which takes no longer than the loop takes to fall asleep and wake. */
static bool is_resident(const struct chunk *chunk)
{
    return chunk->spans[OPERAND_INPUT].place == SCAND_PLACE_DEVICE &&
           chunk->spans[OPERAND_OUTPUT].place == SCAND_PLACE_DEVICE;
}

static bool is_in_large_memory(const struct chunk *chunk)
{
    bool large = false;
    for (unsigned i = 0; i < LIMIT_JOB_OPERANDS; i++)
        large |= chunk->spans[i].large;
    return large;
}

static struct user *user_of(const struct chunk *chunk)
{
    return ((const struct job *)chunk->owner)->client->user;
}

/* Returns whether the loop's thread runs a small chunk itself, which takes little time: one chunk in a turn. */
static bool runs_now(const struct device_threads *self, const struct chunk *chunk)
{
    const struct device *device = chunk->device;
    return device->ops->run_now && chunk->small && chunk->bytes <= device->info.now_bytes &&
           !is_in_large_memory(chunk) && !self->now && !self->returned[device->number].first &&
           !user_of(chunk)->distrusted;
}

void device_threads_submit(struct device_threads *self, struct chunk *chunks)
{
    struct chunk_queue queues[LIMIT_DEVICES];
    for (unsigned i = 0; i < self->count; i++)
        queues[i].first = NULL;
    for (struct chunk *chunk = chunks, *next; chunk; chunk = next) {
        struct device_thread *thread = &self->threads[chunk->device->number];
        const uint64_t spin_us = chunk->device->info.spin_us;
        next = chunk->next;
        if (runs_now(self, chunk)) {
            self->now = chunk;
            continue;
        }
        if (chunk->small)
            spin(self, spin_us);
        else if (thread->out == 0 && spin_us > 0 && is_resident(chunk))
            spin(self, LAST_US);
        thread->out++;
        chunk_queue_push(&queues[chunk->device->number], chunk);
    }
    for (unsigned i = 0; i < self->count; i++)
        if (queues[i].first)
            device_thread_submit(&self->threads[i], queues[i].first);
}

struct user *device_threads_user_now(const struct device_threads *self)
{
    return self->now ? user_of(self->now) : NULL;
}

void device_threads_run_now(struct device_threads *self)
{
    struct chunk *now = self->now;
    self->now = NULL;
    now->device->ops->run_now(now->device, now);
    chunk_queue_push(&self->returned[now->device->number], now);
}

/* Returns how long the loop should spin after a chunk: for a last chunk that the device still has, for the next job of
 * the same client, or for a small one. Waking takes 0.05 ms, in which the device would have nothing to do. */
static uint64_t soon_us(const struct device_thread *thread, bool small)
{
    const uint64_t spin_us = thread->device->info.spin_us;
    if (small || thread->out == 0 || spin_us == 0)
        return spin_us;
    return thread->out == 1 ? LAST_US : 0;
}

/* Adds what a device has returned since the last check. Returns false when the device is lost. */
static bool accept_returned(struct device_thread *thread, struct chunk_queue *returned)
{
    struct chunk *chunk = device_thread_collect(thread), *next;
    bool alive = !device_is_lost(thread->device);
    for (; chunk; chunk = next) {
        next = chunk->next;
        thread->out--;
        if (chunk->status == -EOWNERDEAD)
            alive = false;
        else
            chunk_queue_push(returned, chunk);
    }
    return alive;
}

/* Handles chunks of one device until end_us; later chunks wait for the next round. */
static void collect_from(struct device_threads *self, unsigned number, uint64_t end_us)
{
    struct chunk_queue *returned = &self->returned[number];
    if (!returned->first)
        return;
    const bool small = returned->first->small;
    service_collect(self->service, &returned->first, end_us);
    spin(self, soon_us(&self->threads[number], small));
}

/* True while chunks have returned and are not handled. */
static bool is_behind(const struct device_threads *self)
{
    for (unsigned i = 0; i < self->count; i++)
        if (self->returned[i].first)
            return true;
    return false;
}

bool device_threads_may_block(const struct device_threads *self)
{
    return !atomic_load(&self->spinning) && !is_behind(self);
}

bool device_threads_collect(struct device_threads *self, bool all)
{
    const uint64_t end_us = all ? UINT64_MAX : clock_us() + LIMIT_TURN_US;
    bool alive = true;
    for (unsigned i = 0; i < self->count; i++)
        alive &= accept_returned(&self->threads[i], &self->returned[i]);
    do {
        for (unsigned i = 0; i < self->count; i++)
            collect_from(self, i, end_us);
    } while ((all || !alive) && is_behind(self));
    return alive;
}

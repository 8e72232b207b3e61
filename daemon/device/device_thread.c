#include "device_thread.h"

#include <stddef.h>

#include "protocol/clock.h"

/* The time between two looks at the list of incoming chunks while the device has others. */
#define FINISH_MS 1000

/* Hands back a list of chunks, which may be empty. */
static void device_thread_complete(struct device_thread *device_thread, struct chunk *chunk)
{
    struct chunk *next;
    if (!chunk)
        return;
    pthread_mutex_lock(&device_thread->lock);
    for (; chunk; chunk = next) {
        next = chunk->next;
        chunk_queue_push(&device_thread->completed, chunk);
    }
    atomic_store(&device_thread->returned, true);
    pthread_mutex_unlock(&device_thread->lock);
    device_thread->notify(device_thread->context);
}

/* Spins until a chunk has arrived, or the device's time to spin is over. */
static void device_thread_spin(struct device_thread *device_thread)
{
    uint64_t end_us = clock_us() + device_thread->device->info.spin_us;
    while (!atomic_load(&device_thread->arrived) && clock_us() < end_us)
        ;
}

/* Returns the chunks that have arrived. Without chunks at the device it waits for some. *stop: the thread is asked to
 * end. */
static struct chunk *device_thread_pop(struct device_thread *device_thread, unsigned out, bool *stop)
{
    *stop = false;
    if (out > 0 && !atomic_load(&device_thread->arrived))
        return NULL;
    if (out == 0 && device_thread->device->info.spin_us > 0)
        device_thread_spin(device_thread);
    pthread_mutex_lock(&device_thread->lock);
    device_thread->blocked = true;
    while (!device_thread->incoming.first && out == 0 && !device_thread->stopping)
        pthread_cond_wait(&device_thread->wake, &device_thread->lock);
    device_thread->blocked = false;
    atomic_store(&device_thread->arrived, false);
    device_hurry(device_thread->device, false);
    struct chunk *taken = chunk_queue_pop_all(&device_thread->incoming);
    *stop = device_thread->stopping;
    pthread_mutex_unlock(&device_thread->lock);
    return taken;
}

/* Starts a list of chunks. Returns how many the device has accepted; the others are completed with an error. */
static unsigned start_all(struct device_thread *device_thread, struct chunk *chunk)
{
    struct device *device = device_thread->device;
    struct chunk_queue failed = {.first = NULL};
    struct chunk *next;
    unsigned started = 0;
    for (; chunk; chunk = next) {
        next = chunk->next;
        chunk->status = device->ops->start(device, chunk);
        if (chunk->status)
            chunk_queue_push(&failed, chunk);
        else
            started++;
    }
    device_thread_complete(device_thread, failed.first);
    return started;
}

/* Waits for a chunk to complete, and hands back all that have. Returns how many. */
static unsigned finish_some(struct device_thread *device_thread)
{
    struct device *device = device_thread->device;
    struct chunk_queue done = {.first = NULL};
    struct chunk *chunk = device->ops->finish(device, FINISH_MS);
    unsigned count = 0;
    for (; chunk; chunk = device->ops->finish(device, 0)) {
        chunk_queue_push(&done, chunk);
        count++;
    }
    device_thread_complete(device_thread, done.first);
    return count;
}

static void *device_thread_main(void *argument)
{
    struct device_thread *device_thread = argument;
    unsigned out = 0;
    for (;;) {
        bool stop;
        struct chunk *chunk = device_thread_pop(device_thread, out, &stop);
        if (stop && !chunk && out == 0)
            return NULL;
        out += start_all(device_thread, chunk);
        if (out > 0)
            out -= finish_some(device_thread);
    }
}

int device_thread_start(struct device_thread *device_thread, struct device *device, void (*notify)(void *context),
                        void *context)
{
    *device_thread = (struct device_thread){.device = device, .notify = notify, .context = context};
    pthread_mutex_init(&device_thread->lock, NULL);
    pthread_cond_init(&device_thread->wake, NULL);
    return -pthread_create(&device_thread->thread, NULL, device_thread_main, device_thread);
}

void device_thread_stop(struct device_thread *device_thread)
{
    pthread_mutex_lock(&device_thread->lock);
    device_thread->stopping = true;
    pthread_cond_signal(&device_thread->wake);
    pthread_mutex_unlock(&device_thread->lock);
    pthread_join(device_thread->thread, NULL);
}

void device_thread_finish(struct device_thread *device_thread)
{
    pthread_cond_destroy(&device_thread->wake);
    pthread_mutex_destroy(&device_thread->lock);
}

void device_thread_submit(struct device_thread *device_thread, struct chunk *chunks)
{
    pthread_mutex_lock(&device_thread->lock);
    for (struct chunk *chunk = chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        if (chunk->small)
            device_hurry(device_thread->device, true);
        chunk_queue_push(&device_thread->incoming, chunk);
    }
    atomic_store(&device_thread->arrived, true);
    bool blocked = device_thread->blocked;
    device_thread->blocked = false; /* one signal wakes the thread */
    pthread_mutex_unlock(&device_thread->lock);
    if (blocked)
        pthread_cond_signal(&device_thread->wake);
}

struct chunk *device_thread_collect(struct device_thread *device_thread)
{
    if (!atomic_load(&device_thread->returned))
        return NULL;
    pthread_mutex_lock(&device_thread->lock);
    atomic_store(&device_thread->returned, false);
    struct chunk *all = chunk_queue_pop_all(&device_thread->completed);
    pthread_mutex_unlock(&device_thread->lock);
    return all;
}

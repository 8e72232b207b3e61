#include "device_thread.h"

#include <stddef.h>
#include <time.h>

/* Between two looks at the list of incoming chunks while others are out. */
#define FINISH_MS 1000

static void list_push(struct chunk ***end, struct chunk *chunk)
{
    chunk->next = NULL;
    **end = chunk;
    *end = &chunk->next;
}

static struct chunk *list_take(struct chunk **head, struct chunk ***end)
{
    struct chunk *all = *head;
    *head = NULL;
    *end = head;
    return all;
}

/* A list, which may be empty. */
static void runner_complete(struct runner *runner, struct chunk *chunk)
{
    struct chunk *next;
    if (!chunk)
        return;
    pthread_mutex_lock(&runner->lock);
    for (; chunk; chunk = next) {
        next = chunk->next;
        list_push(&runner->completed_end, chunk);
    }
    atomic_store(&runner->returned, true);
    pthread_mutex_unlock(&runner->lock);
    runner->notify(runner->context);
}

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Until something has come in, or the time is over. */
static void runner_spin(struct runner *runner)
{
    uint64_t end_us = now_us() + runner->device->info.spin_us;
    while (!atomic_load(&runner->arrived) && now_us() < end_us)
        ;
}

/* What has come in; waits for something when nothing is out. *stop: asked to end. */
static struct chunk *runner_take(struct runner *runner, unsigned out, bool *stop)
{
    *stop = false;
    if (out > 0 && !atomic_load(&runner->arrived))
        return NULL;
    if (out == 0 && runner->device->info.spin_us > 0)
        runner_spin(runner);
    pthread_mutex_lock(&runner->lock);
    runner->blocked = true;
    while (!runner->incoming && out == 0 && !runner->stopping)
        pthread_cond_wait(&runner->wake, &runner->lock);
    runner->blocked = false;
    atomic_store(&runner->arrived, false);
    device_hurry(runner->device, false);
    struct chunk *taken = list_take(&runner->incoming, &runner->incoming_end);
    *stop = runner->stopping;
    pthread_mutex_unlock(&runner->lock);
    return taken;
}

/* Starts a list of chunks. Returns how many the device has taken; the others are done. */
static unsigned start_all(struct runner *runner, struct chunk *chunk)
{
    struct device *device = runner->device;
    struct chunk *failed = NULL, **end = &failed, *next;
    unsigned started = 0;
    for (; chunk; chunk = next) {
        next = chunk->next;
        chunk->status = device->ops->start(device, chunk);
        if (chunk->status)
            list_push(&end, chunk);
        else
            started++;
    }
    runner_complete(runner, failed);
    return started;
}

/* Waits for a chunk, and takes what is done with it. Returns how many those are. */
static unsigned finish_some(struct runner *runner)
{
    struct device *device = runner->device;
    struct chunk *done = NULL, **end = &done, *chunk = device->ops->finish(device, FINISH_MS);
    unsigned count = 0;
    for (; chunk; chunk = device->ops->finish(device, 0)) {
        list_push(&end, chunk);
        count++;
    }
    runner_complete(runner, done);
    return count;
}

static void *runner_thread(void *argument)
{
    struct runner *runner = argument;
    unsigned out = 0;
    for (;;) {
        bool stop;
        struct chunk *chunk = runner_take(runner, out, &stop);
        if (stop && !chunk && out == 0)
            return NULL;
        out += start_all(runner, chunk);
        if (out > 0)
            out -= finish_some(runner);
    }
}

int runner_start(struct runner *runner, struct device *device, void (*notify)(void *context), void *context)
{
    *runner = (struct runner){.device = device, .notify = notify, .context = context};
    runner->incoming_end = &runner->incoming;
    runner->completed_end = &runner->completed;
    pthread_mutex_init(&runner->lock, NULL);
    pthread_cond_init(&runner->wake, NULL);
    return -pthread_create(&runner->thread, NULL, runner_thread, runner);
}

void runner_stop(struct runner *runner)
{
    pthread_mutex_lock(&runner->lock);
    runner->stopping = true;
    pthread_cond_signal(&runner->wake);
    pthread_mutex_unlock(&runner->lock);
    pthread_join(runner->thread, NULL);
}

void runner_finish(struct runner *runner)
{
    pthread_cond_destroy(&runner->wake);
    pthread_mutex_destroy(&runner->lock);
}

void runner_submit(struct runner *runner, struct chunk *chunk)
{
    pthread_mutex_lock(&runner->lock);
    list_push(&runner->incoming_end, chunk);
    atomic_store(&runner->arrived, true);
    if (chunk->small)
        device_hurry(runner->device, true);
    bool blocked = runner->blocked;
    runner->blocked = false; /* one call wakes it */
    pthread_mutex_unlock(&runner->lock);
    if (blocked)
        pthread_cond_signal(&runner->wake);
}

struct chunk *runner_collect(struct runner *runner)
{
    if (!atomic_load(&runner->returned))
        return NULL;
    pthread_mutex_lock(&runner->lock);
    atomic_store(&runner->returned, false);
    struct chunk *all = list_take(&runner->completed, &runner->completed_end);
    pthread_mutex_unlock(&runner->lock);
    return all;
}

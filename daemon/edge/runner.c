#include "runner.h"

#include <stddef.h>

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

static void runner_complete(struct runner *runner, struct chunk *chunk)
{
    pthread_mutex_lock(&runner->lock);
    list_push(&runner->completed_end, chunk);
    pthread_mutex_unlock(&runner->lock);
    runner->notify(runner->context);
}

/* What has come in; waits for something when nothing is out. *stop: asked to end. */
static struct chunk *runner_take(struct runner *runner, unsigned out, bool *stop)
{
    pthread_mutex_lock(&runner->lock);
    while (!runner->incoming && out == 0 && !runner->stopping)
        pthread_cond_wait(&runner->wake, &runner->lock);
    struct chunk *taken = list_take(&runner->incoming, &runner->incoming_end);
    *stop = runner->stopping;
    pthread_mutex_unlock(&runner->lock);
    return taken;
}

static void *runner_thread(void *argument)
{
    struct runner *runner = argument;
    struct device *device = runner->device;
    unsigned out = 0;
    for (;;) {
        bool stop;
        struct chunk *chunk = runner_take(runner, out, &stop), *next;
        if (stop && !chunk && out == 0)
            return NULL;
        for (; chunk; chunk = next) {
            next = chunk->next;
            chunk->status = device->ops->start(device, chunk);
            if (chunk->status)
                runner_complete(runner, chunk);
            else
                out++;
        }
        chunk = out ? device->ops->finish(device, FINISH_MS) : NULL;
        if (chunk) {
            out--;
            runner_complete(runner, chunk);
        }
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
    pthread_cond_signal(&runner->wake);
    pthread_mutex_unlock(&runner->lock);
}

struct chunk *runner_collect(struct runner *runner)
{
    pthread_mutex_lock(&runner->lock);
    struct chunk *all = list_take(&runner->completed, &runner->completed_end);
    pthread_mutex_unlock(&runner->lock);
    return all;
}

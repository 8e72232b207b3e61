#include "readers.h"

#include "detached.h"
#include "protocol/limits.h"

#define STACK_BYTES MIB(1)

static void reader_done(struct readers *readers, struct work *work)
{
    work_list_push(&readers->done, work);
    atomic_store(&readers->returned, true);
    pthread_cond_signal(&readers->news);
    if (readers->notify)
        readers->notify(readers->context);
}

static void *reader_main(void *argument)
{
    struct readers *readers = argument;
    pthread_mutex_lock(&readers->lock);
    for (;;) {
        while (!readers->waiting.first)
            pthread_cond_wait(&readers->wake, &readers->lock);
        struct work *work = work_list_pop(&readers->waiting);
        readers->idle--;
        pthread_mutex_unlock(&readers->lock);
        work_run(work);
        pthread_mutex_lock(&readers->lock);
        readers->idle++;
        reader_done(readers, work);
    }
    return NULL;
}

static int start_thread(struct readers *readers)
{
    const int r = detached_start(reader_main, readers, STACK_BYTES);
    if (r)
        return r;
    readers->threads++;
    readers->idle++;
    return 0;
}

int readers_start(struct readers *readers, void (*notify)(void *context), void *context)
{
    *readers = (struct readers){.notify = notify, .context = context};
    pthread_mutex_init(&readers->lock, NULL);
    pthread_cond_init(&readers->wake, NULL);
    detached_condition_init(&readers->news);
    pthread_mutex_lock(&readers->lock);
    int r = start_thread(readers);
    pthread_mutex_unlock(&readers->lock);
    return r;
}

void readers_silence(struct readers *readers)
{
    pthread_mutex_lock(&readers->lock);
    readers->notify = NULL;
    pthread_mutex_unlock(&readers->lock);
}

static unsigned list_count(const struct work_list *list)
{
    unsigned count = 0;
    for (const struct work *work = list->first; work; work = work->next)
        count++;
    return count;
}

/* Hands a unit to the threads; where no further thread can be started, it waits for a running one. */
void readers_submit(struct readers *readers, struct work *work)
{
    pthread_mutex_lock(&readers->lock);
    work_list_push(&readers->waiting, work);
    readers->out++;
    if (readers->threads < LIMIT_READERS && list_count(&readers->waiting) > readers->idle)
        start_thread(readers);
    pthread_mutex_unlock(&readers->lock);
    pthread_cond_signal(&readers->wake);
}

struct work *readers_collect(struct readers *readers)
{
    if (!atomic_load(&readers->returned))
        return NULL;
    pthread_mutex_lock(&readers->lock);
    atomic_store(&readers->returned, false);
    struct work *done = readers->done.first;
    readers->out -= list_count(&readers->done);
    readers->done.first = NULL;
    pthread_mutex_unlock(&readers->lock);
    return done;
}

bool readers_wait(struct readers *readers, int timeout_ms)
{
    const struct timespec end = detached_deadline(timeout_ms);
    int r = 0;
    pthread_mutex_lock(&readers->lock);
    while (readers->out > 0 && !readers->done.first && !r)
        r = pthread_cond_timedwait(&readers->news, &readers->lock, &end);
    const bool some = readers->done.first != NULL;
    pthread_mutex_unlock(&readers->lock);
    return some;
}

unsigned readers_out(struct readers *readers)
{
    pthread_mutex_lock(&readers->lock);
    const unsigned out = readers->out;
    pthread_mutex_unlock(&readers->lock);
    return out;
}

#include "worker_pool.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "channel.h"
#include "protocol/own_descriptors.h"

#define FILL_THREADS_MAX 8

/* Work of the threads that make the pool's first segments, or free all; one index shares the segments out. */
struct fill {
    struct pool *pool;
    int (*step)(struct pool *pool, size_t index);
    size_t next, end;
    int status;
};

static void *fill_thread(void *argument)
{
    struct fill *fill = argument;
    size_t i;
    while ((i = __atomic_fetch_add(&fill->next, 1, __ATOMIC_RELAXED)) < fill->end) {
        int r = fill->step(fill->pool, i);
        if (r)
            __atomic_store_n(&fill->status, r, __ATOMIC_RELAXED);
    }
    return NULL;
}

static int for_segments(struct pool *pool, size_t count, int (*step)(struct pool *pool, size_t index))
{
    struct fill fill = {.pool = pool, .step = step, .end = count};
    pthread_t threads[FILL_THREADS_MAX];
    long started = 0, wanted = sysconf(_SC_NPROCESSORS_ONLN) - 1;
    while (started < wanted && started < FILL_THREADS_MAX &&
           pthread_create(&threads[started], NULL, fill_thread, &fill) == 0)
        started++;
    fill_thread(&fill);
    for (long i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    return fill.status;
}

static int unmake(struct pool *pool, size_t index)
{
    pool_unmake(pool, index);
    return 0;
}

/* Frees the pool by several threads: the system takes a third of a second for the pages of a GiB, and drivers some more
 * to unpin them. */
void worker_pool_free(struct worker_pool *self)
{
    for_segments(&self->pool, pool_ready_count(&self->pool), unmake);
    pool_finish(&self->pool);
}

/* Tells the supervisor of a segment's memory, from any thread. A failure is ignored: without a supervisor this process
 * ends as well. */
static void keep_segment(void *context, size_t index, int fd)
{
    const struct worker_pool *self = context;
    channel_send(self->channel_fd, &(struct channel_message){.word = CHANNEL_SEGMENT, .index = index, .fd = fd});
}

static void free_pages(void *context, int fd, uint64_t size_bytes)
{
    struct worker_pool *self = context;
    punches_free(&self->punches, fd, size_bytes);
}

static int make_first(struct worker_pool *self, const struct device_set *devices, const struct pool_store *store)
{
    struct pool *pool = &self->pool;
    int r = pool_init(pool, devices, store->pool_bytes);
    if (r)
        return r;
    r = pool_adopt(pool, &self->keeper, store->fds);
    if (r)
        return r;
    pool_limit_files(pool, own_descriptors_limit() / 4); /* most descriptors are for clients */
    return for_segments(pool, pool_first_count(pool), pool_make);
}

int worker_pool_make(struct worker_pool *self, const struct device_set *devices, const struct pool_store *store,
                     int channel_fd, struct error *error)
{
    self->channel_fd = channel_fd;
    punches_init(&self->punches);
    self->keeper = (struct pool_keeper){store->records, keep_segment, free_pages, self};
    int r = make_first(self, devices, store);
    if (!r)
        return 0;
    return error_set(error, r, "could not make a pool of %llu MiB: %s; choose a smaller --pool",
                     (unsigned long long)(store->pool_bytes >> 20), strerror(-r));
}

/*
 * A pool of threads that sleep until there is work. The caller works too: it is worker 0. The caller of an idle pool
 * only waits for the other threads, which run where nobody else wants the processor.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "kernels/cpu/cpu.h"
#include "protocol/slept.h"

struct worker {
    struct cpu_pool *pool;
    unsigned number;
    pthread_t thread; /* unused in worker 0 */
    struct cpu_scratch *scratch;
};

struct cpu_pool {
    pthread_mutex_t mutex; /* guards what follows, up to `stop` */
    pthread_cond_t start, done;
    cpu_work *work;
    void *context;
    uint64_t round;   /* counts the calls of cpu_pool_run */
    unsigned working; /* threads that have not finished this round */
    bool stop;

    unsigned worker_count, started;
    bool idle;
    bool watched;
    _Atomic uint64_t slept_us; /* longest time that a thread has slept at memory while the pool is watched */
    struct worker workers[];
};

/* Makes scratch memory of zeros; pages that are never used take no memory. */
struct cpu_scratch *cpu_scratch_create(void)
{
    void *memory = mmap(NULL, sizeof(struct cpu_scratch), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void cpu_scratch_destroy(struct cpu_scratch *scratch)
{
    if (scratch)
        munmap(scratch, sizeof(*scratch));
}

/* Makes the calling thread idle; it keeps its class where the system allows no other. */
static void become_idle(void)
{
    const struct sched_param none = {0};
    pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
}

static void note_sleep(struct cpu_pool *pool, uint64_t us)
{
    uint64_t most_us = atomic_load(&pool->slept_us);
    while (us > most_us && !atomic_compare_exchange_weak(&pool->slept_us, &most_us, us))
        ;
}

/* Does a thread's part of the work. */
static void worker_work(struct cpu_pool *pool, cpu_work *work, void *context, unsigned number)
{
    struct slept slept;
    if (pool->watched)
        slept_begin(&slept);
    work(context, number);
    if (pool->watched)
        note_sleep(pool, slept_us(&slept));
}

void cpu_pool_watch(struct cpu_pool *pool)
{
    pool->watched = true;
    atomic_store(&pool->slept_us, 0);
}

uint64_t cpu_pool_end_watch(struct cpu_pool *pool)
{
    pool->watched = false;
    return atomic_load(&pool->slept_us);
}

static void *worker_main(void *argument)
{
    const struct worker *worker = argument;
    struct cpu_pool *pool = worker->pool;
    uint64_t round = 0;
    if (pool->idle)
        become_idle();
    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        while (!pool->stop && pool->round == round)
            pthread_cond_wait(&pool->start, &pool->mutex);
        if (pool->stop)
            break;
        round = pool->round;
        pthread_mutex_unlock(&pool->mutex);
        worker_work(pool, pool->work, pool->context, worker->number);
        pthread_mutex_lock(&pool->mutex);
        if (--pool->working == 0)
            pthread_cond_signal(&pool->done);
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

static unsigned available_cores(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    return count > 0 ? (unsigned)count : 1;
}

static int worker_start(struct cpu_pool *pool, unsigned number)
{
    struct worker *worker = &pool->workers[number];
    worker->pool = pool;
    worker->number = number;
    worker->scratch = cpu_scratch_create();
    if (!worker->scratch)
        return ENOMEM;
    int error = number > 0 ? pthread_create(&worker->thread, NULL, worker_main, worker) : 0;
    if (error) {
        cpu_scratch_destroy(worker->scratch);
        return error;
    }
    pool->started++;
    return 0;
}

static struct cpu_pool *pool_create(unsigned count, bool idle)
{
    struct cpu_pool *pool = calloc(1, sizeof(*pool) + count * sizeof(pool->workers[0]));
    if (!pool)
        return NULL;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->start, NULL);
    pthread_cond_init(&pool->done, NULL);
    pool->worker_count = count;
    pool->idle = idle;
    int error = 0;
    for (unsigned i = 0; i < count && !error; i++)
        error = worker_start(pool, i);
    if (error) {
        cpu_pool_destroy(pool);
        errno = error;
        return NULL;
    }
    return pool;
}

struct cpu_pool *cpu_pool_create(unsigned threads)
{
    return pool_create(threads ? threads : available_cores(), false);
}

struct cpu_pool *cpu_pool_create_idle(unsigned threads)
{
    return pool_create(1 + (threads ? threads : available_cores()), true);
}

void cpu_pool_destroy(struct cpu_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->mutex);
    pool->stop = true;
    pthread_cond_broadcast(&pool->start);
    pthread_mutex_unlock(&pool->mutex);
    for (unsigned i = 0; i < pool->started; i++) {
        if (i > 0)
            pthread_join(pool->workers[i].thread, NULL);
        cpu_scratch_destroy(pool->workers[i].scratch);
    }
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->start);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

unsigned cpu_pool_threads(const struct cpu_pool *pool)
{
    return pool->worker_count;
}

struct cpu_scratch *cpu_pool_scratch(const struct cpu_pool *pool, unsigned worker)
{
    return pool->workers[worker].scratch;
}

void cpu_pool_run(struct cpu_pool *pool, cpu_work *work, void *context)
{
    pthread_mutex_lock(&pool->mutex);
    pool->work = work;
    pool->context = context;
    pool->working = pool->worker_count - 1;
    pool->round++;
    pthread_cond_broadcast(&pool->start);
    pthread_mutex_unlock(&pool->mutex);

    if (!pool->idle)
        worker_work(pool, work, context, 0);

    pthread_mutex_lock(&pool->mutex);
    while (pool->working > 0)
        pthread_cond_wait(&pool->done, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
}

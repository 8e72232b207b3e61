#include "stage.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS_MAX 8

struct cuda_stage {
    pthread_mutex_t mutex; /* guards what follows, up to `stop` */
    pthread_cond_t added;
    struct stage_task *tasks[LIMIT_CHUNKS_IN_FLIGHT]; /* the n-th has place n % LIMIT_CHUNKS_IN_FLIGHT */
    uint64_t count;
    bool stop;

    unsigned thread_count;
    struct stager {
        struct cuda_stage *stage;
        unsigned number;
        pthread_t thread;
    } stagers[THREADS_MAX];
};

/* The n-th task, for which it waits; NULL: there will be none. It keeps its place until all have seen it, since it is
 * not done before. */
static struct stage_task *await_task(struct cuda_stage *stage, uint64_t n)
{
    pthread_mutex_lock(&stage->mutex);
    while (stage->count <= n && !stage->stop)
        pthread_cond_wait(&stage->added, &stage->mutex);
    struct stage_task *task = stage->count > n ? stage->tasks[n % LIMIT_CHUNKS_IN_FLIGHT] : NULL;
    pthread_mutex_unlock(&stage->mutex);
    return task;
}

static void *stager_main(void *argument)
{
    const struct stager *self = argument;
    struct stage_task *task;
    for (uint64_t n = 0; (task = await_task(self->stage, n)); n++) {
        for (int i = 0; i < STAGE_SIDES; i++)
            if (task->sides[i].side)
                side_stage(task->sides[i].side, task->sides[i].memory, task->staging, self->number,
                           self->stage->thread_count);
        atomic_fetch_sub(&task->left, 1);
    }
    return NULL;
}

/* Half of the processors: clients and the daemon's other threads need some. */
static unsigned wanted_threads(void)
{
    long half = sysconf(_SC_NPROCESSORS_ONLN) / 2;
    return half < 1 ? 1 : half > THREADS_MAX ? THREADS_MAX : (unsigned)half;
}

struct cuda_stage *cuda_stage_create(void)
{
    struct cuda_stage *stage = calloc(1, sizeof *stage);
    unsigned wanted = wanted_threads(), started = 0;
    if (!stage)
        return NULL;
    pthread_mutex_init(&stage->mutex, NULL);
    pthread_cond_init(&stage->added, NULL);
    pthread_mutex_lock(&stage->mutex); /* until it is known how many they are */
    for (; started < wanted; started++) {
        stage->stagers[started] = (struct stager){.stage = stage, .number = started};
        if (pthread_create(&stage->stagers[started].thread, NULL, stager_main, &stage->stagers[started]))
            break;
    }
    stage->thread_count = started;
    pthread_mutex_unlock(&stage->mutex);
    if (started > 0)
        return stage;
    cuda_stage_destroy(stage);
    return NULL;
}

void cuda_stage_destroy(struct cuda_stage *stage)
{
    if (!stage)
        return;
    pthread_mutex_lock(&stage->mutex);
    stage->stop = true;
    pthread_cond_broadcast(&stage->added);
    pthread_mutex_unlock(&stage->mutex);
    for (unsigned i = 0; i < stage->thread_count; i++)
        pthread_join(stage->stagers[i].thread, NULL);
    pthread_cond_destroy(&stage->added);
    pthread_mutex_destroy(&stage->mutex);
    free(stage);
}

void cuda_stage_start(struct cuda_stage *stage, struct stage_task *task)
{
    atomic_store(&task->left, stage->thread_count);
    pthread_mutex_lock(&stage->mutex);
    stage->tasks[stage->count++ % LIMIT_CHUNKS_IN_FLIGHT] = task;
    pthread_cond_broadcast(&stage->added);
    pthread_mutex_unlock(&stage->mutex);
}

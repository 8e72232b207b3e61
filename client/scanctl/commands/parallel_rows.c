#include "client/scanctl/commands/parallel_rows.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define THREADS_MAX 64
#define ROWS_TAKEN  16 /* at a time: slow cores take fewer */

struct sharing {
    share_work *work;
    void *context;
    uint64_t rows;
    _Atomic uint64_t next;
};

static void *sharing_run(void *argument)
{
    struct sharing *sharing = argument;
    for (;;) {
        uint64_t first = atomic_fetch_add(&sharing->next, ROWS_TAKEN);
        if (first >= sharing->rows)
            return NULL;
        uint64_t left = sharing->rows - first;
        sharing->work(sharing->context, first, left < ROWS_TAKEN ? left : ROWS_TAKEN);
    }
}

static int cores(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
    return count < THREADS_MAX ? count : THREADS_MAX;
}

void share_rows(uint64_t rows, share_work *work, void *context)
{
    struct sharing sharing = {.work = work, .context = context, .rows = rows};
    pthread_t threads[THREADS_MAX];
    int started = 0, wanted = cores() - 1;
    while (started < wanted && !pthread_create(&threads[started], NULL, sharing_run, &sharing))
        started++;
    sharing_run(&sharing);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

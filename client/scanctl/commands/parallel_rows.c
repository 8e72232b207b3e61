#include "client/scanctl/commands/parallel_rows.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define THREADS_MAX  64
#define ROWS_AT_ONCE 16 /* rows that a thread gets at once; slow cores get fewer in all */

struct parallel {
    row_work *work;
    void *context;
    uint64_t rows;
    _Atomic uint64_t next;
};

static void *parallel_run(void *argument)
{
    struct parallel *parallel = argument;
    for (;;) {
        uint64_t first = atomic_fetch_add(&parallel->next, ROWS_AT_ONCE);
        if (first >= parallel->rows)
            return NULL;
        uint64_t left = parallel->rows - first;
        parallel->work(parallel->context, first, left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE);
    }
}

static int cores(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
    return count < THREADS_MAX ? count : THREADS_MAX;
}

void parallel_rows(uint64_t rows, row_work *work, void *context)
{
    struct parallel parallel = {.work = work, .context = context, .rows = rows};
    pthread_t threads[THREADS_MAX];
    int started = 0, wanted = cores() - 1;
    while (started < wanted && !pthread_create(&threads[started], NULL, parallel_run, &parallel))
        started++;
    parallel_run(&parallel);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

/*
 * The CPU path: each SIMD build, and the thread pool with one thread and with more threads than cores; the same in
 * turns that are over as soon as they may be.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/implementation.h"

static const struct scan_cpu_build *build_find(const char *name)
{
    for (size_t i = 0; i < scan_cpu_build_count; i++)
        if (strcmp(scan_cpu_builds[i].name, name) == 0 && scan_cpu_builds[i].available())
            return &scan_cpu_builds[i];
    return NULL;
}

/* Pools live until the program ends: starting threads for each case would take longer than the cases. */
static struct cpu_pool *pools[4];

static void pools_destroy(void)
{
    for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++)
        cpu_pool_destroy(pools[i]);
}

static struct cpu_pool *pool_of(unsigned threads)
{
    static bool registered;
    if (!registered)
        registered = atexit(pools_destroy) == 0;
    if (!pools[threads])
        pools[threads] = cpu_pool_create(threads);
    return pools[threads];
}

static int pool_run(unsigned threads, const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    struct cpu_pool *pool = pool_of(threads);
    return pool ? scan_cpu(pool, rows, first, count) : -errno;
}

static bool always(void *context)
{
    (void)context;
    return true;
}

static int turns_run(unsigned threads, const struct scan_rows *rows, uint64_t first, uint64_t count)
{
    struct cpu_pool *pool = pool_of(threads);
    struct cpu_task *task = pool ? cpu_task_create(pool, rows, first, count) : NULL;
    int r = task ? 1 : -ENOMEM;
    while (r == 1)
        r = cpu_task_run(task, always, NULL);
    cpu_task_destroy(task);
    return r;
}

#define BUILD(NAME)                                                                                                  \
    static bool NAME##_available(void)                                                                               \
    {                                                                                                                \
        return build_find(#NAME);                                                                                    \
    }                                                                                                                \
    static int NAME##_run(const struct scan_rows *rows, uint64_t first, uint64_t count, const struct scan_memory *m) \
    {                                                                                                                \
        (void)m;                                                                                                     \
        return build_find(#NAME)->run(rows, first, count);                                                           \
    }

#define POOL(NAME, RUN, THREADS)                                                                                     \
    static bool NAME##_available(void)                                                                               \
    {                                                                                                                \
        return true;                                                                                                 \
    }                                                                                                                \
    static int NAME##_run(const struct scan_rows *rows, uint64_t first, uint64_t count, const struct scan_memory *m) \
    {                                                                                                                \
        (void)m;                                                                                                     \
        return RUN(THREADS, rows, first, count);                                                                     \
    }

BUILD(avx512)
BUILD(avx2)
BUILD(portable)
POOL(pool_1, pool_run, 1)
POOL(pool_3, pool_run, 3)
POOL(turns_1, turns_run, 1)
POOL(turns_3, turns_run, 3)

const struct implementation cpu_implementations[] = {
    {"cpu_build_avx512", avx512_available, avx512_run},
    {"cpu_build_avx2", avx2_available, avx2_run},
    {"cpu_build_portable", portable_available, portable_run},
    {"cpu_pool_1", pool_1_available, pool_1_run},
    {"cpu_pool_3", pool_3_available, pool_3_run},
    {"cpu_turns_1", turns_1_available, turns_1_run},
    {"cpu_turns_3", turns_3_available, turns_3_run},
};
const size_t cpu_implementation_count = sizeof(cpu_implementations) / sizeof(cpu_implementations[0]);

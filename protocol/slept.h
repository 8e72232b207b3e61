/* For how long a thread has slept at memory: at a page that was not there, as one that another program gives back. */
#ifndef PROTOCOL_SLEPT_H
#define PROTOCOL_SLEPT_H

#include <stdbool.h>
#include <sys/resource.h>

#include "clock.h"

/* A sanitizer has pages of its own that are not there, and sleeps for locks of its own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLEPT_IS_KNOWN 0
#else
#define SLEPT_IS_KNOWN 1
#endif

struct slept {
    struct rusage usage;
    uint64_t began_us;
};

/* A thread that sleeps without a page that was not there has waited for a lock; and one that had to be read from a disk
 * is nobody's doing. */
static inline bool slept_at_memory(const struct rusage *before, const struct rusage *now)
{
    return SLEPT_IS_KNOWN && now->ru_minflt > before->ru_minflt &&
           now->ru_nvcsw - before->ru_nvcsw > now->ru_majflt - before->ru_majflt;
}

static inline uint64_t slept_ran_us(const struct rusage *usage)
{
    return (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000 +
           (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
}

static inline void slept_begin(struct slept *slept)
{
    slept->began_us = clock_us();
    getrusage(RUSAGE_THREAD, &slept->usage);
}

/* Returns the time that the thread has not run since, if it has slept at memory; else 0. */
static inline uint64_t slept_us(const struct slept *slept)
{
    struct rusage now;
    getrusage(RUSAGE_THREAD, &now);
    const uint64_t all_us = clock_us() - slept->began_us, ran_us = slept_ran_us(&now) - slept_ran_us(&slept->usage);
    return slept_at_memory(&slept->usage, &now) && all_us > ran_us ? all_us - ran_us : 0;
}

#endif

/*
 * Memory that the supervisor shares with its workers, and that outlives them: what it tells the worker, and what a
 * worker leaves to the next one, however it ended.
 */
#ifndef DAEMON_SHARED_PAGE_H
#define DAEMON_SHARED_PAGE_H

#include <stdatomic.h>

#include "progress.h"

#define SHARED_PAGE_GRANT_WORDS ((sizeof(struct grants) + sizeof(uint64_t) - 1) / sizeof(uint64_t))

struct shared_page {
    atomic_bool draining; /* set by a worker once it takes no more jobs */
    unsigned starts;      /* number of workers that were started; written by the supervisor */
    uint64_t started_us;  /* by the supervisor: when this worker started, and its predecessor ended (0: none) */
    uint64_t lost_us;
    /* The worker's reason to end, if it knows one, as a terminated string; the supervisor passes it on to the service
     * manager. */
    char cause[LIMIT_ERROR_BYTES];
    struct progress progress; /* written by the worker */
    /* The worker's state. The next worker reads the counters in it; everything else in it means nothing by then. */
    struct service service;
    atomic_uint version;                              /* version of the grants; odd while they are written */
    _Atomic uint64_t grants[SHARED_PAGE_GRANT_WORDS]; /* a struct grants, word by word */
};

/* Creates the page, which is never freed. Returns NULL without memory (errno). */
struct shared_page *shared_page_create(void);

/* Hand grants from the supervisor to the worker. The worker reads the grants that were given last, and always whole: it
 * reads again when grants are written meanwhile. */
void shared_page_give_grants(struct shared_page *shared_page, const struct grants *grants);
void shared_page_read_grants(const struct shared_page *shared_page, struct grants *grants);

#endif

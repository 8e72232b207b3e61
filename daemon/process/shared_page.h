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
    unsigned starts;      /* of workers; the supervisor's */
    uint64_t started_us;  /* when this one was started, and when its predecessor ended (0: it has none); the same */
    uint64_t lost_us;
    /* Why a worker ends, if it knows, with a zero behind it; the supervisor tells the service manager. */
    char cause[LIMIT_ERROR_BYTES];
    struct progress progress; /* the worker's */
    /* The worker's. The next one reads what it had counted; whatever else is in it means nothing by then. */
    struct service service;
    atomic_uint version;                              /* of the grants; odd while they are written */
    _Atomic uint64_t grants[SHARED_PAGE_GRANT_WORDS]; /* a struct grants, word by word */
};

/* NULL: no memory (errno). For good. */
struct shared_page *shared_page_create(void);

/* The supervisor gives grants, and the worker takes those that were given last, whole also when others are being given
 * meanwhile: it then looks again. */
void shared_page_give_grants(struct shared_page *shared_page, const struct grants *grants);
void shared_page_read_grants(const struct shared_page *shared_page, struct grants *grants);

#endif

/*
 * Users, by the uid at the other end of clients' sockets. Quotas and shares are those of a user, however many
 * connections and programs it has. A user has a slot of the table for as long as a connection, a buffer or slow work of
 * its own is there. The loop's thread only, but for uid, which never changes while the user is held.
 */
#ifndef DAEMON_USER_H
#define DAEMON_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/limits.h"
#include "protocol/status.h"

#include "daemon/core/memory/stock.h"
#include "daemon/core/schedule/fair_user.h"
#include "daemon/core/schedule/helpers.h"
#include "daemon/core/schedule/loop_turns.h"

// clang-format off
/* Quotas: things of which a user may have so much at a time. The word is that of the setting.
 *  NAME             word             what is counted            what helps */
#define QUOTAS(X)                                                                                  \
    X(HOST_MEMORY,   "host-memory",   "bytes of host buffers",   "release a buffer")               \
    X(DEVICE_MEMORY, "device-memory", "bytes of device buffers", "release a buffer")               \
    X(JOBS,          "jobs",          "jobs that wait or run",   "wait until some of them are done") \
    X(CONNECTIONS,   "connections",   "connections",             "close one of them")               \
    X(PINNED_MEMORY, "pinned-memory", "bytes of pinned imports", "release a buffer")
// clang-format on

enum quota {
#define X(NAME, WORD, COUNTED, REMEDY) QUOTA_##NAME,
    QUOTAS(X) QUOTA_COUNT
#undef X
};

struct grant {
    uint64_t most[QUOTA_COUNT];
    unsigned weight; /* the weight of the user's device time among others'; at least 1 */
};

/* Quotas and weights, for all users and for some. */
struct grants {
    struct grant standard; /* quotas of all users without their own */
    struct {
        uid_t uid;
        struct grant grant;
    } own[LIMIT_OWN_GRANTS];
    size_t own_count;
};

/* A user's requests for memory that wait until some is free; all zeros is none. */
struct waiting_queue {
    struct round_robin node; /* first; among the users with requests that wait */
    struct waiting *first, *last;
};

/* A user's jobs that read files, and what is read for them (jobs/feed.h); all zeros is none. */
struct feed_queue {
    struct round_robin node;    /* first; among the users with such jobs */
    struct loads *first, *last; /* by class, and in the order of submission */
    uint64_t loads, load_bytes; /* chunks that are read or have been, and the memory for them */
};

/* Sums over a user's jobs and connections that have ended, since the worker began. */
struct user_counters {
    uint64_t jobs_done, jobs_failed, jobs_cancelled;
    uint64_t queued_us; /* waiting of the jobs done, from their arrival to the start of their first chunk */
    uint64_t device_busy_ns;
};

struct user {
    uid_t uid;
    unsigned holds; /* references of its clients and buffers; 0: the slot is free */
    uint64_t most[QUOTA_COUNT], used[QUOTA_COUNT];
    unsigned connections;    /* open connections, also beyond the quota */
    uint64_t waiting_fds;    /* descriptors that came with messages that wait */
    uint64_t unread_bytes;   /* answers that have not been sent, */
    uint64_t unread_fds;     /* and descriptors that go with them */
    unsigned unadmitted;     /* connections beyond the quota that wait to be told so */
    uint64_t connects_us;    /* until when its allowance of new connections is used up, at LIMIT_CONNECTS a second */
    uint64_t rings;          /* its connections with rings */
    uint64_t maps;           /* memory maps of its imports */
    uint64_t lent_fds;       /* descriptors that threads have, to close them or for imports that they prepare */
    bool suspected;          /* the loop was at its memory for long (trust.h), */
    bool distrusted;         /* or has slept there for too long, and touches it no more */
    uint64_t slept_until_us; /* until when its allowance of that is used up */
    struct user_counters counters;
    struct pool_account pool;
    uint64_t offsets_bytes; /* offsets of its jobs */
    struct fair_user fair;  /* place among the users of devices */
    struct turn_user turn;  /* place among the users of the loop */
    struct waiting_queue waiting;
    struct work_queue work;  /* slow work that helpers do for it */
    struct work_queue reads; /* work of readers for it */
    uint64_t files;          /* open files in its buffers */
    struct feed_queue feed;  /* queue of its jobs that read files */
};

/* Users whose memory the loop touches no more, also when they come back. */
struct distrusted {
    uid_t uids[LIMIT_DISTRUSTED];
    unsigned count; /* more than there is room for: the oldest are forgotten */
};

struct user_table {
    struct grants grants;
    struct distrusted distrusted;
    uid_t owner;       /* the daemon's owner; root, unless somebody sets it */
    size_t slot_count; /* slots that somebody has had: the others are never looked at */
    struct user slots[LIMIT_USERS];
};

/* Initializes the table; everybody is granted everything, until users_configure. */
void users_init(struct user_table *table);
/* Changes what is granted, at once. Nobody loses what is above a new quota, but gets no more. */
void users_configure(struct user_table *table, const struct grants *grants);

/* True for root and the daemon's owner. */
bool user_manages(const struct user_table *table, uid_t uid);
/* The user with that uid, if it is there; NULL: it is not. */
struct user *user_find(struct user_table *table, uid_t uid);
/* The user with that uid, held once more; NULL when there are LIMIT_USERS others, the last LIMIT_USERS_KEPT of which
 * can only be users who manage. A user who comes back while no other has its slot has the accounts of device time, the
 * counters and the allowance of before: going away for a moment settles nothing. */
struct user *user_acquire(struct user_table *table, uid_t uid);
void user_hold(struct user *user);
void user_unhold(struct user *user);

/* Returns how many connections a user may open now, LIMIT_CONNECTS_AT_ONCE at most; also of a user who is not there. */
unsigned user_connects_left(struct user_table *table, uid_t uid, uint64_t now_us);
/* The user has opened one of them. */
void user_count_connect(struct user *user, uint64_t now_us);

/* From now on the loop touches no memory of the user, whether it is there or not. */
void user_distrust(struct user_table *table, uid_t uid);

/* Checks a request: 0 when the user may have that much more, else -EDQUOT and *error, which begins with `request`.
 * Without retry_ms it says that the user may never have so much. */
int user_check(const struct user *user, enum quota quota, uint64_t more, const char *request, struct error *error);
/* Count an amount that the user has got, or given back. */
void user_add(struct user *user, enum quota quota, uint64_t amount);
void user_subtract(struct user *user, enum quota quota, uint64_t amount);

#endif

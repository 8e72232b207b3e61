/*
 * Users who do little. One, who is connected before an attack begins, makes pings, small jobs and buffers and further
 * connections, one after another with pauses; another arrives again and again, and has nothing else. Each act is timed.
 * They are processes of their own, of users of their own where this is root.
 */
#ifndef TESTS_BENCH_HOSTILE_WITNESS_H
#define TESTS_BENCH_HOSTILE_WITNESS_H

#include <stdint.h>

#include "protocol/limits.h"
#include "tests/bench/team.h"

enum witness_member { MEMBER_KNOWN, MEMBER_NEW, MEMBER_COUNT };

/* Each act: X(name, who does it, how many rounds go by from one to the next). */
#define ACTS(X)                  \
    X(ping, MEMBER_KNOWN, 1)     \
    X(job, MEMBER_KNOWN, 1)      \
    X(buffer, MEMBER_KNOWN, 1)   \
    X(mebibyte, MEMBER_KNOWN, 4) \
    X(ragged, MEMBER_KNOWN, 4)   \
    X(import, MEMBER_KNOWN, 4)   \
    X(connect, MEMBER_KNOWN, 4)  \
    X(arrive, MEMBER_NEW, 4)

enum act {
#define X(NAME, MEMBER, ROUNDS) ACT_##NAME,
    ACTS(X)
#undef X
        ACT_COUNT
};

#define WITNESS_TIMES_MAX 20000

extern const char *const act_names[ACT_COUNT];

/* A witness's observations, in memory that the benchmark shares with it. */
struct testimony {
    struct act_times {
        uint64_t count, failed;
        double times_ms[WITNESS_TIMES_MAX];
        char failure[LIMIT_ERROR_BYTES]; /* the first: its status in a word, and its message */
    } acts[ACT_COUNT];
    struct {
        enum act act;
        double since_ms; /* 0: none */
    } under_way[MEMBER_COUNT];
};

struct witness_order {
    const char *socket;
    double seconds;
    struct testimony *testimony;
};

/* The life of each, as members of a team; `argument` is a struct witness_order. The first connects before it meets the
 * team. */
int witness_work(struct team *team, int index, const void *argument);

/* Counts what was under way when they were ended as a failure that took so long. */
void testimony_end(struct testimony *testimony);
/* The share-th of the sorted times, say 0.99. Sorts them. */
double act_quantile(struct act_times *times, double share);

#endif

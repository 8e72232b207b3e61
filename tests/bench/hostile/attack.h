/*
 * Attacks on a daemon: what one user may send that could make others wait or fail. Each runs in a process of its own,
 * as a user of its own where this is root, for a bounded time; it counts the answers that it gets.
 */
#ifndef TESTS_BENCH_HOSTILE_ATTACK_H
#define TESTS_BENCH_HOSTILE_ATTACK_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "tests/bench/hostile/line.h"

#define STATUSES_MAX 64 /* more than there are; a status beyond counts as the last */

/* The answers to an attacker, in memory that the benchmark shares with it. */
struct tally {
    uint64_t answers[STATUSES_MAX];
    char messages[STATUSES_MAX][LIMIT_ERROR_BYTES]; /* the first message with each status */
    uint64_t sent;                                  /* requests whose answers were not looked at */
    uint64_t connected;                             /* connections made, where there are many */
    uint64_t refused;                               /* connections that were not made */
    uint64_t closed;                                /* connections that the daemon has ended */
};

struct attacker {
    const char *socket;
    double until_ms; /* time of bench_now_ms at which to stop */
    struct tally *tally;
    uint16_t http_port; /* of the page of metrics; 0: there is none */
};

enum attack_flags {
    ATTACK_LONG_ROWS = 1 << 0, /* its jobs take long: measure their cancellation, and what they leave behind */
    ATTACK_USERS = 1 << 1,     /* connects as many users, which only root can */
    ATTACK_MEMORY = 1 << 2,    /* asks for more memory than there is: runs only when it is asked for */
    ATTACK_HTTP = 1 << 3,      /* meets a daemon that has the page of metrics */
};

/* Each attack: X(name, flags, what it does). */
#define ATTACKS(X)                                                                                                     \
    X(control, 0, "none: a process that computes and leaves the daemon alone, to see what the machine does")           \
    X(ragged_empty, 0, "ragged jobs whose 2^20 offsets have stride 0, 32 to a message, from 1 connection")             \
    X(ragged_empty_60, 0, "the same from 60 connections")                                                              \
    X(ragged_refused, 0, "ragged jobs of which the last of 2^20 offsets is wrong, 32 to a message, from 1 connection") \
    X(ragged_refused_60, 0, "the same from 60 connections")                                                            \
    X(ragged_queued, 0, "ragged jobs of 2^20 rows that wait, from 16 connections")                                     \
    X(ragged_short, 0, "jobs of 128 ragged rows of one sample, 18 passes in f2, from 8 connections")                   \
    X(import_sparse, ATTACK_MEMORY, "imports of a sparse memfd larger than memory")                                    \
    X(import_large, 0, "four imports of 512 MiB at once, again and again")                                             \
    X(import_pages, 0, "imports of 128 memfds of one page, again and again")                                           \
    X(import_punched, 0, "jobs on imported memory whose pages are given back meanwhile, from 4 connections")           \
    X(import_emptied, 0, "small jobs on memfds of 256 MiB whose pages are all given back, from 2 connections")         \
    X(import_mapped, 0, "small jobs on a memfd of 64 KiB that has 240,000 maps and is punched meanwhile")              \
    X(chunks_mapped, 0, "jobs on 64 MiB of which 64 KiB have 240,000 maps and are punched meanwhile")                  \
    X(files_shrinking, 0, "jobs that read files which shrink meanwhile, from 4 connections")                           \
    X(files_endless, 0, "jobs that read 512 rows of 128 MiB of a sparse file, from 8 connections")                     \
    X(files_many, 0, "files imported and kept, by 32 connections")                                                     \
    X(reduce_long, ATTACK_LONG_ROWS, "reductions of [1, 2^33] with strides 0 out of 1 MiB")                            \
    X(chain_long, ATTACK_LONG_ROWS, "rows of 2^26 samples, 18 passes in f2")                                           \
    X(chain_affine, ATTACK_LONG_ROWS, "6,400 rows of 10,000 samples, 18 passes of affine in f2")                       \
    X(affine_short, 0, "jobs of 50 rows of one sample, 18 passes of affine in f2, from 8 connections")                 \
    X(demean_short, 0, "jobs of 200 rows of one sample, 18 passes in f2 without means, from 8 connections")            \
    X(steps_triangles, 0, "1,048,576 rows of one sample, nine triangles of half-width 2,048")                          \
    X(jobs_compared, 0, "jobs that wait, on buffers of 128 descriptors with one in common, from 8 connections")        \
    X(jobs_stale, 0, "jobs that are refused, and jobs that read as many such buffers")                                 \
    X(queue_long, 0, "1,920 rows of 2^33 samples that wait, from 8 connections")                                       \
    X(queue_users, ATTACK_USERS, "as many such rows as may wait, from 36 connections of 4 users")                      \
    X(queue_files, 0, "1,920 jobs that each read a file of 16 MiB, from 8 connections")                                \
    X(queue_deadlines, 0, "1,920 jobs that wait until their time is over, from 8 connections")                         \
    X(queue_links, 0, "238 jobs that wait for each other, the first of which is cancelled, from 8 connections")        \
    X(steps_bins, 0, "65,536 rows of one sample, stacked into 65,536 bins and summed")                                 \
    X(steps_few_then_many, 0, "jobs of one sample in turn with jobs of 16 MiB, from 4 connections")                    \
    X(buffers_300k, 0, "buffers of 300 KB held, and more asked for")                                                   \
    X(buffers_8, 0, "buffers of 8 bytes held, and more asked for")                                                     \
    X(half_messages, 0, "158 connections with one byte and 128 descriptors each")                                      \
    X(silent_250_users, ATTACK_USERS, "1100 connections without a word of 250 users")                                  \
    X(silent_4_users, ATTACK_USERS, "1100 connections without a word of 4 users")                                      \
    X(greeted_254_users, ATTACK_USERS, "1100 connections that say hello and nothing more, of 254 users")               \
    X(over_quota, 0, "300 connections held, those that the daemon ends made anew")                                     \
    X(unread, 0, "200 connections that ask for histograms and read nothing")                                           \
    X(flood_pings, 0, "pings by one process")                                                                          \
    X(flood_lists, 0, "lists of jobs, clients, traces and histograms by one process")                                  \
    X(flood_groups, 0, "groups of jobs begun and ended by one process")                                                \
    X(flood_wrong, 0, "requests that are refused, by one process")                                                     \
    X(flood_garbage, 0, "bytes that are no messages, by one process")                                                  \
    X(flood_jobs, 0, "jobs of 1,000 samples by one process")                                                           \
    X(rings_flood, 0, "pings by four rings that are always full")                                                      \
    X(rings_crumbs, 0, "pings by four rings, a byte in each frame")                                                    \
    X(rings_unread, 0, "pings by 60 rings whose answers nobody reads")                                                 \
    X(rings_scribble, 0, "rings whose memory is written over at random")                                               \
    X(rings_mapped, 0, "pings by a ring whose memory has 240,000 maps and is punched meanwhile")                       \
    X(flood_connections, 0, "connections made and closed by one process")                                              \
    X(http_pages, ATTACK_HTTP, "64 connections to the page of metrics that ask for it, again and again")               \
    X(http_silent, ATTACK_HTTP, "64 such connections that ask for nothing, made anew when they are ended")             \
    X(http_crumbs, ATTACK_HTTP, "64 such connections that ask for half a page, made anew when they are ended")

#define X(NAME, FLAGS, WHAT) void attack_##NAME(struct attacker *self);
ATTACKS(X)
#undef X

/* The jobs of the attacks with long rows. Imports their memory and fills params; false where that failed. */
struct msg_job_submit_params;
typedef bool long_rows(struct attacker *self, struct line *line, struct msg_job_submit_params *params);
long_rows long_rows_reduce_long, long_rows_chain_long, long_rows_chain_affine;

/* Connects from here on are those of the index-th of so many users, until attack_as_self; 0: of this process's. */
bool attack_as(unsigned users, unsigned index);
void attack_as_self(unsigned users);

void tally_failure(struct tally *tally, uint64_t status, const char *message);

/* A new memfd that can be sealed, or -1. */
int attack_memfd(uint64_t size_bytes);
/* Imports `count` descriptors of `segment_bytes` each and returns the buffer's id, 0 where that is refused. */
uint64_t attack_import(struct attacker *self, struct line *line, const int *fds, uint64_t count,
                       uint64_t segment_bytes);
/* Imports one new memfd, from which *memory maps the first page unless it is NULL. Returns the buffer's id, 0 where the
 * import is refused. */
uint64_t attack_import_new(struct attacker *self, struct line *line, uint64_t size_bytes, void **memory);
/* Starts processes that map this shared memory very often, fill it and punch it, again and again, until this one ends.
 */
void attack_map_and_punch(void *memory, uint64_t size_bytes);
/* A row of `count` f32 samples, `stride` bytes apart, from byte `offset` of a buffer on. */
struct msg_tensor attack_row(uint64_t buffer, uint64_t offset, uint64_t count, int64_t stride);

/*
 * Requests without end: each connection has `window` of them without an answer, always. One that ends is made anew.
 */
struct flood {
    unsigned lines, window;
    unsigned users; /* 0: this process's user; else so many, from ATTACK_FIRST_USER on */
    bool (*set_up)(struct attacker *self, struct line *line); /* sets up each connection; may be NULL */
    bool (*ask)(struct attacker *self, struct line *line);    /* sends one request */
    line_answered *answered;                                  /* may be NULL */
};

#define FLOOD_LINES_MAX   64
#define ATTACK_FIRST_USER 60000

void flood_run(struct attacker *self, const struct flood *flood);

/* Connections that are held, and made anew when the daemon ends them. */
struct hold {
    unsigned connections;
    unsigned users;                          /* 0: this process's user; else so many, from ATTACK_FIRST_USER on */
    bool (*begin)(int fd, const void *with); /* says something; may be NULL */
    const void *with;
    bool deaf; /* the connection reads nothing */
};

void hold_run(struct attacker *self, const struct hold *hold);

#endif

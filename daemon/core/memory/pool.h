/*
 * The pool of host memory: segments that were faulted in, pinned and sealed before anyone asked.
 *
 * A segment is a memfd of its own. There are classes of them, each twice as large as the one before, from
 * LIMIT_SMALLEST_SEGMENT_BYTES to LIMIT_LARGE_SEGMENT_BYTES. A buffer is one segment of the smallest class that holds
 * it, or a run of the largest class, so it costs at most twice its size, or a page. Segments of a class lie side by
 * side in one reserved range of addresses, so that any run of them is contiguous here and, mapped in order, in a
 * client. The pool's size bounds the segments of all classes together that are made: where a new one needs room, free
 * ones of other classes are dropped.
 *
 * A client that gave memory back may still have it mapped. So a segment goes again only to the user who had it; before
 * another user gets it, its memfd is replaced by a new one, and the pages of the old one are freed if it was released.
 *
 * The process that started this one keeps the memfds of segments that are made beforehand, so that the next process
 * after this one finds them with their pages. A record of each, in memory that both have, says whose it was.
 *
 * Called from the loop's thread, but for pool_make, pool_unmake, pool_renew and pool_fill, which others may run on
 * segments that nobody else uses.
 */
#ifndef DAEMON_POOL_H
#define DAEMON_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "alias.h"
#include "daemon/device/device.h"
#include "page_budget.h"
#include "stock.h"

/* A segment as the keeper has to know it, should this process end at any moment. Memory other than the one with this
 * inode is not described: a client may have written to it. All zeros describes none. */
struct pool_record {
    _Atomic ino_t inode;
    _Atomic uid_t user;   /* user, as in struct segment */
    atomic_bool taken;    /* taken, as in struct segment */
    atomic_bool released; /* released, as in struct segment */
};

/* The keeper of memory beyond the end of this process. */
struct pool_keeper {
    struct pool_record *records; /* records of all segments that are made beforehand, by index */
    /* Keeps a memfd as the segment's memory from now on; -1: the segment has none. Any thread may call this. If it
     * fails, the record has another inode, so nothing more depends on it. */
    void (*keep)(void *context, size_t index, int fd);
    /* Frees the pages of memory that a client may still have, without waiting for the client; in the end, if it cannot
     * be, they stay. Any thread may call this. */
    void (*free_pages)(void *context, int fd, uint64_t size_bytes);
    void *context;
};

struct segment {
    int fd;                     /* -1: not made, or making it failed */
    bool pinned;                /* true when it has all its pages, and the device has pinned them */
    bool released;              /* true when its last user has said that it is done with it */
    bool taken;                 /* a run has it, or is to drop it */
    unsigned char class;        /* the index of its class */
    uid_t user;                 /* the user who had it last; POOL_NOBODY: nobody */
    uint64_t paged_bytes;       /* bytes that have pages, while it is made */
    uint64_t filled_bytes;      /* bytes that its memfd had already, likewise */
    uint64_t collapsed_bytes;   /* bytes with pages that the filler has made large pages of, as far as it can */
    struct file file;           /* memfd of the segment; the index says nothing */
    struct pool_record *record; /* NULL: nobody keeps it */
    struct segment *next;       /* in the list of segments that a run drops */
};

#define POOL_NOBODY ((uid_t)-1)

struct pool_class {
    uint64_t segment_bytes;
    size_t count;
    struct segment *segments;
    unsigned char *base; /* address of the first segment; NULL without segments */
};

#define POOL_CLASSES 13

struct pool {
    const struct device_set *devices;
    const struct pool_keeper *keeper;        /* NULL: there is none */
    struct pool_class classes[POOL_CLASSES]; /* by size */
    uint64_t made_bytes;                     /* memory of all segments that exist, or are being made */
    uint64_t made_small;                     /* made segments that are not of the largest class */
    struct stock bytes, files;               /* memory of the pool, and small segments (LIMIT_POOL_FILES), in use */
    struct page_budget page_budget;          /* for pages of imported memory */
    unsigned filling;                        /* segments that pool_fill_begin has taken */
    bool of_program;                         /* the process is the client's own: nobody else may close files in it */
};

/* A run of segments that make a buffer. */
struct pool_run {
    struct pool_class *class;
    size_t first, count;
    struct segment *dropped; /* by next: free segments that the run replaces */
    bool settled;            /* the dropped segments are back, or gone */
    bool released;           /* the user has said that it is done with it */
};

static inline struct segment *run_segment(const struct pool_run *run, size_t i)
{
    return &run->class->segments[run->first + i];
}

/* Reserves addresses for about size_bytes (0: none). Returns 0 or -ENOMEM. Then make every segment. */
int pool_init(struct pool *pool, const struct device_set *devices, uint64_t size_bytes);
/* Return how many segments a pool of that size has beforehand, and the size of each by its index. */
size_t pool_ready_for(uint64_t size_bytes);
uint64_t pool_ready_segment_bytes(uint64_t size_bytes, size_t index);
/* Takes over what is kept of an earlier pool of the same size: a descriptor for each segment that is made beforehand,
 * or -1. Their pages and pinning come when they are made. 0 or -errno. */
int pool_adopt(struct pool *pool, const struct pool_keeper *keeper, const int *fds);
/* Bounds small segments, instead of by LIMIT_POOL_FILES, but not to fewer than are made beforehand. */
void pool_limit_files(struct pool *pool, uint64_t most);
/* Segments that are made beforehand: all large ones, and some small ones. */
size_t pool_ready_count(const struct pool *pool);
/* Returns how many of the segments made beforehand, the small ones and some large ones, are enough for clients to begin
 * with. */
size_t pool_first_count(const struct pool *pool);
/* Returns, at the beginning, how many further descriptors the pool may take. */
uint64_t pool_descriptors_to_come(const struct pool *pool);
/* Makes the segment with this index among them: faulted in, sealed, pinned. Returns 0 or -errno. */
int pool_make(struct pool *pool, size_t index);
/* Takes the next segment from *index on that is free and not made, until pool_fill_end. NULL: none is left. */
struct segment *pool_fill_begin(struct pool *pool, size_t *index);
/* Does a unit of making it. 1: more is left; 0 or -errno: that was all. */
int pool_fill(struct pool *pool, struct segment *segment);
void pool_fill_end(struct pool *pool, struct segment *segment);
/* Frees a segment, for the end: several threads may, each other segments. Nobody uses the pool any more. */
void pool_unmake(struct pool *pool, size_t index);
void pool_finish(struct pool *pool);
/* Ends, in a child of the pool's process, what the child has of the pool. The memory stays as it is. */
void pool_forget(struct pool *pool);
uint64_t pool_size_bytes(const struct pool *pool);
/* The largest buffer that a user who is alone can have. */
uint64_t pool_largest_bytes(const struct pool *pool);
/* Segments that there can be at a time, which is how many descriptors and memory maps they take. */
uint64_t pool_segments_most(const struct pool *pool);
/* Bytes of segments for a buffer of size_bytes. */
uint64_t pool_cost_bytes(const struct pool *pool, uint64_t size_bytes);

/* Reserves a run for size_bytes. Returns 0; -EAGAIN when none is free now; -EDQUOT when there could never be one;
 * -EBUSY when the user has what it may (stock.h), which *account counts. */
int pool_reserve(struct pool *pool, uint64_t size_bytes, uid_t user, struct pool_account *account,
                 struct pool_run *run);
/* True when a segment of the run was another user's or is missing: pool_renew must come before anyone sees it. */
bool pool_needs_renewal(const struct pool_run *run, uid_t user);
/* Does a unit of replacing those segments. Slow: page faults and pinning. 1: more is left. 0 or -errno: that was all;
 * the run stays taken. */
int pool_renew(struct pool *pool, struct pool_run *run, uid_t user);
/* Gives a run to `user`, or back. */
void pool_assign(const struct pool_run *run, uid_t user);
/* Settles a run after its last unit, of success or not: what was to be dropped can be taken again, and what was not
 * made is not counted. Giving back does it, too. */
void pool_settle(struct pool *pool, struct pool_run *run);
void pool_give_back(struct pool *pool, struct pool_run *run, struct pool_account *account);

/* Drops free segments, large ones first, while the free ones have more than keep_bytes. Slow: for whoever's pool may be
 * as large as the machine's memory. */
void pool_trim(struct pool *pool, uint64_t keep_bytes);

void *pool_run_base(const struct pool_run *run);

#endif

/*
 * Buffers: memory that jobs work on. A buffer belongs to the client that made it and is held by the jobs that use it;
 * it goes when the client has released it, or is gone, and the last job has let go.
 *
 * buffer_prepare and buffer_dismantle are slow (page faults, pinning, device allocation) and may run on a helper
 * thread, while nothing else touches the buffer; everything else runs on the loop's thread.
 */
#ifndef DAEMON_BUFFER_H
#define DAEMON_BUFFER_H

#include "alias.h"
#include "daemon/core/user.h"
#include "pin_units.h"
#include "pool.h"
#include "protocol/status.h"

/* SHARED: device memory that other processes may be given. FOREIGN: another process's. */
enum buffer_source { BUFFER_POOL, BUFFER_IMPORT, BUFFER_DEVICE, BUFFER_EXPORTABLE, BUFFER_FOREIGN };

struct buffer {
    enum buffer_source source;
    struct span span;  /* base is NULL until it is prepared */
    struct user *user; /* held */
    uint64_t id;       /* among its client's */
    unsigned holds;    /* the client's, jobs' and a helper's */
    struct buffer *next;

    struct extent stale;  /* bytes that a failed job was to write (stale.h); empty: none */
    uint64_t stale_until; /* for jobs before this position of the client's messages; UINT64_MAX: it is not told yet */

    struct device *device;      /* of device memory: whose it is, of BUFFER_FOREIGN once it is prepared; else NULL */
    struct pool_run run;        /* of BUFFER_POOL */
    int fds[LIMIT_MESSAGE_FDS]; /* of BUFFER_IMPORT, until it is prepared */
    size_t fd_count;
    uint64_t maps;              /* of memory, that count for its user */
    bool checked;               /* the descriptors have been */
    uint64_t filled_bytes;      /* of which it is known that they have pages */
    uint64_t promised_bytes;    /* of pages that are still to be made */
    uint64_t unmapped_bytes;    /* while it is dismantled */
    uint64_t segment_bytes;     /* of each descriptor */
    uint64_t pinned_bytes;      /* that its user's quota of pinned memory has for it; 0: it is staged */
    struct pin_units pin_units; /* of the mapping, once it is prepared, unless its quota was too small */
    unsigned pinners;           /* helpers that pin them, each with a hold */
    struct files files;         /* of host memory, where its client may have the same memory as another buffer */
    bool aliased;               /* another buffer of its client's is the same memory, in part, or has been */

    enum scand_sharing sharing;       /* of BUFFER_EXPORTABLE */
    struct exported_memory *exported; /* of both, once it is prepared */
    bool exporting;                   /* a helper makes a ticket for it */
    struct export_ticket ticket;      /* of BUFFER_FOREIGN; its descriptor until it is prepared */
    uint64_t offset;                  /* into the ticket's allocation */
};

/* Each returns 0 and a buffer with one hold, its caller's, or -errno and *error. buffer_prepare must follow. */
int buffer_create_host(struct pool *pool, uint64_t size_bytes, struct user *user, struct buffer **out,
                       struct error *error);
int buffer_create_device(struct device *device, uint64_t size_bytes, enum scand_sharing sharing, struct user *user,
                         struct buffer **out, struct error *error);
/* Takes over the descriptors, on failure too. */
int buffer_create_import(const int *fds, size_t count, uint64_t segment_bytes, uint64_t size_bytes, struct user *user,
                         struct buffer **out, struct error *error);
/* Takes over the ticket's descriptor, on failure too. */
int buffer_create_foreign(const struct export_ticket *ticket, uint64_t offset, uint64_t size_bytes, struct user *user,
                          struct buffer **out, struct error *error);

/* What it takes of its user's quota: of the pool whole segments, of memory of other processes nothing. */
uint64_t buffer_cost_bytes(const struct buffer *buffer);

/* Marks the buffers of a list that are, in part, the memory of a new, prepared one, and this one. 0 or -ENOMEM. */
int buffer_note_aliases(struct buffer *buffer, struct buffer *others);
/* True when bytes x of a and y of b are the same memory, in part. Both are prepared, of one client. */
static inline bool buffers_meet(const struct buffer *a, const struct extent *x, const struct buffer *b,
                                const struct extent *y)
{
    if (a == b)
        return x->begin < y->end && y->begin < x->end;
    return a->aliased && b->aliased && files_meet(&a->files, x, &b->files, y);
}

/* True when buffer_prepare, or buffer_dismantle, has nothing slow to do. */
bool buffer_prepares_fast(const struct buffer *buffer);
bool buffer_dismantles_fast(const struct buffer *buffer);

/* True when a unit of dismantling may take much longer than others: the device's work, and the end of large memory, all
 * of whose pages are freed at once if nobody else has it. */
bool buffer_lasts(const struct buffer *buffer);

/* Does a unit of some milliseconds of what makes the memory ready for jobs, but of what is imported only the first
 * unit is pinned. 1: more is left, call it again. 0, or -errno and *error: that was all. Dismantle in any case. */
int buffer_prepare(struct buffer *buffer, struct pool *pool, struct error *error);
/* Likewise; true while more is left. */
bool buffer_dismantle(struct buffer *buffer, struct pool *pool);
/* Pins a unit that was begun, on a helper thread, while the others are in use. 0 or -errno. */
int buffer_pin(const struct buffer *buffer, size_t unit, const struct device_set *devices);
/* True when these bytes can be worked on now; else they are pinned before others, if any are to be. */
bool buffer_is_ready(struct buffer *buffer, struct extent extent);
/* True while not all bytes can be. */
static inline bool buffer_is_partial(const struct buffer *buffer)
{
    return buffer->pin_units.left > 0 && !buffer->span.staged;
}
/* Frees a dismantled buffer and gives its run back to the pool. */
void buffer_destroy(struct buffer *buffer, struct pool *pool);

#endif

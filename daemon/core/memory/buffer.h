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

/* FILE: a file that jobs read. EXPORTABLE: device memory that can be given to other processes. FOREIGN: device memory
 * of another process. */
enum buffer_source { BUFFER_POOL, BUFFER_IMPORT, BUFFER_FILE, BUFFER_DEVICE, BUFFER_EXPORTABLE, BUFFER_FOREIGN };

struct buffer {
    enum buffer_source source;
    struct span span;  /* the memory; base is NULL until it is prepared */
    struct user *user; /* held */
    uint64_t id;       /* a number among the buffers of its client */
    unsigned holds;    /* references of the client, jobs and helpers */
    struct buffer *next;

    struct extent stale;  /* bytes that a failed job was to write (stale.h); empty: none */
    uint64_t stale_until; /* the position in the client's messages up to which jobs fail; UINT64_MAX: the client is not
                             told yet */

    struct device *device;      /* the device of device memory (of BUFFER_FOREIGN once it is prepared), else NULL */
    struct pool_run run;        /* segments of BUFFER_POOL */
    int fds[LIMIT_MESSAGE_FDS]; /* descriptors of BUFFER_IMPORT, until it is prepared; of BUFFER_FILE */
    size_t fd_count;
    size_t lent_fds;            /* descriptors that count for its user while it is prepared */
    uint64_t maps;              /* memory maps that count for its user */
    uint64_t counted_files;     /* open files, counted likewise */
    uint64_t file_bytes;        /* bytes of the descriptors' files when they came */
    bool checked;               /* the descriptors have been checked */
    bool complete;              /* they are sealed, and their memory has its pages */
    uint64_t filled_bytes;      /* bytes from the beginning that are known to have pages */
    uint64_t promised_bytes;    /* pages that are still to be made */
    uint64_t unmapped_bytes;    /* bytes that are unmapped already, while it is dismantled */
    uint64_t segment_bytes;     /* the size of each descriptor's memory */
    uint64_t pinned_bytes;      /* bytes that count for its user's quota of pinned memory; 0: the buffer is staged */
    struct pin_units pin_units; /* the units of the mapping, once it is prepared, unless the quota was too small */
    unsigned pinners;           /* helpers that pin units, each with a hold */
    struct files files; /* the files of host memory, where its client may have the same memory as another buffer */
    bool compared;      /* it has been released, and was compared with the new one already */
    bool aliased;       /* another buffer of its client's is the same memory, in part, or has been */

    enum scand_sharing sharing;       /* sharing of BUFFER_EXPORTABLE */
    struct exported_memory *exported; /* the memory of BUFFER_EXPORTABLE and BUFFER_FOREIGN, once it is prepared */
    bool exporting;                   /* a helper makes a ticket for it */
    struct export_ticket ticket;      /* the ticket of BUFFER_FOREIGN; its descriptor until it has been prepared */
    uint64_t offset;                  /* from the beginning of the ticket's allocation */
};

/* Each returns 0 and a buffer with one hold, its caller's, or -errno and *error. buffer_prepare must follow. */
int buffer_create_host(struct pool *pool, uint64_t size_bytes, struct user *user, struct buffer **out,
                       struct error *error);
int buffer_create_device(struct device *device, uint64_t size_bytes, enum scand_sharing sharing, struct user *user,
                         struct buffer **out, struct error *error);
/* Takes over the descriptors, on failure too. */
int buffer_create_import(const int *fds, size_t count, uint64_t segment_bytes, uint64_t size_bytes, struct user *user,
                         struct buffer **out, struct error *error);
/* Takes over the descriptor, on failure too. */
int buffer_create_file(int fd, uint64_t size_bytes, struct user *user, struct buffer **out, struct error *error);
/* Takes over the ticket's descriptor, on failure too. */
int buffer_create_foreign(const struct export_ticket *ticket, uint64_t offset, uint64_t size_bytes, struct user *user,
                          struct buffer **out, struct error *error);

/* Bytes that count for its user's quota: whole segments of the pool, and nothing for memory of other processes. */
uint64_t buffer_cost_bytes(const struct buffer *buffer);

/* Marks a new, prepared buffer and another one of its client's if they are, in part, the same memory. 0 or -ENOMEM. */
int buffer_note_alias(struct buffer *buffer, struct buffer *other);
/* True when bytes x of a and y of b are the same memory, in part. Both are prepared, of one client. */
static inline bool buffers_meet(const struct buffer *a, const struct extent *x, const struct buffer *b,
                                const struct extent *y)
{
    if (a == b)
        return x->begin < y->end && y->begin < x->end;
    return a->aliased && b->aliased && files_meet(&a->files, x, &b->files, y);
}

/* The same for whoever compares many: aliased buffers are taken for one memory where one of them has several
 * descriptors, since comparing these takes a hundred times as long. */
static inline bool buffers_may_meet(const struct buffer *a, const struct extent *x, const struct buffer *b,
                                    const struct extent *y)
{
    const bool taken_for_one = a != b && a->aliased && b->aliased && (a->files.count > 1 || b->files.count > 1);
    return taken_for_one || buffers_meet(a, x, b, y);
}

/* True when its memory is a file, of which a job reads what it needs. */
static inline bool buffer_is_file(const struct buffer *buffer)
{
    return buffer && buffer->source == BUFFER_FILE;
}

/* True when buffer_prepare, or buffer_dismantle, has nothing slow to do. */
bool buffer_prepares_fast(const struct buffer *buffer);
bool buffer_dismantles_fast(const struct buffer *buffer);

/* True when a unit of dismantling may take much longer than others: the device's work, and the end of large memory, all
 * of whose pages are freed at once if nobody else has it. */
bool buffer_lasts(const struct buffer *buffer);

/* Makes the memory ready for jobs, a unit of some milliseconds at a time; of imported memory only the first pin unit is
 * pinned. PREPARE_MORE: more is left, call it again; PREPARE_BY_HELPER: the same, and nothing that is left has to wait
 * for a client. 0, or -errno and *error: that was all. Dismantle in any case. */
#define PREPARE_MORE      1
#define PREPARE_BY_HELPER 2
int buffer_prepare(struct buffer *buffer, struct pool *pool, struct error *error);
/* Undoes buffer_prepare, a unit at a time; true while more is left. Descriptors stay (client_buffers.c). */
bool buffer_dismantle(struct buffer *buffer, struct pool *pool);
/* Pins a unit that was begun, on a helper thread, while the others are in use. 0 or -errno. */
int buffer_pin(const struct buffer *buffer, size_t unit, const struct device_set *devices);
/* True when jobs can work on these bytes now; else they are the next to be pinned, if any are. */
bool buffer_is_ready(struct buffer *buffer, struct extent extent);
/* True while some bytes have yet to be pinned. */
static inline bool buffer_is_partial(const struct buffer *buffer)
{
    return buffer->pin_units.left > 0 && !buffer->span.staged;
}
/* Frees a dismantled buffer and gives its run back to the pool. */
void buffer_destroy(struct buffer *buffer, struct pool *pool);

#endif

#include "segment.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "protocol/memory.h"
#include "protocol/status.h"

/* Pages for so many bytes are made only where the system has that much: looking takes a tenth of a millisecond. */
#define CHECKED_BYTES MIB(1)
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14 */
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since Linux 6.1 */
#endif

bool segment_is_small(const struct segment *segment)
{
    return segment->class != CLASS_LARGE;
}

unsigned char *segment_address(const struct pool_class *class, const struct segment *segment)
{
    return class->base + (size_t)(segment - class->segments) * class->segment_bytes;
}

void *addresses_reserve(void *at, uint64_t size_bytes)
{
    return mmap(at, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1, 0);
}

void segment_set_user(struct segment *segment, uid_t user)
{
    segment->user = user;
    if (segment->record)
        atomic_store(&segment->record->user, user);
}

void segment_set_taken(struct segment *segment, bool taken)
{
    segment->taken = taken;
    if (segment->record)
        atomic_store(&segment->record->taken, taken);
}

void segment_set_released(struct segment *segment, bool released)
{
    segment->released = released;
    if (segment->record)
        atomic_store(&segment->record->released, released);
}

/* Tells the keeper that it has this memory from now on; -1: none. Meanwhile the record describes none. */
static void segment_keep(struct pool *pool, struct segment *segment, int fd)
{
    if (!segment->record)
        return;
    atomic_store(&segment->record->inode, 0);
    pool->keeper->keep(pool->keeper->context, (size_t)(segment->record - pool->keeper->records), fd);
}

int segment_map(struct pool *pool, struct segment *segment, int fd)
{
    struct pool_class *class = &pool->classes[segment->class];
    struct file file;
    int r = file_identify(&file, fd, 0);
    if (!r && mmap(segment_address(class, segment), class->segment_bytes, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
        r = -errno;
    if (r)
        return r;
    segment->fd = fd;
    segment->file = file;
    segment->paged_bytes = 0;
    segment->filled_bytes = 0;
    segment->collapsed_bytes = 0;
    return 0;
}

static int segment_begin(struct pool *pool, struct segment *segment)
{
    int fd = memory_create_sparse(pool->classes[segment->class].segment_bytes);
    int r = fd < 0 ? fd : segment_map(pool, segment, fd);
    if (r) {
        if (fd >= 0)
            close(fd);
        return r;
    }
    segment_keep(pool, segment, fd);
    segment_set_user(segment, POOL_NOBODY);
    if (segment->record)
        atomic_store(&segment->record->inode, segment->file.inode);
    return 0;
}

/* Gives the segment's next bytes pages, where it has none yet. A lack of memory is an error, before the OOM killer. */
static int segment_fill(struct pool *pool, struct segment *segment, uint64_t bytes)
{
    struct error error;
    const uint64_t end = segment->paged_bytes + bytes;
    if (end <= segment->filled_bytes)
        return 0;
    int r = bytes >= CHECKED_BYTES ? page_budget_check(&pool->page_budget, bytes, "pool", &error) : 0;
    if (r || (r = memory_fill(segment->fd, segment->paged_bytes, bytes)))
        return r;
    segment->filled_bytes = end;
    return 0;
}

/* Makes a unit of pages present in this process. Their contents stay: they may be an earlier process's. */
static int segment_page(struct pool *pool, struct segment *segment)
{
    struct pool_class *class = &pool->classes[segment->class];
    uint64_t left = class->segment_bytes - segment->paged_bytes, page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t bytes = left < LIMIT_UNIT_BYTES ? left : LIMIT_UNIT_BYTES;
    unsigned char *at = segment_address(class, segment) + segment->paged_bytes;
    const bool shared = segment->user != POOL_NOBODY; /* filling may wait for who had it (README.md) */
    int r = shared ? 0 : segment_fill(pool, segment, bytes);
    if (r)
        return r;
    if (madvise(at, bytes, MADV_POPULATE_WRITE)) {
        if (shared && errno != EINVAL)
            return -ENOMEM;
        for (uint64_t i = 0; i < bytes; i += page)
            __atomic_fetch_or(&at[i], 0, __ATOMIC_RELAXED);
    }
    segment->paged_bytes += bytes;
    return 0;
}

/* Frees the pages of memory that nobody is to have any more; where a client may have it, that is its keeper's work. */
static void free_pages(const struct pool *pool, const struct segment *segment)
{
    const uint64_t size_bytes = pool->classes[segment->class].segment_bytes;
    if (pool->keeper && segment->user != POOL_NOBODY)
        pool->keeper->free_pages(pool->keeper->context, segment->fd, size_bytes);
    else
        fallocate(segment->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)size_bytes);
}

void segment_drop(struct pool *pool, struct segment *segment)
{
    struct pool_class *class = &pool->classes[segment->class];
    if (segment->fd < 0)
        return;
    if (segment->pinned)
        device_set_unpin(pool->devices, segment_address(class, segment), class->segment_bytes);
    segment_keep(pool, segment, -1);
    if (segment->released)
        free_pages(pool, segment);
    addresses_reserve(segment_address(class, segment), class->segment_bytes);
    close(segment->fd);
    segment->fd = -1;
    segment->pinned = false;
    segment_set_user(segment, POOL_NOBODY);
}

void segment_collapse(struct pool *pool, struct segment *segment)
{
    unsigned char *at = segment_address(&pool->classes[segment->class], segment) + segment->collapsed_bytes;
    (void)madvise(at, LIMIT_UNIT_BYTES, MADV_COLLAPSE); /* where it cannot, pages stay small */
    segment->collapsed_bytes += LIMIT_UNIT_BYTES;
}

int segment_make(struct pool *pool, struct segment *segment)
{
    struct pool_class *class = &pool->classes[segment->class];
    int r = segment->fd < 0 ? segment_begin(pool, segment) : 0;
    if (r)
        return r;
    if (segment->paged_bytes < class->segment_bytes)
        r = segment_page(pool, segment);
    if (!r && segment->paged_bytes < class->segment_bytes)
        return 1;
    if (!r)
        r = device_set_pin(pool->devices, segment_address(class, segment), class->segment_bytes);
    if (r)
        segment_drop(pool, segment);
    else
        segment->pinned = true;
    return r;
}

void segment_count_made(struct pool *pool, const struct segment *segment, int sign)
{
    /* Several threads fill a new pool. */
    __atomic_fetch_add(&pool->made_bytes, (uint64_t)sign * pool->classes[segment->class].segment_bytes,
                       __ATOMIC_RELAXED);
    __atomic_fetch_add(&pool->made_small, (uint64_t)(sign * segment_is_small(segment)), __ATOMIC_RELAXED);
}

#include "pool.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "protocol/memory.h"

enum { SMALL, LARGE };

static unsigned char *segment_address(const struct pool_class *class, size_t index)
{
    return class->base + index * class->segment_bytes;
}

static int class_init(struct pool_class *class, uint64_t segment_bytes, size_t count)
{
    *class = (struct pool_class){.segment_bytes = segment_bytes, .count = count};
    if (count == 0)
        return 0;
    class->segments = calloc(count, sizeof class->segments[0]);
    void *base = mmap(NULL, segment_bytes * count, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!class->segments || base == MAP_FAILED) {
        free(class->segments);
        if (base != MAP_FAILED)
            munmap(base, segment_bytes * count);
        *class = (struct pool_class){.segment_bytes = segment_bytes};
        return -ENOMEM;
    }
    class->base = base;
    for (size_t i = 0; i < count; i++)
        class->segments[i] = (struct segment){.fd = -1, .user = POOL_NOBODY};
    return 0;
}

int pool_init(struct pool *pool, const struct device_set *devices, uint64_t size_bytes)
{
    pool->devices = devices;
    room_init(&pool->room);
    pool->classes[LARGE] = (struct pool_class){0};
    int r = class_init(&pool->classes[SMALL], LIMIT_SMALL_SEGMENT_BYTES, size_bytes ? LIMIT_SMALL_SEGMENTS : 0);
    if (!r)
        r = class_init(&pool->classes[LARGE], LIMIT_LARGE_SEGMENT_BYTES,
                       (size_bytes + LIMIT_LARGE_SEGMENT_BYTES - 1) / LIMIT_LARGE_SEGMENT_BYTES);
    if (r)
        pool_finish(pool);
    return r;
}

/* A new memfd in the segment's place: every page present and zero, known to the device. */
static int segment_make(struct pool *pool, struct pool_class *class, size_t index)
{
    unsigned char *address = segment_address(class, index);
    int fd = memory_create(class->segment_bytes);
    if (fd < 0)
        return fd;
    struct file file;
    int r = file_identify(&file, fd, 0);
    if (!r && mmap(address, class->segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd,
                   0) == MAP_FAILED)
        r = -errno;
    if (!r)
        r = device_set_attach(pool->devices, address, class->segment_bytes);
    if (r) {
        close(fd);
        return r;
    }
    class->segments[index].fd = fd;
    class->segments[index].file = file;
    return 0;
}

static void segment_drop(struct pool *pool, struct pool_class *class, size_t index)
{
    struct segment *segment = &class->segments[index];
    if (segment->fd < 0)
        return;
    device_set_detach(pool->devices, segment_address(class, index), class->segment_bytes);
    close(segment->fd);
    segment->fd = -1;
    segment->user = POOL_NOBODY;
}

size_t pool_segment_count(const struct pool *pool)
{
    return pool->classes[SMALL].count + pool->classes[LARGE].count;
}

int pool_make(struct pool *pool, size_t index)
{
    size_t small = pool->classes[SMALL].count;
    if (index < small)
        return segment_make(pool, &pool->classes[SMALL], index);
    return segment_make(pool, &pool->classes[LARGE], index - small);
}

void pool_finish(struct pool *pool)
{
    for (size_t c = 0; c < 2; c++) {
        struct pool_class *class = &pool->classes[c];
        for (size_t i = 0; i < class->count; i++)
            segment_drop(pool, class, i);
        if (class->base)
            munmap(class->base, class->count * class->segment_bytes);
        free(class->segments);
        *class = (struct pool_class){.segment_bytes = class->segment_bytes};
    }
}

uint64_t pool_size_bytes(const struct pool *pool)
{
    uint64_t bytes = 0;
    for (size_t c = 0; c < 2; c++)
        bytes += pool->classes[c].count * pool->classes[c].segment_bytes;
    return bytes;
}

/* First fit: the lowest run of `count` free segments. */
static bool class_find(struct pool_class *class, size_t count, size_t *first)
{
    size_t length = 0;
    for (size_t i = 0; i < class->count; i++) {
        length = class->segments[i].taken ? 0 : length + 1;
        if (length == count) {
            *first = i + 1 - count;
            return true;
        }
    }
    return false;
}

int pool_take(struct pool *pool, uint64_t size_bytes, struct pool_run *run)
{
    size_t smallest = size_bytes <= LIMIT_SMALL_SEGMENT_BYTES ? SMALL : LARGE;
    bool fits = false;
    for (size_t c = smallest; c <= LARGE; c++) {
        struct pool_class *class = &pool->classes[c];
        uint64_t count = size_bytes / class->segment_bytes + (size_bytes % class->segment_bytes != 0);
        if (count > class->count || count > LIMIT_MESSAGE_FDS)
            continue;
        fits = true;
        *run = (struct pool_run){.class = class, .count = count};
        if (class_find(class, count, &run->first)) {
            for (size_t i = 0; i < count; i++)
                class->segments[run->first + i].taken = true;
            return 0;
        }
    }
    return fits ? -EAGAIN : -EDQUOT;
}

/* Another user's, or one whose making failed before. */
static bool needs_making(const struct segment *segment, uid_t user)
{
    return segment->fd < 0 || (segment->user != POOL_NOBODY && segment->user != user);
}

bool pool_needs_renewal(const struct pool_run *run, uid_t user)
{
    for (size_t i = 0; i < run->count; i++)
        if (needs_making(&run->class->segments[run->first + i], user))
            return true;
    return false;
}

int pool_renew(struct pool *pool, const struct pool_run *run, uid_t user)
{
    for (size_t i = run->first; i < run->first + run->count; i++) {
        if (!needs_making(&run->class->segments[i], user))
            continue;
        segment_drop(pool, run->class, i);
        int r = segment_make(pool, run->class, i);
        return r ? r : pool_needs_renewal(run, user);
    }
    return 0;
}

void pool_assign(const struct pool_run *run, uid_t user)
{
    for (size_t i = 0; i < run->count; i++)
        run->class->segments[run->first + i].user = user;
}

void pool_give_back(const struct pool_run *run)
{
    for (size_t i = 0; i < run->count; i++)
        run->class->segments[run->first + i].taken = false;
}

void *pool_run_base(const struct pool_run *run)
{
    return segment_address(run->class, run->first);
}

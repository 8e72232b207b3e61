#include "pool_ready.h"

#include <assert.h>
#include <sys/stat.h>
#include <unistd.h>

#include "segment.h"

#define FIRST_LARGE 8 /* large segments that clients begin with */

static_assert(LIMIT_SMALLEST_SEGMENT_BYTES << CLASS_LARGE == LIMIT_LARGE_SEGMENT_BYTES,
              "classes, each twice the one before");

/* Segments of each small class that are made beforehand, together less than a large one. */
static const size_t ready[CLASS_LARGE] = {24, 4, 4, 4, 8, 4, 12, 2, 2};

size_t pool_class_most(uint64_t pool_bytes, unsigned number)
{
    const uint64_t segment_bytes = LIMIT_SMALLEST_SEGMENT_BYTES << number, count = pool_bytes / segment_bytes;
    if (segment_bytes % (uint64_t)sysconf(_SC_PAGESIZE))
        return 0;
    if (number == CLASS_LARGE) /* but for what the small ones may have */
        return count > 0 ? count - 1 : 0;
    return count < LIMIT_POOL_FILES ? count : LIMIT_POOL_FILES;
}

uint64_t pool_whole_bytes(uint64_t size_bytes)
{
    uint64_t large = size_bytes / LIMIT_LARGE_SEGMENT_BYTES + (size_bytes % LIMIT_LARGE_SEGMENT_BYTES != 0);
    return large > 0 ? (large + 1) * LIMIT_LARGE_SEGMENT_BYTES : 0;
}

static size_t ready_of_class(uint64_t pool_bytes, unsigned number)
{
    size_t most = pool_class_most(pool_bytes, number);
    return number == CLASS_LARGE ? most : most > 0 ? ready[number] : 0;
}

static size_t ready_count(uint64_t pool_bytes)
{
    size_t count = 0;
    for (unsigned c = 0; c < POOL_CLASSES; c++)
        count += ready_of_class(pool_bytes, c);
    return count;
}

/* The class of the segment with this index among all that are made beforehand, and its index in the class. */
static unsigned ready_class(uint64_t pool_bytes, size_t *index)
{
    unsigned c = 0;
    for (size_t count; c < CLASS_LARGE && *index >= (count = ready_of_class(pool_bytes, c)); c++)
        *index -= count;
    return c;
}

size_t pool_ready_for(uint64_t size_bytes)
{
    return ready_count(pool_whole_bytes(size_bytes));
}

uint64_t pool_ready_segment_bytes(uint64_t size_bytes, size_t index)
{
    return LIMIT_SMALLEST_SEGMENT_BYTES << ready_class(pool_whole_bytes(size_bytes), &index);
}

void pool_limit_files(struct pool *pool, uint64_t most)
{
    const size_t least = pool_ready_count(pool) - pool->classes[CLASS_LARGE].count;
    most = most < LIMIT_POOL_FILES ? most : LIMIT_POOL_FILES;
    pool->files.most = most > least ? most : least;
}

size_t pool_ready_count(const struct pool *pool)
{
    return ready_count(pool->bytes.most);
}

size_t pool_first_count(const struct pool *pool)
{
    const size_t large = pool->classes[CLASS_LARGE].count;
    return pool_ready_count(pool) - large + (large < FIRST_LARGE ? large : FIRST_LARGE);
}

/* Returns a segment that is made beforehand, by its index. */
static struct segment *ready_segment(const struct pool *pool, size_t index)
{
    unsigned c = ready_class(pool->bytes.most, &index);
    return &pool->classes[c].segments[index];
}

uint64_t pool_descriptors_to_come(const struct pool *pool)
{
    uint64_t count = pool->classes[CLASS_LARGE].count + pool->files.most;
    for (size_t i = 0; i < pool_ready_count(pool); i++)
        count -= ready_segment(pool, i)->fd >= 0;
    return count;
}

/* Bytes of the memfd that have pages: all or, where some are missing, 0, since nothing tells which ones. */
static uint64_t filled_bytes(const struct segment *segment, uint64_t segment_bytes)
{
    struct stat status;
    bool all = fstat(segment->fd, &status) == 0 && (uint64_t)status.st_blocks * 512 >= segment_bytes;
    return all ? segment_bytes : 0;
}

int pool_adopt(struct pool *pool, const struct pool_keeper *keeper, const int *fds)
{
    const size_t count = pool_ready_count(pool);
    pool->keeper = keeper;
    for (size_t i = 0; i < count; i++) {
        struct segment *segment = ready_segment(pool, i);
        segment->record = &keeper->records[i];
        if (fds[i] < 0)
            continue;
        const int r = segment_map(pool, segment, fds[i]);
        if (r)
            return r;
        segment->filled_bytes = filled_bytes(segment, pool->classes[segment->class].segment_bytes);
        segment->user = atomic_load(&segment->record->user);
        segment->released = atomic_load(&segment->record->released);
        segment_count_made(pool, segment, 1);
    }
    return 0;
}

int pool_make(struct pool *pool, size_t index)
{
    struct segment *segment = ready_segment(pool, index);
    const bool had = segment->fd >= 0;
    int r;
    while ((r = segment_make(pool, segment)) > 0)
        ;
    if (had != !r)
        segment_count_made(pool, segment, r ? -1 : 1);
    return r;
}

/* The end of a process takes a third of a second for each GiB of small pages on a busy machine, and a start maps them
 * again; with large ones neither is to be noticed. Making them takes longer, which is no matter here. What a GPU has
 * pinned stays as it is. */
static bool may_collapse(const struct pool *pool, const struct segment *segment)
{
    return pool->devices->devices[0]->info.on_processor && !segment_is_small(segment) &&
           segment->collapsed_bytes < pool->classes[segment->class].segment_bytes;
}

/* True when the segment is not complete, and there is room for it. It is free: a helper may change one that is taken.
 */
static bool wants_filling(const struct pool *pool, const struct segment *segment)
{
    const uint64_t more_bytes = segment->fd < 0 ? pool->classes[segment->class].segment_bytes : 0;
    return (!segment->pinned || may_collapse(pool, segment)) && pool->made_bytes + more_bytes <= pool->bytes.most;
}

struct segment *pool_fill_begin(struct pool *pool, size_t *index)
{
    for (const size_t count = pool_ready_count(pool); *index < count; ++*index) {
        struct segment *segment = ready_segment(pool, *index);
        if (segment->taken || !wants_filling(pool, segment))
            continue;
        if (segment->fd < 0)
            segment_count_made(pool, segment, 1);
        segment_set_taken(segment, true);
        pool->filling++;
        ++*index;
        return segment;
    }
    return NULL;
}

int pool_fill(struct pool *pool, struct segment *segment)
{
    const int r = segment->pinned ? 0 : segment_make(pool, segment);
    if (r < 0 || !may_collapse(pool, segment))
        return r;
    if (segment->pinned || segment->paged_bytes >= segment->collapsed_bytes + LIMIT_UNIT_BYTES)
        segment_collapse(pool, segment);
    return r > 0 || may_collapse(pool, segment);
}

void pool_fill_end(struct pool *pool, struct segment *segment)
{
    if (segment->fd < 0)
        segment_count_made(pool, segment, -1);
    segment_set_taken(segment, false);
    pool->filling--;
}

void pool_unmake(struct pool *pool, size_t index)
{
    struct segment *segment = ready_segment(pool, index);
    segment->released |= segment->user == POOL_NOBODY; /* nobody else has it */
    segment_drop(pool, segment);
}

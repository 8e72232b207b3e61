#include "pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "pool_ready.h"
#include "segment.h"

#define DROPS 64 /* small segments in a unit */

static int class_init(struct pool_class *class, unsigned number, size_t count)
{
    const uint64_t segment_bytes = LIMIT_SMALLEST_SEGMENT_BYTES << number;
    *class = (struct pool_class){.segment_bytes = segment_bytes};
    if (count == 0)
        return 0;
    struct segment *segments = calloc(count, sizeof *segments);
    void *base = segments ? addresses_reserve(NULL, segment_bytes * count) : MAP_FAILED;
    if (base == MAP_FAILED) {
        free(segments);
        return -ENOMEM;
    }
    *class = (struct pool_class){segment_bytes, count, segments, base};
    for (size_t i = 0; i < count; i++)
        segments[i] = (struct segment){.fd = -1, .user = POOL_NOBODY, .class = (unsigned char)number};
    return 0;
}

int pool_init(struct pool *pool, const struct device_set *devices, uint64_t size_bytes)
{
    memset(pool, 0, sizeof *pool);
    pool->devices = devices;
    page_budget_init(&pool->page_budget);
    pool->bytes.most = pool_whole_bytes(size_bytes);
    pool->files.most = LIMIT_POOL_FILES;
    int r = 0;
    for (unsigned c = 0; c < POOL_CLASSES && !r; c++)
        r = class_init(&pool->classes[c], c, pool_class_most(pool->bytes.most, c));
    if (r)
        pool_finish(pool);
    return r;
}

void pool_finish(struct pool *pool)
{
    for (size_t c = 0; c < POOL_CLASSES; c++) {
        struct pool_class *class = &pool->classes[c];
        for (size_t i = 0; i < class->count; i++)
            segment_drop(pool, &class->segments[i]);
        if (class->base)
            munmap(class->base, class->count * class->segment_bytes);
        free(class->segments);
        *class = (struct pool_class){.segment_bytes = class->segment_bytes};
    }
    pool->bytes.most = 0;
}

void pool_forget(struct pool *pool)
{
    pool->keeper = NULL;
    for (size_t c = 0; c < POOL_CLASSES; c++)
        for (size_t i = 0; i < pool->classes[c].count; i++) {
            pool->classes[c].segments[i].released = false; /* what is free may be the parent's next buffer by now */
            pool->classes[c].segments[i].record = NULL;
        }
    pool_finish(pool);
}

uint64_t pool_size_bytes(const struct pool *pool)
{
    return pool->bytes.most;
}

uint64_t pool_segments_most(const struct pool *pool)
{
    return pool->classes[CLASS_LARGE].count + LIMIT_POOL_FILES;
}

/* The class of a buffer's segments, and how many it needs; fewer than the buffer's size when there are none as large.
 */
static struct pool_run run_for(const struct pool *pool, uint64_t size_bytes)
{
    unsigned c = 0;
    while (c < CLASS_LARGE && (pool->classes[c].segment_bytes < size_bytes || pool->classes[c].count == 0))
        c++;
    const uint64_t segment_bytes = pool->classes[c].segment_bytes;
    uint64_t count = size_bytes / segment_bytes + (size_bytes % segment_bytes != 0);
    return (struct pool_run){.class = (struct pool_class *)&pool->classes[c], .count = count};
}

uint64_t pool_cost_bytes(const struct pool *pool, uint64_t size_bytes)
{
    const struct pool_run run = run_for(pool, size_bytes);
    return run.count * run.class->segment_bytes;
}

uint64_t pool_largest_bytes(const struct pool *pool)
{
    const struct stock alone = {.most = pool->bytes.most};
    uint64_t large = stock_allowed(&alone, 0) / LIMIT_LARGE_SEGMENT_BYTES;
    if (large > pool->classes[CLASS_LARGE].count)
        large = pool->classes[CLASS_LARGE].count;
    const uint64_t bytes = large * LIMIT_LARGE_SEGMENT_BYTES;
    return bytes < LIMIT_HOST_BUFFER_BYTES ? bytes : LIMIT_HOST_BUFFER_BYTES;
}

/* First fit: the lowest run of free segments. */
static bool find_several(struct pool_run *run)
{
    size_t length = 0;
    for (size_t i = 0; i < run->class->count; i++) {
        length = run->class->segments[i].taken ? 0 : length + 1;
        if (length == run->count) {
            run->first = i + 1 - run->count;
            return true;
        }
    }
    return false;
}

/* Ranks a segment by how little has to be done before this user gets it. */
static int segment_rank(const struct segment *segment, uid_t user)
{
    if (!segment->pinned)
        return 2;
    return segment->user == user || segment->user == POOL_NOBODY ? 0 : 1;
}

static bool find_one(struct pool_run *run, uid_t user)
{
    int best = 3;
    for (size_t i = 0; i < run->class->count && best > 0; i++) {
        const struct segment *segment = &run->class->segments[i];
        int rank = segment->taken ? 3 : segment_rank(segment, user);
        if (rank < best) {
            best = rank;
            run->first = i;
        }
    }
    return best < 3;
}

/* The first free one from a place on, which becomes its place. */
static struct segment *find_free(const struct pool_class *class, size_t *at)
{
    for (; *at < class->count; ++*at)
        if (!class->segments[*at].taken && class->segments[*at].fd >= 0)
            return &class->segments[*at];
    return NULL;
}

/* A free segment to drop, so that bytes are there: the smallest that has them, or else the largest. `at`: for each
 * class, none before it is free. */
static struct segment *find_victim(const struct pool *pool, uint64_t bytes, bool small, size_t at[POOL_CLASSES])
{
    struct segment *found = NULL;
    for (unsigned c = 0; c < (small ? CLASS_LARGE : POOL_CLASSES); c++) {
        struct segment *segment = find_free(&pool->classes[c], &at[c]);
        if (segment)
            found = segment;
        if (found && pool->classes[c].segment_bytes >= bytes)
            break;
    }
    return found;
}

/* Counts the run's missing segments as made, and marks others to be dropped where there is no room for them. */
static bool make_room(struct pool *pool, struct pool_run *run)
{
    size_t at[POOL_CLASSES] = {0};
    for (size_t i = 0; i < run->count; i++)
        if (run_segment(run, i)->fd < 0)
            segment_count_made(pool, run_segment(run, i), 1);
    while (pool->made_bytes > pool->bytes.most || pool->made_small > pool->files.most) {
        bool bytes = pool->made_bytes > pool->bytes.most;
        struct segment *victim = find_victim(pool, bytes ? pool->made_bytes - pool->bytes.most : 0, !bytes, at);
        if (!victim)
            return false;
        segment_set_taken(victim, true);
        victim->next = run->dropped;
        run->dropped = victim;
        segment_count_made(pool, victim, -1);
    }
    return true;
}

static void run_mark(struct pool_run *run, bool taken)
{
    for (size_t i = 0; i < run->count; i++)
        segment_set_taken(run_segment(run, i), taken);
}

void pool_settle(struct pool *pool, struct pool_run *run)
{
    if (run->settled)
        return;
    run->settled = true;
    for (size_t i = 0; i < run->count; i++)
        if (run_segment(run, i)->fd < 0)
            segment_count_made(pool, run_segment(run, i), -1);
    for (struct segment *segment = run->dropped, *next; segment; segment = next) {
        next = segment->next;
        segment_set_taken(segment, false);
        if (segment->fd >= 0)
            segment_count_made(pool, segment, 1);
    }
    run->dropped = NULL;
}

static void count_taken(struct pool *pool, const struct pool_run *run, struct pool_account *account, int sign)
{
    uint64_t bytes = run->count * run->class->segment_bytes, files = segment_is_small(run->class->segments) ? 1 : 0;
    account->bytes += (uint64_t)sign * bytes;
    pool->bytes.used += (uint64_t)sign * bytes;
    account->files += (uint64_t)sign * files;
    pool->files.used += (uint64_t)sign * files;
}

static bool is_allowed(const struct pool *pool, const struct pool_run *run, const struct pool_account *account)
{
    uint64_t bytes = account->bytes + run->count * run->class->segment_bytes;
    uint64_t files = account->files + (segment_is_small(run->class->segments) ? 1 : 0);
    return bytes <= stock_allowed(&pool->bytes, account->bytes) && files <= stock_allowed(&pool->files, account->files);
}

int pool_reserve(struct pool *pool, uint64_t size_bytes, uid_t user, struct pool_account *account, struct pool_run *run)
{
    struct pool_run wanted = run_for(pool, size_bytes);
    if (size_bytes > pool_largest_bytes(pool) || wanted.count > wanted.class->count)
        return -EDQUOT;
    if (!is_allowed(pool, &wanted, account))
        return -EBUSY;
    if (wanted.count == 1 ? !find_one(&wanted, user) : !find_several(&wanted))
        return -EAGAIN;
    run_mark(&wanted, true);
    if (!make_room(pool, &wanted)) {
        pool_settle(pool, &wanted);
        run_mark(&wanted, false);
        return -EAGAIN;
    }
    count_taken(pool, &wanted, account, 1);
    *run = wanted;
    return 0;
}

static bool is_anothers(const struct segment *segment, uid_t user)
{
    return segment->fd >= 0 && segment->user != POOL_NOBODY && segment->user != user;
}

/* The first segment of the run that must be made, or made anew; NULL: none. */
static struct segment *find_needy(const struct pool_run *run, uid_t user)
{
    for (size_t i = 0; i < run->count; i++) {
        struct segment *segment = run_segment(run, i);
        if (!segment->pinned || is_anothers(segment, user))
            return segment;
    }
    return NULL;
}

bool pool_needs_renewal(const struct pool_run *run, uid_t user)
{
    return run->dropped || find_needy(run, user);
}

/* True while a segment is there that has to go for the run. */
static bool drop_some(struct pool *pool, const struct pool_run *run)
{
    unsigned count = 0;
    uint64_t bytes = 0;
    for (struct segment *segment = run->dropped; segment; segment = segment->next) {
        if (segment->fd < 0)
            continue;
        if (count == DROPS || bytes >= LIMIT_UNIT_BYTES)
            return true;
        segment_drop(pool, segment);
        bytes += pool->classes[segment->class].segment_bytes;
        count++;
    }
    return false;
}

int pool_renew(struct pool *pool, struct pool_run *run, uid_t user)
{
    if (drop_some(pool, run))
        return 1;
    struct segment *segment = find_needy(run, user);
    if (!segment)
        return 0;
    if (is_anothers(segment, user)) {
        segment_drop(pool, segment);
        if (run->class->segment_bytes > LIMIT_UNIT_BYTES)
            return 1;
    }
    int r = segment_make(pool, segment);
    return r ? r : find_needy(run, user) != NULL;
}

void pool_assign(const struct pool_run *run, uid_t user)
{
    for (size_t i = 0; i < run->count; i++)
        segment_set_user(run_segment(run, i), user);
}

void pool_give_back(struct pool *pool, struct pool_run *run, struct pool_account *account)
{
    pool_settle(pool, run);
    for (size_t i = 0; i < run->count; i++)
        segment_set_released(run_segment(run, i), run->released);
    run_mark(run, false);
    count_taken(pool, run, account, -1);
}

static void class_trim(struct pool *pool, struct pool_class *class, uint64_t keep_bytes)
{
    for (size_t i = class->count; i-- > 0 && pool->made_bytes > pool->bytes.used + keep_bytes;) {
        struct segment *segment = &class->segments[i];
        if (segment->taken || segment->fd < 0)
            continue;
        segment_drop(pool, segment);
        segment_count_made(pool, segment, -1);
    }
}

void pool_trim(struct pool *pool, uint64_t keep_bytes)
{
    for (unsigned c = POOL_CLASSES; c-- > 0;)
        class_trim(pool, &pool->classes[c], keep_bytes);
}

void *pool_run_base(const struct pool_run *run)
{
    return segment_address(run->class, run_segment(run, 0));
}

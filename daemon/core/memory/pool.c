#include "pool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/memory.h"
#include "protocol/status.h"

#define LARGE       (POOL_CLASSES - 1)
#define DROPS       64 /* small segments in a unit */
#define FIRST_LARGE 8  /* large segments that clients begin with */
/* Pages for so many bytes are made only where the system has that much: looking takes a tenth of a millisecond. */
#define CHECKED_BYTES MIB(1)
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14 */
#endif

static_assert(LIMIT_SMALLEST_SEGMENT_BYTES << LARGE == LIMIT_LARGE_SEGMENT_BYTES, "classes, each twice the one before");

/* Segments of each small class that are made beforehand, together less than a large one. */
static const size_t ready[LARGE] = {24, 4, 4, 4, 8, 4, 12, 2, 2};

/* How many segments of a class there can be. */
static size_t most_segments(uint64_t pool_bytes, unsigned number)
{
    const uint64_t segment_bytes = LIMIT_SMALLEST_SEGMENT_BYTES << number, count = pool_bytes / segment_bytes;
    if (segment_bytes % (uint64_t)sysconf(_SC_PAGESIZE))
        return 0;
    if (number == LARGE) /* but for what the small ones may have */
        return count > 0 ? count - 1 : 0;
    return count < LIMIT_POOL_FILES ? count : LIMIT_POOL_FILES;
}

/* The memory of a pool for which size_bytes were asked for: whole large segments, and one for small ones. */
static uint64_t whole_bytes(uint64_t size_bytes)
{
    uint64_t large = size_bytes / LIMIT_LARGE_SEGMENT_BYTES + (size_bytes % LIMIT_LARGE_SEGMENT_BYTES != 0);
    return large > 0 ? (large + 1) * LIMIT_LARGE_SEGMENT_BYTES : 0;
}

static size_t ready_of_class(uint64_t pool_bytes, unsigned number)
{
    size_t most = most_segments(pool_bytes, number);
    return number == LARGE ? most : most > 0 ? ready[number] : 0;
}

static size_t ready_count(uint64_t pool_bytes)
{
    size_t count = 0;
    for (unsigned c = 0; c < POOL_CLASSES; c++)
        count += ready_of_class(pool_bytes, c);
    return count;
}

/* The class of the segment with this index among those that are made beforehand, and its index there. */
static unsigned ready_class(uint64_t pool_bytes, size_t *index)
{
    unsigned c = 0;
    for (size_t count; c < LARGE && *index >= (count = ready_of_class(pool_bytes, c)); c++)
        *index -= count;
    return c;
}

size_t pool_ready_for(uint64_t size_bytes)
{
    return ready_count(whole_bytes(size_bytes));
}

uint64_t pool_ready_segment_bytes(uint64_t size_bytes, size_t index)
{
    return LIMIT_SMALLEST_SEGMENT_BYTES << ready_class(whole_bytes(size_bytes), &index);
}

static bool is_small(const struct segment *segment)
{
    return segment->class != LARGE;
}

static unsigned char *segment_address(const struct pool_class *class, const struct segment *segment)
{
    return class->base + (size_t)(segment - class->segments) * class->segment_bytes;
}

static void *reserve_addresses(void *at, uint64_t size_bytes)
{
    return mmap(at, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1, 0);
}

static int class_init(struct pool_class *class, unsigned number, size_t count)
{
    const uint64_t segment_bytes = LIMIT_SMALLEST_SEGMENT_BYTES << number;
    *class = (struct pool_class){.segment_bytes = segment_bytes};
    if (count == 0)
        return 0;
    struct segment *segments = calloc(count, sizeof *segments);
    void *base = segments ? reserve_addresses(NULL, segment_bytes * count) : MAP_FAILED;
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
    pool->bytes.most = whole_bytes(size_bytes);
    pool->files.most = LIMIT_POOL_FILES;
    int r = 0;
    for (unsigned c = 0; c < POOL_CLASSES && !r; c++)
        r = class_init(&pool->classes[c], c, most_segments(pool->bytes.most, c));
    if (r)
        pool_finish(pool);
    return r;
}

static void segment_set_user(struct segment *segment, uid_t user)
{
    segment->user = user;
    if (segment->record)
        atomic_store(&segment->record->user, user);
}

static void segment_set_taken(struct segment *segment, bool taken)
{
    segment->taken = taken;
    if (segment->record)
        atomic_store(&segment->record->taken, taken);
}

static void segment_set_released(struct segment *segment, bool released)
{
    segment->released = released;
    if (segment->record)
        atomic_store(&segment->record->released, released);
}

/* Whoever keeps it has this memory from now on; -1: none. The record describes none meanwhile. */
static void segment_keep(struct pool *pool, struct segment *segment, int fd)
{
    if (!segment->record)
        return;
    atomic_store(&segment->record->inode, 0);
    pool->keeper->keep(pool->keeper->context, (size_t)(segment->record - pool->keeper->records), fd);
}

/* The memfd, whose pages are still to come, in the segment's place. On failure it stays the caller's. */
static int segment_map(struct pool *pool, struct segment *segment, int fd)
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

/* Pages for some bytes of it, where it has none yet: a lack of memory is an error here, and not the OOM killer's. */
static int segment_fill(struct pool *pool, struct segment *segment, uint64_t bytes)
{
    struct error error;
    const uint64_t end = segment->paged_bytes + bytes;
    if (end <= segment->filled_bytes)
        return 0;
    int r = bytes >= CHECKED_BYTES ? page_budget_check(&pool->page_budget, bytes, "pool", &error) : 0;
    if (!r)
        r = memory_fill(segment->fd, segment->paged_bytes, bytes);
    if (!r)
        segment->filled_bytes = end;
    return r;
}

/* A unit of pages, present here. What is in them stays: they may be an earlier process's. */
static int segment_page(struct pool *pool, struct segment *segment)
{
    struct pool_class *class = &pool->classes[segment->class];
    uint64_t left = class->segment_bytes - segment->paged_bytes, page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t bytes = left < LIMIT_UNIT_BYTES ? left : LIMIT_UNIT_BYTES;
    unsigned char *at = segment_address(class, segment) + segment->paged_bytes;
    int r = segment_fill(pool, segment, bytes);
    if (r)
        return r;
    if (madvise(at, bytes, MADV_POPULATE_WRITE))
        for (uint64_t i = 0; i < bytes; i += page)
            __atomic_fetch_or(&at[i], 0, __ATOMIC_RELAXED);
    segment->paged_bytes += bytes;
    return 0;
}

/* Gives up its memory. Whoever released it and still has it mapped finds zeros from now on, and the pages are free; who
 * left without releasing it may still read its results. */
static void segment_drop(struct pool *pool, struct segment *segment)
{
    struct pool_class *class = &pool->classes[segment->class];
    const uint64_t size_bytes = class->segment_bytes;
    if (segment->fd < 0)
        return;
    if (segment->pinned)
        device_set_unpin(pool->devices, segment_address(class, segment), class->segment_bytes);
    segment_keep(pool, segment, -1);
    if (segment->released)
        fallocate(segment->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)size_bytes);
    reserve_addresses(segment_address(class, segment), class->segment_bytes);
    close(segment->fd);
    segment->fd = -1;
    segment->pinned = false;
    segment_set_user(segment, POOL_NOBODY);
}

/* A unit of making it: 1 while more is left, 0 or -errno. */
static int segment_make(struct pool *pool, struct segment *segment)
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

void pool_limit_files(struct pool *pool, uint64_t most)
{
    const size_t least = pool_ready_count(pool) - pool->classes[LARGE].count;
    most = most < LIMIT_POOL_FILES ? most : LIMIT_POOL_FILES;
    pool->files.most = most > least ? most : least;
}

size_t pool_ready_count(const struct pool *pool)
{
    return ready_count(pool->bytes.most);
}

size_t pool_first_count(const struct pool *pool)
{
    const size_t large = pool->classes[LARGE].count;
    return pool_ready_count(pool) - large + (large < FIRST_LARGE ? large : FIRST_LARGE);
}

/* Of those that are made beforehand. */
static struct segment *ready_segment(struct pool *pool, size_t index)
{
    unsigned c = ready_class(pool->bytes.most, &index);
    return &pool->classes[c].segments[index];
}

static void count_made(struct pool *pool, const struct segment *segment, int sign)
{
    /* Several threads fill a new pool. */
    __atomic_fetch_add(&pool->made_bytes, (uint64_t)sign * pool->classes[segment->class].segment_bytes,
                       __ATOMIC_RELAXED);
    __atomic_fetch_add(&pool->made_small, (uint64_t)(sign * is_small(segment)), __ATOMIC_RELAXED);
}

/* Pages that its memfd has already. Where it has not all of them, which ones is not known. */
static uint64_t filled_bytes(const struct segment *segment, uint64_t segment_bytes)
{
    struct stat status;
    bool all = fstat(segment->fd, &status) == 0 && (uint64_t)status.st_blocks * 512 >= segment_bytes;
    return all ? segment_bytes : 0;
}

int pool_adopt(struct pool *pool, const struct pool_keeper *keeper, const int *fds)
{
    const size_t count = pool_ready_count(pool);
    int r = 0;
    pool->keeper = keeper;
    for (size_t i = 0; i < count && !r; i++) {
        struct segment *segment = ready_segment(pool, i);
        segment->record = &keeper->records[i];
        if (fds[i] < 0)
            continue;
        r = segment_map(pool, segment, fds[i]);
        if (r)
            break;
        segment->filled_bytes = filled_bytes(segment, pool->classes[segment->class].segment_bytes);
        segment->user = atomic_load(&segment->record->user);
        segment->released = atomic_load(&segment->record->released);
        count_made(pool, segment, 1);
    }
    return r;
}

int pool_make(struct pool *pool, size_t index)
{
    struct segment *segment = ready_segment(pool, index);
    const bool had = segment->fd >= 0;
    int r;
    while ((r = segment_make(pool, segment)) > 0)
        ;
    if (had != !r)
        count_made(pool, segment, r ? -1 : 1);
    return r;
}

struct segment *pool_fill_begin(struct pool *pool, size_t *index)
{
    for (const size_t count = pool_ready_count(pool); *index < count; ++*index) {
        struct segment *segment = ready_segment(pool, *index);
        const uint64_t more_bytes = segment->fd < 0 ? pool->classes[segment->class].segment_bytes : 0;
        if (segment->taken || segment->pinned || pool->made_bytes + more_bytes > pool->bytes.most)
            continue;
        if (segment->fd < 0)
            count_made(pool, segment, 1);
        segment_set_taken(segment, true);
        ++*index;
        return segment;
    }
    return NULL;
}

int pool_fill(struct pool *pool, struct segment *segment)
{
    return segment_make(pool, segment);
}

void pool_fill_end(struct pool *pool, struct segment *segment)
{
    if (segment->fd < 0)
        count_made(pool, segment, -1);
    segment_set_taken(segment, false);
}

void pool_unmake(struct pool *pool, size_t index)
{
    struct segment *segment = ready_segment(pool, index);
    segment->released |= segment->user == POOL_NOBODY; /* nobody else has it */
    segment_drop(pool, segment);
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

uint64_t pool_size_bytes(const struct pool *pool)
{
    return pool->bytes.most;
}

uint64_t pool_segments_most(const struct pool *pool)
{
    return pool->classes[LARGE].count + LIMIT_POOL_FILES;
}

/* The class of a buffer's segments, and how many it needs; fewer than the buffer's size when there are none as large.
 */
static struct pool_run run_for(const struct pool *pool, uint64_t size_bytes)
{
    unsigned c = 0;
    while (c < LARGE && (pool->classes[c].segment_bytes < size_bytes || pool->classes[c].count == 0))
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
    if (large > pool->classes[LARGE].count)
        large = pool->classes[LARGE].count;
    return (large < LIMIT_MESSAGE_FDS ? large : LIMIT_MESSAGE_FDS) * LIMIT_LARGE_SEGMENT_BYTES;
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

/* How little has to be done before this user gets it. */
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
    for (unsigned c = 0; c < (small ? LARGE : POOL_CLASSES); c++) {
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
        if (run->class->segments[run->first + i].fd < 0)
            count_made(pool, &run->class->segments[run->first + i], 1);
    while (pool->made_bytes > pool->bytes.most || pool->made_small > pool->files.most) {
        bool bytes = pool->made_bytes > pool->bytes.most;
        struct segment *victim = find_victim(pool, bytes ? pool->made_bytes - pool->bytes.most : 0, !bytes, at);
        if (!victim)
            return false;
        segment_set_taken(victim, true);
        victim->next = run->dropped;
        run->dropped = victim;
        count_made(pool, victim, -1);
    }
    return true;
}

static void run_mark(struct pool_run *run, bool taken)
{
    for (size_t i = 0; i < run->count; i++)
        segment_set_taken(&run->class->segments[run->first + i], taken);
}

void pool_settle(struct pool *pool, struct pool_run *run)
{
    if (run->settled)
        return;
    run->settled = true;
    for (size_t i = 0; i < run->count; i++)
        if (run->class->segments[run->first + i].fd < 0)
            count_made(pool, &run->class->segments[run->first + i], -1);
    for (struct segment *segment = run->dropped, *next; segment; segment = next) {
        next = segment->next;
        segment_set_taken(segment, false);
        if (segment->fd >= 0)
            count_made(pool, segment, 1);
    }
    run->dropped = NULL;
}

static void count_taken(struct pool *pool, const struct pool_run *run, struct pool_account *account, int sign)
{
    uint64_t bytes = run->count * run->class->segment_bytes, files = is_small(run->class->segments) ? 1 : 0;
    account->bytes += (uint64_t)sign * bytes;
    pool->bytes.used += (uint64_t)sign * bytes;
    account->files += (uint64_t)sign * files;
    pool->files.used += (uint64_t)sign * files;
}

static bool is_allowed(const struct pool *pool, const struct pool_run *run, const struct pool_account *account)
{
    uint64_t bytes = account->bytes + run->count * run->class->segment_bytes;
    uint64_t files = account->files + (is_small(run->class->segments) ? 1 : 0);
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
        struct segment *segment = &run->class->segments[run->first + i];
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
        segment_set_user(&run->class->segments[run->first + i], user);
}

void pool_give_back(struct pool *pool, struct pool_run *run, struct pool_account *account)
{
    pool_settle(pool, run);
    for (size_t i = 0; i < run->count; i++)
        segment_set_released(&run->class->segments[run->first + i], run->released);
    run_mark(run, false);
    count_taken(pool, run, account, -1);
}

void *pool_run_base(const struct pool_run *run)
{
    return segment_address(run->class, &run->class->segments[run->first]);
}

/* Memory of the pool that outlives workers: the next worker finds it, and no user finds another's. */
#include "daemon/process/pool_store.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/core/memory/segment.h"
#include "daemon/process/channel.h"
#include "protocol/status.h"
#include "tests/check.h"
#include "tests/unit/device_manual.h"

#define ANNA  ((uid_t)1)
#define BERT  ((uid_t)2)
#define USERS 3
#define LARGE LIMIT_LARGE_SEGMENT_BYTES
#define PAGE  LIMIT_SMALLEST_SEGMENT_BYTES

/* A worker: a pool, and what it tells the store. */
static struct manual manual;
static const struct device_set devices = {{&manual.device}, 1};
static struct pool pool;
static struct pool_store store;
static struct pool_keeper keeper;
static struct pool_account accounts[USERS + 1];

/* Replaces a segment in the store, which is in this process, too, so the descriptor is duplicated. */
static void keep_here(void *context, size_t index, int fd)
{
    (void)context;
    pool_store_replace(&store, index, fd < 0 ? -1 : dup(fd));
}

static unsigned freed;

static void free_here(void *context, int fd, uint64_t size_bytes)
{
    (void)context;
    freed++;
    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)size_bytes);
}

static void store_begin(void)
{
    struct error error;
    CHECK_EQ(pool_store_create(&store, 2 * LARGE, &error), 0);
}

static void worker_begin(void (*keep)(void *context, size_t index, int fd))
{
    int fds[256];
    memset(accounts, 0, sizeof accounts);
    manual_init(&manual, 2, MIB(1));
    CHECK_EQ(pool_init(&pool, &devices, store.pool_bytes), 0);
    for (size_t i = 0; i < store.count; i++)
        fds[i] = store.fds[i] < 0 ? -1 : dup(store.fds[i]);
    keeper = (struct pool_keeper){store.records, keep, free_here, NULL};
    CHECK_EQ(pool_adopt(&pool, &keeper, fds), 0);
}

/* A worker is killed: nothing of it is tidied up but what the system does. */
static void worker_die(void)
{
    pool.keeper = NULL;
    for (unsigned c = 0; c < POOL_CLASSES; c++)
        for (size_t i = 0; i < pool.classes[c].count; i++) {
            pool.classes[c].segments[i].record = NULL;
            pool.classes[c].segments[i].released = false;
        }
    pool_finish(&pool);
}

static struct pool_run take(uint64_t size_bytes, uid_t user)
{
    struct pool_run run = {0};
    CHECK_EQ(pool_reserve(&pool, size_bytes, user, &accounts[user], &run), 0);
    while (pool_renew(&pool, &run, user) > 0)
        ;
    pool_assign(&run, user);
    pool_settle(&pool, &run);
    return run;
}

static struct segment *first_of(const struct pool_run *run)
{
    return &run->class->segments[run->first];
}

static void sizes_are_those_of_the_pool(void)
{
    static const uint64_t sizes[] = {0, 1, PAGE, LARGE - 1, LARGE, LARGE + 1, MIB(64), MIB(100), GIB(1), GIB(8)};
    manual_init(&manual, 2, MIB(1));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t bytes = 0;
        CHECK_EQ(pool_init(&pool, &devices, sizes[i]), 0);
        CHECK_EQ(pool_ready_for(sizes[i]), pool_ready_count(&pool));
        CHECK(pool_first_count(&pool) <= pool_ready_count(&pool));
        for (size_t index = 0; index < pool_ready_for(sizes[i]); index++)
            bytes += pool_ready_segment_bytes(sizes[i], index);
        CHECK(bytes <= pool_size_bytes(&pool));
        CHECK(bytes >= sizes[i]);
        pool_finish(&pool);
    }
}

static uint64_t store_filled_bytes(void)
{
    uint64_t bytes = 0;
    struct stat status;
    for (size_t i = 0; i < store.count; i++)
        bytes += store.fds[i] >= 0 && fstat(store.fds[i], &status) == 0 ? (uint64_t)status.st_blocks * 512 : 0;
    return bytes;
}

/* Says that no memory is available, which shows that no page is made again. */
static uint64_t nothing_available(const char **limit)
{
    *limit = "memory of a test";
    return 0;
}

static void pages_are_made_once(void)
{
    store_begin();
    CHECK_EQ(store_filled_bytes(), 0);
    worker_begin(keep_here);
    for (size_t i = 0; i < pool_ready_count(&pool); i++)
        CHECK_EQ(pool_make(&pool, i), 0);
    const uint64_t made_bytes = pool.made_bytes;
    CHECK_EQ(store_filled_bytes(), made_bytes);
    worker_die();
    CHECK_EQ(pool_store_settle(&store), 0);
    CHECK_EQ(store_filled_bytes(), made_bytes);
    worker_begin(keep_here);
    pool.page_budget.available = nothing_available;
    CHECK_EQ(pool.made_bytes, made_bytes);
    for (size_t i = 0; i < pool_ready_count(&pool); i++)
        CHECK_EQ(pool_make(&pool, i), 0);
    CHECK_EQ(pool.made_bytes, made_bytes);
    CHECK_EQ(manual.attached_bytes, made_bytes);
    worker_die();
    pool_store_destroy(&store);
}

/* A lack of memory is an error, of that segment alone, and made up for. */
static void pages_that_cannot_be_made(void)
{
    size_t index = 0;
    store_begin();
    worker_begin(keep_here);
    const uint64_t made_bytes = pool.made_bytes;
    pool.page_budget.available = nothing_available;
    CHECK_EQ(pool_make(&pool, pool_ready_count(&pool) - 1), -ENOMEM);
    CHECK_EQ(pool.made_bytes, made_bytes - LARGE);
    CHECK_EQ(store.fds[store.count - 1], -1);
    page_budget_init(&pool.page_budget);
    for (struct segment *segment; (segment = pool_fill_begin(&pool, &index));) {
        while (pool_fill(&pool, segment) > 0)
            ;
        pool_fill_end(&pool, segment);
    }
    CHECK_EQ(pool.made_bytes, made_bytes);
    CHECK_EQ(manual.attached_bytes, made_bytes);
    CHECK(store.fds[store.count - 1] >= 0);
    worker_die();
    pool_store_destroy(&store);
}

/* Large segments get large pages where threads compute, behind clients' backs, also segments that are made already.
 * Their contents stay. */
static void large_pages(void)
{
    size_t index = 0, large = 0;
    store_begin();
    worker_begin(keep_here);
    manual.device.info.on_processor = true;
    struct pool_run run = take(LARGE, ANNA);
    memset(pool_run_base(&run), 0xaa, LARGE);
    pool_give_back(&pool, &run, &accounts[ANNA]);
    const uint64_t made_bytes = pool.made_bytes;
    for (struct segment *segment; (segment = pool_fill_begin(&pool, &index));) {
        CHECK(segment->taken);
        unsigned units = 1;
        while (pool_fill(&pool, segment) > 0)
            units++;
        pool_fill_end(&pool, segment);
        if (segment_is_small(segment))
            continue;
        CHECK_EQ(units, LARGE / LIMIT_UNIT_BYTES);
        CHECK_EQ(segment->collapsed_bytes, LARGE);
        large++;
    }
    CHECK_EQ(large, pool.classes[CLASS_LARGE].count);
    CHECK_EQ(pool.made_bytes, made_bytes);
    run = take(LARGE, ANNA);
    const unsigned char *memory = pool_run_base(&run);
    CHECK(memory[0] == 0xaa && memcmp(memory, memory + 1, LARGE - 1) == 0);
    pool_give_back(&pool, &run, &accounts[ANNA]);
    worker_die();
    pool_store_destroy(&store);
}

/* Memory that a user gave back is there for the same user as it was, and for another user as zeros. */
static void free_memory_stays_its_users(void)
{
    for (uid_t next = ANNA; next <= BERT; next++) {
        store_begin();
        worker_begin(keep_here);
        struct pool_run run = take(LARGE, ANNA);
        memset(pool_run_base(&run), 0xaa, LARGE);
        ino_t inode = first_of(&run)->file.inode;
        pool_give_back(&pool, &run, &accounts[ANNA]);
        worker_die();
        CHECK_EQ(pool_store_settle(&store), 0);
        worker_begin(keep_here);
        run = take(LARGE, next);
        const unsigned char *bytes = pool_run_base(&run);
        CHECK_EQ(first_of(&run)->file.inode == inode, next == ANNA);
        CHECK_EQ(bytes[0], next == ANNA ? 0xaa : 0);
        CHECK_EQ(bytes[LARGE - 1], next == ANNA ? 0xaa : 0);
        worker_die();
        pool_store_destroy(&store);
    }
}

/* A client may keep what it has released, and hold up who frees it: that is the keeper's affair. */
static void released_memory_is_freed_by_its_keeper(void)
{
    store_begin();
    worker_begin(keep_here);
    struct pool_run run = take(LARGE, ANNA);
    const int kept = dup(first_of(&run)->fd);
    struct stat status = {0};
    run.released = true;
    pool_give_back(&pool, &run, &accounts[ANNA]);
    freed = 0;
    take(LARGE, BERT);
    CHECK_EQ(freed, 1);
    CHECK_EQ(fstat(kept, &status), 0);
    CHECK_EQ(status.st_blocks, 0);
    close(kept);
    worker_die();
    pool_store_destroy(&store);
}

/* A client may go on with it at the next worker: it is that client's alone, not even another's of the same user. */
static void taken_memory_leaves_the_pool(void)
{
    store_begin();
    worker_begin(keep_here);
    struct pool_run run = take(2 * LARGE, ANNA);
    memset(pool_run_base(&run), 0xaa, 2 * LARGE);
    int held = dup(first_of(&run)->fd);
    ino_t inode = first_of(&run)->file.inode;
    worker_die();
    CHECK_EQ(pool_store_settle(&store), 2);
    CHECK_EQ(pool_store_settle(&store), 0);
    worker_begin(keep_here);
    run = take(2 * LARGE, ANNA);
    CHECK(first_of(&run)->file.inode != inode);
    CHECK_EQ(*(unsigned char *)pool_run_base(&run), 0);
    unsigned char byte = 0;
    CHECK_EQ(pread(held, &byte, 1, LARGE - 1), 1);
    CHECK_EQ(byte, 0xaa);
    close(held);
    worker_die();
    pool_store_destroy(&store);
}

/* Keeps nothing: the store does not hear that a segment was made anew. Neither memory, the old nor the new, is taken
 * for the other. */
static void keep_nothing(void *context, size_t index, int fd)
{
    (void)context, (void)index, (void)fd;
}

static void what_the_records_do_not_describe_goes(void)
{
    store_begin();
    worker_begin(keep_nothing);
    struct pool_run run = take(LARGE, ANNA);
    memset(pool_run_base(&run), 0xaa, LARGE);
    pool_give_back(&pool, &run, &accounts[ANNA]);
    run = take(LARGE, BERT);
    pool_give_back(&pool, &run, &accounts[BERT]);
    worker_die();
    CHECK_EQ(pool_store_settle(&store), 1);
    worker_begin(keep_nothing);
    run = take(LARGE, BERT);
    CHECK_EQ(*(unsigned char *)pool_run_base(&run), 0);
    worker_die();
    pool_store_destroy(&store);
}

/*
 * Workers that are killed at any moment.
 */

static struct found {
    atomic_uint steps, foreign; /* bytes of another user */
} * found;
static struct channel channel;

static void keep_there(void *context, size_t index, int fd)
{
    (void)context;
    channel_send(channel.worker_fd, &(struct channel_message){CHANNEL_SEGMENT, index, fd});
}

/* A user takes memory, which has to be zero or its own, marks it as its own, and perhaps gives it back. */
static void step(uint64_t *seed)
{
    static struct pool_run runs[USERS + 1][4];
    const uint64_t choice = random_next(seed);
    const uid_t user = ANNA + (uid_t)(choice % USERS);
    struct pool_run *run = &runs[user][choice >> 8 & 3];
    const uint64_t size_bytes = choice >> 16 & 1 ? PAGE << (choice >> 20 & 7) : LARGE;
    if (run->class) {
        run->released = choice >> 17 & 1;
        pool_give_back(&pool, run, &accounts[user]);
        run->class = NULL;
        return;
    }
    if (pool_reserve(&pool, size_bytes, user, &accounts[user], run)) {
        run->class = NULL;
        return;
    }
    while (pool_renew(&pool, run, user) > 0)
        ;
    pool_assign(run, user);
    pool_settle(&pool, run);
    unsigned char *bytes = pool_run_base(run);
    for (uint64_t i = 0; i < size_bytes; i += PAGE) {
        if (bytes[i] != 0 && bytes[i] != (unsigned char)user)
            atomic_fetch_add(&found->foreign, 1);
        bytes[i] = (unsigned char)user;
    }
    atomic_fetch_add(&found->steps, 1);
}

/* A worker in a process of its own, killed after some of its messages. */
static void live_and_die(uint64_t *seed)
{
    struct channel_message message;
    uint64_t own_seed = random_next(seed), messages = random_next(seed) % 40, us = random_next(seed) % 3000;
    REQUIRE(channel_open(&channel) == 0);
    pid_t worker = fork();
    if (worker == 0) {
        worker_begin(keep_there);
        for (;;)
            step(&own_seed);
    }
    close(channel.worker_fd);
    channel.worker_fd = -1;
    while (messages > 0)
        if (channel_receive(channel.supervisor_fd, &message) > 0) {
            pool_store_replace(&store, message.index, message.fd);
            messages--;
        }
    usleep((useconds_t)us);
    kill(worker, SIGKILL);
    waitpid(worker, NULL, 0);
    while (channel_receive(channel.supervisor_fd, &message) > 0)
        pool_store_replace(&store, message.index, message.fd);
    channel_close(&channel);
    pool_store_settle(&store);
}

static void killed_at_any_moment(void)
{
    uint64_t seed = random_seed();
    found = mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    store_begin();
    for (int i = 0; i < 40; i++)
        live_and_die(&seed);
    CHECK_EQ(atomic_load(&found->foreign), 0);
    CHECK(atomic_load(&found->steps) > 40);
    pool_store_destroy(&store);
}

static void no_more_than_there_is(void)
{
    struct error error;
    CHECK_EQ(pool_store_create(&store, GIB(256) * 1024, &error), -ENOMEM);
    CHECK_CONTAINS(error.message, "give a smaller --pool");
    CHECK_EQ(pool_store_create(&store, 0, &error), 0);
    CHECK_EQ(pool_store_settle(&store), 0);
    pool_store_replace(&store, 5, dup(0)); /* an index that there is not */
    pool_store_destroy(&store);
}

static const struct test tests[] = {
    TEST(sizes_are_those_of_the_pool),
    TEST(pages_are_made_once),
    TEST(pages_that_cannot_be_made),
    TEST(large_pages),
    TEST(free_memory_stays_its_users),
    TEST(released_memory_is_freed_by_its_keeper),
    TEST(taken_memory_leaves_the_pool),
    TEST(what_the_records_do_not_describe_goes),
    TEST(killed_at_any_moment),
    TEST(no_more_than_there_is),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

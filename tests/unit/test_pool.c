/* The pool: what is taken, what is free, whose it was; and what a failed device leaves behind. */
#include "daemon/core/memory/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/unit/device_manual.h"

#define ANNA ((uid_t)1000)
#define BERT ((uid_t)1001)

static struct manual manual;
static const struct device_set devices = {{&manual.device}, 1};
static struct pool pool;
static struct pool_account anna, bert;

#define SMALLEST LIMIT_SMALLEST_SEGMENT_BYTES
#define LARGE    LIMIT_LARGE_SEGMENT_BYTES

/* A pool of `large` large segments, none of them made. */
static void pool_begin(uint64_t large)
{
    anna = bert = (struct pool_account){0};
    manual_init(&manual, 2, MIB(1));
    CHECK_EQ(pool_init(&pool, &devices, large * LARGE), 0);
}

static void pool_end(void)
{
    pool_finish(&pool);
    CHECK_EQ(manual.attached_bytes, 0);
    CHECK_EQ(manual.attached_count, 0);
}

static struct pool_run take(uint64_t size_bytes)
{
    struct pool_run run = {0};
    CHECK_EQ(pool_reserve(&pool, size_bytes, ANNA, &anna, &run), 0);
    return run;
}

static void give_back(struct pool_run *run)
{
    pool_give_back(&pool, run, &anna);
}

/* All of it. */
static int renew(struct pool_run *run, uid_t user)
{
    int r;
    while ((r = pool_renew(&pool, run, user)) > 0)
        ;
    return r;
}

static int fd_of(const struct pool_run *run, size_t i)
{
    return run->class->segments[run->first + i].fd;
}

static ino_t inode_of(const struct pool_run *run, size_t i)
{
    struct stat status = {0};
    CHECK_EQ(fstat(fd_of(run, i), &status), 0);
    return status.st_ino;
}

static bool all_are(const unsigned char *bytes, size_t count, unsigned char value)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

static void sizes_of_pools(void)
{
    struct pool_run run;
    pool_begin(0);
    CHECK_EQ(pool_size_bytes(&pool), 0);
    CHECK_EQ(pool_ready_count(&pool), 0);
    CHECK_EQ(pool_largest_bytes(&pool), 0);
    CHECK_EQ(pool_reserve(&pool, 1, ANNA, &anna, &run), -EDQUOT);
    pool_end();
    CHECK_EQ(pool_init(&pool, &devices, LARGE + 1), 0);
    CHECK_EQ(pool_size_bytes(&pool), 3 * LARGE);
    CHECK_EQ(pool_largest_bytes(&pool), 2 * LARGE);
    pool_end();
}

static void addresses_run_out(void)
{
    manual_init(&manual, 2, MIB(1));
    CHECK_EQ(pool_init(&pool, &devices, UINT64_C(1) << 47), -ENOMEM);
    CHECK_EQ(pool_ready_count(&pool), 0);
}

/* Segments made beforehand fit the pool, and are large for the most part. */
static void what_is_ready(void)
{
    pool_begin(1);
    for (size_t i = 0; i < pool_ready_count(&pool); i++)
        CHECK_EQ(pool_make(&pool, i), 0);
    CHECK_EQ(pool.made_bytes, manual.attached_bytes);
    CHECK(pool.made_bytes > LARGE && pool.made_bytes <= 2 * LARGE);
    CHECK_EQ(pool.made_small, pool_ready_count(&pool) - 1);
    pool_end();
}

/* Each of what was made beforehand can be freed by itself, once, before the rest is. */
static void what_was_ready_is_freed(void)
{
    pool_begin(3);
    const size_t count = pool_ready_count(&pool);
    for (size_t i = 0; i < count; i++)
        CHECK_EQ(pool_make(&pool, i), 0);
    uint64_t attached_bytes = manual.attached_bytes;
    pool_unmake(&pool, count - 1);
    pool_unmake(&pool, count - 1);
    CHECK_EQ(manual.attached_bytes, attached_bytes - LARGE);
    CHECK_EQ(pool_ready_count(&pool), count);
    for (size_t i = 0; i < count; i++)
        pool_unmake(&pool, i);
    CHECK_EQ(manual.attached_bytes, 0);
    pool_end();
}

static void segments_are_sealed_and_attached(void)
{
    pool_begin(1);
    CHECK_EQ(pool_make(&pool, 0), 0);
    CHECK_EQ(pool_make(&pool, pool_ready_count(&pool) - 1), 0);
    CHECK_EQ(manual.attached_bytes, SMALLEST + LARGE);
    struct pool_run run = take(1);
    CHECK_EQ(run.count, 1);
    CHECK(!pool_needs_renewal(&run, ANNA));
    CHECK_EQ(fcntl(fd_of(&run, 0), F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    CHECK(all_are(pool_run_base(&run), SMALLEST, 0));
    pool_end();
}

/* One segment, of at most twice the size or a page; above the largest class several of that. */
static void a_buffer_costs_at_most_twice_its_size(void)
{
    pool_begin(3);
    for (uint64_t size = 1; size <= LARGE; size = size + size / 3 + 1) {
        struct pool_run run = take(size);
        uint64_t cost = run.count * run.class->segment_bytes;
        CHECK_EQ(run.count, 1);
        CHECK(cost >= size && (cost < 2 * size || cost == SMALLEST));
        CHECK_EQ(cost, pool_cost_bytes(&pool, size));
        CHECK_EQ(anna.bytes, cost);
        give_back(&run);
    }
    struct pool_run two = take(LARGE + 1);
    CHECK_EQ(two.count, 2);
    CHECK_EQ(two.class->segment_bytes, LARGE);
    CHECK_EQ(anna.bytes, 2 * LARGE);
    pool_end();
}

static void full_or_too_small(void)
{
    struct pool_run run;
    pool_begin(2);
    CHECK_EQ(pool_reserve(&pool, 2 * LARGE + 1, ANNA, &anna, &run), -EDQUOT);
    CHECK_EQ(pool_reserve(&pool, UINT64_MAX, ANNA, &anna, &run), -EDQUOT);
    struct pool_run all = take(2 * LARGE);
    CHECK_EQ(pool_reserve(&pool, LARGE, BERT, &bert, &run), -EBUSY);
    give_back(&all);
    take(LARGE);
    pool_end();
}

/* No buffer has more segments than one message carries descriptors. */
static void as_long_as_a_message(void)
{
    struct pool_run run;
    pool_begin(LIMIT_MESSAGE_FDS * 8 / 7);
    CHECK_EQ(pool_largest_bytes(&pool), LIMIT_HOST_BUFFER_BYTES);
    CHECK_EQ(pool_reserve(&pool, LIMIT_HOST_BUFFER_BYTES + 1, ANNA, &anna, &run), -EDQUOT);
    run = take(LIMIT_HOST_BUFFER_BYTES);
    CHECK_EQ(run.count, LIMIT_MESSAGE_FDS);
    pool_end();
}

static void first_fit_among_gaps(void)
{
    struct pool_run runs[4], two;
    pool_begin(4);
    for (int i = 0; i < 4; i++)
        runs[i] = take(LARGE);
    give_back(&runs[0]);
    give_back(&runs[2]);
    CHECK_EQ(pool_reserve(&pool, 2 * LARGE, ANNA, &anna, &two), -EAGAIN);
    give_back(&runs[1]);
    CHECK_EQ(pool_reserve(&pool, 2 * LARGE, ANNA, &anna, &two), 0);
    CHECK_EQ(two.first, 0);
    CHECK_EQ(take(LARGE).first, 2);
    pool_end();
}

/*
 * Shares.
 */

/* Allocates as many buffers of a size as the pool gives. Returns how many. */
static unsigned take_all(uint64_t size_bytes)
{
    struct pool_run run;
    unsigned count = 0;
    while (pool_reserve(&pool, size_bytes, ANNA, &anna, &run) == 0)
        count++;
    return count;
}

/* Another user gets a buffer, and a third one, too, however large and many the buffers of one user are. */
static void something_is_left_for_others(void)
{
    static const uint64_t sizes[] = {8, 5000, 300000, MIB(1), MIB(9), LARGE};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct pool_run run;
        struct pool_account carl = {0};
        pool_begin(63); /* the standard pool */
        CHECK(take_all(sizes[i]) >= 50);
        CHECK(anna.bytes <= pool_size_bytes(&pool) / 8 * 7);
        CHECK(anna.files <= LIMIT_POOL_FILES / 8 * 7);
        CHECK_EQ(pool_reserve(&pool, MIB(64), BERT, &bert, &run), 0);
        CHECK_EQ(pool_reserve(&pool, 4096, BERT, &bert, &run), 0);
        CHECK_EQ(pool_reserve(&pool, 4096, BERT + 1, &carl, &run), 0);
        pool_end();
    }
}

/* Few small segments are made where few descriptors may be open: free ones go where others are needed. */
static void few_descriptors(void)
{
    struct pool_run run;
    pool_begin(2);
    pool_limit_files(&pool, 80);
    for (size_t i = 0; i < pool_ready_count(&pool); i++)
        CHECK_EQ(pool_make(&pool, i), 0);
    CHECK_EQ(take_all(4096), 70);
    CHECK_EQ(pool_reserve(&pool, 4096, BERT, &bert, &run), 0);
    CHECK(pool.made_small <= 80);
    pool_end();
}

/* Small buffers take little of the standard pool: 64 buffers of 300 KB and 128 of 8 bytes took all of it once. */
static void small_buffers_take_little(void)
{
    pool_begin(63);
    for (int i = 0; i < 64; i++)
        take(300000);
    for (int i = 0; i < 128; i++)
        take(8);
    CHECK_EQ(anna.bytes, 64 * KIB(512) + 128 * KIB(4));
    pool_end();
}

/*
 * Segments of one class make room for another's.
 */

static void make_all(struct pool_run *run)
{
    CHECK_EQ(renew(run, ANNA), 0);
    CHECK(!pool_needs_renewal(run, ANNA) || run->dropped);
    pool_assign(run, ANNA);
    pool_settle(&pool, run);
    CHECK(!pool_needs_renewal(run, ANNA));
}

/* The pool never has more memory than its size, whatever is asked for in turn. */
static void classes_make_room_for_each_other(void)
{
    pool_begin(2);
    for (size_t i = 0; i < pool_ready_count(&pool); i++)
        CHECK_EQ(pool_make(&pool, i), 0);
    for (int round = 0; round < 3; round++) {
        struct pool_run large = take(2 * LARGE);
        make_all(&large);
        CHECK_EQ(manual.attached_bytes, pool.made_bytes);
        CHECK(pool.made_bytes <= pool_size_bytes(&pool));
        give_back(&large);
        struct pool_run runs[40];
        for (int i = 0; i < 40; i++) {
            runs[i] = take(MIB(1));
            make_all(&runs[i]);
            CHECK(pool.made_bytes <= pool_size_bytes(&pool));
            memset(pool_run_base(&runs[i]), 1, MIB(1));
        }
        CHECK_EQ(manual.attached_bytes, pool.made_bytes);
        for (int i = 0; i < 40; i++)
            give_back(&runs[i]);
    }
    pool_end();
}

/* A client that goes at any moment of the making leaves everything as it was, or as it has become. */
static void given_back_at_any_moment(void)
{
    for (int units = 0; units < 12; units++) {
        pool_begin(2);
        for (size_t i = 0; i < pool_ready_count(&pool); i++)
            CHECK_EQ(pool_make(&pool, i), 0);
        struct pool_run small[30];
        for (int i = 0; i < 30; i++) {
            small[i] = take(MIB(1));
            make_all(&small[i]);
        }
        for (int i = 0; i < 30; i++)
            give_back(&small[i]);
        struct pool_run large = take(2 * LARGE);
        for (int i = 0; i < units; i++)
            pool_renew(&pool, &large, BERT);
        give_back(&large);
        CHECK_EQ(anna.bytes, 0);
        CHECK(pool.made_bytes <= pool_size_bytes(&pool));
        large = take(2 * LARGE);
        make_all(&large);
        CHECK_EQ(manual.attached_bytes, pool.made_bytes);
        pool_end();
    }
}

/* No unit makes or drops more than it should. */
static void renewal_is_cut(void)
{
    pool_begin(2);
    struct pool_run run = take(2 * LARGE);
    int units = 1;
    while (pool_renew(&pool, &run, ANNA) > 0)
        units++;
    CHECK_EQ(units, 2 * LARGE / LIMIT_UNIT_BYTES);
    pool_end();
}

/*
 * Memory that passes on.
 */

static void the_same_user_gets_it_as_it_is(void)
{
    pool_begin(1);
    CHECK_EQ(pool_make(&pool, 0), 0);
    struct pool_run run = take(1);
    pool_assign(&run, ANNA);
    ino_t before = inode_of(&run, 0);
    memset(pool_run_base(&run), 0xaa, SMALLEST);
    give_back(&run);
    run = take(1);
    CHECK(!pool_needs_renewal(&run, ANNA));
    CHECK(inode_of(&run, 0) == before);
    CHECK(all_are(pool_run_base(&run), SMALLEST, 0xaa));
    pool_end();
}

static void another_user_gets_another_file(void)
{
    for (int released = 0; released < 2; released++) {
        pool_begin(1);
        CHECK_EQ(pool_make(&pool, 0), 0);
        struct pool_run run = take(1);
        pool_assign(&run, ANNA);
        memset(pool_run_base(&run), 0xaa, SMALLEST);
        ino_t before = inode_of(&run, 0);
        int kept = dup(fd_of(&run, 0)); /* as Anna may */
        run.released = released;
        give_back(&run);
        run = take(1);
        CHECK(pool_needs_renewal(&run, BERT));
        CHECK_EQ(renew(&run, BERT), 0);
        pool_assign(&run, BERT);
        CHECK(inode_of(&run, 0) != before);
        CHECK(all_are(pool_run_base(&run), SMALLEST, 0));
        unsigned char left = 0;
        CHECK_EQ(pread(kept, &left, 1, 0), 1);
        CHECK_EQ(left, released ? 0 : 0xaa); /* what she was done with takes no memory any more */
        close(kept);
        CHECK_EQ(manual.attached_bytes, SMALLEST);
        pool_end();
    }
}

/* The segments of a run that nobody else had stay; only those of another user are renewed. */
static void only_what_was_anothers_is_renewed(void)
{
    pool_begin(2);
    CHECK_EQ(pool_make(&pool, pool_ready_count(&pool) - 2), 0);
    CHECK_EQ(pool_make(&pool, pool_ready_count(&pool) - 1), 0);
    struct pool_run run = take(LARGE);
    pool_assign(&run, ANNA);
    give_back(&run);
    run = take(2 * LARGE);
    ino_t first = inode_of(&run, 0), second = inode_of(&run, 1);
    CHECK(pool_needs_renewal(&run, BERT));
    CHECK_EQ(renew(&run, BERT), 0);
    CHECK(inode_of(&run, 0) != first);
    CHECK(inode_of(&run, 1) == second);
    pool_end();
}

static void missing_segments_are_made_when_needed(void)
{
    pool_begin(1);
    struct pool_run run = take(1);
    CHECK(pool_needs_renewal(&run, ANNA));
    CHECK_EQ(renew(&run, ANNA), 0);
    CHECK(!pool_needs_renewal(&run, ANNA));
    CHECK(all_are(pool_run_base(&run), SMALLEST, 0));
    pool_end();
}

/* Fails the n-th attach of a renewal, n = 1, 2, ...: a clean error each time, never another user's memory, no leak. */
static void renewal_fails_at_every_attach(void)
{
    for (unsigned n = 1; n <= 4; n++) {
        pool_begin(3);
        struct pool_run run = take(3 * LARGE);
        CHECK_EQ(renew(&run, ANNA), 0);
        pool_assign(&run, ANNA);
        manual_fail(&manual, MANUAL_ATTACH, n, -ENOMEM);
        int r = renew(&run, BERT);
        CHECK_EQ(r, n <= 3 ? -ENOMEM : 0);
        CHECK_EQ(pool_needs_renewal(&run, BERT), n <= 3);
        give_back(&run);
        manual_fail(&manual, MANUAL_ATTACH, 0, 0);
        run = take(3 * LARGE);
        CHECK_EQ(renew(&run, BERT), 0);
        CHECK(all_are(pool_run_base(&run), 3 * LARGE, 0));
        CHECK_EQ(manual.attached_bytes, 3 * LARGE);
        pool_end();
    }
}

static void making_fails_and_is_made_up_for(void)
{
    pool_begin(1);
    manual_fail(&manual, MANUAL_ATTACH, 1, -EIO);
    CHECK_EQ(pool_make(&pool, 0), -EIO);
    CHECK_EQ(manual.attached_bytes, 0);
    struct pool_run run = take(1);
    CHECK(pool_needs_renewal(&run, ANNA));
    CHECK_EQ(renew(&run, ANNA), 0);
    pool_end();
}

static void trimmed(void)
{
    pool_begin(8);
    struct pool_run kept = take(LARGE), runs[3];
    CHECK_EQ(renew(&kept, ANNA), 0);
    for (int i = 0; i < 3; i++) {
        runs[i] = take(i == 2 ? SMALLEST : LARGE);
        CHECK_EQ(renew(&runs[i], ANNA), 0);
    }
    pool_trim(&pool, 0); /* nothing is free */
    CHECK_EQ(pool.made_bytes, 3 * LARGE + SMALLEST);
    for (int i = 0; i < 3; i++)
        give_back(&runs[i]);
    pool_trim(&pool, 2 * LARGE + SMALLEST);
    CHECK_EQ(pool.made_bytes, 3 * LARGE + SMALLEST);
    pool_trim(&pool, LARGE + SMALLEST);
    CHECK_EQ(pool.made_bytes, 2 * LARGE + SMALLEST);
    pool_trim(&pool, 0);
    CHECK_EQ(pool.made_bytes, LARGE);
    CHECK(fd_of(&kept, 0) >= 0);
    CHECK_EQ(manual.attached_bytes, LARGE);
    runs[0] = take(2 * LARGE); /* made anew */
    CHECK_EQ(renew(&runs[0], ANNA), 0);
    give_back(&runs[0]);
    give_back(&kept);
    pool_end();
}

static const struct test tests[] = {
    TEST(sizes_of_pools),
    TEST(addresses_run_out),
    TEST(segments_are_sealed_and_attached),
    TEST(what_is_ready),
    TEST(what_was_ready_is_freed),
    TEST(a_buffer_costs_at_most_twice_its_size),
    TEST(full_or_too_small),
    TEST(as_long_as_a_message),
    TEST(first_fit_among_gaps),
    TEST(something_is_left_for_others),
    TEST(few_descriptors),
    TEST(small_buffers_take_little),
    TEST(classes_make_room_for_each_other),
    TEST(given_back_at_any_moment),
    TEST(renewal_is_cut),
    TEST(the_same_user_gets_it_as_it_is),
    TEST(another_user_gets_another_file),
    TEST(only_what_was_anothers_is_renewed),
    TEST(missing_segments_are_made_when_needed),
    TEST(renewal_fails_at_every_attach),
    TEST(making_fails_and_is_made_up_for),
    TEST(trimmed),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

/* The pool: what is taken, what is free, whose it was; and what a failed device leaves behind. */
#include "daemon/logic/pool.h"

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

/* A pool of `large` large segments and all small ones, none of them made. */
static void pool_begin(uint64_t large)
{
    manual_init(&manual, 2, MIB(1));
    CHECK_EQ(pool_init(&pool, &devices, large * LIMIT_LARGE_SEGMENT_BYTES), 0);
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
    CHECK_EQ(pool_take(&pool, size_bytes, &run), 0);
    return run;
}

/* All of it. */
static int renew(const struct pool_run *run, uid_t user)
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
    pool_begin(0);
    CHECK_EQ(pool_size_bytes(&pool), 0);
    CHECK_EQ(pool_segment_count(&pool), 0);
    struct pool_run run;
    CHECK_EQ(pool_take(&pool, 1, &run), -EDQUOT);
    pool_end();
    CHECK_EQ(pool_init(&pool, &devices, LIMIT_LARGE_SEGMENT_BYTES + 1), 0);
    CHECK_EQ(pool_segment_count(&pool), LIMIT_SMALL_SEGMENTS + 2);
    CHECK_EQ(pool_size_bytes(&pool), LIMIT_SMALL_SEGMENTS * LIMIT_SMALL_SEGMENT_BYTES + 2 * LIMIT_LARGE_SEGMENT_BYTES);
    pool_end();
}

static void addresses_run_out(void)
{
    manual_init(&manual, 2, MIB(1));
    CHECK_EQ(pool_init(&pool, &devices, UINT64_C(1) << 47), -ENOMEM);
    CHECK_EQ(pool_segment_count(&pool), 0);
}

static void segments_are_sealed_and_attached(void)
{
    pool_begin(1);
    CHECK_EQ(pool_make(&pool, 0), 0);
    CHECK_EQ(pool_make(&pool, LIMIT_SMALL_SEGMENTS), 0);
    CHECK_EQ(manual.attached_bytes, LIMIT_SMALL_SEGMENT_BYTES + LIMIT_LARGE_SEGMENT_BYTES);
    struct pool_run run = take(1);
    CHECK_EQ(run.count, 1);
    CHECK(!pool_needs_renewal(&run, ANNA));
    CHECK_EQ(fcntl(fd_of(&run, 0), F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    CHECK(all_are(pool_run_base(&run), LIMIT_SMALL_SEGMENT_BYTES, 0));
    pool_end();
}

static void sizes_choose_a_class(void)
{
    pool_begin(3);
    struct pool_run small = take(LIMIT_SMALL_SEGMENT_BYTES), one = take(LIMIT_SMALL_SEGMENT_BYTES + 1);
    struct pool_run two = take(LIMIT_LARGE_SEGMENT_BYTES + 1);
    CHECK_EQ(small.class->segment_bytes, LIMIT_SMALL_SEGMENT_BYTES);
    CHECK_EQ(one.class->segment_bytes, LIMIT_LARGE_SEGMENT_BYTES);
    CHECK_EQ(one.count, 1);
    CHECK_EQ(two.count, 2);
    CHECK((unsigned char *)pool_run_base(&two) == (unsigned char *)pool_run_base(&one) + LIMIT_LARGE_SEGMENT_BYTES);
    pool_end();
}

static void small_ones_overflow_into_large(void)
{
    struct pool_run run;
    pool_begin(1);
    for (int i = 0; i < LIMIT_SMALL_SEGMENTS; i++)
        run = take(1);
    CHECK_EQ(run.class->segment_bytes, LIMIT_SMALL_SEGMENT_BYTES);
    run = take(1);
    CHECK_EQ(run.class->segment_bytes, LIMIT_LARGE_SEGMENT_BYTES);
    CHECK_EQ(pool_take(&pool, 1, &run), -EAGAIN);
    pool_end();
}

static void full_or_too_small(void)
{
    struct pool_run run;
    pool_begin(2);
    CHECK_EQ(pool_take(&pool, 2 * LIMIT_LARGE_SEGMENT_BYTES + 1, &run), -EDQUOT);
    CHECK_EQ(pool_take(&pool, UINT64_MAX, &run), -EDQUOT);
    struct pool_run all = take(2 * LIMIT_LARGE_SEGMENT_BYTES);
    CHECK_EQ(pool_take(&pool, LIMIT_LARGE_SEGMENT_BYTES, &run), -EAGAIN);
    pool_give_back(&all);
    take(LIMIT_LARGE_SEGMENT_BYTES);
    pool_end();
}

/* No buffer has more segments than one message carries descriptors. */
static void as_long_as_a_message(void)
{
    struct pool_run run;
    pool_begin(LIMIT_MESSAGE_FDS + 1);
    CHECK_EQ(pool_take(&pool, LIMIT_HOST_BUFFER_BYTES + 1, &run), -EDQUOT);
    run = take(LIMIT_HOST_BUFFER_BYTES);
    CHECK_EQ(run.count, LIMIT_MESSAGE_FDS);
    pool_end();
}

static void first_fit_among_gaps(void)
{
    struct pool_run runs[4], two;
    pool_begin(4);
    for (int i = 0; i < 4; i++)
        runs[i] = take(LIMIT_LARGE_SEGMENT_BYTES);
    pool_give_back(&runs[0]);
    pool_give_back(&runs[2]);
    CHECK_EQ(pool_take(&pool, 2 * LIMIT_LARGE_SEGMENT_BYTES, &two), -EAGAIN);
    pool_give_back(&runs[1]);
    CHECK_EQ(pool_take(&pool, 2 * LIMIT_LARGE_SEGMENT_BYTES, &two), 0);
    CHECK_EQ(two.first, 0);
    CHECK_EQ(take(LIMIT_LARGE_SEGMENT_BYTES).first, 2);
    pool_end();
}

static void the_same_user_gets_it_as_it_is(void)
{
    pool_begin(1);
    CHECK_EQ(pool_make(&pool, 0), 0);
    struct pool_run run = take(1);
    pool_assign(&run, ANNA);
    ino_t before = inode_of(&run, 0);
    memset(pool_run_base(&run), 0xaa, LIMIT_SMALL_SEGMENT_BYTES);
    pool_give_back(&run);
    run = take(1);
    CHECK(!pool_needs_renewal(&run, ANNA));
    CHECK(inode_of(&run, 0) == before);
    CHECK(all_are(pool_run_base(&run), LIMIT_SMALL_SEGMENT_BYTES, 0xaa));
    pool_end();
}

static void another_user_gets_another_file(void)
{
    pool_begin(1);
    CHECK_EQ(pool_make(&pool, 0), 0);
    struct pool_run run = take(1);
    pool_assign(&run, ANNA);
    memset(pool_run_base(&run), 0xaa, LIMIT_SMALL_SEGMENT_BYTES);
    ino_t before = inode_of(&run, 0);
    int kept = dup(fd_of(&run, 0)); /* as Anna may */
    pool_give_back(&run);
    run = take(1);
    CHECK(pool_needs_renewal(&run, BERT));
    CHECK_EQ(renew(&run, BERT), 0);
    pool_assign(&run, BERT);
    CHECK(inode_of(&run, 0) != before);
    CHECK(all_are(pool_run_base(&run), LIMIT_SMALL_SEGMENT_BYTES, 0));
    unsigned char left = 0;
    CHECK_EQ(pread(kept, &left, 1, 0), 1);
    CHECK_EQ(left, 0xaa);
    close(kept);
    CHECK_EQ(manual.attached_bytes, LIMIT_SMALL_SEGMENT_BYTES);
    pool_end();
}

/* Of a run, the segments that nobody else had stay. */
static void only_what_was_anothers_is_renewed(void)
{
    pool_begin(2);
    CHECK_EQ(pool_make(&pool, LIMIT_SMALL_SEGMENTS), 0);
    CHECK_EQ(pool_make(&pool, LIMIT_SMALL_SEGMENTS + 1), 0);
    struct pool_run run = take(LIMIT_LARGE_SEGMENT_BYTES);
    pool_assign(&run, ANNA);
    pool_give_back(&run);
    run = take(2 * LIMIT_LARGE_SEGMENT_BYTES);
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
    CHECK(all_are(pool_run_base(&run), LIMIT_SMALL_SEGMENT_BYTES, 0));
    pool_end();
}

/* Fails the n-th attach of a renewal, n = 1, 2, ...: a clean error each time, never another user's memory, no leak. */
static void renewal_fails_at_every_attach(void)
{
    for (unsigned n = 1; n <= 4; n++) {
        pool_begin(3);
        struct pool_run run = take(3 * LIMIT_LARGE_SEGMENT_BYTES);
        CHECK_EQ(renew(&run, ANNA), 0);
        pool_assign(&run, ANNA);
        manual_fail(&manual, MANUAL_ATTACH, n, -ENOMEM);
        int r = renew(&run, BERT);
        CHECK_EQ(r, n <= 3 ? -ENOMEM : 0);
        CHECK_EQ(pool_needs_renewal(&run, BERT), n <= 3);
        pool_give_back(&run);
        manual_fail(&manual, MANUAL_ATTACH, 0, 0);
        run = take(3 * LIMIT_LARGE_SEGMENT_BYTES);
        CHECK_EQ(renew(&run, BERT), 0);
        CHECK(all_are(pool_run_base(&run), 3 * LIMIT_LARGE_SEGMENT_BYTES, 0));
        CHECK_EQ(manual.attached_bytes, 3 * LIMIT_LARGE_SEGMENT_BYTES);
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

static const struct test tests[] = {
    TEST(sizes_of_pools),
    TEST(addresses_run_out),
    TEST(segments_are_sealed_and_attached),
    TEST(sizes_choose_a_class),
    TEST(small_ones_overflow_into_large),
    TEST(full_or_too_small),
    TEST(as_long_as_a_message),
    TEST(first_fit_among_gaps),
    TEST(the_same_user_gets_it_as_it_is),
    TEST(another_user_gets_another_file),
    TEST(only_what_was_anothers_is_renewed),
    TEST(missing_segments_are_made_when_needed),
    TEST(renewal_fails_at_every_attach),
    TEST(making_fails_and_is_made_up_for),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

/* The pool between a helper, which makes a run's segments, and the loop: each keeps to its own. The thread sanitizer is
 * the judge of that. */
#include <pthread.h>

#include "daemon/core/memory/pool.h"
#include "tests/check.h"
#include "tests/unit/device_manual.h"

#define ANNA   ((uid_t)1)
#define LARGE  LIMIT_LARGE_SEGMENT_BYTES
#define ROUNDS 20
#define SMALL  9 /* classes of which segments are made beforehand, but for the largest */

static struct manual manual;
static const struct device_set devices = {{&manual.device}, 1};
static struct pool pool;

/* A helper's work: a run, unit by unit. */
static void *renew(void *argument)
{
    struct pool_run *run = argument;
    while (pool_renew(&pool, run, ANNA) > 0)
        ;
    return NULL;
}

/* All that the filler may have, which it gives back as it was. */
static size_t fill_nothing(void)
{
    struct segment *segments[256];
    size_t index = 0, count = 0;
    while (count < 256 && (segments[count] = pool_fill_begin(&pool, &index)))
        count++;
    for (size_t i = 0; i < count; i++)
        pool_fill_end(&pool, segments[i]);
    return count;
}

/* While the helper makes a run, the loop looks for segments to fill, and reserves another run. */
static void a_helper_beside_the_loop(void)
{
    struct pool_account account = {0};
    manual_init(&manual, 2, MIB(1));
    CHECK_EQ(pool_init(&pool, &devices, 4 * LARGE), 0);
    const size_t count = pool_ready_count(&pool);
    for (unsigned round = 0; round < ROUNDS; round++) {
        const uint64_t size_bytes = round & 1 ? LARGE : LIMIT_SMALLEST_SEGMENT_BYTES << round / 2 % SMALL;
        struct pool_run run = {0}, other = {0};
        pthread_t helper;
        CHECK_EQ(pool_reserve(&pool, size_bytes, ANNA, &account, &run), 0);
        REQUIRE(pthread_create(&helper, NULL, renew, &run) == 0);
        CHECK(fill_nothing() < count);
        CHECK_EQ(pool_reserve(&pool, size_bytes, ANNA, &account, &other), 0);
        pthread_join(helper, NULL);
        pool_give_back(&pool, &run, &account);
        pool_give_back(&pool, &other, &account);
        pool_trim(&pool, 0);
        CHECK_EQ(fill_nothing(), count);
    }
    CHECK_EQ(pool.made_bytes, 0);
    CHECK_EQ(account.bytes, 0);
    pool_finish(&pool);
}

static const struct test tests[] = {
    TEST(a_helper_beside_the_loop),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

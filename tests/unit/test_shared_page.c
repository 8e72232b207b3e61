/* The memory that supervisor and worker share: grants are taken whole while others are given. */
#include "daemon/process/shared_page.h"

#include <pthread.h>

#include "tests/check.h"

#define GIVEN 20000

static struct shared_page *shared_page;
static atomic_bool given_all;

/* Grants that say one number everywhere. */
static void fill(struct grants *grants, uint64_t number)
{
    memset(grants, 0, sizeof *grants);
    grants->own_count = number;
    grants->standard.most[0] = number;
    for (size_t i = 0; i < LIMIT_OWN_GRANTS; i++)
        grants->own[i].grant.most[QUOTA_COUNT - 1] = number;
}

static bool is_whole(const struct grants *grants)
{
    uint64_t number = grants->own_count;
    bool same = grants->standard.most[0] == number;
    for (size_t i = 0; i < LIMIT_OWN_GRANTS; i++)
        same &= grants->own[i].grant.most[QUOTA_COUNT - 1] == number;
    return same;
}

static void *give(void *unused)
{
    struct grants grants;
    for (uint64_t i = 1; i <= GIVEN; i++) {
        fill(&grants, i);
        shared_page_give_grants(shared_page, &grants);
    }
    atomic_store(&given_all, true);
    return unused;
}

static void grants_come_whole(void)
{
    pthread_t thread;
    struct grants grants;
    uint64_t last = 0;
    shared_page = shared_page_create();
    REQUIRE(shared_page);
    shared_page_read_grants(shared_page, &grants);
    CHECK(is_whole(&grants) && grants.own_count == 0);
    REQUIRE(pthread_create(&thread, NULL, give, NULL) == 0);
    while (!atomic_load(&given_all)) {
        shared_page_read_grants(shared_page, &grants);
        REQUIRE(is_whole(&grants));
        REQUIRE(grants.own_count >= last);
        last = grants.own_count;
    }
    pthread_join(thread, NULL);
    shared_page_read_grants(shared_page, &grants);
    CHECK_EQ(grants.own_count, GIVEN);
}

static const struct test tests[] = {TEST(grants_come_whole), TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

/* The table of users, and what they are granted. */
#include <errno.h>

#include "daemon/core/user.h"
#include "tests/check.h"

#define ANNA 1000
#define BERT 1001

static struct user_table table;

static void a_uid_is_one_user(void)
{
    users_init(&table);
    struct user *anna = user_acquire(&table, ANNA), *bert = user_acquire(&table, BERT);
    CHECK(anna && bert && anna != bert);
    CHECK(anna->uid == ANNA && bert->uid == BERT);
    CHECK(user_acquire(&table, ANNA) == anna);
    CHECK_EQ(anna->holds, 2);
    user_unhold(anna);
    user_unhold(anna);
    CHECK_EQ(anna->holds, 0);
    CHECK(user_acquire(&table, BERT) == bert); /* behind a free slot */
    user_unhold(bert);
    user_unhold(bert);
}

static void a_free_slot_has_no_user(void)
{
    users_init(&table);
    struct user *root = user_acquire(&table, 0);
    CHECK(root == &table.slots[0]);
    CHECK_EQ(root->holds, 1);
    user_hold(root);
    user_unhold(root);
    CHECK(user_find(&table, 0) == root);
    user_unhold(root);
    CHECK(!user_find(&table, 0));
}

static void accounts_outlive_connections(void)
{
    users_init(&table);
    struct user *anna = user_acquire(&table, ANNA), *bert = user_acquire(&table, BERT);
    anna->fair.account_ns[0] = 1000;
    bert->fair.account_ns[1] = 2000;
    bert->used[QUOTA_JOBS] = 1;
    user_unhold(anna);
    user_unhold(bert);
    CHECK(user_acquire(&table, BERT) == bert); /* behind a free slot of another's */
    CHECK(bert->fair.account_ns[1] == 2000 && bert->used[QUOTA_JOBS] == 0);
    struct user *next = user_acquire(&table, 7);
    CHECK(next != anna && next->fair.account_ns[0] == 0 && next->fair.weight == 1);
    CHECK(user_acquire(&table, ANNA) == anna && anna->fair.account_ns[0] == 1000);
}

/* Connections have an allowance: some at once, then so many a second, which going away does not change. */
static void connections_have_an_allowance(void)
{
    const uint64_t second_us = 1000000;
    users_init(&table);
    CHECK_EQ(user_connects_left(&table, ANNA, 0), LIMIT_CONNECTS_AT_ONCE);
    for (unsigned i = 0; i < LIMIT_CONNECTS_AT_ONCE; i++) {
        struct user *anna = user_acquire(&table, ANNA);
        CHECK_EQ(user_connects_left(&table, ANNA, second_us), LIMIT_CONNECTS_AT_ONCE - i);
        user_count_connect(anna, second_us);
        user_unhold(anna);
    }
    CHECK_EQ(user_connects_left(&table, ANNA, second_us), 0);
    CHECK_EQ(user_connects_left(&table, BERT, second_us), LIMIT_CONNECTS_AT_ONCE);
    CHECK_EQ(user_connects_left(&table, ANNA, second_us + second_us / 2), LIMIT_CONNECTS / 2);
    CHECK_EQ(user_connects_left(&table, ANNA, 60 * second_us), LIMIT_CONNECTS_AT_ONCE);
}

static void the_table_is_full(void)
{
    const uid_t last = LIMIT_USERS - LIMIT_USERS_KEPT, owner = 5000;
    users_init(&table);
    table.owner = owner;
    for (uid_t uid = 1; uid <= last; uid++)
        CHECK(user_acquire(&table, uid));
    CHECK(!user_acquire(&table, last + 1));
    CHECK(user_acquire(&table, last) == &table.slots[last - 1]);
    CHECK(user_acquire(&table, 0) && user_acquire(&table, owner)); /* for whom there is room */
    CHECK(!user_acquire(&table, last + 1));
    for (size_t slot = 0; slot < 3; slot++)
        user_unhold(&table.slots[7 + slot]);
    table.slots[7].fair.account_ns[0] = 1000;
    struct user *next = user_acquire(&table, last + 1); /* in the place of one that has left */
    CHECK(next == &table.slots[7] && next->uid == last + 1 && next->fair.account_ns[0] == 0);
}

/* Returns grants of `most` of each quota, and of a weight; Anna gets three times as much. */
static struct grants grants_of(uint64_t most, unsigned weight)
{
    struct grants grants = {.standard.weight = weight, .own_count = 1};
    grants.own[0].uid = ANNA;
    grants.own[0].grant.weight = 3 * weight;
    for (size_t i = 0; i < QUOTA_COUNT; i++) {
        grants.standard.most[i] = most;
        grants.own[0].grant.most[i] = 3 * most;
    }
    return grants;
}

static int checked(const struct user *user, enum quota quota, uint64_t more)
{
    struct error error;
    return user_check(user, quota, more, "ask", &error);
}

static void everything_is_granted_at_first(void)
{
    users_init(&table);
    struct user *anna = user_acquire(&table, ANNA);
    CHECK_EQ(anna->fair.weight, 1);
    for (enum quota quota = 0; quota < QUOTA_COUNT; quota++)
        CHECK_EQ(checked(anna, quota, UINT64_MAX), 0);
}

static void grants_are_found(void)
{
    users_init(&table);
    struct user *early = user_acquire(&table, ANNA);
    struct grants grants = grants_of(10, 2);
    users_configure(&table, &grants);
    struct user *bert = user_acquire(&table, BERT);
    CHECK(early->fair.weight == 6 && early->most[QUOTA_JOBS] == 30);
    CHECK(bert->fair.weight == 2 && bert->most[QUOTA_JOBS] == 10);
    grants = grants_of(5, 1);
    users_configure(&table, &grants);
    CHECK(early->fair.weight == 3 && early->most[QUOTA_JOBS] == 15);
    CHECK(bert->fair.weight == 1 && bert->most[QUOTA_CONNECTIONS] == 5);
    user_unhold(bert); /* lists show who was there before */
    grants = grants_of(7, 1);
    users_configure(&table, &grants);
    CHECK(bert->holds == 0 && bert->most[QUOTA_CONNECTIONS] == 7);
}

static void quotas_are_counted_apart(void)
{
    struct grants grants = grants_of(10, 1);
    users_init(&table);
    users_configure(&table, &grants);
    struct user *anna = user_acquire(&table, ANNA), *bert = user_acquire(&table, BERT);
    for (enum quota quota = 0; quota < QUOTA_COUNT; quota++) {
        CHECK_EQ(checked(bert, quota, 10), 0);
        CHECK_EQ(checked(bert, quota, 11), -EDQUOT);
        user_add(bert, quota, 7);
        CHECK_EQ(checked(bert, quota, 3), 0);
        CHECK_EQ(checked(bert, quota, 4), -EDQUOT);
        CHECK_EQ(checked(anna, quota, 30), 0);
        CHECK(quota + 1 == QUOTA_COUNT || checked(bert, quota + 1, 10) == 0);
    }
    user_subtract(bert, QUOTA_JOBS, 7);
    CHECK_EQ(checked(bert, QUOTA_JOBS, 10), 0);
    CHECK_EQ(checked(bert, QUOTA_CONNECTIONS, 4), -EDQUOT);
}

static void sums_do_not_overflow(void)
{
    struct grants grants = grants_of(UINT64_MAX / 3, 1);
    users_init(&table);
    users_configure(&table, &grants);
    struct user *anna = user_acquire(&table, ANNA), *bert = user_acquire(&table, BERT);
    user_add(bert, QUOTA_HOST_MEMORY, 2);
    CHECK_EQ(checked(bert, QUOTA_HOST_MEMORY, UINT64_MAX), -EDQUOT);
    CHECK_EQ(checked(bert, QUOTA_HOST_MEMORY, UINT64_MAX - 1), -EDQUOT);
    user_add(anna, QUOTA_HOST_MEMORY, UINT64_MAX);
    CHECK_EQ(checked(anna, QUOTA_HOST_MEMORY, 0), 0);
    CHECK_EQ(checked(anna, QUOTA_HOST_MEMORY, 1), -EDQUOT);
}

/* A user who has more than a new quota keeps it, and gets nothing until it has given back enough. */
static void a_quota_shrinks(void)
{
    users_init(&table);
    struct user *bert = user_acquire(&table, BERT);
    user_add(bert, QUOTA_DEVICE_MEMORY, 100);
    struct grants grants = grants_of(10, 1);
    users_configure(&table, &grants);
    CHECK_EQ(bert->used[QUOTA_DEVICE_MEMORY], 100);
    CHECK_EQ(checked(bert, QUOTA_DEVICE_MEMORY, 1), -EDQUOT);
    CHECK_EQ(checked(bert, QUOTA_DEVICE_MEMORY, UINT64_MAX - 90), -EDQUOT);
    user_subtract(bert, QUOTA_DEVICE_MEMORY, 91);
    CHECK_EQ(checked(bert, QUOTA_DEVICE_MEMORY, 1), 0);
}

static void refusals_say_what_to_do(void)
{
    static const char *const words[QUOTA_COUNT][3] = {
        [QUOTA_HOST_MEMORY] = {"bytes of host buffers", "\"host-memory\"", "release a buffer"},
        [QUOTA_DEVICE_MEMORY] = {"bytes of device buffers", "\"device-memory\"", "release a buffer"},
        [QUOTA_JOBS] = {"jobs that wait or run", "\"jobs\"", "wait until some of them are done"},
        [QUOTA_CONNECTIONS] = {"connections", "\"connections\"", "close one of them"},
        [QUOTA_PINNED_MEMORY] = {"bytes of pinned imports", "\"pinned-memory\"", "release a buffer"},
    };
    struct grants grants = grants_of(4096, 1);
    users_init(&table);
    users_configure(&table, &grants);
    struct user *bert = user_acquire(&table, BERT);
    for (enum quota quota = 0; quota < QUOTA_COUNT; quota++) {
        struct error error = {0};
        user_add(bert, quota, 4000);
        CHECK_EQ(user_check(bert, quota, 1234, "buffer.create", &error), -EDQUOT);
        CHECK_EQ(error.code, -EDQUOT);
        CHECK_CONTAINS(error.message, "buffer.create: user 1001 has 4000 ");
        CHECK_CONTAINS(error.message, "asks for 1234 more");
        CHECK_CONTAINS(error.message, " is 4096;");
        CHECK_CONTAINS(error.message, "ask whoever runs the daemon to raise that setting");
        for (size_t i = 0; i < 3; i++)
            CHECK_CONTAINS(error.message, words[quota][i]);
        CHECK(error.retry_ms > 0);
        CHECK_EQ(user_check(bert, quota, 4097, "buffer.create", &error), -EDQUOT);
        CHECK_CONTAINS(error.message, " is 4096; that is never granted: ask for less at a time, or ask whoever");
        CHECK_EQ(error.retry_ms, 0);
    }
    grants = grants_of(0, 1);
    users_configure(&table, &grants);
    struct error error = {0};
    CHECK_EQ(user_check(bert, QUOTA_CONNECTIONS, 1, "connect", &error), -EDQUOT);
    CHECK_CONTAINS(error.message, " is 0; wait until more is allowed, or ask whoever runs the daemon");
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_uid_is_one_user),
        TEST(a_free_slot_has_no_user),
        TEST(accounts_outlive_connections),
        TEST(connections_have_an_allowance),
        TEST(the_table_is_full),
        TEST(everything_is_granted_at_first),
        TEST(grants_are_found),
        TEST(quotas_are_counted_apart),
        TEST(sums_do_not_overflow),
        TEST(a_quota_shrinks),
        TEST(refusals_say_what_to_do),
        TEST_END,
    };
    return test_main(argc, argv, tests);
}

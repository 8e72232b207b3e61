/* The table of users. */
#include "daemon/logic/user.h"
#include "tests/check.h"

#define ANNA 1000
#define BERT 1001

static struct user_table table;

static void a_uid_is_one_user(void)
{
    memset(&table, 0, sizeof table);
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
    memset(&table, 0, sizeof table);
    struct user *root = user_acquire(&table, 0);
    CHECK(root == &table.slots[0]);
    CHECK_EQ(root->holds, 1);
    user_hold(root);
    user_unhold(root);
    user_unhold(root);
    CHECK(user_acquire(&table, ANNA) == &table.slots[0]);
    CHECK_EQ(table.slots[0].uid, ANNA);
}

static void the_table_is_full(void)
{
    memset(&table, 0, sizeof table);
    for (uid_t uid = 0; uid < LIMIT_USERS; uid++)
        CHECK(user_acquire(&table, uid));
    CHECK(!user_acquire(&table, LIMIT_USERS));
    CHECK(user_acquire(&table, LIMIT_USERS - 1) == &table.slots[LIMIT_USERS - 1]);
    user_unhold(&table.slots[7]);
    CHECK(user_acquire(&table, LIMIT_USERS) == &table.slots[7]);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_uid_is_one_user),
        TEST(a_free_slot_has_no_user),
        TEST(the_table_is_full),
        TEST_END,
    };
    return test_main(argc, argv, tests);
}

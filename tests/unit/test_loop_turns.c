/* The order of turns: users by the time that they have had, and their clients one after the other. */
#include "daemon/core/schedule/loop_turns.h"

#include <stddef.h>

#include "tests/check.h"

#define USERS   256
#define CLIENTS 256

static struct turns turns;
static struct turn_user users[USERS];
static struct turn_client clients[CLIENTS];

static void begin(void)
{
    memset(&turns, 0, sizeof turns);
    memset(users, 0, sizeof users);
    memset(clients, 0, sizeof clients);
}

static void join(size_t client, size_t user)
{
    clients[client].user = &users[user];
    turns_join(&turns, &clients[client]);
}

/* The index of whose turn it is; CLIENTS: nobody's. It is charged. */
static size_t turn(uint64_t us)
{
    struct turn_client *client = turns_next(&turns);
    if (!client)
        return CLIENTS;
    turns_charge(client->user, us);
    return (size_t)(client - clients);
}

static void nobody_is_ready(void)
{
    begin();
    CHECK_EQ(turn(1), CLIENTS);
    join(3, 0);
    CHECK_EQ(turn(1), 3);
    CHECK_EQ(turn(1), 3);
    turns_leave(&turns, &clients[3]);
    turns_leave(&turns, &clients[3]);
    CHECK_EQ(turn(1), CLIENTS);
    CHECK(!turns.users && !users[0].clients);
}

static void clients_of_a_user_take_turns(void)
{
    begin();
    for (size_t i = 0; i < 3; i++)
        join(i, 0);
    join(1, 0); /* changes nothing */
    for (size_t i = 0; i < 9; i++)
        CHECK_EQ(turn(1 + i % 2), i % 3);
    turns_leave(&turns, &clients[0]);
    CHECK_EQ(turn(1), 1);
    CHECK_EQ(turn(1), 2);
    join(0, 0);
    CHECK_EQ(turn(1), 1);
}

/* A user with 255 clients gets no more time than one with one. */
static void connections_buy_nothing(void)
{
    uint64_t had[2] = {0};
    begin();
    for (size_t i = 0; i + 1 < CLIENTS; i++)
        join(i, 0);
    join(CLIENTS - 1, 1);
    for (int i = 0; i < 10000; i++) {
        uint64_t us = 10 + (uint64_t)i % 30;
        had[turn(us) == CLIENTS - 1] += us;
    }
    CHECK(had[0] <= had[1] + 40 && had[1] <= had[0] + 40);
}

/* Long turns are charged: the other user gets as many more. */
static void long_turns_are_charged(void)
{
    unsigned count[2] = {0};
    begin();
    join(0, 0);
    join(1, 1);
    for (int i = 0; i < 1010; i++) {
        struct turn_client *client = turns_next(&turns);
        bool slow = client == &clients[0];
        turns_charge(client->user, slow ? 1000 : 10);
        count[!slow]++;
    }
    CHECK(count[0] >= 9 && count[0] <= 11);
}

/* A user who comes now and then is next among users who are always ready, however many. */
static void who_asks_for_little_is_next(void)
{
    begin();
    for (size_t i = 1; i < USERS; i++)
        join(i, i);
    for (unsigned i = 0; i < 2000; i++)
        turn(30);
    for (int round = 0; round < 50; round++) {
        join(0, 0);
        size_t waited = 0;
        while (turn(5) != 0 && waited < USERS)
            waited++;
        CHECK(waited <= 1);
        turns_leave(&turns, &clients[0]);
        for (unsigned i = 0; i < USERS; i++)
            turn(30);
    }
}

/* Neither unused time nor a short absence is saved up. */
static void nothing_is_saved_up(void)
{
    begin();
    join(0, 0);
    for (int i = 0; i < 100; i++)
        turn(30);
    join(1, 1);
    CHECK(users[1].had_us + 30 >= users[0].had_us);
    turn(30), turn(3000); /* each once, whoever is first */
    size_t dear = users[0].had_us > users[1].had_us ? 0 : 1;
    turns_leave(&turns, &clients[dear]);
    join(dear, dear);
    for (int i = 0; i < 90; i++)
        CHECK_EQ(turn(30), 1 - dear);
}

/* A turn that the clock does not show is one all the same. */
static void turns_of_no_time(void)
{
    unsigned count[2] = {0};
    begin();
    join(0, 0);
    join(1, 1);
    for (int i = 0; i < 100; i++)
        count[turn(0)]++;
    CHECK_EQ(count[0], 50);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(nobody_is_ready),
        TEST(clients_of_a_user_take_turns),
        TEST(connections_buy_nothing),
        TEST(long_turns_are_charged),
        TEST(who_asks_for_little_is_next),
        TEST(nothing_is_saved_up),
        TEST(turns_of_no_time),
        TEST_END,
    };
    return test_main(argc, argv, tests);
}

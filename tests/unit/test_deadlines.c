/* The heap of deadlines: whatever is added and taken out, the earliest one comes first. */
#include "daemon/core/schedule/deadlines.h"

#include "tests/check.h"

#define MANY  300
#define TURNS 20000

static struct deadlines deadlines;
static struct deadline all[MANY];

static void begin(void)
{
    deadlines.count = 0;
    memset(all, 0, sizeof all);
    srand(1);
}

static uint64_t earliest_us(void)
{
    uint64_t at_us = UINT64_MAX;
    for (int i = 0; i < MANY; i++)
        if (all[i].place > 0 && all[i].at_us < at_us)
            at_us = all[i].at_us;
    return at_us;
}

static uint32_t count(void)
{
    uint32_t in = 0;
    for (int i = 0; i < MANY; i++)
        in += all[i].place > 0;
    return in;
}

/* Few times, so that many are equal. */
static void turn(void)
{
    struct deadline *any = &all[rand() % MANY];
    if (any->place > 0) {
        deadlines_remove(&deadlines, any);
        CHECK_EQ(any->place, 0);
        return;
    }
    any->at_us = (uint64_t)(rand() % 64);
    deadlines_add(&deadlines, any);
}

static void the_earliest_is_first(void)
{
    begin();
    for (int i = 0; i < TURNS; i++) {
        turn();
        CHECK_EQ(deadlines_first_us(&deadlines), earliest_us());
        CHECK_EQ(deadlines.count, count());
    }
}

static void they_come_in_their_order(void)
{
    uint64_t before_us = 0;
    begin();
    for (int i = 0; i < TURNS; i++)
        turn();
    for (struct deadline *due; (due = deadlines_pop(&deadlines, 40)); before_us = due->at_us) {
        CHECK(before_us <= due->at_us && due->at_us <= 40);
        CHECK_EQ(due->place, 0);
    }
    CHECK(deadlines_first_us(&deadlines) > 40);
    while (deadlines_pop(&deadlines, UINT64_MAX - 1))
        ;
    CHECK_EQ(deadlines.count, 0);
    CHECK_EQ(deadlines_first_us(&deadlines), UINT64_MAX);
}

static void what_is_in_no_heap_is_left_alone(void)
{
    struct deadline none = {.at_us = 1};
    begin();
    deadlines_remove(&deadlines, &none);
    CHECK_EQ(deadlines.count, 0);
}

static const struct test tests[] = {
    TEST(the_earliest_is_first),
    TEST(they_come_in_their_order),
    TEST(what_is_in_no_heap_is_left_alone),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

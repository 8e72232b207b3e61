/* The order of slow work: turns between users, what is out at a time, and the thread that is kept. */
#include "daemon/core/schedule/helpers.h"

#include <stddef.h>
#include <string.h>

#include "tests/check.h"

#define THREADS 4

static struct helpers helpers;
static struct work_queue anna, bert, carl;

/* Work of so many units; each user has a letter. */
struct task {
    struct work work; /* first */
    char user;
    unsigned left;
};

static bool task_run(struct work *work)
{
    return --((struct task *)work)->left > 0;
}

static void begin(unsigned threads)
{
    helpers = (struct helpers){.most = threads};
    anna = bert = carl = (struct work_queue){0};
}

static void add(struct work_queue *queue, struct task *task, char user, unsigned units)
{
    *task = (struct task){.work.run = task_run, .user = user, .left = units};
    helpers_add(&helpers, queue, &task->work);
}

/* Hands out all that may be; the letters of whose it is, in order. */
static const char *go(struct work *out[THREADS], size_t *count)
{
    static char letters[THREADS + 1];
    struct work *work;
    size_t first = *count;
    while ((work = helpers_next(&helpers))) {
        letters[*count - first] = ((struct task *)work)->user;
        out[(*count)++] = work;
    }
    letters[*count - first] = '\0';
    return letters;
}

/* A unit comes back; what is left of it waits again. */
static void come_back(struct work *work)
{
    work_run(work);
    helpers_return(work);
    if (work->more)
        helpers_add(&helpers, work->queue, work);
}

static void nothing_to_do(void)
{
    begin(THREADS);
    CHECK(!helpers_next(&helpers));
    CHECK_EQ(helpers.out, 0);
}

/* One thread is left to others, however much a user has. */
static void one_user_never_has_all_threads(void)
{
    struct task tasks[6], small;
    struct work *out[THREADS];
    size_t count = 0;
    begin(THREADS);
    for (int i = 0; i < 6; i++)
        add(&anna, &tasks[i], 'a', 100);
    CHECK(strcmp(go(out, &count), "aaa") == 0);
    add(&bert, &small, 'b', 1);
    CHECK(strcmp(go(out, &count), "b") == 0);
    come_back(out[3]);
    count--;
    CHECK(strcmp(go(out, &count), "") == 0);
}

/* Work that may last leaves a thread, even when the last thread would be its user's first. */
static void what_lasts_leaves_a_thread(void)
{
    struct task tasks[3], lasting, small;
    struct work *out[THREADS + 1]; /* two of them come back */
    size_t count = 0;
    begin(THREADS);
    for (int i = 0; i < 3; i++)
        add(&anna, &tasks[i], 'a', 1);
    CHECK(strcmp(go(out, &count), "aaa") == 0);
    add(&bert, &lasting, 'b', 1);
    lasting.work.lasts = true;
    CHECK(strcmp(go(out, &count), "") == 0);
    add(&carl, &small, 'c', 1);
    CHECK(strcmp(go(out, &count), "c") == 0);
    come_back(out[0]);
    CHECK(strcmp(go(out, &count), "") == 0); /* three are out */
    come_back(out[1]);
    CHECK(strcmp(go(out, &count), "b") == 0);
}

/* Users share threads where units may last for ever: a user has no more than it leaves to others, and never more than
 * it may. */
static void threads_are_shared_out(void)
{
    struct task tasks[6];
    struct work *out[2 * THREADS];
    size_t count = 0;
    begin(THREADS);
    helpers.each = 3;
    for (int i = 0; i < 6; i++)
        add(i < 4 ? &anna : i < 5 ? &bert : &carl, &tasks[i], i < 4 ? 'a' : i < 5 ? 'b' : 'c', 1);
    CHECK(strcmp(go(out, &count), "abc") == 0); /* of two others' threads one is left */
    come_back(out[2]);
    come_back(out[1]);
    CHECK(strcmp(go(out, &count), "a") == 0); /* two of four */
    helpers.each = 1;
    come_back(out[0]);
    CHECK(strcmp(go(out, &count), "") == 0);
}

/* Users in turns, and a user's own work in turns: what is not finished goes to the end. */
static void units_take_turns(void)
{
    struct task first, second, other;
    char letters[16] = "";
    begin(1);
    add(&anna, &first, 'A', 3);
    add(&anna, &second, 'a', 2);
    add(&bert, &other, 'b', 3);
    for (size_t i = 0; i < 8; i++) {
        struct work *work = helpers_next(&helpers);
        REQUIRE(work);
        CHECK(!helpers_next(&helpers));
        letters[i] = ((struct task *)work)->user;
        come_back(work);
    }
    CHECK(strcmp(letters, "AbabAbaA") == 0);
    CHECK(!helpers_next(&helpers) && !helpers.turn);
}

/* Two users keep all threads busy; a third one waits for a single unit. */
static void a_third_user_waits_for_one_unit(void)
{
    struct task many[2][8], small;
    struct work *out[THREADS + 1];
    size_t count = 0;
    begin(THREADS);
    for (int i = 0; i < 8; i++) {
        add(&anna, &many[0][i], 'a', 100);
        add(&bert, &many[1][i], 'b', 100);
    }
    go(out, &count);
    CHECK_EQ(count, THREADS - 1); /* both have something out */
    add(&carl, &small, 'c', 1);
    CHECK(strcmp(go(out, &count), "c") == 0);
}

static const struct test tests[] = {
    TEST(nothing_to_do),
    TEST(one_user_never_has_all_threads),
    TEST(what_lasts_leaves_a_thread),
    TEST(threads_are_shared_out),
    TEST(units_take_turns),
    TEST(a_third_user_waits_for_one_unit),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

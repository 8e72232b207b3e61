/* Requests for memory of the pool that wait: who gets what is free, how long they wait, and how many may. */
#include "tests/unit/service_rig.h"

#define ANNA ((uid_t)1000)
#define BERT ((uid_t)1001)
#define CARL ((uid_t)1002)

#define LARGE LIMIT_LARGE_SEGMENT_BYTES

static uint32_t create_waiting(struct caller *user, uint64_t size_bytes, uint64_t wait_ms)
{
    struct msg_buffer_create_params params = {.size = size_bytes, .place = SCAND_PLACE_HOST, .wait_ms = wait_ms};
    uint32_t msgid = ask(user, METHOD_buffer_create, &params);
    rig_run_work();
    return msgid;
}

static void release(struct caller *user, uint64_t buffer)
{
    CHECK(granted(user, METHOD_buffer_release, &(struct msg_buffer_id){buffer}, NULL));
    rig_run_work();
}

static bool created(struct caller *user, uint32_t msgid)
{
    return answered(user, msgid, METHOD_buffer_create, NULL);
}

/* Begins with both large segments taken by Carl. */
static struct caller *begin_full(void)
{
    rig_begin_with(2, 2, 4);
    struct caller *carl = user_greet(CARL);
    user_create(carl, LARGE, SCAND_PLACE_HOST);
    user_create(carl, LARGE, SCAND_PLACE_HOST);
    return carl;
}

static void waits_until_there_is_some(void)
{
    struct caller *carl = begin_full(), *anna = user_greet(ANNA);
    uint32_t msgid = create_waiting(anna, LARGE, 1000);
    CHECK(is_silent(anna));
    CHECK(granted(anna, METHOD_server_ping, &(struct msg_nothing){}, NULL)); /* others of its requests go on */
    release(carl, 1);
    CHECK(created(anna, msgid));
    CHECK_EQ(anna->client->buffer_count, 1);
    rig_end();
}

static void what_is_there_is_not_waited_for(void)
{
    struct caller *carl = begin_full(), *anna = user_greet(ANNA);
    create_waiting(carl, LARGE, 1000);
    CHECK(created(anna, create_waiting(anna, 4096, 1000)));
    CHECK(is_silent(carl));
    rig_end();
}

/* A request waits no longer than asked for; at the end it is told what it would have been told at once. */
static void waits_no_longer_than_asked_for(void)
{
    begin_full();
    struct caller *anna = user_greet(ANNA);
    uint32_t first = create_waiting(anna, LARGE, 100), second = create_waiting(anna, LARGE, 50);
    rig_pass(49000);
    CHECK(is_silent(anna));
    for (int i = 0; i < 2; i++) {
        rig_pass(i ? 50000 : 2000);
        struct answer answer = next_answer(anna, NULL, NULL);
        CHECK(answer.failed && answer.msgid == (i ? first : second) && answer.failure.code == SCAND_BUSY);
        CHECK(answer.failure.retry_ms > 0);
        CHECK_CONTAINS(answer.failure.message, "asks for 16777216 more");
    }
    CHECK_EQ(anna->client->buffer_count, 0);
    CHECK_EQ(rig.wake_us, UINT64_MAX);
    rig_end();
}

/* The latest request of a user ends first: what is asked for behind it, and what was asked for before, is not lost. */
static void the_latest_ends_first(void)
{
    struct caller *carl = begin_full(), *anna = user_greet(ANNA), *same = user_greet(ANNA);
    uint32_t first = create_waiting(anna, LARGE, 1000);
    uint32_t second = create_waiting(same, LARGE, 50);
    rig_pass(50000); /* to the very end of its time */
    CHECK_CONTAINS(refusal(same, second, SCAND_BUSY), "more");
    create_waiting(same, LARGE, 1000);
    user_close(same);
    uint32_t last = create_waiting(anna, LARGE, 1000);
    release(carl, 1);
    CHECK(created(anna, first));
    release(carl, 2);
    CHECK(created(anna, last));
    rig_end();
}

/* Users take turns: another user's first request is next but one at most, however many requests of one user wait. */
static void users_take_turns(void)
{
    struct caller *carl = begin_full(), *anna = user_greet(ANNA), *bert = user_greet(BERT);
    uint32_t first = create_waiting(anna, LARGE, 1000);
    for (int i = 1; i < LIMIT_CLIENT_WAITS; i++)
        create_waiting(anna, LARGE, 1000);
    uint32_t msgid = create_waiting(bert, LARGE, 1000);
    release(carl, 1);
    CHECK(created(anna, first));
    CHECK(is_silent(anna) && is_silent(bert));
    release(carl, 2);
    CHECK(is_silent(anna));
    CHECK(created(bert, msgid));
    rig_end();
}

/* A large buffer that waits does not hold up small ones that fit. */
static void a_large_one_does_not_hold_up_others(void)
{
    struct caller *carl = begin_full(), *anna = user_greet(ANNA), *bert = user_greet(BERT);
    create_waiting(anna, 2 * LARGE, 1000);
    uint32_t msgid = create_waiting(bert, LARGE, 1000);
    release(carl, 1);
    CHECK(created(bert, msgid));
    CHECK(is_silent(anna));
    rig_end();
}

static void only_so_many_wait(void)
{
    begin_full();
    struct caller *anna = user_greet(ANNA), *same = user_greet(ANNA);
    for (int i = 0; i < LIMIT_CLIENT_WAITS; i++)
        create_waiting(anna, LARGE, 1000);
    CHECK(is_silent(anna));
    CHECK_CONTAINS(refusal(anna, create_waiting(anna, LARGE, 1000), SCAND_BUSY), "asks for 16777216 more");
    create_waiting(same, LARGE, 1000);
    CHECK(is_silent(same));
    CHECK_CONTAINS(refusal(same, create_waiting(same, LARGE, LIMIT_WAIT_MS + 1), SCAND_INVALID), "\"wait_ms\"");
    struct msg_buffer_create_params params = {.size = 1, .place = SCAND_PLACE_DEVICE, .wait_ms = 1};
    CHECK_CONTAINS(refused(same, METHOD_buffer_create, &params, SCAND_INVALID),
                   "only memory of the pool is waited for");
    rig_end();
}

/* A client that leaves waits for nothing, and what it had goes to others that wait. */
static void gone_while_waiting(void)
{
    struct caller *carl = begin_full(), *anna = user_greet(ANNA), *same = user_greet(ANNA), *bert = user_greet(BERT);
    create_waiting(anna, LARGE, 1000);
    uint32_t second = create_waiting(same, LARGE, 1000), third;
    create_waiting(anna, LARGE, 1000);
    third = create_waiting(bert, LARGE, 1000);
    user_close(anna);
    user_close(carl);
    rig_run_work();
    CHECK(created(same, second));
    CHECK(created(bert, third));
    rig_end();
}

/* Memory that the filler works on is soon back: nobody is refused for lack of it, or not at once. */
static void the_pool_is_being_made(void)
{
    struct caller *carl = begin_full(), *anna = user_greet(ANNA);
    rig.pool.filling = 1;
    uint32_t first = create_waiting(anna, LARGE, 0);
    CHECK(is_silent(anna));
    release(carl, 1);
    CHECK(created(anna, first));
    uint32_t second = create_waiting(anna, LARGE, 0);
    rig_pass(LIMIT_FILL_WAIT_MS * 1000 - 1000);
    CHECK(is_silent(anna));
    rig_pass(2000);
    CHECK_CONTAINS(refusal(anna, second, SCAND_BUSY), "more");
    rig.pool.filling = 0;
    CHECK_CONTAINS(refusal(anna, create_waiting(anna, LARGE, 0), SCAND_BUSY), "more");
    rig_end();
}

static const struct test tests[] = {
    TEST(waits_until_there_is_some),
    TEST(what_is_there_is_not_waited_for),
    TEST(waits_no_longer_than_asked_for),
    TEST(the_latest_ends_first),
    TEST(users_take_turns),
    TEST(a_large_one_does_not_hold_up_others),
    TEST(only_so_many_wait),
    TEST(gone_while_waiting),
    TEST(the_pool_is_being_made),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

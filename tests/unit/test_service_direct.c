/* Jobs that a client in this process hands over without a message, and their results. */
#include "tests/unit/service_rig.h"

#define ANNA ((uid_t)1000)

#define TAKEN 4

/* Results that a client has got without a message. */
static struct taken {
    uint32_t msgids[TAKEN];
    struct msg_job_submit_result results[TAKEN];
    size_t count, most;
} taken;

static bool take(void *peer, uint32_t msgid, const struct msg_job_submit_result *result)
{
    struct taken *self = peer;
    if (self->count == self->most)
        return false;
    self->msgids[self->count] = msgid;
    self->results[self->count++] = *result;
    return true;
}

static struct caller *user_here(size_t most)
{
    struct caller *user = user_greet(ANNA);
    taken = (struct taken){.most = most};
    user->client->peer = &taken;
    user->client->take_result = take;
    return user;
}

/* Two rows of 100 samples, in place. */
static struct msg_job_submit_params job_on(uint64_t buffer)
{
    return rig_scan_in_place(rig_rows(buffer, 0, 2));
}

static void results_are_given_without_messages(void)
{
    rig_begin();
    struct caller *anna = user_here(TAKEN);
    const struct msg_job_submit_params params = job_on(user_create(anna, 2 * RIG_ROW_BYTES, SCAND_PLACE_HOST));
    CHECK(service_submit(anna->client, 70, &params));
    CHECK_EQ(rig.manual.out_count, 1);
    rig.now_us += 25;
    rig_complete(0, 0);
    CHECK_EQ(taken.count, 1);
    CHECK_EQ(taken.msgids[0], 70);
    CHECK_EQ(taken.results[0].total_us, 25);
    CHECK(is_silent(anna));
    CHECK_EQ(rig.service.stats.jobs_done, 1);
    rig_end();
}

/* A job that came as a message has its result in the same way, and one for which there is no room is answered. */
static void results_may_be_messages(void)
{
    rig_begin();
    struct caller *anna = user_here(1);
    const struct msg_job_submit_params params = job_on(user_create(anna, 2 * RIG_ROW_BYTES, SCAND_PLACE_HOST));
    const uint32_t msgid = ask(anna, METHOD_job_submit, &params);
    rig_complete(0, 0);
    CHECK(taken.count == 1 && taken.msgids[0] == msgid);
    CHECK(is_silent(anna));
    CHECK(service_submit(anna->client, 80, &params));
    rig_complete(0, 0);
    CHECK(answered(anna, 80, METHOD_job_submit, NULL));
    rig_end();
}

static void refusals_are_messages(void)
{
    rig_begin();
    struct caller *anna = user_here(TAKEN);
    struct msg_job_submit_params params = job_on(user_create(anna, 2 * RIG_ROW_BYTES, SCAND_PLACE_HOST));
    params.input.buffer = params.output.buffer + 7;
    CHECK(service_submit(anna->client, 5000, &params));
    CHECK_CONTAINS(refusal(anna, 5000, SCAND_NOT_FOUND), "\"input.buffer\" is 8");
    CHECK_EQ(rig.service.stats.messages_refused, 1);
    params.input.buffer = params.output.buffer;
    CHECK(service_submit(anna->client, 5001, &params));
    CHECK(service_submit(anna->client, 5001, &params));
    CHECK_CONTAINS(refusal(anna, 5001, SCAND_INVALID), "msgid 5001 is that of a job that still runs");
    rig_complete(0, SCAND_OK);
    CHECK_EQ(taken.count, 1);
    rig_end();
}

/* What is left to messages: the first one, and jobs of clients that do not read. */
static void messages_that_are_needed(void)
{
    rig_begin();
    struct caller *anna = user_open(ANNA);
    struct msg_job_submit_params params = job_on(1);
    CHECK(!service_submit(anna->client, 1, &params));
    CHECK(granted(anna, METHOD_hello, &(struct msg_hello_params){1, PROTOCOL_VERSION, "test", 0}, NULL));
    anna->client->unread_bytes = anna->client->user->unread_bytes = LIMIT_USER_UNREAD_BYTES + 1;
    CHECK(!service_submit(anna->client, 1, &params));
    CHECK(anna->client->paused);
    anna->client->unread_bytes = anna->client->user->unread_bytes = 0;
    CHECK(is_silent(anna));
    CHECK(service_submit(anna->client, 1, &params));
    CHECK_CONTAINS(refusal(anna, 1, SCAND_NOT_FOUND), "\"input.buffer\" is 1");
    rig_end();
}

/* A client that goes has no use for results. */
static void results_of_who_has_gone(void)
{
    rig_begin();
    struct caller *anna = user_here(TAKEN);
    const struct msg_job_submit_params params = job_on(user_create(anna, 2 * RIG_ROW_BYTES, SCAND_PLACE_HOST));
    CHECK(service_submit(anna->client, 1, &params));
    user_close(anna);
    rig_complete(0, 0);
    CHECK_EQ(taken.count, 0);
    rig_end();
}

static const struct test tests[] = {
    TEST(results_are_given_without_messages), TEST(results_may_be_messages), TEST(refusals_are_messages),
    TEST(messages_that_are_needed),           TEST(results_of_who_has_gone), TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

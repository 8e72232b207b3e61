/* Queues of the service: deadlines by the test's clock, classes, and the answer when a queue is full. */
#include "tests/unit/service_rig.h"

#define ANNA ((uid_t)1000)
#define BERT ((uid_t)1001)

#define EXPIRED "and the job could not start by then, so nothing was written"

struct want {
    enum scand_priority priority;
    uint64_t deadline_ms, after_failure;
};

/* Rows of 100 samples of `buffer` from a first one on, in place. Four rows are a chunk; two chunks fit the device. */
static struct msg_job_submit_params params_of(uint64_t buffer, uint64_t first, uint64_t rows, struct want want)
{
    struct msg_job_submit_params params = rig_scan_in_place(rig_rows(buffer, first, rows));
    params.priority = want.priority;
    params.deadline_ms = want.deadline_ms;
    params.after_failure = want.after_failure;
    return params;
}

static uint32_t submit(struct caller *user, uint64_t buffer, uint64_t first, uint64_t rows, struct want want)
{
    struct msg_job_submit_params params = params_of(buffer, first, rows, want);
    return ask(user, METHOD_job_submit, &params);
}

static bool done(struct caller *user, uint32_t msgid)
{
    return answered(user, msgid, METHOD_job_submit, NULL);
}

static struct caller *begin_with_buffer(uint64_t *buffer)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    *buffer = user_create(user, 200 * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    return user;
}

static const struct want any = {.deadline_ms = 0}, within_5_ms = {.deadline_ms = 5}, within_9_ms = {.deadline_ms = 9},
                         low = {.priority = SCAND_PRIORITY_LOW}, high = {.priority = SCAND_PRIORITY_HIGH},
                         whatever = {.after_failure = 1}, urgently_whatever = {SCAND_PRIORITY_HIGH, 0, 1};

/*
 * Deadlines.
 */

static void late_jobs_fail(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    uint32_t first = submit(user, buffer, 0, 8, any);
    CHECK(rig.wake_us == UINT64_MAX);
    uint32_t nine = submit(user, buffer, 20, 4, within_9_ms), five = submit(user, buffer, 10, 4, within_5_ms);
    CHECK_EQ(rig.wake_us, rig.now_us + 5000);
    rig_pass(4999);
    CHECK(is_silent(user));
    rig_pass(1);
    CHECK_CONTAINS(refusal(user, five, SCAND_DEADLINE), "job.submit: \"deadline_ms\" is 5, " EXPIRED);
    CHECK(is_silent(user));
    CHECK_EQ(rig.wake_us, rig.now_us + 4000);
    rig_pass(4000);
    CHECK_CONTAINS(refusal(user, nine, SCAND_DEADLINE), "\"deadline_ms\" is 9, " EXPIRED);
    CHECK(rig.wake_us == UINT64_MAX);
    rig_complete_all();
    CHECK(done(user, first));
    CHECK_EQ(rig.manual.started, 2);
    CHECK_EQ(rig.service.stats.jobs_expired, 2);
    CHECK_EQ(rig.service.stats.jobs_failed, 2);
    rig_end();
}

/* A moment before is in time, and what has started goes on for as long as it takes. */
static void started_jobs_go_on(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    uint32_t first = submit(user, buffer, 0, 8, any), second = submit(user, buffer, 10, 100, within_5_ms);
    rig.now_us += 4999;
    rig_complete(0, 0);
    CHECK_EQ(rig.manual.out_count, 2);
    rig_pass(1000000);
    CHECK(rig.wake_us == UINT64_MAX);
    rig_complete_all();
    CHECK(done(user, first));
    CHECK(done(user, second));
    CHECK_EQ(rig.service.stats.jobs_expired, 0);
    rig_end();
}

/* Nothing starts late, though the loop had no time to look at the clock before. */
static void nothing_starts_late(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    uint32_t first = submit(user, buffer, 0, 8, any), late = submit(user, buffer, 10, 4, within_5_ms),
             next = submit(user, buffer, 20, 4, any);
    rig.now_us += 5000;
    rig_complete(0, 0);
    CHECK_CONTAINS(refusal(user, late, SCAND_DEADLINE), EXPIRED);
    rig_complete_all();
    CHECK(done(user, first));
    CHECK(done(user, next));
    rig_end();
}

/* A clock of milliseconds may call too early: then it is told again. */
static void early_calls_are_repeated(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    submit(user, buffer, 0, 8, any);
    uint32_t late = submit(user, buffer, 10, 4, within_5_ms);
    uint64_t at_us = rig.wake_us;
    rig.now_us += 4999;
    rig.wake_us = 0;
    service_tick(&rig.service);
    CHECK(is_silent(user));
    CHECK_EQ(rig.wake_us, at_us);
    rig_pass(1);
    CHECK_CONTAINS(refusal(user, late, SCAND_DEADLINE), EXPIRED);
    rig_end();
}

/* A job whose deadline passes while it waits makes way for the job that waited for it. */
static void late_jobs_make_way(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    uint32_t first = submit(user, buffer, 0, 4, any), late = submit(user, buffer, 0, 8, within_5_ms),
             next = submit(user, buffer, 4, 4, whatever);
    CHECK_EQ(rig.manual.out_count, 1);
    rig_pass(5000);
    CHECK_CONTAINS(refusal(user, late, SCAND_DEADLINE), EXPIRED);
    CHECK_EQ(rig.manual.out_count, 2);
    rig_complete_all();
    CHECK(done(user, first));
    CHECK(done(user, next));
    rig_end();
}

static void deadlines_of_jobs_that_are_gone(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer), *other = user_greet(BERT);
    submit(user, buffer, 0, 100, any);
    uint32_t late = submit(user, buffer, 100, 4, within_5_ms);
    submit(user, buffer, 110, 4, within_5_ms);
    ask(user, METHOD_job_cancel, &(struct msg_job_id){.job = late});
    CHECK_CONTAINS(refusal(user, late, SCAND_CANCELLED), "cancelled by its client");
    user_close(user);
    rig_pass(5000);
    CHECK(rig.wake_us == UINT64_MAX);
    CHECK_EQ(rig.service.stats.jobs_expired, 0);
    CHECK(granted(other, METHOD_server_ping, &(struct msg_nothing){}, NULL));
    rig_end();
}

static void late_jobs_end_a_drain(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    uint32_t first = submit(user, buffer, 0, 4, any), late = submit(user, buffer, 0, 4, within_5_ms);
    service_drain(&rig.service);
    rig_pass(5000);
    CHECK_CONTAINS(refusal(user, late, SCAND_DEADLINE), EXPIRED);
    CHECK_EQ(rig.drained, 0);
    rig_complete_all();
    CHECK(done(user, first));
    CHECK_EQ(rig.drained, 1);
    rig_end();
}

static void deadlines_out_of_range(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    struct msg_job_submit_params params = params_of(buffer, 0, 4, any);
    params.deadline_ms = LIMIT_DEADLINE_MS + 1;
    CHECK_CONTAINS(refused(user, METHOD_job_submit, &params, SCAND_INVALID),
                   "job.submit: field \"deadline_ms\" is 86400001; allowed: 0 to 86400000");
    params.deadline_ms = LIMIT_DEADLINE_MS;
    uint32_t msgid = ask(user, METHOD_job_submit, &params);
    rig_complete_all();
    CHECK(done(user, msgid));
    rig_end();
}

/*
 * Classes.
 */

static void urgent_jobs_overtake(void)
{
    uint64_t buffer;
    struct caller *anna = begin_with_buffer(&buffer), *again = user_greet(ANNA);
    uint64_t agains = user_create(again, 8 * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    uint32_t first = submit(anna, buffer, 0, 8, any), later = submit(anna, buffer, 10, 4, low);
    uint32_t normal = submit(anna, buffer, 20, 4, any), urgent = submit(again, agains, 0, 4, high);
    rig_complete(0, 0);
    CHECK(rig_owner(1) == again->client);
    rig_complete(0, 0);
    CHECK(done(anna, first));
    rig_complete(0, 0);
    CHECK(done(again, urgent));
    rig_complete(0, 0);
    CHECK(done(anna, normal));
    rig_complete_all();
    CHECK(done(anna, later));
    rig_end();
}

/* Others keep their share: Bert's jobs are no less urgent to him. */
static void others_keep_their_share(void)
{
    uint64_t buffer;
    struct caller *anna = begin_with_buffer(&buffer), *bert = user_greet(BERT);
    uint64_t berts = user_create(bert, 100 * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    submit(anna, buffer, 0, 200, high);
    uint32_t msgid = submit(bert, berts, 0, 80, low);
    for (int i = 0; i < 44; i++)
        rig_complete(0, 0);
    CHECK(done(bert, msgid));
    CHECK(is_silent(anna));
    rig_end();
}

/* A job is cancelled while it waits behind more urgent ones, and while one of those waits for it. */
static void cancel_what_is_needed(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    uint32_t first = submit(user, buffer, 0, 8, any), needed = submit(user, buffer, 20, 8, low);
    submit(user, buffer, 40, 8, any);
    uint32_t urgent = submit(user, buffer, 24, 8, urgently_whatever);
    rig_complete(0, 0);
    CHECK_EQ(((struct job *)rig.manual.out[1]->owner)->msgid, needed);
    ask(user, METHOD_job_cancel, &(struct msg_job_id){.job = needed});
    CHECK(next_answer(user, NULL, NULL).arrived);
    rig_complete(0, 0);
    CHECK(done(user, first));
    rig_complete(0, 0); /* the last of the cancelled one */
    CHECK_CONTAINS(refusal(user, needed, SCAND_CANCELLED), "cancelled by its client");
    CHECK_EQ(((struct job *)rig.manual.out[1]->owner)->msgid, urgent);
    rig_end();
}

/*
 * Full queues.
 */

/* Fills a connection's queue with jobs of 100 rows. Returns when the next one should be tried again. */
static uint32_t fill(struct caller *user, uint64_t buffer)
{
    while (user->client->job_count < LIMIT_CLIENT_JOBS)
        submit(user, buffer, 0, 100, any);
    submit(user, buffer, 0, 100, any);
    struct answer answer = next_answer(user, NULL, NULL);
    CHECK(answer.failed && answer.failure.code == SCAND_BUSY);
    char said[48];
    snprintf(said, sizeof said, "try again in %u ms", (unsigned)answer.failure.retry_ms);
    CHECK_CONTAINS(answer.failure.message, said);
    return (uint32_t)answer.failure.retry_ms;
}

/* The manual device takes 100 us for a chunk of four rows: 25 chunks for each of 255 jobs that wait, half of that. */
static void retries_follow_the_backlog(void)
{
    uint64_t buffer;
    struct caller *anna = begin_with_buffer(&buffer);
    CHECK_EQ(fill(anna, buffer), LIMIT_RETRY_MIN_MS); /* nothing is known yet: a GB/s */
    for (int i = 0; i < 25; i++)
        rig_complete(0, 0);
    CHECK(done(anna, 3));
    uint32_t alone_ms = fill(anna, buffer);
    CHECK(alone_ms > 255 * 25 / 20 * 9 / 10 && alone_ms < 255 * 25 / 20 * 11 / 10);
    struct caller *bert = user_greet(BERT);
    uint64_t berts = user_create(bert, 100 * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    uint32_t both_ms = fill(bert, berts); /* who has half of the device */
    CHECK(both_ms > 2 * alone_ms * 9 / 10 && both_ms < 2 * alone_ms * 11 / 10);
    rig_end();
}

static void retries_are_bounded(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    submit(user, buffer, 0, 100, any);
    rig.manual.kernel_us = 60000000;
    rig_complete(0, 0);
    CHECK_EQ(fill(user, buffer), LIMIT_RETRY_MAX_MS);
    rig_end();
}

static const struct test tests[] = {
    TEST(late_jobs_fail),        TEST(started_jobs_go_on),
    TEST(nothing_starts_late),   TEST(early_calls_are_repeated),
    TEST(late_jobs_make_way),    TEST(deadlines_of_jobs_that_are_gone),
    TEST(late_jobs_end_a_drain), TEST(deadlines_out_of_range),
    TEST(urgent_jobs_overtake),  TEST(others_keep_their_share),
    TEST(cancel_what_is_needed), TEST(retries_follow_the_backlog),
    TEST(retries_are_bounded),   TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

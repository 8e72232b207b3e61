/* Jobs that come in one message: answered together, however each of them ends, and otherwise jobs like others. */
#include "tests/unit/service_rig.h"

#define ANNA   ((uid_t)1000)
#define BERT   ((uid_t)1001)
#define ROWS   100
#define CHUNKS 2 /* out at a time, of four rows each */

static struct caller *anna;
static uint64_t buffer;
static struct msg_job_batch_params params;
static struct msg_job_batch_result result;

/* A service with a user who has a buffer of 100 rows, and a batch of `count` jobs of a chunk each. */
static void begin(uint32_t count)
{
    rig_begin();
    anna = user_greet(ANNA);
    buffer = user_create(anna, ROWS * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    params = (struct msg_job_batch_params){.jobs_count = count};
    for (uint32_t i = 0; i < count; i++)
        params.jobs[i].submit = rig_scan_in_place(rig_rows(buffer, i, 1));
}

static bool answered_with(uint32_t msgid, uint32_t count)
{
    return answered(anna, msgid, METHOD_job_batch, &result) && result.jobs_count == count;
}

static uint64_t code_of(uint32_t i)
{
    return result.jobs[i].error.code;
}

static void the_last_one_answers(void)
{
    begin(3);
    uint32_t msgid = ask(anna, METHOD_job_batch, &params);
    CHECK_EQ(rig.service.stats.jobs_open, 3);
    CHECK_EQ(anna->client->job_count, 3);
    rig.now_us += 70;
    rig_complete(1, 0);
    rig_complete(0, 0);
    CHECK(is_silent(anna));
    rig.now_us += 30;
    rig_complete(0, 0);
    REQUIRE(answered_with(msgid, 3));
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_EQ(code_of(i), 0);
        CHECK_EQ(result.jobs[i].times.kernel_us, 10);
        CHECK_EQ(result.jobs[i].times.total_us, i == 2 ? 100 : 70);
    }
    CHECK_EQ(rig.service.stats.jobs_done, 3);
    rig_end();
}

static void as_many_as_allowed(void)
{
    begin(LIMIT_BATCH_JOBS);
    uint32_t msgid = ask(anna, METHOD_job_batch, &params);
    rig_complete_all();
    CHECK(answered_with(msgid, LIMIT_BATCH_JOBS));
    params.jobs_count = 0;
    CHECK_CONTAINS(refused(anna, METHOD_job_batch, &params, SCAND_INVALID), "\"jobs\" is empty; allowed: 1 to 32");
    rig_end();
}

/* A wrong job in a batch is refused alone, and its error says which. */
static void wrong_ones_among_others(void)
{
    begin(5);
    params.jobs[0].submit.axis = 3;
    params.jobs[2].submit.output.buffer = 77;
    params.jobs[4].submit.input.offset = ROWS * RIG_ROW_BYTES;
    uint32_t msgid = ask(anna, METHOD_job_batch, &params);
    CHECK_EQ(rig.service.stats.jobs_open, 2);
    rig_complete(0, -EIO);
    rig_complete_all();
    REQUIRE(answered_with(msgid, 5));
    CHECK_EQ(code_of(0), SCAND_INVALID);
    CHECK_EQ(code_of(1), SCAND_DEVICE);
    CHECK_EQ(code_of(2), SCAND_NOT_FOUND);
    CHECK_EQ(code_of(3), 0);
    CHECK_EQ(code_of(4), SCAND_INVALID);
    CHECK_CONTAINS(result.jobs[2].error.message, "\"output.buffer\" is 77");
    CHECK(strcmp(result.jobs[2].error.name, "not_found") == 0);
    CHECK_EQ(result.jobs[1].times.total_us, 0);
    rig_end();
}

/* Returns a chain of `count` scans of the same rows, one after the other. */
static struct msg_batch_job chain_of(uint64_t first, uint64_t rows, uint32_t count)
{
    const struct msg_job_submit_params scan = rig_scan_in_place(rig_rows(buffer, first, rows));
    struct msg_batch_job job = {.runs = true,
                                .run = {.input = scan.input, .output = scan.output, .axis = 1, .steps_count = count}};
    for (uint32_t i = 0; i < count; i++)
        job.run.steps[i].scan = (struct msg_scan){.operation = OPERATION_scan, .passes_count = 1};
    return job;
}

/* Jobs with steps beside those without: what is wrong with one is said as job.run says it. */
static void jobs_with_steps(void)
{
    begin(5);
    params.jobs[1] = chain_of(1, 1, 3);
    params.jobs[2] = chain_of(2, 1, 2);
    params.jobs[2].run.steps[1].scan.op = SCAND_OPERATOR_AFFINE;
    params.jobs[3] = chain_of(3, 1, 1);
    params.jobs[3].run.axis = 3;
    params.jobs[4] = chain_of(0, 0, LIMIT_STEPS);
    uint32_t msgid = ask(anna, METHOD_job_batch, &params);
    CHECK_EQ(rig.service.stats.jobs_open, 2);
    rig_complete_all();
    REQUIRE(answered_with(msgid, 5));
    CHECK(code_of(0) == 0 && code_of(1) == 0 && code_of(4) == 0);
    CHECK(code_of(2) == SCAND_INVALID && code_of(3) == SCAND_INVALID);
    CHECK_CONTAINS(result.jobs[2].error.message, "job.run: \"steps[1].op\" is \"affine\"");
    CHECK_CONTAINS(result.jobs[3].error.message, "job.run: \"axis\" is 3");
    params.jobs[0] = chain_of(0, 1, 2);
    params.jobs[1].submit = rig_scan_in_place(rig_rows(buffer, 0, 1)); /* of what the chain was to write */
    params.jobs[1].runs = false;
    params.jobs[0].run.axis = 3;
    params.jobs_count = 2;
    msgid = ask(anna, METHOD_job_batch, &params);
    rig_complete_all();
    REQUIRE(answered_with(msgid, 2));
    CHECK(code_of(0) == SCAND_INVALID && code_of(1) == SCAND_STALE);
    rig_end();
}

static void none_to_wait_for(void)
{
    begin(3);
    params.jobs[0].submit.axis = 3;
    params.jobs[1].submit = rig_scan_in_place(rig_rows(buffer, 0, 0)); /* done at once */
    params.jobs[2].submit.axis = 3;
    uint32_t msgid = ask(anna, METHOD_job_batch, &params);
    REQUIRE(answered_with(msgid, 3));
    CHECK(code_of(0) == SCAND_INVALID && code_of(1) == 0 && code_of(2) == SCAND_INVALID);
    params.jobs[0].submit = params.jobs[2].submit = rig_scan_in_place(rig_rows(buffer, 0, 0));
    msgid = ask(anna, METHOD_job_batch, &params);
    CHECK(answered_with(msgid, 3));
    rig_end();
}

/* Each counts as a job. */
static void queues_and_quotas(void)
{
    struct grants grants = {.standard = {.weight = 1,
                                         .most = {[QUOTA_HOST_MEMORY] = UINT64_MAX,
                                                  [QUOTA_DEVICE_MEMORY] = UINT64_MAX,
                                                  [QUOTA_JOBS] = 10,
                                                  [QUOTA_CONNECTIONS] = UINT64_MAX}}};
    begin(LIMIT_BATCH_JOBS);
    uint32_t msgids[LIMIT_CLIENT_JOBS / LIMIT_BATCH_JOBS + 1];
    for (size_t i = 0; i < sizeof msgids / sizeof msgids[0]; i++)
        msgids[i] = ask(anna, METHOD_job_batch, &params);
    REQUIRE(answered_with(msgids[LIMIT_CLIENT_JOBS / LIMIT_BATCH_JOBS], LIMIT_BATCH_JOBS)); /* all of them refused */
    CHECK_EQ(code_of(0), SCAND_BUSY);
    CHECK(result.jobs[31].error.retry_ms >= LIMIT_RETRY_MIN_MS);
    rig_complete_all();
    for (size_t i = 0; i + 1 < sizeof msgids / sizeof msgids[0]; i++)
        CHECK(answered_with(msgids[i], LIMIT_BATCH_JOBS));
    service_configure(&rig.service, &grants);
    uint32_t msgid = ask(anna, METHOD_job_batch, &params);
    rig_complete_all();
    REQUIRE(answered_with(msgid, LIMIT_BATCH_JOBS));
    CHECK(code_of(9) == 0 && code_of(10) == SCAND_QUOTA && code_of(31) == SCAND_QUOTA);
    rig_end();
}

static uint32_t cancel(uint64_t job, uint64_t index)
{
    return ask(anna, METHOD_job_cancel, &(struct msg_job_id){job, index});
}

static void cancel_one_or_all(void)
{
    begin(5);
    uint32_t msgid = ask(anna, METHOD_job_batch, &params);
    CHECK(answered(anna, cancel(msgid, 4), METHOD_job_cancel, NULL));
    CHECK_CONTAINS(refusal(anna, cancel(msgid, 4), SCAND_NOT_FOUND), "no such job");
    CHECK_CONTAINS(refusal(anna, cancel(msgid, 6), SCAND_NOT_FOUND), "no such job");
    rig_complete(0, 0);
    CHECK(answered(anna, cancel(msgid, 0), METHOD_job_cancel,
                   NULL)); /* the second and third, which are out, and the last */
    rig_complete_all();
    REQUIRE(answered_with(msgid, 5));
    CHECK(code_of(0) == 0 && code_of(3) == SCAND_CANCELLED && code_of(4) == SCAND_CANCELLED);
    CHECK_EQ(code_of(1), SCAND_CANCELLED);
    CHECK_CONTAINS(refusal(anna, cancel(msgid, 0), SCAND_NOT_FOUND), "no such job");
    rig_end();
}

static void the_last_is_cancelled(void)
{
    begin(4);
    uint32_t msgid = ask(anna, METHOD_job_batch, &params);
    rig_complete(0, 0);
    rig_complete(0, 0);
    rig_complete(0, 0);
    uint32_t last = cancel(msgid, 4);
    CHECK(answered(anna, last, METHOD_job_cancel, NULL));
    rig_complete_all();
    REQUIRE(answered_with(msgid, 4));
    CHECK_EQ(code_of(3), SCAND_CANCELLED);
    rig_end();
}

static void progress_names_the_job(void)
{
    begin(2);
    params.jobs[1].submit = rig_scan_in_place(rig_rows(buffer, 10, 8));
    params.jobs[1].submit.progress = 1;
    uint32_t msgid = ask(anna, METHOD_job_batch, &params);
    rig_complete(1, 0);
    struct answer answer = next_answer(anna, NULL, NULL);
    CHECK(answer.kind == MESSAGE_NOTIFICATION && answer.progress.job == msgid);
    CHECK_EQ(answer.progress.index, 2);
    CHECK_EQ(answer.progress.rows_done, 4);
    rig_complete_all();
    CHECK(answered_with(msgid, 2));
    rig_end();
}

static void msgids_are_shared(void)
{
    begin(3);
    uint32_t msgid = ask(anna, METHOD_job_batch, &params);
    anna->last_msgid = msgid - 1;
    CHECK_CONTAINS(refused(anna, METHOD_job_batch, &params, SCAND_INVALID), "is that of a job that still runs");
    anna->last_msgid = msgid - 1;
    CHECK_CONTAINS(refused(anna, METHOD_job_submit, &params.jobs[0].submit, SCAND_INVALID),
                   "is that of a job that still runs");
    rig_complete_all();
    CHECK(answered_with(msgid, 3));
    rig_end();
}

static void deadlines_of_each(void)
{
    begin(4);
    params.jobs[3].submit.deadline_ms = 1;
    uint32_t msgid = ask(anna, METHOD_job_batch, &params);
    rig_pass(2000);
    rig_complete_all();
    REQUIRE(answered_with(msgid, 4));
    CHECK(code_of(2) == 0 && code_of(3) == SCAND_DEADLINE);
    rig_end();
}

/* Jobs of a client that goes: queued ones are dropped; those on the device end without an answer. */
static void the_client_goes(void)
{
    for (int completed = 0; completed <= CHUNKS; completed++) {
        begin(6);
        ask(anna, METHOD_job_batch, &params);
        for (int i = 0; i < completed; i++)
            rig_complete(0, 0);
        user_close(anna);
        CHECK_EQ(rig.service.stats.jobs_open, CHUNKS);
        rig_complete_all();
        CHECK_EQ(rig.service.stats.jobs_open, 0);
        rig_end();
    }
}

/* A batch takes turns as so many jobs do. */
static void others_have_their_turn(void)
{
    begin(20);
    struct caller *bert = user_greet(BERT);
    uint64_t other = user_create(bert, ROWS * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    uint32_t batch = ask(anna, METHOD_job_batch, &params);
    struct msg_job_submit_params single = rig_scan_in_place(rig_rows(buffer, 0, 1));
    single.input.buffer = single.output.buffer = other;
    uint32_t msgid = ask(bert, METHOD_job_submit, &single);
    for (int i = 0; i < CHUNKS + 1; i++)
        rig_complete(0, 0);
    CHECK(answered(bert, msgid, METHOD_job_submit, NULL));
    CHECK(is_silent(anna));
    rig_complete_all();
    CHECK(answered_with(batch, 20));
    rig_end();
}

static void draining(void)
{
    begin(3);
    uint32_t msgid = ask(anna, METHOD_job_batch, &params);
    service_drain(&rig.service);
    CHECK_CONTAINS(refused(anna, METHOD_job_batch, &params, SCAND_DRAINING), "takes no more jobs");
    CHECK_EQ(rig.drained, 0);
    rig_complete_all();
    CHECK(answered_with(msgid, 3));
    CHECK_EQ(rig.drained, 1);
    rig_end();
}

static const struct test tests[] = {TEST(the_last_one_answers),
                                    TEST(as_many_as_allowed),
                                    TEST(wrong_ones_among_others),
                                    TEST(jobs_with_steps),
                                    TEST(none_to_wait_for),
                                    TEST(queues_and_quotas),
                                    TEST(cancel_one_or_all),
                                    TEST(the_last_is_cancelled),
                                    TEST(progress_names_the_job),
                                    TEST(msgids_are_shared),
                                    TEST(deadlines_of_each),
                                    TEST(the_client_goes),
                                    TEST(others_have_their_turn),
                                    TEST(draining),
                                    TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

/* Jobs whose input was to be written by one that has failed, was refused, cancelled or late: they fail, too, unless the
 * client could know when it sent them, or allows it. */
#include "tests/unit/service_rig.h"

#define ANNA ((uid_t)1000)
#define ROWS 200

#define READS "job.submit: the job reads bytes of "

static struct caller *anna;
static uint64_t here, there;

/* Rows of 100 samples from a first one on. Four rows are a chunk; two chunks fit the device. */
struct place {
    uint64_t buffer, first, rows;
};

static struct msg_tensor rows_of(struct place place)
{
    return rig_rows(place.buffer, place.first, place.rows);
}

static struct msg_job_submit_params scan_of(struct place from, struct place to)
{
    return rig_scan(rows_of(from), rows_of(to));
}

static uint32_t submit_params(struct msg_job_submit_params params)
{
    return ask(anna, METHOD_job_submit, &params);
}

static uint32_t submit(struct place from, struct place to)
{
    return submit_params(scan_of(from, to));
}

/* Submits a job that is refused at once, though its output is known. */
static uint32_t submit_wrong(struct place from, struct place to)
{
    struct msg_job_submit_params params = scan_of(from, to);
    params.axis = 3;
    return submit_params(params);
}

static uint32_t submit_anyway(struct place from, struct place to)
{
    struct msg_job_submit_params params = scan_of(from, to);
    params.after_failure = 1;
    return submit_params(params);
}

static void cancel(uint32_t msgid)
{
    uint32_t request = ask(anna, METHOD_job_cancel, &(struct msg_job_id){.job = msgid});
    (void)request;
}

static bool done(uint32_t msgid)
{
    return answered(anna, msgid, METHOD_job_submit, NULL);
}

static bool is_stale(uint32_t msgid)
{
    return strstr(refusal(anna, msgid, SCAND_STALE), READS) != NULL;
}

static struct place in(uint64_t buffer, uint64_t first, uint64_t rows)
{
    return (struct place){buffer, first, rows};
}

/* A user with two buffers, and a job on the last rows of one that keeps the device busy. */
static void begin(void)
{
    rig_begin();
    anna = user_greet(ANNA);
    here = user_create(anna, ROWS * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    there = user_create(anna, ROWS * RIG_ROW_BYTES, SCAND_PLACE_HOST);
}

static void end(void)
{
    rig_complete_all();
    while (!is_silent(anna))
        ;
    rig_end();
}

static void what_waits_fails_too(void)
{
    begin();
    uint32_t first = submit(in(here, 0, 4), in(there, 0, 4)), reader = submit(in(there, 2, 4), in(here, 50, 4)),
             reader_of_that = submit(in(here, 53, 4), in(here, 53, 4)),
             other = submit(in(there, 4, 4), in(here, 90, 4));
    rig_complete(0, -EIO);
    CHECK_CONTAINS(refusal(anna, first, SCAND_DEVICE), "the device failed");
    CHECK_CONTAINS(refusal(anna, reader, SCAND_STALE), READS
                   "0 to 1600 of buffer 2, which an earlier job of this connection was to write, but it failed or "
                   "was refused; so this job was not run, and its output is as it was: submit both again, or set "
                   "\"after_failure\" to have it run on what is there");
    CHECK_CONTAINS(refusal(anna, reader_of_that, SCAND_STALE), READS "20000 to 21600 of buffer 1");
    rig_complete_all();
    CHECK(done(other));
    CHECK_EQ(rig.manual.started, 2);
    CHECK_EQ(rig.service.stats.jobs_failed, 3);
    end();
}

/* Coefficients are read as well. */
static void coefficients_fail_too(void)
{
    begin();
    struct msg_job_submit_params params = scan_of(in(here, 50, 4), in(here, 60, 4));
    params.op = SCAND_OPERATOR_AFFINE;
    params.coefficients = rows_of(in(there, 0, 4));
    uint32_t first = submit(in(here, 0, 4), in(there, 0, 4)), reader = submit_params(params);
    rig_complete(0, -EIO);
    CHECK_CONTAINS(refusal(anna, first, SCAND_DEVICE), "the device failed");
    CHECK(is_stale(reader));
    end();
}

/* Jobs that only wait for a failed one go on: a job that writes what the failed one writes or reads needs nothing of
 * it. */
static void what_only_waits_goes_on(void)
{
    begin();
    uint32_t first = submit(in(here, 0, 4), in(there, 0, 4)), writer = submit(in(here, 80, 4), in(there, 0, 4)),
             reader_of_that = submit(in(there, 0, 4), in(there, 90, 4)),
             after = submit(in(here, 60, 4), in(here, 2, 4));
    rig_complete(0, -EIO);
    CHECK_CONTAINS(refusal(anna, first, SCAND_DEVICE), "the device failed");
    rig_complete_all();
    CHECK(done(writer) && done(reader_of_that) && done(after));
    end();
}

/* Another job writes a part of what the failed one was to write, before it is read. */
static void replaced_in_part(void)
{
    begin();
    uint32_t first = submit(in(here, 0, 8), in(there, 0, 8));
    submit(in(here, 80, 4), in(there, 4, 4));
    uint32_t reader = submit(in(there, 4, 4), in(here, 50, 4)), stale = submit(in(there, 0, 5), in(here, 60, 5));
    rig_complete(0, -EIO);
    rig_complete(0, 0);
    CHECK_CONTAINS(refusal(anna, first, SCAND_DEVICE), "the device failed");
    CHECK_CONTAINS(refusal(anna, stale, SCAND_STALE), READS "0 to 1600 of buffer 2");
    rig_complete_all();
    CHECK(done(reader - 1) && done(reader));
    end();
}

/* A job whose output has gaps replaces nothing. */
static void replaced_with_gaps(void)
{
    begin();
    struct msg_job_submit_params gaps = scan_of(in(here, 80, 4), in(there, 0, 4));
    gaps.input.shape[1] = gaps.output.shape[1] = 50;
    gaps.output.strides[1] = 8;
    uint32_t first = submit(in(here, 0, 4), in(there, 0, 4));
    submit_params(gaps);
    uint32_t reader = submit(in(there, 0, 1), in(here, 50, 1));
    rig_complete(0, -EIO);
    CHECK_CONTAINS(refusal(anna, first, SCAND_DEVICE), "the device failed");
    CHECK(is_stale(reader));
    end();
}

static void allowed_ones_go_on(void)
{
    begin();
    uint32_t first = submit(in(here, 0, 4), in(there, 0, 4)), reader = submit_anyway(in(there, 0, 4), in(there, 0, 4)),
             reader_of_that = submit(in(there, 0, 4), in(here, 50, 4));
    rig_complete(0, -EIO);
    CHECK_CONTAINS(refusal(anna, first, SCAND_DEVICE), "the device failed");
    rig_complete_all();
    CHECK(done(reader) && done(reader_of_that));
    end();
}

static void cancelled_and_late_ones(void)
{
    begin();
    submit(in(here, 100, 8), in(here, 100, 8));
    struct msg_job_submit_params hurried = scan_of(in(here, 0, 4), in(there, 0, 4));
    hurried.deadline_ms = 5;
    uint32_t late = submit_params(hurried), after_late = submit(in(there, 0, 4), in(there, 50, 4)),
             unwanted = submit(in(here, 0, 4), in(there, 20, 4)),
             after_that = submit(in(there, 20, 4), in(there, 70, 4));
    cancel(unwanted);
    CHECK_CONTAINS(refusal(anna, unwanted, SCAND_CANCELLED), "cancelled");
    CHECK(is_stale(after_that));
    CHECK(next_answer(anna, NULL, NULL).arrived);
    rig_pass(5000);
    CHECK_CONTAINS(refusal(anna, late, SCAND_DEADLINE), "could not start");
    CHECK(is_stale(after_late));
    end();
}

/* A job that runs is cancelled, and its readers wait until it has ended. */
static void cancelled_while_it_runs(void)
{
    begin();
    uint32_t first = submit(in(here, 0, 20), in(there, 0, 20)), reader = submit(in(there, 0, 4), in(here, 50, 4));
    cancel(first);
    CHECK(next_answer(anna, NULL, NULL).arrived);
    CHECK(is_silent(anna));
    rig_complete_all();
    CHECK_CONTAINS(refusal(anna, first, SCAND_CANCELLED), "cancelled");
    CHECK(is_stale(reader));
    end();
}

/* Jobs are sent before the answer to the refused one could be read; and afterwards, without anything being written
 * anew. */
static void refused_ones(void)
{
    begin();
    uint32_t wrong = submit_wrong(in(here, 0, 4), in(there, 0, 4)), reader = submit(in(there, 0, 4), in(here, 50, 4)),
             reader_of_that = submit(in(here, 53, 4), in(here, 70, 4)),
             other = submit(in(there, 4, 4), in(here, 90, 4));
    CHECK_CONTAINS(refusal(anna, wrong, SCAND_INVALID), "\"axis\" is 3");
    CHECK(is_stale(reader) && is_stale(reader_of_that));
    rig_complete_all();
    CHECK(done(other));
    uint32_t again = submit(in(there, 0, 4), in(here, 50, 4)), again_of_that = submit(in(here, 53, 4), in(here, 70, 4));
    rig_complete_all();
    CHECK(done(again) && done(again_of_that));
    CHECK(!anna->client->stale);
    end();
}

/* A job that is refused before anything of it is looked at: its number is that of one that still runs. */
static void refused_for_their_numbers(void)
{
    for (int runs = 0; runs < 2; runs++) {
        begin();
        const struct msg_job_run_params run = {
            .input = rows_of(in(here, 0, 4)),
            .output = rows_of(in(there, 0, 4)),
            .axis = 1,
            .steps_count = 1,
            .steps = {{.scan = {.operation = OPERATION_scan, .passes_count = 1}}},
        };
        const uint32_t first = submit(in(here, 90, 4), in(here, 90, 4));
        anna->last_msgid--; /* as if its number were taken twice */
        const uint32_t twice = runs ? ask(anna, METHOD_job_run, &run) : submit(in(here, 0, 4), in(there, 0, 4));
        CHECK_EQ(twice, first);
        const uint32_t reader = submit(in(there, 0, 4), in(here, 50, 4)),
                       other = submit(in(there, 4, 4), in(there, 60, 4));
        CHECK_CONTAINS(refusal(anna, twice, SCAND_INVALID), "is that of a job that still runs");
        CHECK(is_stale(reader));
        rig_complete_all();
        CHECK(done(first) && done(other));
        end();
    }
}

/* Jobs sent before the answer: a reader of what a failed job was to write is stale, one submitted to run anyway is not,
 * and neither is a reader of what another job writes there. */
static void sent_before_the_answer(void)
{
    begin();
    uint32_t first = submit(in(here, 0, 4), in(there, 0, 4));
    rig_complete(0, -EIO);
    uint32_t reader = submit(in(there, 0, 4), in(here, 50, 4)),
             anyway = submit_anyway(in(there, 0, 4), in(here, 60, 4)),
             writer = submit(in(here, 80, 4), in(there, 0, 4)),
             reader_of_that = submit(in(there, 0, 4), in(here, 50, 4));
    CHECK_CONTAINS(refusal(anna, first, SCAND_DEVICE), "the device failed");
    CHECK(is_stale(reader));
    rig_complete_all();
    CHECK(done(anyway) && done(writer) && done(reader_of_that));
    end();
}

/* Bytes that wait in the socket when the answer is sent were sent without it, however late they are read. */
static void unread_when_it_is_answered(void)
{
    uint8_t bytes[LIMIT_MESSAGE_BYTES];
    struct encoded out = {bytes, 0, sizeof bytes};
    begin();
    struct msg_job_submit_params params = scan_of(in(there, 0, 4), in(here, 50, 4));
    uint32_t wrong = submit_wrong(in(here, 0, 4), in(there, 0, 4)), before = ++anna->last_msgid;
    CHECK_EQ(encode_request(&out, before, METHOD_job_submit, &msg_job_submit_params_type, &params), 0);
    CHECK_EQ(connection_send(anna->connection, bytes, out.size, NULL, 0), 0);
    CHECK_EQ(connection_flush(anna->connection), 0);
    CHECK_CONTAINS(refusal(anna, wrong, SCAND_INVALID), "\"axis\" is 3");
    uint32_t after = submit_params(params); /* both are read now */
    CHECK(is_stale(before));
    rig_complete_all();
    CHECK(done(after));
    end();
}

/* Bytes stay stale until the client has been told, however much it sends meanwhile. */
static void answers_that_wait(void)
{
    begin();
    submit_wrong(in(here, 0, 4), in(there, 0, 4));
    for (int i = 0; i < 100; i++)
        submit(in(there, 0, 1), in(here, 50, 1));
    CHECK_EQ(rig.manual.started, 0);
    CHECK_EQ(rig.service.stats.jobs_submitted, 0);
    end();
}

/* An output that does not fit its buffer may have been meant for any byte of it. */
static void outputs_that_do_not_fit(void)
{
    begin();
    submit(in(here, 0, 4), in(there, ROWS - 2, 4));
    CHECK_CONTAINS(refusal(anna, submit(in(there, 0, 4), in(here, 0, 4)) - 1, SCAND_INVALID),
                   "\"output\" ends at byte");
    CHECK(is_stale(anna->last_msgid));
    end();
}

/* One range is kept of a buffer, also for outputs far from each other. A released buffer takes it along. */
static void one_range_of_a_buffer(void)
{
    begin();
    submit_wrong(in(here, 0, 4), in(there, 90, 4));
    submit_wrong(in(here, 0, 4), in(there, 10, 4));
    uint32_t before = submit(in(there, 0, 10), in(here, 0, 10)), between = submit(in(there, 50, 4), in(here, 50, 4)),
             behind = submit(in(there, 94, 4), in(here, 90, 4));
    rig_complete_all();
    CHECK(next_answer(anna, NULL, NULL).failed && next_answer(anna, NULL, NULL).failed);
    CHECK_CONTAINS(refusal(anna, between, SCAND_STALE), READS "4000 to 37600 of buffer 2");
    CHECK(done(before) && done(behind));
    submit_wrong(in(here, 0, 4), in(there, 90, 4));
    ask(anna, METHOD_buffer_release, &(struct msg_buffer_id){there});
    uint32_t on = submit(in(here, 0, 4), in(here, 0, 4));
    rig_complete_all();
    CHECK(next_answer(anna, NULL, NULL).failed && next_answer(anna, NULL, NULL).arrived && done(on));
    end();
}

/*
 * Batches.
 */

static void inside_a_batch(void)
{
    struct msg_job_batch_result result;
    begin();
    struct msg_job_batch_params batch = {.jobs_count = 3,
                                         .jobs = {{.submit = scan_of(in(here, 0, 4), in(there, 0, 4))},
                                                  {.submit = scan_of(in(there, 0, 4), in(here, 50, 4))},
                                                  {.submit = scan_of(in(here, 90, 4), in(here, 90, 4))}}};
    batch.jobs[0].submit.axis = 3;
    uint32_t msgid = ask(anna, METHOD_job_batch, &batch);
    rig_complete_all();
    CHECK(answered(anna, msgid, METHOD_job_batch, &result));
    CHECK_EQ(result.jobs[0].error.code, SCAND_INVALID);
    CHECK_EQ(result.jobs[1].error.code, SCAND_STALE);
    CHECK_EQ(result.jobs[2].error.code, 0);
    CHECK_EQ(rig.service.stats.refused_invalid, 1);
    CHECK_EQ(rig.service.stats.messages_refused, 0); /* the batch has its answer */
    end();
}

/* A batch is answered when its last job has ended: what is sent until then, is sent without an answer to the first. */
static void until_the_batch_is_answered(void)
{
    begin();
    struct msg_job_batch_params batch = {.jobs_count = 2,
                                         .jobs = {{.submit = scan_of(in(here, 0, 4), in(there, 0, 4))},
                                                  {.submit = scan_of(in(here, 90, 80), in(here, 90, 80))}}};
    uint32_t msgid = ask(anna, METHOD_job_batch, &batch);
    rig_complete(0, -EIO);
    CHECK(is_silent(anna));
    CHECK(is_stale(submit(in(there, 0, 4), in(there, 50, 4))));
    rig_complete_all();
    CHECK(answered(anna, msgid, METHOD_job_batch, NULL));
    uint32_t after = submit(in(there, 0, 4), in(there, 50, 4));
    rig_complete_all();
    CHECK(done(after));
    CHECK_EQ(anna->client->failing_batches, 0);
    end();
}

static void refused_batches(void)
{
    begin();
    submit(in(here, 90, 4), in(here, 90, 4));
    struct msg_job_batch_params batch = {.jobs_count = 2,
                                         .jobs = {{.submit = scan_of(in(here, 0, 4), in(there, 0, 4))},
                                                  {.submit = scan_of(in(here, 20, 4), in(here, 20, 4))}}};
    anna->last_msgid--; /* as if its number were taken twice */
    ask(anna, METHOD_job_batch, &batch);
    uint32_t reader = submit(in(there, 0, 4), in(there, 50, 4)), other = submit(in(here, 20, 4), in(there, 60, 4));
    CHECK(next_answer(anna, NULL, NULL).failed);
    CHECK(is_stale(reader) && is_stale(other));
    end();
}

/*
 * The client goes.
 */

static void the_client_goes(void)
{
    for (int i = 0; i < 4; i++) {
        begin();
        submit(in(here, 0, 20), in(there, 0, 20));
        submit(in(there, 0, 4), in(here, 50, 4));
        submit(in(here, 50, 4), in(here, 70, 4));
        submit_wrong(in(here, 90, 4), in(there, 90, 4));
        if (i > 1)
            rig_complete(0, -EIO);
        if (i % 2)
            ask(anna, METHOD_buffer_release, &(struct msg_buffer_id){there});
        user_close(anna);
        rig_end();
    }
}

static const struct test tests[] = {
    TEST(what_waits_fails_too),
    TEST(coefficients_fail_too),
    TEST(what_only_waits_goes_on),
    TEST(replaced_in_part),
    TEST(replaced_with_gaps),
    TEST(allowed_ones_go_on),
    TEST(cancelled_and_late_ones),
    TEST(cancelled_while_it_runs),
    TEST(refused_ones),
    TEST(refused_for_their_numbers),
    TEST(sent_before_the_answer),
    TEST(unread_when_it_is_answered),
    TEST(answers_that_wait),
    TEST(outputs_that_do_not_fit),
    TEST(one_range_of_a_buffer),
    TEST(inside_a_batch),
    TEST(until_the_batch_is_answered),
    TEST(refused_batches),
    TEST(the_client_goes),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

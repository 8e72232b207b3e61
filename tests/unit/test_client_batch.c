/* libscand's scand_submit_many: what is sent, what each job is told, and daemons that break, refuse or are older. */
#include <errno.h>

#include "protocol/limits.h"
#include "tests/unit/client_rig.h"

#define MANY (2 * LIMIT_BATCH_JOBS + 1) /* the last of which goes alone */

static struct scand_buffer *input, *output;
static struct scand_scan scans[MANY];
static struct scand_job *jobs[MANY];

/* A sample each: job i makes i + 1 of i. */
static void begin(void)
{
    rig_begin();
    input = buffer_of(BYTES);
    output = buffer_of(BYTES);
    for (int i = 0; i < MANY; i++) {
        scans[i] = scan_of(input, output);
        scans[i].input.shape[0] = scans[i].output.shape[0] = 1;
        scans[i].input.offset = scans[i].output.offset = (uint64_t)i * sizeof(float);
        jobs[i] = NULL;
        ((float *)scand_buffer_data(input))[i] = (float)i;
    }
}

static float result(int i)
{
    return ((float *)scand_buffer_data(output))[i];
}

static void release_all(int count)
{
    for (int i = 0; i < count; i++)
        scand_job_release(jobs[i]);
}

static void many_in_few_messages(void)
{
    struct scand_times times;
    begin();
    CHECK_EQ(scand_submit_many(session, scans, 0, NULL), SCAND_OK);
    CHECK_EQ(scand_submit_many(session, scans, MANY, jobs), SCAND_OK);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(scand_wait(jobs[i], -1, &times), SCAND_OK);
        CHECK_EQ(times.queued_us, i % LIMIT_BATCH_JOBS + 1);
        CHECK_EQ(times.total_us, 5);
        CHECK(result(i) == (float)i + 1);
    }
    CHECK_EQ(fake.seen[METHOD_job_batch], 2);
    CHECK_EQ(fake.seen[METHOD_job_submit], 1);
    release_all(MANY);
    rig_end();
}

static void released_while_they_run(void)
{
    begin();
    CHECK_EQ(scand_submit_many(session, scans, 5, jobs), SCAND_OK);
    release_all(4);
    CHECK_EQ(scand_wait(jobs[4], -1, NULL), SCAND_OK);
    CHECK(result(0) == 1);
    rig_end();
}

static void one_refused(void)
{
    begin();
    fake.refuse = 2;
    fake.rude = 1;
    CHECK_EQ(scand_submit_many(session, scans, 3, jobs), SCAND_OK);
    CHECK_EQ(scand_wait(jobs[0], -1, NULL), SCAND_OK);
    CHECK_EQ(scand_wait(jobs[1], -1, NULL), SCAND_INVALID);
    CHECK(strcmp(scand_message(session), "refused" RUDE_SHOWN) == 0);
    CHECK_EQ(scand_wait(jobs[2], -1, NULL), SCAND_OK);
    CHECK(result(0) == 1 && result(1) == 0 && result(2) == 3);
    rig_end();
}

static void all_refused(void)
{
    begin();
    fake.fail_on = METHOD_job_batch;
    fake.fail_code = -ESHUTDOWN;
    CHECK_EQ(scand_submit_many(session, scans, 3, jobs), SCAND_OK);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(scand_wait(jobs[i], -1, NULL), SCAND_DRAINING);
    CHECK_CONTAINS(scand_message(session), "planned failure");
    rig_end();
}

/* What the library can see is told at once, and nothing is submitted. */
static void a_wrong_one_among_them(void)
{
    begin();
    scans[2].pass_count = 9;
    CHECK_EQ(scand_submit_many(session, scans, 4, jobs), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "scan 2: pass_count is 9");
    CHECK(jobs[0] == NULL && jobs[3] == NULL);
    CHECK_EQ(fake.seen[METHOD_job_batch], 0);
    rig_end();
}

static void an_older_daemon(void)
{
    begin();
    scand_disconnect(session);
    fake.batch_jobs = 0;
    CHECK_EQ(scand_connect(fake.path, "test", &session), SCAND_OK);
    struct scand_scan scan = scan_of(buffer_of(BYTES), buffer_of(BYTES));
    scans[0] = scans[1] = scans[2] = scan;
    CHECK_EQ(scand_submit_many(session, scans, 3, jobs), SCAND_OK);
    CHECK_EQ(scand_wait(jobs[2], -1, NULL), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_job_batch], 0);
    CHECK_EQ(fake.seen[METHOD_job_submit], 3);
    rig_end();
}

/* An answer that breaks the protocol ends every job, and the connection. */
static void garbage(void)
{
    for (int i = 0; i < FAKE_GARBAGE_COUNT; i++) {
        begin();
        fake.garbage_on = METHOD_job_batch;
        fake.garbage = i;
        int valid = i == FAKE_GARBAGE_MESSAGES;
        CHECK_EQ(scand_submit_many(session, scans, 2, jobs), SCAND_OK);
        for (int k = 0; k < 2; k++)
            CHECK_EQ(scand_wait(jobs[k], 2000, NULL) == SCAND_OK, valid);
        rig_end();
    }
}

static void an_answer_that_is_too_short(void)
{
    begin();
    fake.forget = 1;
    CHECK_EQ(scand_submit_many(session, scans, 3, jobs), SCAND_OK);
    CHECK_EQ(scand_wait(jobs[2], 2000, NULL), SCAND_MALFORMED);
    CHECK_CONTAINS(scand_message(session), "says nothing of its job 3");
    rig_end();
}

/* What cannot be sent any more ends at once; what has been sent is done. */
static void more_than_the_daemon_reads(void)
{
    enum { FLOOD = 20000 };
    begin();
    struct scand_scan *flood = calloc(FLOOD, sizeof *flood);
    struct scand_job **waiting = calloc(FLOOD, sizeof(struct scand_job *));
    for (int i = 0; i < FLOOD; i++)
        flood[i] = scans[0];
    fake.late_on = METHOD_job_batch;
    fake.late_ms = 300;
    CHECK_EQ(scand_submit_many(session, flood, FLOOD, waiting), SCAND_OK);
    fake.late_on = FAKE_NONE;
    CHECK_EQ(scand_job_done(waiting[0]), 0);
    CHECK_EQ(scand_wait(waiting[FLOOD - 1], 0, NULL), SCAND_BUSY);
    CHECK_CONTAINS(scand_message(session), "does not read its requests");
    CHECK_EQ(scand_wait(waiting[0], -1, NULL), SCAND_OK);
    rig_end();
    free(flood);
    free(waiting);
}

/* Each is repeated on its own: those that cannot be would hold up the others. */
static void repeated_by_the_next_worker(void)
{
    begin();
    fake.die_on = METHOD_job_batch;
    fake.die_count = 1;
    scans[1].output = scans[1].input;
    CHECK_EQ(scand_submit_many(session, scans, 3, jobs), SCAND_OK);
    CHECK_EQ(scand_wait(jobs[0], -1, NULL), SCAND_OK);
    CHECK_EQ(scand_wait(jobs[1], -1, NULL), SCAND_LOST);
    CHECK_EQ(scand_wait(jobs[2], -1, NULL), SCAND_OK);
    CHECK(result(0) == 1 && result(2) == 3);
    CHECK_EQ(fake.seen[METHOD_job_submit], 2);
    rig_end();
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(many_in_few_messages),
                                        TEST(released_while_they_run),
                                        TEST(one_refused),
                                        TEST(all_refused),
                                        TEST(a_wrong_one_among_them),
                                        TEST(an_older_daemon),
                                        TEST(garbage),
                                        TEST(an_answer_that_is_too_short),
                                        TEST(more_than_the_daemon_reads),
                                        TEST(repeated_by_the_next_worker),
                                        TEST_END};
    return test_main(argc, argv, tests);
}

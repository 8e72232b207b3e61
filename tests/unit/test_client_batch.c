/* Tests of libscand's scand_submit_many: what is sent, what each job is told, and daemons that break, refuse or are
 * older. */
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
    fake.fail_code = -EDQUOT;
    CHECK_EQ(scand_submit_many(session, scans, 3, jobs), SCAND_OK);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(scand_wait(jobs[i], -1, NULL), SCAND_QUOTA);
    CHECK_CONTAINS(scand_message(session), "planned failure");
    rig_end();
}

/* Errors that the library can see are told at once, and nothing is submitted. */
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

/* Tasks of `steps` scans, the i-th of what the i-th scan is of; the caller's to destroy. */
static void tasks_make(struct scand_task *tasks[MANY], int steps)
{
    for (int i = 0; i < MANY; i++) {
        REQUIRE(scand_task_create(&tasks[i]) == SCAND_OK);
        scand_task_input(tasks[i], &scans[i].input);
        scand_task_output(tasks[i], &scans[i].output);
        scand_task_axis(tasks[i], 0);
        for (int k = 0; k < steps; k++) {
            scand_task_step(tasks[i], "scan");
            CHECK_EQ(scand_task_set(tasks[i], "passes", "forward"), SCAND_OK);
        }
    }
}

static void tasks_destroy(struct scand_task *tasks[MANY])
{
    for (int i = 0; i < MANY; i++)
        scand_task_destroy(tasks[i]);
}

static int tasks_submit(struct scand_task *tasks[MANY], size_t count)
{
    return scand_task_submit_many(session, (const struct scand_task *const *)tasks, count, jobs);
}

static void tasks_in_few_messages(void)
{
    struct scand_task *tasks[MANY];
    begin();
    tasks_make(tasks, 2);
    CHECK_EQ(tasks_submit(tasks, MANY), SCAND_OK);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(scand_wait(jobs[i], -1, NULL), SCAND_OK);
        CHECK(result(i) == (float)i + 1);
    }
    CHECK_EQ(fake.seen[METHOD_job_batch], 2);
    CHECK_EQ(fake.seen[METHOD_job_run], 1);
    CHECK_EQ(fake.batched_runs, MANY - 1);
    release_all(MANY);
    tasks_destroy(tasks);
    rig_end();
}

/* A message has room for fewer of so many steps with so many tensors. */
static void long_tasks_in_more_messages(void)
{
    struct scand_task *tasks[MANY];
    begin();
    tasks_make(tasks, 0);
    const int64_t far = INT64_C(1) << 50;
    const struct scand_tensor wide = {.buffer = input,
                                      .offset = 1 << 30,
                                      .rank = 4,
                                      .shape = {70000, 70000, 70000, 70000},
                                      .strides = {far, far, far, far}};
    for (int i = 0; i < MANY; i++)
        for (int k = 0; k < 1 + SCAND_STEPS_MAX; k++) {
            scand_task_step(tasks[i], "scan");
            scand_task_set(tasks[i], "passes", "forward,backward");
            scand_task_set(tasks[i], "op", "affine");
            scand_task_set(tasks[i], "accumulator", "f64");
            scand_task_set(tasks[i], "intermediate", "f64");
            scand_task_set(tasks[i], "kind", "exclusive");
            scand_task_set_number(tasks[i], "demean", 1);
            scand_task_set_number(tasks[i], "scale", 0.1);
            CHECK_EQ(scand_task_operand(tasks[i], "coefficients", &wide), SCAND_OK);
        }
    CHECK_EQ(tasks_submit(tasks, MANY), SCAND_OK);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(scand_wait(jobs[i], -1, NULL), SCAND_OK);
    CHECK(fake.seen[METHOD_job_batch] > 2 && fake.seen[METHOD_job_run] <= 1);
    release_all(MANY);
    tasks_destroy(tasks);
    rig_end();
}

static void tasks_to_an_older_daemon(void)
{
    struct scand_task *tasks[MANY];
    begin();
    scand_disconnect(session);
    fake.batch_steps = 0;
    CHECK_EQ(scand_connect(fake.path, "test", &session), SCAND_OK);
    const struct scand_scan scan = scan_of(buffer_of(BYTES), buffer_of(BYTES));
    for (int i = 0; i < MANY; i++)
        scans[i] = scan;
    tasks_make(tasks, 1);
    CHECK_EQ(tasks_submit(tasks, 3), SCAND_OK);
    CHECK_EQ(scand_wait(jobs[2], -1, NULL), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_job_batch], 0);
    CHECK_EQ(fake.seen[METHOD_job_run], 3);
    tasks_destroy(tasks);
    rig_end();
}

static void a_wrong_task_among_them(void)
{
    struct scand_task *tasks[MANY];
    begin();
    tasks_make(tasks, 1);
    scand_task_set(tasks[2], "kind", "huge");
    CHECK_EQ(tasks_submit(tasks, 4), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "task 2: ");
    CHECK_EQ(fake.seen[METHOD_job_batch], 0);
    tasks_destroy(tasks);
    rig_end();
}

/* An answer that breaks the protocol ends every job, and the connection. */
static void garbage(void)
{
    for (int i = 0; i < FAKE_GARBAGE_COUNT; i++) {
        begin();
        fake.garbage_on = METHOD_job_batch;
        fake.garbage = i;
        int valid = i >= FAKE_GARBAGE_MESSAGES; /* the answer comes, too */
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

/* Jobs that cannot be sent any more end at once; those that have been sent are done. */
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
                                        TEST(tasks_in_few_messages),
                                        TEST(long_tasks_in_more_messages),
                                        TEST(tasks_to_an_older_daemon),
                                        TEST(a_wrong_task_among_them),
                                        TEST(garbage),
                                        TEST(an_answer_that_is_too_short),
                                        TEST(more_than_the_daemon_reads),
                                        TEST(repeated_by_the_next_worker),
                                        TEST_END};
    return test_main(argc, argv, tests);
}

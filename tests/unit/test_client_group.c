/* Groups of libscand: labels, numbers, what jobs say of them, and a daemon that comes back or is older. */
#include <errno.h>

#include "client/lib/internal.h"
#include "tests/unit/client_rig.h"

static struct scand_job *submit_in(struct scand_buffer *from, struct scand_buffer *to, uint32_t group)
{
    struct scand_scan scan = scan_of(from, to);
    struct scand_job *job = NULL;
    scan.group = group;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    return job;
}

static uint64_t number_of(uint32_t group)
{
    uint64_t number = 0;
    CHECK_EQ(scand_group_number(session, group, &number), SCAND_OK);
    return number;
}

static void test_jobs_name_their_group(void)
{
    rig_begin();
    struct scand_buffer *buffer = buffer_of(BYTES);
    uint32_t first = 0, second = 0;
    CHECK_EQ(scand_group_begin(session, NULL, 5, &first), SCAND_OK);
    CHECK_EQ(scand_group_begin(session, "a file", 0, &second), SCAND_OK);
    CHECK(first > 0 && second > 0 && first != second);
    CHECK(number_of(first) == 100 && number_of(second) == 101);
    CHECK_EQ(scand_wait(submit_in(buffer, buffer, second), -1, NULL), SCAND_OK);
    CHECK_EQ(fake.group, (int)second);
    CHECK_EQ(scand_wait(submit_in(buffer, buffer, 0), -1, NULL), SCAND_OK);
    CHECK_EQ(fake.group, 0);
    CHECK_EQ(scand_group_end(session, first), SCAND_OK);
    CHECK_EQ(scand_group_end(session, second), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_group_end], 2);
    rig_end();
}

static void test_tasks_and_reductions_too(void)
{
    rig_begin();
    struct scand_buffer *buffer = buffer_of(BYTES);
    struct scand_scan scan = scan_of(buffer, buffer);
    struct scand_task *task = NULL;
    struct scand_job *job = NULL;
    uint32_t group = 0;
    char text[12];
    CHECK_EQ(scand_group_begin(session, "steps", 0, &group), SCAND_OK);
    CHECK_EQ(scand_task_create(&task), SCAND_OK);
    scand_task_input(task, &scan.input);
    scand_task_output(task, &scan.output);
    scand_task_axis(task, 0);
    scand_task_step(task, "scan");
    scand_task_set(task, "passes", "forward");
    snprintf(text, sizeof text, "%u", (unsigned)group);
    CHECK_EQ(scand_task_option(task, "group", text), SCAND_OK);
    CHECK_EQ(scand_task_submit(session, task, NULL, NULL, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    CHECK_EQ(fake.run.group, group);
    CHECK_EQ(scand_group_end(session, group), SCAND_OK);
    CHECK_EQ(scand_task_submit(session, task, NULL, NULL, &job), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "group is 1, which is not open");
    CHECK_EQ(scand_task_option(task, "group", "5"), SCAND_INVALID);
    CHECK_CONTAINS(scand_task_message(task), "group is \"5\"; allowed: whole numbers from 0 to 4");
    scand_task_destroy(task);
    struct scand_reduce reduce = {
        .input = scan.input, .output = scan.output, .reduction = SCAND_REDUCTION_SUM, .group = SCAND_GROUPS_MAX + 1};
    CHECK_EQ(scand_submit_reduce(session, &reduce, NULL, NULL, &job), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "group is 5, which is not open");
    rig_end();
}

static void test_labels_are_limited(void)
{
    rig_begin();
    uint32_t groups[SCAND_GROUPS_MAX + 1] = {0};
    uint64_t number;
    for (int i = 0; i < SCAND_GROUPS_MAX; i++)
        CHECK_EQ(scand_group_begin(session, NULL, 0, &groups[i]), SCAND_OK);
    CHECK_EQ(scand_group_begin(session, NULL, 0, &groups[SCAND_GROUPS_MAX]), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "4 groups are open: end one of them");
    CHECK_EQ(scand_group_end(session, groups[2]), SCAND_OK);
    CHECK_EQ(scand_group_end(session, groups[2]), SCAND_INVALID);
    CHECK_EQ(scand_group_end(session, 0), SCAND_INVALID);
    CHECK(!strcmp(scand_message(session), "group is 0, which is not open: give what scand_group_begin has set"));
    CHECK_EQ(scand_group_number(session, 0, &number), SCAND_INVALID);
    CHECK(!strcmp(scand_message(session), "group is 0, which is not open: give what scand_group_begin has set"));
    CHECK_EQ(scand_group_number(session, UINT32_MAX, &number), SCAND_INVALID);
    CHECK_EQ(scand_group_begin(session, NULL, 0, &groups[SCAND_GROUPS_MAX]), SCAND_OK);
    CHECK_EQ(groups[SCAND_GROUPS_MAX], groups[2]);
    rig_end();
}

/* A group that the daemon refuses is none, and one that it does not let go stays. */
static void test_refusals(void)
{
    rig_begin();
    uint32_t group = 77;
    fake.fail_on = METHOD_group_begin;
    fake.fail_code = -ENOSYS;
    CHECK_EQ(scand_group_begin(session, NULL, 0, &group), SCAND_UNKNOWN_METHOD);
    CHECK_EQ(group, 77);
    fake.fail_on = FAKE_NONE;
    CHECK_EQ(scand_group_begin(session, NULL, 0, &group), SCAND_OK);
    CHECK_EQ(group, 1);
    fake.fail_on = METHOD_group_end;
    fake.fail_code = -EINVAL;
    CHECK_EQ(scand_group_end(session, group), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "group is 1, of which jobs have not ended");
    fake.fail_on = FAKE_NONE;
    CHECK_EQ(scand_group_end(session, group), SCAND_OK);
    rig_end();
}

/* The next worker knows nothing of the groups of the one before. */
static void test_groups_are_begun_again(void)
{
    rig_begin();
    struct scand_buffer *from = buffer_of(BYTES), *to = buffer_of(BYTES);
    uint32_t ended = 0, group = 0, last = 0;
    CHECK_EQ(scand_group_begin(session, NULL, 0, &ended), SCAND_OK);
    CHECK_EQ(scand_group_begin(session, "a file", 9, &group), SCAND_OK);
    CHECK_EQ(scand_group_begin(session, "another", 9, &last), SCAND_OK);
    CHECK_EQ(scand_group_end(session, ended), SCAND_OK);
    fake.die_on = METHOD_job_submit;
    fake.die_count = 1;
    CHECK_EQ(scand_wait(submit_in(from, to, group), -1, NULL), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_job_submit], 2);
    CHECK_EQ(fake.seen[METHOD_group_begin], 5);
    CHECK_EQ(fake.group, (int)group);
    CHECK(number_of(group) == 103 && number_of(last) == 104);
    /* One that will not have the group lists the job alone. */
    fake.fail_on = METHOD_group_begin;
    fake.fail_code = -EINVAL;
    fake.die_count = 1;
    CHECK_EQ(scand_wait(submit_in(from, to, group), -1, NULL), SCAND_OK);
    CHECK_EQ(fake.group, 0);
    CHECK_EQ(scand_group_end(session, group), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_group_end], 1);
    rig_end();
}

/* The answer is lost with the worker: the next one is asked. */
static void test_worker_ends_while_it_begins(void)
{
    rig_begin();
    uint32_t group = 0;
    fake.die_on = METHOD_group_begin;
    fake.die_count = 1;
    CHECK_EQ(scand_group_begin(session, NULL, 0, &group), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_group_begin], 2);
    CHECK_EQ(number_of(group), 100);
    fake.die_on = METHOD_group_end;
    fake.die_count = 1;
    CHECK_EQ(scand_group_end(session, group), SCAND_OK);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(scand_group_begin(session, NULL, 0, &group), SCAND_OK);
    rig_end();
}

static void *begin_one(void *context)
{
    uint32_t *group = context;
    CHECK_EQ(scand_group_begin(session, "one of several", 1, group), SCAND_OK);
    return NULL;
}

/* Threads that begin groups at once get different ones. */
static void test_threads_have_their_own(void)
{
    pthread_t threads[SCAND_GROUPS_MAX];
    rig_begin();
    fake.late_on = METHOD_group_begin;
    fake.late_ms = 20;
    for (int round = 0; round < 3; round++) {
        uint32_t groups[SCAND_GROUPS_MAX] = {0}, seen = 0;
        for (size_t i = 0; i < SCAND_GROUPS_MAX; i++)
            CHECK_EQ(pthread_create(&threads[i], NULL, begin_one, &groups[i]), 0);
        for (size_t i = 0; i < SCAND_GROUPS_MAX; i++)
            pthread_join(threads[i], NULL);
        for (size_t i = 0; i < SCAND_GROUPS_MAX; i++) {
            CHECK(groups[i] >= 1 && groups[i] <= SCAND_GROUPS_MAX && !(seen >> groups[i] & 1));
            seen |= UINT32_C(1) << groups[i];
            CHECK_EQ(scand_group_end(session, groups[i]), SCAND_OK);
        }
    }
    CHECK_EQ(fake.seen[METHOD_group_begin], 3 * SCAND_GROUPS_MAX);
    rig_end();
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(test_jobs_name_their_group),  TEST(test_tasks_and_reductions_too),
        TEST(test_labels_are_limited),     TEST(test_refusals),
        TEST(test_groups_are_begun_again), TEST(test_worker_ends_while_it_begins),
        TEST(test_threads_have_their_own), TEST_END,
    };
    return test_main(argc, argv, tests);
}

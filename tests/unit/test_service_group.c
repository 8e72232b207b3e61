/* Jobs that people see as one: group.begin, group.end, what server.jobs lists and what server.cancel cancels. */
#include "tests/unit/list_rig.h"

/* Submits a job in a group, counted from 1; 0: in none. */
static uint32_t submit(struct caller *user, uint64_t buffer, uint64_t group, uint64_t first, uint64_t rows)
{
    struct msg_job_submit_params params = in_place(buffer, first, rows, 1);
    params.priority = SCAND_PRIORITY_HIGH;
    params.group = group;
    return ask(user, METHOD_job_submit, &params);
}

static uint64_t begin_group(struct caller *user, uint64_t label, const char *name, uint64_t rows)
{
    struct msg_group_begin_params params = {.group = label, .rows = rows};
    struct msg_job_number number = {0};
    snprintf(params.name, sizeof params.name, "%s", name);
    CHECK(granted(user, METHOD_group_begin, &params, &number));
    return number.job;
}

static bool end_group(struct caller *user, uint64_t label)
{
    return granted(user, METHOD_group_end, &(struct msg_group_label){label}, NULL);
}

/* One row of the list from the first job to the end of the last, also while none is there. */
static void a_group_is_one_row(void)
{
    uint64_t buffer;
    struct caller *anna = begin_with_buffer(&buffer), *bert = user_greet(BERT);
    CHECK_EQ(begin_group(anna, 2, "survey", 12), 1);
    rig.now_us += 50;
    struct msg_jobs_result jobs = jobs_from(anna, 0);
    CHECK(jobs.jobs_count == 1 && jobs.jobs[0].job == 1 && jobs.jobs[0].state == SCAND_JOB_STATE_QUEUED);
    CHECK(jobs.jobs[0].age_us == 50 && jobs.jobs[0].running_us == 0 && jobs.jobs[0].rows == 12);
    uint32_t first = submit(anna, buffer, 3, 0, 8), alone = submit(anna, buffer, 0, 100, 4);
    rig_complete(0, 0);
    jobs = jobs_from(anna, 0);
    CHECK(jobs.jobs_count == 2 && jobs.jobs[0].job == 1 && jobs.jobs[1].job == 3 && jobs.jobs[0].rows_done == 4);
    CHECK(jobs.jobs[0].state == SCAND_JOB_STATE_RUNNING && jobs.jobs[0].priority == SCAND_PRIORITY_HIGH);
    CHECK(strcmp(jobs.jobs[0].name, "survey") == 0 && jobs.jobs[0].bytes == 16 * RIG_ROW_BYTES);
    CHECK(strcmp(jobs.jobs[0].operation, "scan sum forward f32") == 0 && jobs.jobs[0].client == 1);
    CHECK(jobs_from(bert, 0).jobs[0].name[0] == 0 && jobs_from(bert, 0).jobs[0].operation[0] == 0);
    rig_complete_all();
    CHECK(answered(anna, first, METHOD_job_submit, NULL) && answered(anna, alone, METHOD_job_submit, NULL));
    rig.now_us += 100;
    jobs = jobs_from(anna, 1);
    CHECK(jobs.jobs_count == 1 && jobs.jobs[0].rows_done == 8 && jobs.jobs[0].running_us == 100);
    uint32_t second = submit(anna, buffer, 3, 8, 4);
    rig_complete_all();
    CHECK(answered(anna, second, METHOD_job_submit, NULL));
    CHECK_EQ(jobs_from(anna, 0).jobs[0].rows_done, 12);
    CHECK(end_group(anna, 2));
    CHECK_EQ(jobs_from(anna, 0).jobs_count, 0);
    rig_end();
}

/* Numbers of jobs and of groups are never the same. */
static void numbers_are_those_of_jobs(void)
{
    uint64_t buffer;
    struct msg_stats_result stats;
    struct caller *anna = begin_with_buffer(&buffer);
    submit(anna, buffer, 0, 0, 4);
    CHECK_EQ(begin_group(anna, 0, "", 0), 2);
    submit(anna, buffer, 1, 4, 4);
    CHECK_EQ(begin_group(anna, 1, "", 0), 4);
    rig_complete_all();
    next_answer(anna, NULL, NULL);
    next_answer(anna, NULL, NULL);
    CHECK(granted(anna, METHOD_server_stats, &(struct msg_nothing){}, &stats));
    CHECK(stats.jobs_numbered == 4 && stats.jobs_submitted == 2);
    struct service_totals totals;
    service_totals(&rig.service, &totals);
    CHECK_EQ(totals.stats.jobs_numbered, 4);
    rig_end();
}

static void a_failed_job_has_no_rows(void)
{
    uint64_t buffer;
    struct caller *anna = begin_with_buffer(&buffer);
    begin_group(anna, 0, "", 8);
    uint32_t failing = submit(anna, buffer, 1, 0, 8);
    rig_complete(0, 0);
    CHECK_EQ(jobs_from(anna, 0).jobs[0].rows_done, 4);
    rig_complete(0, -EIO);
    refusal(anna, failing, SCAND_DEVICE);
    CHECK_EQ(jobs_from(anna, 0).jobs[0].rows_done, 0);
    rig_end();
}

static void cancelling_is_of_all(void)
{
    uint64_t buffer;
    struct caller *anna = begin_with_buffer(&buffer), *bert = user_greet(BERT), *also = user_greet(ANNA);
    const uint64_t number = begin_group(anna, 0, "", 0);
    struct msg_job_number params = {number};
    uint32_t running = submit(anna, buffer, 1, 0, 40), queued = submit(anna, buffer, 1, 40, 4);
    uint32_t other = submit(anna, buffer, 0, 50, 4);
    CHECK_CONTAINS(refused(bert, METHOD_server_cancel, &params, SCAND_PERMISSION), "is not a job of user 1001");
    CHECK(granted(also, METHOD_server_cancel, &params, NULL));
    CHECK_CONTAINS(refusal(anna, queued, SCAND_CANCELLED), "cancelled by server.cancel");
    CHECK_EQ(jobs_from(also, 0).jobs[0].state, SCAND_JOB_STATE_STOPPING);
    rig_complete_all();
    CHECK_CONTAINS(refusal(anna, running, SCAND_CANCELLED), "cancelled by server.cancel");
    CHECK(answered(anna, other, METHOD_job_submit, NULL));
    uint32_t late = submit(anna, buffer, 1, 60, 4);
    CHECK_CONTAINS(refusal(anna, late, SCAND_CANCELLED),
                   "job.submit: cancelled as job 1 by server.cancel; \"group\" 0 takes no more jobs");
    CHECK(end_group(anna, 0));
    CHECK_CONTAINS(refused(anna, METHOD_server_cancel, &params, SCAND_NOT_FOUND), "\"job\" is 1;");
    begin_group(anna, 0, "", 0);
    uint32_t anew = submit(anna, buffer, 1, 60, 4);
    rig_complete_all();
    CHECK(answered(anna, anew, METHOD_job_submit, NULL));
    rig_end();
}

static void what_is_wrong_is_refused(void)
{
    uint64_t buffer;
    struct caller *anna = begin_with_buffer(&buffer);
    struct msg_group_begin_params again = {.group = 1};
    struct msg_group_label label = {1}, none = {3};
    begin_group(anna, 1, "", 0);
    CHECK_CONTAINS(refused(anna, METHOD_group_begin, &again, SCAND_INVALID),
                   "\"group\" is 1, which is open already, as job 1; end it first, or use another of 0 to 3");
    CHECK_CONTAINS(refused(anna, METHOD_group_end, &none, SCAND_INVALID), "group.end: \"group\" is 3; this connection");
    uint32_t msgid = submit(anna, buffer, 4, 0, 4);
    CHECK_CONTAINS(refusal(anna, msgid, SCAND_INVALID),
                   "job.submit: \"group\" is 3; this connection has no such group");
    msgid = submit(anna, buffer, 2, 0, 4);
    CHECK_CONTAINS(refused(anna, METHOD_group_end, &label, SCAND_INVALID), "of which 1 jobs wait or run");
    rig_complete_all();
    CHECK(answered(anna, msgid, METHOD_job_submit, NULL));
    struct msg_group_begin_params beyond = {.group = LIMIT_CLIENT_GROUPS};
    CHECK_CONTAINS(refused(anna, METHOD_group_begin, &beyond, SCAND_INVALID), "\"group\" is 4; allowed: 0 to 3");
    rig_end();
}

/* The list of jobs stays right, page by page, and cancelling too, with as many connections as a user has, each with all
 * groups. */
static void all_groups_of_many(void)
{
    rig_begin();
    struct caller *users[RIG_USERS];
    uint64_t from = 0, last = 0, count = 0;
    for (size_t i = 0; i < RIG_USERS; i++) {
        users[i] = user_greet(ANNA);
        for (uint64_t label = 0; label < LIMIT_CLIENT_GROUPS; label++)
            for (int again = 0; again < 3; again++) {
                last = begin_group(users[i], label, "one of many", UINT64_MAX);
                CHECK(again == 2 || end_group(users[i], label));
            }
    }
    CHECK_EQ(last, 3 * RIG_USERS * LIMIT_CLIENT_GROUPS);
    do {
        struct msg_jobs_result jobs = jobs_from(users[0], from);
        for (uint32_t i = 0; i < jobs.jobs_count; i++, count++)
            CHECK_EQ(jobs.jobs[i].job, 3 * count + 3);
        from = jobs.next;
    } while (from);
    CHECK_EQ(count, RIG_USERS * LIMIT_CLIENT_GROUPS);
    user_close(users[0]);
    CHECK_EQ(jobs_from(users[1], 0).jobs[0].job, 3 * LIMIT_CLIENT_GROUPS + 3);
    rig_end();
}

/* Jobs that have ended are traced with their group, by which people know them. */
static void traces_name_groups(void)
{
    uint64_t buffer;
    struct msg_trace_result trace;
    struct caller *anna = begin_with_buffer(&buffer);
    begin_group(anna, 0, "", 0);
    uint32_t in = submit(anna, buffer, 1, 0, 4), out = submit(anna, buffer, 0, 4, 4);
    rig_complete_all();
    CHECK(answered(anna, in, METHOD_job_submit, NULL) && answered(anna, out, METHOD_job_submit, NULL));
    CHECK(granted(anna, METHOD_server_trace, &(struct msg_page_params){0}, &trace));
    CHECK_EQ(trace.events_count, 4);
    for (uint32_t i = 0; i < trace.events_count; i++)
        CHECK(trace.events[i].group == (trace.events[i].job == 2 ? 1 : 0) && trace.events[i].job >= 2);
    rig_end();
}

/* A client goes at any moment: with a job out, one queued and one done. */
static void the_client_goes(void)
{
    uint64_t buffer;
    struct caller *anna = begin_with_buffer(&buffer), *bert = user_greet(BERT);
    begin_group(anna, 0, "", 0);
    submit(anna, buffer, 1, 0, 8);
    submit(anna, buffer, 1, 8, 8);
    rig_complete(0, 0);
    user_close(anna);
    CHECK_EQ(jobs_from(bert, 0).jobs_count, 0);
    rig_complete_all();
    CHECK_EQ(jobs_from(bert, 0).jobs_count, 0);
    rig_end();
}

/* A drain waits until somebody who has a group knows that there is no next job of it: for a moment. */
static void groups_hold_a_drain(void)
{
    enum { REFUSED, ENDED, GONE, LATE, HOW };
    for (int how = 0; how < HOW; how++) {
        uint64_t buffer;
        struct caller *anna = begin_with_buffer(&buffer), *bert = user_greet(BERT);
        begin_group(anna, 0, "", 0);
        begin_group(bert, 3, "", 0);
        const uint32_t running = submit(anna, buffer, 1, 0, 4);
        service_drain(&rig.service);
        rig_complete_all();
        CHECK(answered(anna, running, METHOD_job_submit, NULL));
        CHECK_CONTAINS(refused(bert, METHOD_group_begin, &(struct msg_group_begin_params){.group = 1}, SCAND_DRAINING),
                       "group.begin: the daemon takes no more jobs");
        CHECK(end_group(bert, 3));
        rig_pass(LIMIT_DRAIN_GROUP_MS * 1000 - 1);
        service_drain(&rig.service);
        CHECK_EQ(rig.drained, 0);
        if (how == REFUSED)
            CHECK_CONTAINS(refusal(anna, submit(anna, buffer, 1, 0, 4), SCAND_DRAINING), "it is about to stop");
        else if (how == ENDED)
            CHECK(end_group(anna, 0));
        else if (how == GONE)
            user_close(anna);
        else
            rig_pass(1);
        CHECK(rig.drained > 0);
        rig_end();
    }
}

/* The moment ends in its time, also when something else was due before. */
static void a_deadline_passes_in_a_drain(void)
{
    uint64_t buffer;
    struct caller *anna = begin_with_buffer(&buffer);
    begin_group(anna, 0, "", 0);
    const uint32_t running = submit(anna, buffer, 1, 0, 4);
    struct msg_job_submit_params params = rig_scan_in_place(rig_rows(buffer, 0, 4)); /* waits for the one before it */
    params.deadline_ms = 10;
    const uint32_t late = ask(anna, METHOD_job_submit, &params);
    service_drain(&rig.service);
    rig_pass(10 * 1000);
    refusal(anna, late, SCAND_DEADLINE);
    rig_complete_all();
    CHECK(answered(anna, running, METHOD_job_submit, NULL));
    CHECK_EQ(rig.drained, 0);
    rig_pass(LIMIT_DRAIN_GROUP_MS * 1000);
    CHECK(rig.drained > 0);
    rig_end();
}

/* A refused job does not let a drain end before other jobs. */
static void jobs_hold_a_drain_with_groups(void)
{
    uint64_t buffer;
    struct caller *anna = begin_with_buffer(&buffer);
    begin_group(anna, 0, "", 0);
    const uint32_t running = submit(anna, buffer, 1, 0, 4);
    service_drain(&rig.service);
    refusal(anna, submit(anna, buffer, 1, 0, 4), SCAND_DRAINING);
    rig_pass(LIMIT_DRAIN_GROUP_MS * 1000 + 1);
    CHECK_EQ(rig.drained, 0);
    rig_complete_all();
    CHECK(answered(anna, running, METHOD_job_submit, NULL));
    CHECK(rig.drained > 0);
    rig_end();
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_group_is_one_row),
        TEST(numbers_are_those_of_jobs),
        TEST(a_failed_job_has_no_rows),
        TEST(cancelling_is_of_all),
        TEST(what_is_wrong_is_refused),
        TEST(all_groups_of_many),
        TEST(the_client_goes),
        TEST(traces_name_groups),
        TEST(groups_hold_a_drain),
        TEST(a_deadline_passes_in_a_drain),
        TEST(jobs_hold_a_drain_with_groups),
        TEST_END,
    };
    return test_main(argc, argv, tests);
}

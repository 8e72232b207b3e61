/* libscand when a daemon refuses jobs since it drains: they are the next daemon's, for a bounded time. And others that
 * no daemon has begun. */
#include <errno.h>

#include "client/lib/internal.h"
#include "tests/unit/client_rig.h"

static struct scand_buffer *input, *output;

/* A session whose jobs are kept for so long, an input of 0, 1, 2, ... and an output. */
static void begin_with(int64_t drain_ms)
{
    struct scand_options *options = NULL;
    rig_start();
    CHECK_EQ(scand_options_create(&options), SCAND_OK);
    CHECK_EQ(scand_options_set(options, "drain_ms", drain_ms), SCAND_OK);
    CHECK_EQ(scand_connect_with(options, fake.path, "test", &session), SCAND_OK);
    scand_options_destroy(options);
    input = buffer_of(BYTES);
    output = buffer_of(BYTES);
    for (int i = 0; i < SAMPLES; i++)
        ((float *)scand_buffer_data(input))[i] = (float)i;
}

static void begin(void)
{
    begin_with(60000);
}

/* Requests are answered in their order: those before a ping have been when that is. */
static void requests_arrive(void)
{
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
}

/* From now on the daemon refuses jobs, and groups. */
static void drain(enum method method)
{
    fake.fail_code = -ESHUTDOWN;
    fake.fail_on = (int)method;
}

/* The daemon ends, and another one is there, which takes jobs. */
static void next_daemon(void)
{
    fake.fail_on = fake.silent_on = FAKE_NONE;
    fake.hold = 0;
    fake.die_on = METHOD_server_ping;
    fake.die_count = 1;
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
}

static void check_samples(const struct scand_buffer *buffer, int added)
{
    int wrong = 0;
    for (int i = 0; i < SAMPLES; i++)
        wrong += ((const float *)scand_buffer_data(buffer))[i] != (float)(i + added);
    CHECK_EQ(wrong, 0);
}

/* Jobs in place, too: they have not been begun. Later jobs are behind them. */
static void jobs_are_the_next_daemons(void)
{
    begin();
    drain(METHOD_job_submit);
    struct scand_job *first = submit(input, input), *second = submit(input, input), *third = submit(input, output);
    requests_arrive();
    CHECK_EQ(scand_wait(first, 30, NULL), SCAND_TIMED_OUT);
    CHECK_CONTAINS(scand_message(session), "within 30 ms, since the daemon is about to stop, and the next one is to");
    CHECK_EQ(scand_job_done(third), 0);
    check_samples(input, 0);
    next_daemon();
    CHECK_EQ(scand_wait(third, -1, NULL), SCAND_OK);
    CHECK_EQ(scand_wait(second, -1, NULL), SCAND_OK);
    CHECK_EQ(scand_wait(first, -1, NULL), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_job_submit], 6);
    CHECK_EQ(fake.seen[METHOD_buffer_import], 2);
    check_samples(input, 2);
    check_samples(output, 3);
    CHECK_EQ(session->held_end_ms, 0); /* a further drain has its own time */
    CHECK_EQ(session->held_due_ms, INT64_MAX);
    rig_end();
}

static void a_loop_goes_on(void)
{
    begin();
    drain(METHOD_job_submit);
    struct scand_job *job = submit(input, input);
    requests_arrive();
    fake.away_ms = RECONNECT_MS / 4;
    next_daemon();
    CHECK_EQ(loop_until_done(job), SCAND_OK);
    CHECK_EQ(scand_wait(job, 0, NULL), SCAND_OK);
    check_samples(input, 1);
    rig_end();
}

static void batches_too(void)
{
    enum { JOBS = 3 };
    struct scand_job *jobs[JOBS];
    begin();
    drain(METHOD_job_batch);
    const struct scand_scan in_place = scan_of(input, input), scans[JOBS] = {in_place, in_place, in_place};
    CHECK_EQ(scand_submit_many(session, scans, JOBS, jobs), SCAND_OK);
    requests_arrive();
    CHECK_EQ(scand_job_done(jobs[0]), 0);
    next_daemon();
    for (int i = 0; i < JOBS; i++)
        CHECK_EQ(scand_wait(jobs[i], -1, NULL), SCAND_OK);
    check_samples(input, JOBS);
    rig_end();
}

/* What came after the refused job has not been begun either, although nobody has said so. */
static void jobs_behind_a_refused_one(void)
{
    enum { JOBS = 2 };
    struct scand_job *before[JOBS];
    begin();
    struct scand_buffer *third = buffer_of(BYTES);
    memset(scand_buffer_data(third), 0, BYTES);
    drain(METHOD_job_submit);
    fake.late_on = METHOD_job_submit;
    fake.late_ms = 100;
    fake.silent_on = METHOD_job_batch;
    struct scand_job *refused = submit(input, output);
    const struct scand_scan in_place = scan_of(input, input), scans[JOBS] = {in_place, in_place};
    CHECK_EQ(scand_submit_many(session, scans, JOBS, before), SCAND_OK); /* sent before the refusal is known, */
    requests_arrive();
    fake.late_on = FAKE_NONE;
    fake.silent_on = METHOD_job_submit;
    struct scand_job *after = submit(third, third); /* and after */
    requests_arrive();
    CHECK_EQ(scand_job_done(refused) + scand_job_done(before[0]) + scand_job_done(after), 0);
    next_daemon();
    for (int i = 0; i < JOBS; i++)
        CHECK_EQ(scand_wait(before[i], -1, NULL), SCAND_OK);
    CHECK_EQ(scand_wait(after, -1, NULL), SCAND_OK);
    CHECK_EQ(scand_wait(refused, -1, NULL), SCAND_OK);
    check_samples(input, JOBS);
    check_samples(output, 1);
    CHECK(*(float *)scand_buffer_data(third) == 1);
    rig_end();
}

/* A job before it that may have been begun is another matter. */
static void jobs_before_a_refused_one(void)
{
    begin();
    struct scand_buffer *third = buffer_of(BYTES);
    fake.hold = 1;
    struct scand_job *begun = submit(input, input);
    requests_arrive();
    drain(METHOD_job_submit);
    struct scand_job *reader = submit(input, output), *apart = submit(third, third);
    requests_arrive();
    next_daemon();
    CHECK_EQ(scand_wait(begun, -1, NULL), SCAND_LOST);
    CHECK_EQ(scand_wait(reader, -1, NULL), SCAND_STALE);
    CHECK_EQ(scand_wait(apart, -1, NULL), SCAND_OK);
    rig_end();
}

/* A kept job has not written to what a job that ran reads, so that one is repeated, and goes first again. */
static void a_kept_job_has_written_nothing(void)
{
    begin();
    struct scand_buffer *third = buffer_of(BYTES);
    memset(scand_buffer_data(third), 0, BYTES);
    fake.hold = 1;
    struct scand_job *ran = submit(input, output);
    requests_arrive();
    drain(METHOD_job_submit);
    struct scand_job *kept = submit(third, input);
    requests_arrive();
    next_daemon();
    CHECK_EQ(scand_wait(ran, -1, NULL), SCAND_OK);
    CHECK_EQ(scand_wait(kept, -1, NULL), SCAND_OK);
    check_samples(output, 1);
    CHECK_EQ(((const float *)scand_buffer_data(input))[SAMPLES - 1], 1);
    rig_end();
}

/* The input of the kept job is not written by the one before it, which is cancelled. */
static void readers_of_a_failed_one(void)
{
    begin();
    struct scand_buffer *third = buffer_of(BYTES);
    fake.hold = 1;
    struct scand_job *writer = submit(input, output);
    requests_arrive();
    drain(METHOD_job_submit);
    struct scand_job *reader = submit(output, third), *after = submit(input, third);
    requests_arrive();
    CHECK_EQ(scand_cancel(writer), SCAND_OK);
    CHECK_EQ(scand_wait(writer, -1, NULL), SCAND_CANCELLED);
    next_daemon();
    CHECK_EQ(scand_wait(reader, -1, NULL), SCAND_STALE);
    CHECK_EQ(scand_wait(after, -1, NULL), SCAND_OK);
    rig_end();
}

/* A daemon that takes longer to stop than the program waits: what it refuses from then on ends at once. */
static void time_is_over(void)
{
    for (int loops = 0; loops < 2; loops++) {
        begin_with(QUIET_MS / 2);
        drain(METHOD_job_submit);
        struct scand_job *job = submit(input, input), *other = submit(input, output);
        CHECK_EQ(loops ? loop_until_done(job) : scand_wait(job, -1, NULL), loops ? SCAND_OK : SCAND_DRAINING);
        CHECK_EQ(scand_wait(job, 0, NULL), SCAND_DRAINING);
        CHECK_CONTAINS(scand_message(session),
                       "is about to stop, and has not finished the jobs that it has within 0.2 s (drain_ms): submit");
        CHECK_EQ(scand_wait(other, 0, NULL), SCAND_DRAINING);
        CHECK_EQ(scand_wait(submit(input, input), -1, NULL), SCAND_DRAINING);
        CHECK_CONTAINS(scand_message(session), "planned failure");
        next_daemon();
        CHECK_EQ(fake.seen[METHOD_job_submit], 3);
        CHECK_EQ(scand_wait(submit(input, input), -1, NULL), SCAND_OK);
        check_samples(input, 1);
        rig_end();
    }
}

static void nothing_is_kept(void)
{
    begin_with(0);
    drain(METHOD_job_submit);
    CHECK_EQ(scand_wait(submit(input, input), -1, NULL), SCAND_DRAINING);
    CHECK_CONTAINS(scand_message(session), "planned failure");
    uint32_t group = 0;
    drain(METHOD_group_begin);
    CHECK_EQ(scand_group_begin(session, NULL, 0, &group), SCAND_DRAINING);
    rig_end();
}

static void a_deadline_runs_on(void)
{
    begin();
    drain(METHOD_job_submit);
    struct scand_scan scan = scan_of(input, output);
    struct scand_job *late = NULL, *soon = NULL, *kept = submit(input, output);
    scan.deadline_ms = 60000;
    CHECK_EQ(scand_submit(session, &scan, &soon), SCAND_OK);
    scan.deadline_ms = 100;
    CHECK_EQ(scand_submit(session, &scan, &late), SCAND_OK);
    CHECK_EQ(scand_wait(late, -1, NULL), SCAND_DEADLINE);
    CHECK_CONTAINS(scand_message(session), "while the daemon finished the jobs that it had, before it stops");
    next_daemon();
    CHECK_EQ(scand_wait(soon, -1, NULL), SCAND_OK);
    CHECK(fake.deadline_ms > 0 && fake.deadline_ms < 60000);
    CHECK_EQ(scand_wait(kept, -1, NULL), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_job_submit], 5);
    rig_end();
}

/* The times of kept jobs end one after the other, and none is that of a job that the daemon has begun. */
static void deadlines_run_on(void)
{
    begin();
    struct scand_buffer *third = buffer_of(BYTES);
    struct scand_scan scan = scan_of(input, input);
    struct scand_job *begun = NULL, *late = NULL, *later = NULL;
    fake.hold = 1;
    scan.deadline_ms = 1;
    CHECK_EQ(scand_submit(session, &scan, &begun), SCAND_OK);
    requests_arrive();
    scan = scan_of(third, third);
    drain(METHOD_job_submit);
    scan.deadline_ms = 200;
    CHECK_EQ(scand_submit(session, &scan, &later), SCAND_OK);
    scan.deadline_ms = 100;
    CHECK_EQ(scand_submit(session, &scan, &late), SCAND_OK);
    CHECK_EQ(scand_wait(late, 20000, NULL), SCAND_DEADLINE);
    CHECK_EQ(scand_wait(later, 20000, NULL), SCAND_DEADLINE);
    CHECK_EQ(scand_job_done(begun), 0);
    fake.hold = 0;
    requests_arrive();
    CHECK_EQ(scand_wait(begun, 20000, NULL), SCAND_OK);
    rig_end();
}

static void no_daemon_follows(void)
{
    for (int loops = 0; loops < 2; loops++) {
        begin();
        drain(METHOD_job_submit);
        struct scand_job *job = submit(input, input);
        requests_arrive();
        fake_stop(&fake);
        CHECK_EQ(loops ? loop_until_done(job) : scand_wait(job, -1, NULL), loops ? SCAND_UNAVAILABLE : SCAND_DRAINING);
        CHECK_EQ(scand_wait(job, 0, NULL), SCAND_DRAINING);
        CHECK_CONTAINS(scand_message(session),
                       "the daemon stopped without taking the job, and no daemon came back at ");
        CHECK_CONTAINS(scand_message(session), " within 1 s: start one with \"scand\"");
        check_samples(input, 0);
        rig_end();
    }
}

/* One daemon after the other refuses the job, and stops. */
static void only_so_many_daemons_are_asked(void)
{
    begin();
    drain(METHOD_job_submit);
    fake.die_on = METHOD_server_ping;
    fake.die_count = 100; /* the pings are the library's own */
    CHECK_EQ(scand_wait(submit(input, input), -1, NULL), SCAND_DRAINING);
    CHECK_EQ(fake.seen[METHOD_job_submit], ATTEMPTS_MAX);
    fake.die_count = 0;
    rig_end();
}

/* No next daemon has such memory, so nobody waits for one. */
static void device_memory_ends(void)
{
    begin();
    struct scand_buffer *device = NULL;
    CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_DEVICE, BYTES, &device), SCAND_OK);
    drain(METHOD_job_submit);
    CHECK_EQ(scand_wait(submit(device, output), -1, NULL), SCAND_DRAINING);
    CHECK_CONTAINS(scand_message(session),
                   "is about to stop, and device memory ends with the daemon's worker: release");
    CHECK_EQ(fake.seen[METHOD_job_submit], 1);
    rig_end();
}

static void cancelled_and_released(void)
{
    begin();
    struct scand_buffer *third = buffer_of(BYTES), *fourth = buffer_of(BYTES);
    drain(METHOD_job_submit);
    struct scand_job *cancelled = submit(fourth, fourth), *bereft = submit(third, output);
    scand_job_release(submit(input, input));
    requests_arrive();
    CHECK_EQ(scand_cancel(cancelled), SCAND_OK);
    CHECK_EQ(scand_job_done(cancelled), 1);
    CHECK_EQ(scand_wait(cancelled, -1, NULL), SCAND_CANCELLED);
    CHECK_CONTAINS(scand_message(session), "before a daemon took it; its output is as it was");
    CHECK_EQ(fake.seen[METHOD_job_cancel], 0);
    CHECK_EQ(scand_buffer_release(third), SCAND_OK);
    next_daemon();
    CHECK_EQ(scand_wait(bereft, -1, NULL), SCAND_DRAINING);
    CHECK_CONTAINS(scand_message(session), "stopped without taking the job, and a buffer of it was released meanwhile");
    requests_arrive();
    CHECK_EQ(fake.seen[METHOD_job_submit], 4);
    check_samples(input, 1);
    CHECK(session->jobs && !session->jobs_open);
    rig_end();
}

/* A group that a daemon does not begin any more is the next daemon's, as its jobs are. */
static void groups_too(void)
{
    begin();
    uint32_t group = 0;
    uint64_t number = 7;
    drain(METHOD_group_begin);
    CHECK_EQ(scand_group_begin(session, "a file", 9, &group), SCAND_OK);
    CHECK_EQ(scand_group_number(session, group, &number), SCAND_OK);
    CHECK_EQ(number, 0);
    drain(METHOD_job_submit);
    struct scand_scan scan = scan_of(input, input);
    struct scand_job *job = NULL;
    scan.group = group;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    requests_arrive();
    CHECK_EQ(scand_group_end(session, group), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "group is 1, of which jobs have not ended: end it after them");
    next_daemon();
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    CHECK_EQ(fake.group, 1);
    CHECK_EQ(scand_group_number(session, group, &number), SCAND_OK);
    CHECK_EQ(number, 100);
    CHECK_EQ(scand_group_end(session, group), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_group_begin], 2);
    CHECK_EQ(fake.seen[METHOD_group_end], 1);
    rig_end();
}

/* Sends a question whose answer nobody waits for. */
static void send_stats(void)
{
    SESSION_GUARD(session);
    CHECK_EQ(session_send(session, session_next_msgid(session, 0),
                          &(struct call){.method = METHOD_server_stats, .params = &(struct msg_nothing){}}),
             0);
}

/* Jobs in place whose messages have not left the program. The daemon stands still until its socket takes no more, and
 * ends with the first job: those that it has may have begun. */
static void jobs_that_were_not_sent(void)
{
    enum { JOBS = 2000, ROW = SAMPLES / JOBS };
    static struct scand_job *jobs[JOBS];
    int lost = 0, done = 0;
    begin();
    struct scand_scan scan = scan_of(input, input);
    scan.input.shape[0] = scan.output.shape[0] = ROW;
    {
        SESSION_GUARD(session);
        session->client_jobs = JOBS;
    }
    fake.late_ms = 300;
    fake.late_on = METHOD_server_stats;
    fake.die_on = METHOD_job_submit;
    fake.die_count = 1;
    send_stats();
    for (int i = 0; i < JOBS; i++) {
        scan.input.offset = scan.output.offset = (uint64_t)i * ROW * sizeof(float);
        CHECK_EQ(scand_submit(session, &scan, &jobs[i]), SCAND_OK);
    }
    for (int i = 0; i < JOBS; i++) {
        const int status = scand_wait(jobs[i], -1, NULL);
        lost += status == SCAND_LOST && done == 0; /* the first ones */
        done += status == SCAND_OK;
    }
    CHECK(lost > 0 && done > 0 && lost + done == JOBS);
    CHECK(((float *)scand_buffer_data(input))[JOBS * ROW - 1] == JOBS * ROW);
    rig_end();
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(jobs_are_the_next_daemons),
        TEST(a_loop_goes_on),
        TEST(batches_too),
        TEST(jobs_behind_a_refused_one),
        TEST(jobs_before_a_refused_one),
        TEST(readers_of_a_failed_one),
        TEST(time_is_over),
        TEST(nothing_is_kept),
        TEST(a_deadline_runs_on),
        TEST(deadlines_run_on),
        TEST(no_daemon_follows),
        TEST(only_so_many_daemons_are_asked),
        TEST(device_memory_ends),
        TEST(cancelled_and_released),
        TEST(a_kept_job_has_written_nothing),
        TEST(groups_too),
        TEST(jobs_that_were_not_sent),
        TEST_END,
    };
    return test_main(argc, argv, tests);
}

/* libscand against a planned daemon: jobs, from what is checked before they are sent to how they end. */
#include <errno.h>
#include <poll.h>

#include "client/lib/internal.h"
#include "tests/unit/client_rig.h"

static void test_job(void)
{
    rig_begin();
    struct scand_buffer *input = buffer_of(BYTES), *output = buffer_of(BYTES);
    struct scand_scan scan = scan_of(input, output);
    struct scand_job *job = NULL;
    struct scand_times times = {0};
    float *x = scand_buffer_data(input), *y = scand_buffer_data(output);
    for (int i = 0; i < SAMPLES; i++)
        x[i] = (float)i;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, &times), SCAND_OK);
    CHECK_EQ(times.queued_us, 1);
    CHECK_EQ(times.total_us, 5);
    int wrong = 0;
    for (int i = 0; i < SAMPLES; i++)
        wrong += y[i] != (float)(i + 1);
    CHECK_EQ(wrong, 0);
    CHECK_EQ(scand_job_done(job), 1);
    CHECK_EQ(scand_wait(job, 0, NULL), SCAND_OK);
    CHECK_EQ(scand_cancel(job), SCAND_OK);
    scand_job_release(job);
    scand_job_release(NULL);
    fake.fail_on = METHOD_job_submit;
    fake.fail_code = -EAGAIN;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_BUSY);
    CHECK_EQ(scand_retry_ms(session), 70);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_BUSY);
    CHECK_CONTAINS(scand_message(session), "planned failure");
    rig_end();
}

static void test_many_jobs(void)
{
    enum { JOBS = 10 };
    rig_begin();
    struct scand_buffer *buffer = buffer_of(BYTES);
    struct scand_scan scan = scan_of(buffer, buffer);
    struct scand_job *jobs[JOBS];
    fake.hold = 1;
    for (int i = 0; i < JOBS; i++)
        CHECK_EQ(scand_submit(session, &scan, &jobs[i]), SCAND_OK);
    CHECK_EQ(scand_wait(jobs[3], 20, NULL), SCAND_TIMED_OUT);
    CHECK_CONTAINS(scand_message(session), "20 ms");
    CHECK_EQ(scand_wait(jobs[3], 0, NULL), SCAND_TIMED_OUT);
    scand_job_release(jobs[4]);
    CHECK_EQ(scand_job_done(jobs[0]), 0);
    fake.hold = 0;
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    for (int i = 0; i < JOBS; i++)
        if (i != 4) {
            CHECK_EQ(scand_job_done(jobs[i]), 1);
            CHECK_EQ(scand_wait(jobs[i], 0, NULL), SCAND_OK);
            scand_job_release(jobs[i]);
        }
    CHECK(session->jobs == NULL);
    CHECK(*(float *)scand_buffer_data(buffer) == JOBS);
    rig_end();
}

static void test_cancel(void)
{
    rig_begin();
    struct scand_buffer *buffer = buffer_of(BYTES);
    struct scand_scan scan = scan_of(buffer, buffer);
    struct scand_job *job = NULL;
    fake.hold = 1;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_cancel(job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_CANCELLED);
    scand_job_release(job);
    /* The job is done, though its answer was not read yet. */
    fake.hold = 0;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_cancel(job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    rig_end();
}

struct report {
    struct scand_job *job;
    int calls;
    bool cancels, releases, pings;
};

static void note_progress(void *context, uint64_t rows_done, uint64_t rows)
{
    struct report *report = context;
    report->calls++;
    CHECK_EQ(rows, 5);
    CHECK(rows_done >= 1 && rows_done <= rows);
    if (report->pings)
        CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    if (report->cancels && report->calls == 1)
        CHECK_EQ(scand_cancel(report->job), SCAND_OK);
    if (report->releases)
        scand_job_release(report->job);
}

static void test_progress(void)
{
    rig_begin();
    struct scand_buffer *buffer = buffer_of(BYTES);
    struct scand_scan scan = scan_of(buffer, buffer);
    struct report report = {0};
    fake.progress = 5;
    CHECK_EQ(scand_submit_progress(session, &scan, note_progress, &report, &report.job), SCAND_OK);
    CHECK_EQ(scand_wait(report.job, -1, NULL), SCAND_OK);
    CHECK_EQ(report.calls, 5);
    /* Calls from within are answered; progress that comes meanwhile is not told. */
    report = (struct report){.pings = true};
    CHECK_EQ(scand_submit_progress(session, &scan, note_progress, &report, &report.job), SCAND_OK);
    CHECK_EQ(scand_wait(report.job, -1, NULL), SCAND_OK);
    CHECK(report.calls >= 1 && report.calls <= 5);
    report = (struct report){.cancels = true};
    fake.hold = 1;
    CHECK_EQ(scand_submit_progress(session, &scan, note_progress, &report, &report.job), SCAND_OK);
    CHECK_EQ(scand_wait(report.job, -1, NULL), SCAND_CANCELLED);
    report = (struct report){.releases = true};
    CHECK_EQ(scand_submit_progress(session, &scan, note_progress, &report, &report.job), SCAND_OK);
    while (report.calls == 0)
        CHECK_EQ(scand_dispatch(session), SCAND_OK);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(report.calls, 1);
    /* The one that is waited for, too. */
    fake.hold = 0;
    report = (struct report){.releases = true};
    CHECK_EQ(scand_submit_progress(session, &scan, note_progress, &report, &report.job), SCAND_OK);
    CHECK_EQ(scand_wait(report.job, -1, NULL), SCAND_OK);
    rig_end();
}

/* The end of a long job is announced. The wait for it then takes no longer than it may, whether the end comes or not.
 */
static void test_ending(void)
{
    rig_begin();
    struct scand_buffer *buffer = buffer_of(BYTES);
    struct scand_scan scan = scan_of(buffer, buffer);
    struct scand_job *job = NULL;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    CHECK_EQ(fake.ending, 1);
    scand_job_release(job);
    fake.hold = 1;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, 0, NULL), SCAND_TIMED_OUT);
    CHECK_EQ(scand_wait(job, 20, NULL), SCAND_TIMED_OUT);
    fake.hold = 0;
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    scand_job_release(job);
    scan.input.shape[0] = scan.output.shape[0] = SAMPLES - 1;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    CHECK_EQ(fake.ending, 0);
    scand_job_release(job);
    rig_end();
}

/* A short job is looked for only where the one before came soon, and not where the program does not want it. */
static void test_spinning(void)
{
    rig_begin();
    struct scand_buffer *buffer = buffer_of(BYTES);
    struct scand_scan scan = scan_of(buffer, buffer);
    struct scand_job *job = NULL;
    scan.input.shape[0] = scan.output.shape[0] = SAMPLES - 1; /* its end is not announced */
    CHECK_EQ(session->options.spin_us, SPIN_US);
    fake.hold = 1;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    session->answers_soon = false;
    CHECK_EQ(scand_wait(job, 0, NULL), SCAND_TIMED_OUT);
    CHECK_EQ(session->spin_end_us, 0);
    session->answers_soon = true;
    CHECK_EQ(scand_wait(job, 0, NULL), SCAND_TIMED_OUT);
    CHECK(session->spin_end_us > 0);
    CHECK(!session->answers_soon);
    session->spin_end_us = 0;
    session->options.spin_us = 0;
    session->answers_soon = true;
    CHECK_EQ(scand_wait(job, 0, NULL), SCAND_TIMED_OUT);
    CHECK_EQ(session->spin_end_us, 0);
    fake.hold = 0;
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    scand_job_release(job);
    rig_end();
}

/* Submits a scan that must be refused before it is sent. */
static void check_refused(const struct scand_scan *scan, const char *words)
{
    struct scand_job *job = NULL;
    CHECK_EQ(scand_submit(session, scan, &job), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), words);
    CHECK(job == NULL);
}

static void test_local_checks(void)
{
    rig_begin();
    struct scand *other = NULL;
    struct scand_buffer *buffer = buffer_of(BYTES), *foreign = NULL;
    CHECK_EQ(scand_connect(fake.path, "other", &other), SCAND_OK);
    CHECK_EQ(scand_buffer_create(other, SCAND_PLACE_HOST, 4, &foreign), SCAND_OK);
    const struct scand_scan good = scan_of(buffer, buffer);
    struct scand_scan scan = good;
#define REFUSED(MEMBER, VALUE, WORDS) \
    scan.MEMBER = VALUE;              \
    check_refused(&scan, WORDS);      \
    scan = good;
    check_refused(NULL, "the job's description is NULL");
    REFUSED(input.buffer, NULL, "input.buffer is NULL")
    REFUSED(output.buffer, NULL, "output.buffer is NULL")
    REFUSED(output.buffer, foreign, "output.buffer belongs to another connection")
    REFUSED(input.rank, 0, "input.rank is 0")
    REFUSED(output.rank, 5, "output.rank is 5")
    REFUSED(input.dtype, (enum scand_dtype)99, "input.dtype is 99, which is no dtype: there are f32, f64, f16")
    REFUSED(axis, 1, "axis is 1")
    REFUSED(pass_count, 0, "pass_count is 0")
    REFUSED(pass_count, 3, "pass_count is 3")
    REFUSED(passes[0], (enum scand_pass)5, "passes[0] is 5")
    REFUSED(kind, (enum scand_kind)9, "kind is 9")
    REFUSED(op, (enum scand_operator) - 1, "op is")
    REFUSED(accumulator, (enum scand_accumulator)9,
            "accumulator is 9, which is no accumulator: there are auto, f32, f64")
    REFUSED(intermediate, (enum scand_intermediate)99, "intermediate is 99")
    REFUSED(priority, (enum scand_priority)3, "priority is 3, which is no priority word: there are normal, low, high")
    REFUSED(algorithm, "0123456789012345678901234567890123456789012345678901234567890123",
            "algorithm has 64 bytes: give a name of scand_kernels")
    CHECK_EQ(fake.seen[METHOD_job_submit], 0);
    scand_disconnect(other);
    rig_end();
}

static void test_steps(void)
{
    rig_begin();
    struct scand_buffer *buffer = buffer_of(BYTES);
    struct scand_step then[SCAND_STEPS_MAX];
    struct scand_scan scan = scan_of(buffer, buffer);
    struct scand_job *job = NULL;
    for (int i = 0; i < SCAND_STEPS_MAX; i++)
        then[i] = (struct scand_step){.pass_count = 1};
    scan.then_count = 1;
    check_refused(&scan, "then is NULL, but then_count is 1");
    scan.then = then;
    scan.then_count = SCAND_STEPS_MAX + 1;
    check_refused(&scan, "then_count is 9: at most 8 further steps");
    scan.then_count = SCAND_STEPS_MAX;
    then[7].pass_count = 3;
    check_refused(&scan, "then[7].pass_count is 3");
    then[7] = (struct scand_step){.pass_count = 2, .passes = {SCAND_PASS_FORWARD, (enum scand_pass)2}};
    check_refused(&scan, "then[7].passes[1] is 2");
    then[7] = (struct scand_step){.pass_count = 1, .op = SCAND_OPERATOR_MIN, .kind = (enum scand_kind)9};
    check_refused(&scan, "then[7].kind is 9");
    CHECK_EQ(fake.seen[METHOD_job_submit], 0);
    then[7].kind = SCAND_KIND_EXCLUSIVE;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    CHECK_EQ(fake.then_count, SCAND_STEPS_MAX);
    CHECK_EQ(fake.then_op, SCAND_OPERATOR_MIN);
    rig_end();
}

/* A daemon without steps gets none: it would ignore them, and say that all is done. */
static void test_daemon_without_steps(void)
{
    rig_begin();
    struct scand *other = NULL;
    struct scand_buffer *buffer = NULL;
    struct scand_job *job = NULL;
    fake.job_steps = 0;
    CHECK_EQ(scand_connect(fake.path, "other", &other), SCAND_OK);
    CHECK_EQ(scand_buffer_create(other, SCAND_PLACE_HOST, BYTES, &buffer), SCAND_OK);
    struct scand_scan scan = scan_of(buffer, buffer);
    scan.then = &(struct scand_step){.pass_count = 1};
    scan.then_count = 1;
    CHECK_EQ(scand_submit(other, &scan, &job), SCAND_UNSUPPORTED);
    CHECK_CONTAINS(scand_message(other), "then_count is 1: this daemon (fake 1) takes 0 further steps: submit them as");
    CHECK_EQ(fake.seen[METHOD_job_submit], 0);
    scan.then_count = 0;
    CHECK_EQ(scand_submit(other, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    CHECK_EQ(fake.then_count, 0);
    scand_disconnect(other);
    rig_end();
}

static void test_foreign_loop(void)
{
    rig_begin();
    struct scand_buffer *buffer = buffer_of(BYTES);
    struct scand_scan scan = scan_of(buffer, buffer);
    struct scand_job *job = NULL;
    CHECK_EQ(scand_dispatch(session), SCAND_OK);
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    for (int i = 0; i < 100 && !scand_job_done(job); i++) {
        struct pollfd poller = {.fd = scand_fd(session), .events = POLLIN};
        CHECK_EQ(poll(&poller, 1, 5000), 1);
        CHECK_EQ(scand_dispatch(session), SCAND_OK);
    }
    CHECK_EQ(scand_wait(job, 0, NULL), SCAND_OK);
    rig_end();
}

/* Beyond the jobs that the daemon takes of a connection, submitting says so, and not the job's wait. */
static void test_busy(void)
{
    rig_begin();
    fake.client_jobs = 2;
    struct scand *other = NULL;
    CHECK_EQ(scand_connect(fake.path, "busy", &other), SCAND_OK);
    scand_disconnect(session);
    session = other;
    struct scand_buffer *buffer = buffer_of(BYTES);
    struct scand_scan scan = scan_of(buffer, buffer);
    struct scand_job *none = NULL, *first, *second;
    fake.hold = 1;
    first = submit(buffer, buffer);
    CHECK_EQ(scand_wait_room(session, -1), SCAND_OK);
    second = submit(buffer, buffer);
    CHECK_EQ(scand_submit(session, &scan, &none), SCAND_BUSY);
    CHECK_CONTAINS(scand_message(session), "2 jobs of this connection have not ended, and the daemon takes 2");
    CHECK(scand_retry_ms(session) > 0);
    CHECK_EQ(scand_submit_many(session, &scan, 1, &none), SCAND_BUSY);
    CHECK_EQ(scand_wait_room(session, 1), SCAND_TIMED_OUT);
    CHECK_EQ(scand_cancel(second), SCAND_OK);
    CHECK_EQ(scand_wait_room(session, -1), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_job_submit], 2);
    fake.hold = 0;
    struct scand_job *third = submit(buffer, buffer);
    CHECK_EQ(scand_wait(third, -1, NULL), SCAND_OK);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK); /* upon which held jobs end */
    CHECK_EQ(scand_wait(first, -1, NULL), SCAND_OK);
    CHECK(none == NULL);
    rig_end();
}

/* The daemon's own word: its time is waited for, or the end of another job. */
static void test_room_after_busy(void)
{
    rig_begin();
    struct scand_buffer *buffer = buffer_of(BYTES);
    fake.fail_on = METHOD_job_submit;
    fake.fail_code = -EAGAIN;
    CHECK_EQ(scand_wait(submit(buffer, buffer), -1, NULL), SCAND_BUSY);
    CHECK_EQ(scand_wait_room(session, 0), SCAND_TIMED_OUT);
    CHECK_EQ(scand_wait_room(session, -1), SCAND_OK);
    CHECK_EQ(scand_wait(submit(buffer, buffer), -1, NULL), SCAND_BUSY);
    fake.fail_on = FAKE_NONE;
    CHECK_EQ(scand_wait(submit(buffer, buffer), -1, NULL), SCAND_OK);
    CHECK_EQ(scand_wait_room(session, 0), SCAND_OK);
    rig_end();
}

/* Disconnecting frees what is still there, jobs that run included. */
static void test_disconnect(void)
{
    rig_begin();
    struct scand_buffer *buffer = buffer_of(BYTES);
    struct scand_scan scan = scan_of(buffer, buffer);
    struct scand_job *job = NULL;
    fake.hold = 1;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    scand_job_release(job);
    rig_end();
}

static const struct test tests[] = {TEST(test_job),
                                    TEST(test_many_jobs),
                                    TEST(test_cancel),
                                    TEST(test_progress),
                                    TEST(test_ending),
                                    TEST(test_spinning),
                                    TEST(test_local_checks),
                                    TEST(test_steps),
                                    TEST(test_daemon_without_steps),
                                    TEST(test_foreign_loop),
                                    TEST(test_busy),
                                    TEST(test_room_after_busy),
                                    TEST(test_disconnect),
                                    TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

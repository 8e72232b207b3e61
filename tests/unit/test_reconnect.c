/* libscand when the daemon's worker ends: what it repeats, what it reports lost, and for how long it tries. */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>

#include "client/lib/internal.h"
#include "tests/unit/client_rig.h"

static struct scand_buffer *input, *output;

/* An input of 0, 1, 2, ... and an output, of several segments each. */
static void make_buffers(void)
{
    input = buffer_of(BYTES);
    output = buffer_of(BYTES);
    for (int i = 0; i < SAMPLES; i++)
        ((float *)scand_buffer_data(input))[i] = (float)i;
}

static void begin(void)
{
    rig_begin();
    make_buffers();
}

static void die_on(enum method method, int count)
{
    fake.die_on = (int)method;
    fake.die_count = count;
}

/* Requests are answered in their order: those before a ping have arrived when that is answered. */
static void requests_arrive(void)
{
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
}

static void check_output(void)
{
    int wrong = 0;
    for (int i = 0; i < SAMPLES; i++)
        wrong += ((float *)scand_buffer_data(output))[i] != (float)(i + 1);
    CHECK_EQ(wrong, 0);
}

static void test_job_is_repeated(void)
{
    begin();
    die_on(METHOD_job_submit, 1);
    struct scand_job *job = submit(input, output);
    struct scand_times times;
    CHECK_EQ(scand_wait(job, -1, &times), SCAND_OK);
    CHECK_EQ(times.total_us, 5);
    CHECK_EQ(fake.seen[METHOD_job_submit], 2);
    CHECK_EQ(fake.seen[METHOD_buffer_import], 2);
    check_output();
    /* The handles stay good. */
    CHECK_EQ(scand_wait(submit(output, input), -1, NULL), SCAND_OK);
    CHECK_EQ(scand_buffer_release(input), SCAND_OK);
    CHECK_EQ(scand_buffer_release(output), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_buffer_release], 2);
    rig_end();
}

static void test_all_jobs_are_repeated_in_order(void)
{
    enum { JOBS = 6 };
    begin();
    struct scand_job *jobs[JOBS];
    fake.hold = 1;
    for (int i = 0; i < JOBS; i++)
        jobs[i] = submit(input, output);
    requests_arrive();
    fake.hold = 0;
    die_on(METHOD_server_ping, 1);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    for (int i = 0; i < JOBS; i++) {
        CHECK_EQ(scand_wait(jobs[i], -1, NULL), SCAND_OK);
        CHECK(i == 0 || jobs[i]->pending.msgid > jobs[i - 1]->pending.msgid);
    }
    CHECK_EQ(fake.seen[METHOD_job_submit], 2 * JOBS);
    rig_end();
}

static void test_daemon_comes_back_later(void)
{
    begin();
    fake.away_ms = RECONNECT_MS / 3;
    die_on(METHOD_job_submit, 1);
    CHECK_EQ(scand_wait(submit(input, output), -1, NULL), SCAND_OK);
    check_output();
    rig_end();
}

static struct scand_job *submit_within(uint32_t deadline_ms)
{
    struct scand_scan scan = scan_of(input, output);
    struct scand_job *job = NULL;
    scan.priority = SCAND_PRIORITY_HIGH;
    scan.deadline_ms = deadline_ms;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    return job;
}

/* A repeated job has what is left of its time; none is left when the daemon was away for longer. */
static void test_time_runs_on(void)
{
    begin();
    fake.away_ms = RECONNECT_MS / 3;
    die_on(METHOD_job_submit, 1);
    CHECK_EQ(scand_wait(submit_within(60000), -1, NULL), SCAND_OK);
    CHECK_EQ(fake.priority, SCAND_PRIORITY_HIGH);
    CHECK(fake.deadline_ms > 0 && fake.deadline_ms <= 60000 - RECONNECT_MS / 3);
    CHECK_EQ(fake.seen[METHOD_job_submit], 2);
    die_on(METHOD_job_submit, 1);
    CHECK_EQ(scand_wait(submit_within(RECONNECT_MS / 6), -1, NULL), SCAND_DEADLINE);
    CHECK_CONTAINS(scand_message(session), "while the daemon's worker was away");
    CHECK_EQ(fake.seen[METHOD_job_submit], 3);
    rig_end();
}

static void test_worker_ends_during_hello_and_import(void)
{
    begin();
    die_on(METHOD_job_submit, 1);
    struct scand_job *job = submit(input, output);
    while (fake.die_count)
        poll(NULL, 0, 1);
    die_on(METHOD_hello, 1);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    die_on(METHOD_job_submit, 1);
    job = submit(input, output);
    while (fake.die_count)
        poll(NULL, 0, 1);
    die_on(METHOD_buffer_import, 1);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    check_output();
    rig_end();
}

/* A file is imported again from the descriptor that is kept. */
static void test_files_are_imported_again(void)
{
    begin();
    struct scand_buffer *file = NULL;
    int memfd = memfd_of(BYTES);
    CHECK_EQ(pwrite(memfd, scand_buffer_data(input), BYTES, 0), BYTES);
    CHECK_EQ(scand_buffer_import_file(session, memfd, BYTES, &file), SCAND_OK);
    close(memfd);
    die_on(METHOD_job_submit, 1);
    CHECK_EQ(scand_wait(submit(file, output), -1, NULL), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_buffer_import_file], 2);
    check_output();
    rig_end();
}

static void test_in_place_is_lost(void)
{
    begin();
    die_on(METHOD_job_submit, 1);
    struct scand_job *job = submit(input, input);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_LOST);
    CHECK_CONTAINS(scand_message(session), "in place");
    CHECK_EQ(fake.seen[METHOD_job_submit], 1);
    CHECK_EQ(scand_wait(submit(input, output), -1, NULL), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_LOST);
    rig_end();
}

/* Two halves of one buffer are not in place; overlapping ones are. */
static void test_extents_decide(void)
{
    begin();
    struct scand_scan scan = scan_of(input, input);
    struct scand_job *job;
    scan.input.shape[0] = scan.output.shape[0] = SAMPLES / 2;
    scan.output.offset = SAMPLES / 2 * 4;
    die_on(METHOD_job_submit, 1);
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    scan.output.offset -= 4;
    die_on(METHOD_job_submit, 1);
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_LOST);
    /* Backwards in memory: from the last sample to the first. */
    scan.input.offset = (SAMPLES / 2 - 1) * 4;
    scan.input.strides[0] = -4;
    scan.output.offset = SAMPLES / 2 * 4;
    die_on(METHOD_job_submit, 1);
    fake.fail_on = METHOD_job_submit;
    fake.fail_code = -EINVAL;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_INVALID);
    CHECK_EQ(fake.seen[METHOD_job_submit], 5);
    /* Numbers that overflow. */
    scan.input.shape[0] = UINT64_MAX;
    scan.input.strides[0] = INT64_MIN;
    fake.fail_on = FAKE_NONE;
    die_on(METHOD_job_submit, 1);
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_LOST);
    rig_end();
}

/* A job whose input another one wrote to cannot be repeated, also through a second import of the same memory. */
static void test_written_input_is_lost(void)
{
    begin();
    fake.hold = 1;
    struct scand_buffer *third = buffer_of(BYTES), *alias = NULL, *twin = NULL;
    struct scand_job *there = submit(input, output), *back = submit(output, input), *apart = submit(third, third);
    int memfd = memfd_of(BYTES);
    CHECK_EQ(scand_buffer_import(session, memfd, BYTES, &alias), SCAND_OK);
    CHECK_EQ(scand_buffer_import(session, memfd, BYTES, &twin), SCAND_OK);
    close(memfd);
    struct scand_job *through = submit(alias, twin);
    requests_arrive();
    fake.hold = 0;
    die_on(METHOD_server_ping, 1);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(scand_wait(there, -1, NULL), SCAND_LOST);
    CHECK_CONTAINS(scand_message(session), "another job");
    CHECK_EQ(scand_wait(back, -1, NULL), SCAND_LOST);
    CHECK_EQ(scand_wait(apart, -1, NULL), SCAND_LOST);
    CHECK_EQ(scand_wait(through, -1, NULL), SCAND_LOST);
    rig_end();
}

static struct scand_job *submit_after(struct scand_buffer *from, struct scand_buffer *to, uint32_t after_failure)
{
    struct scand_scan scan = scan_of(from, to);
    struct scand_job *job = NULL;
    scan.after_failure = after_failure;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    return job;
}

/* The worker ends between its answer to a job that failed, and those to what reads its output: another one would run
 * them on old data. */
static void test_readers_of_a_failed_one(void)
{
    begin();
    struct scand_buffer *third = buffer_of(BYTES), *fourth = buffer_of(BYTES), *fifth = buffer_of(BYTES);
    fake.fail_on = METHOD_job_submit;
    fake.fail_code = -EINVAL;
    struct scand_job *failed = submit(input, output);
    struct pollfd answered = {.fd = scand_fd(session), .events = POLLIN};
    CHECK_EQ(poll(&answered, 1, -1), 1);
    fake.fail_on = FAKE_NONE;
    fake.hold = 1;
    struct scand_job *reader = submit(output, third), *reader_of_that = submit(third, fourth),
                     *anyway = submit_after(output, fifth, 1);
    requests_arrive();
    CHECK_EQ(scand_wait(failed, -1, NULL), SCAND_INVALID);
    struct scand_job *later = submit(output, buffer_of(BYTES));
    fake.hold = 0;
    die_on(METHOD_server_ping, 1);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(scand_wait(reader, -1, NULL), SCAND_STALE);
    CHECK_CONTAINS(scand_message(session),
                   "was to be repeated, but an earlier job, which was to write what this one reads, has failed");
    CHECK(scand_wait(reader_of_that, -1, NULL) != SCAND_OK);
    CHECK_EQ(scand_wait(anyway, -1, NULL), SCAND_OK);
    CHECK_EQ(scand_wait(later, -1, NULL), SCAND_OK);
    rig_end();
}

/* The daemon did not have it yet when it answered the one that failed. */
static void test_readers_that_were_on_their_way(void)
{
    begin();
    struct scand_buffer *third = buffer_of(BYTES);
    fake.fail_on = METHOD_job_submit;
    fake.fail_code = -EINVAL;
    struct scand_job *failed = submit(input, output);
    struct pollfd answered = {.fd = scand_fd(session), .events = POLLIN};
    CHECK_EQ(poll(&answered, 1, -1), 1);
    fake.fail_on = FAKE_NONE;
    struct scand_job *reader = submit(output, third), *anyway = submit_after(output, third, 1),
                     *apart = submit(input, third);
    CHECK_EQ(scand_wait(failed, -1, NULL), SCAND_INVALID);
    CHECK_EQ(scand_wait(reader, -1, NULL), SCAND_STALE);
    CHECK_CONTAINS(scand_message(session), "the job has been done, but an earlier job");
    CHECK_EQ(scand_wait(anyway, -1, NULL), SCAND_OK);
    CHECK_EQ(scand_wait(apart, -1, NULL), SCAND_OK);
    CHECK_EQ(scand_wait(submit(output, third), -1, NULL), SCAND_OK);
    rig_end();
}

/* One of those that are repeated has no time left. */
static void test_readers_of_a_late_one(void)
{
    begin();
    struct scand_buffer *third = buffer_of(BYTES);
    fake.away_ms = RECONNECT_MS / 3;
    fake.hold = 1;
    struct scand_job *late = submit_within(RECONNECT_MS / 6), *reader = submit(input, third),
                     *reader_of_output = submit_after(output, buffer_of(BYTES), 0);
    requests_arrive();
    fake.hold = 0;
    die_on(METHOD_server_ping, 1);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(scand_wait(late, -1, NULL), SCAND_DEADLINE);
    CHECK_EQ(scand_wait(reader, -1, NULL), SCAND_OK);
    CHECK(scand_wait(reader_of_output, -1, NULL) != SCAND_OK);
    rig_end();
}

/* Checks the same for another tensor that jobs read, which lies at `member` in a scan. */
static void check_third_tensor(struct scand_scan scan, size_t member, struct scand_tensor tensor, const char *message)
{
    struct scand_tensor *third = (struct scand_tensor *)((char *)&scan + member);
    struct scand_buffer *kept = buffer_of(BYTES), *left = buffer_of(BYTES);
    struct scand_job *repeated = NULL, *lost = NULL, *released = NULL;
    fake.hold = 1;
    *third = tensor;
    third->buffer = kept;
    scand_tensor_pack(third);
    CHECK_EQ(scand_submit(session, &scan, &repeated), SCAND_OK);
    third->buffer = left;
    CHECK_EQ(scand_submit(session, &scan, &released), SCAND_OK);
    scan.output.buffer = buffer_of(BYTES);
    third->buffer = output;
    CHECK_EQ(scand_submit(session, &scan, &lost), SCAND_OK);
    CHECK_EQ(scand_buffer_release(left), SCAND_OK);
    fake.hold = 0;
    die_on(METHOD_server_ping, 1);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(scand_wait(released, -1, NULL), SCAND_LOST);
    CHECK_CONTAINS(scand_message(session), "released meanwhile");
    CHECK_EQ(scand_wait(lost, -1, NULL), SCAND_LOST);
    CHECK_CONTAINS(scand_message(session), message);
    CHECK_EQ(scand_wait(repeated, -1, NULL), SCAND_OK);
}

static void test_ragged_jobs(void)
{
    begin();
    check_third_tensor(scan_of(input, output), offsetof(struct scand_scan, offsets),
                       (struct scand_tensor){.dtype = SCAND_DTYPE_I64, .rank = 1, .shape = {2}},
                       "another job wrote to its offsets");
    rig_end();
}

static void test_affine_jobs(void)
{
    begin();
    struct scand_scan scan = scan_of(input, output);
    scan.op = SCAND_OPERATOR_AFFINE;
    check_third_tensor(scan, offsetof(struct scand_scan, coefficients), scan.input,
                       "another job wrote to its coefficients");
    rig_end();
}

static void test_device_memory_is_lost(void)
{
    begin();
    struct scand_buffer *device = NULL;
    CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_DEVICE, BYTES, &device), SCAND_OK);
    die_on(METHOD_job_submit, 1);
    CHECK_EQ(scand_wait(submit(input, device), -1, NULL), SCAND_LOST);
    CHECK_CONTAINS(scand_message(session), "device memory");
    struct scand_scan scan = scan_of(device, output);
    struct scand_job *job = NULL;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_LOST);
    CHECK_CONTAINS(scand_message(session), "input.buffer is lost");
    CHECK(job == NULL);
    CHECK_EQ(scand_buffer_release(device), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_buffer_release], 0);
    rig_end();
}

/* A job that ends each worker is not given to all that follow. */
static void test_poison_is_not_repeated_forever(void)
{
    begin();
    die_on(METHOD_job_submit, 1000);
    CHECK_EQ(scand_wait(submit(input, output), -1, NULL), SCAND_LOST);
    CHECK_CONTAINS(scand_message(session), "each time");
    CHECK_EQ(fake.seen[METHOD_job_submit], ATTEMPTS_MAX);
    die_on(METHOD_server_stats, 1000);
    size_t count;
    CHECK_EQ(scand_stats(session, NULL, sizeof(struct scand_counter), 0, &count), SCAND_LOST);
    CHECK_EQ(fake.seen[METHOD_server_stats], ATTEMPTS_MAX);
    rig_end();
}

static void test_no_daemon_comes_back(void)
{
    begin();
    fake.hold = 1;
    struct scand_job *job = submit(input, output), *other = submit(input, input);
    requests_arrive();
    fake_stop(&fake);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_UNAVAILABLE);
    CHECK_CONTAINS(scand_message(session), fake.path);
    CHECK_CONTAINS(scand_message(session), "no daemon came back");
    CHECK_EQ(scand_job_done(other), 1);
    CHECK_EQ(scand_wait(other, -1, NULL), SCAND_UNAVAILABLE);
    /* From now on each call tries once, and says what that found. */
    CHECK_EQ(scand_ping(session, NULL), SCAND_UNAVAILABLE);
    CHECK_CONTAINS(scand_message(session), "no such socket");
    CHECK_EQ(scand_dispatch(session), SCAND_UNAVAILABLE);
    CHECK_CONTAINS(scand_message(session), "no such socket");
    fake.hold = 0;
    fake_start(&fake);
    CHECK_EQ(scand_wait(submit(input, output), -1, NULL), SCAND_OK);
    check_output();
    rig_end();
}

static void test_everything_is_released_without_a_daemon(void)
{
    begin();
    fake.hold = 1;
    struct scand_job *job = submit(input, output);
    requests_arrive();
    scand_job_release(submit(input, output));
    fake_stop(&fake);
    CHECK_EQ(loop_until_done(job), SCAND_UNAVAILABLE);
    CHECK_EQ(scand_cancel(job), SCAND_OK);
    scand_job_release(job);
    CHECK_EQ(scand_buffer_release(input), SCAND_OK);
    CHECK(session->jobs == NULL);
    rig_end();
}

static void test_cancelled_and_released(void)
{
    begin();
    fake.hold = 1;
    struct scand_job *cancelled = submit(input, output), *dropped = submit(input, output),
                     *bereft = submit(input, output);
    struct scand_buffer *spare = buffer_of(BYTES);
    struct scand_job *kept = submit(input, spare);
    scand_job_release(dropped);
    CHECK_EQ(scand_buffer_release(output), SCAND_OK);
    die_on(METHOD_job_cancel, 1);
    CHECK_EQ(scand_cancel(cancelled), SCAND_OK);
    fake.hold = 0;
    CHECK_EQ(scand_wait(cancelled, -1, NULL), SCAND_CANCELLED);
    CHECK_EQ(scand_wait(bereft, -1, NULL), SCAND_LOST);
    CHECK_CONTAINS(scand_message(session), "released");
    CHECK_EQ(scand_wait(kept, -1, NULL), SCAND_OK);
    rig_end();
}

/* A job that could be repeated, but that nobody wants any more. */
static void test_cancelled_is_not_repeated(void)
{
    begin();
    fake.hold = 1;
    struct scand_job *job = submit(input, output);
    requests_arrive();
    die_on(METHOD_job_cancel, 1);
    CHECK_EQ(scand_cancel(job), SCAND_OK);
    fake.hold = 0;
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_CANCELLED);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_job_submit], 1);
    rig_end();
}

static void test_requests(void)
{
    begin();
    size_t count = 0;
    struct scand_buffer *buffer = NULL;
    die_on(METHOD_server_ping, 1);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    die_on(METHOD_server_devices, 1);
    CHECK_EQ(scand_devices(session, NULL, sizeof(struct scand_device), 0, &count), SCAND_OK);
    die_on(METHOD_buffer_create, 1);
    CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_HOST, 100, &buffer), SCAND_OK);
    die_on(METHOD_buffer_release, 1);
    CHECK_EQ(scand_buffer_release(buffer), SCAND_OK);
    int memfd = memfd_of(100);
    die_on(METHOD_buffer_import, 1);
    CHECK_EQ(scand_buffer_import(session, memfd, 100, &buffer), SCAND_OK);
    close(memfd);
    die_on(METHOD_server_drain, 1);
    CHECK_EQ(scand_drain(session), SCAND_LOST);
    CHECK_CONTAINS(scand_message(session), "server.drain");
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    rig_end();
}

static void test_refused_buffer_is_lost(void)
{
    begin();
    fake.fail_code = -EDQUOT;
    fake.fail_on = METHOD_buffer_import;
    die_on(METHOD_job_submit, 1);
    CHECK_EQ(scand_wait(submit(input, output), -1, NULL), SCAND_LOST);
    CHECK_CONTAINS(scand_message(session), "did not take it over");
    rig_end();
}

/* epoll forgets a closed socket: the descriptor that programs watch must not be one. */
static void test_foreign_loop_goes_on(void)
{
    begin();
    int loop = epoll_create1(EPOLL_CLOEXEC), fd = scand_fd(session);
    struct epoll_event event = {.events = EPOLLIN};
    CHECK_EQ(epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event), 0);
    for (int round = 0; round < 3; round++) {
        die_on(METHOD_job_submit, 1);
        struct scand_job *job = submit(input, output);
        for (int i = 0; i < 100 && !scand_job_done(job); i++) {
            CHECK_EQ(epoll_wait(loop, &event, 1, 5000), 1);
            CHECK_EQ(scand_dispatch(session), SCAND_OK);
        }
        CHECK_EQ(scand_wait(job, 0, NULL), SCAND_OK);
        CHECK_EQ(scand_fd(session), fd);
    }
    close(loop);
    rig_end();
}

/* Sends a question whose answer nobody waits for. */
static int session_send_stats(void)
{
    SESSION_GUARD(session);
    return session_send(session, session_next_msgid(session, 0),
                        &(struct call){.method = METHOD_server_stats, .params = &(struct msg_nothing){}});
}

/* A session with these times. */
static void begin_with(int64_t reconnect_ms, int64_t give_up_ms)
{
    struct scand_options *options = NULL;
    rig_start();
    CHECK_EQ(scand_options_create(&options), SCAND_OK);
    CHECK_EQ(scand_options_set(options, "reconnect_ms", reconnect_ms), SCAND_OK);
    CHECK_EQ(scand_options_set(options, "give_up_ms", give_up_ms), SCAND_OK);
    CHECK_EQ(scand_connect_with(options, fake.path, "test", &session), SCAND_OK);
    scand_options_destroy(options);
    make_buffers();
}

/* Each call returns while the daemon is away, and the job is still there when it comes back. */
static void test_nothing_waits(void)
{
    struct scand_job *none = NULL;
    begin_with(0, 60000);
    fake.hold = 1;
    struct scand_job *job = submit(input, output);
    requests_arrive();
    fake_stop(&fake);
    struct pollfd loop = {.fd = scand_fd(session), .events = POLLIN};
    struct scand_scan scan = scan_of(input, output);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(poll(&loop, 1, 20000), 1);
        CHECK_EQ(scand_dispatch(session), SCAND_OK);
        CHECK_EQ(scand_ping(session, NULL), SCAND_UNAVAILABLE);
        CHECK_CONTAINS(scand_message(session), "is away, and has not come back within 0 s (reconnect_ms)");
        CHECK_EQ(scand_retry_ms(session), RECONNECT_PAUSE_MS);
        CHECK_EQ(scand_submit(session, &scan, &none), SCAND_UNAVAILABLE);
        CHECK_EQ(scand_wait(job, 0, NULL), SCAND_TIMED_OUT);
        CHECK_EQ(scand_job_done(job), 0);
    }
    fake.hold = 0;
    fake_start(&fake);
    CHECK_EQ(loop_until_done(job), SCAND_OK);
    CHECK_EQ(scand_wait(job, 0, NULL), SCAND_OK);
    check_output();
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK(none == NULL);
    rig_end();
}

/* A daemon that takes the connection and is slow to greet, as one that starts CUDA, keeps nobody waiting either. */
static void test_nothing_waits_for_a_slow_daemon(void)
{
    begin_with(0, 60000);
    fake.hold = 1;
    struct scand_job *job = submit(input, output);
    requests_arrive();
    fake.hold = 0;
    fake.late_ms = CALL_MS / 2;
    fake.late_on = METHOD_hello;
    die_on(METHOD_server_ping, 1);
    struct pollfd loop = {.fd = scand_fd(session), .events = POLLIN};
    int unavailable = 0, status = SCAND_OK;
    CHECK_EQ(scand_ping(session, NULL), SCAND_UNAVAILABLE);
    for (; !scand_job_done(job); unavailable += scand_ping(session, NULL) == SCAND_UNAVAILABLE) {
        REQUIRE(poll(&loop, 1, 20000) == 1);
        status |= scand_dispatch(session);
    }
    CHECK_EQ(status, SCAND_OK);
    CHECK_EQ(scand_wait(job, 0, NULL), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_hello], 2);
    check_output();
    rig_end();
}

/* One that never greets is given up after CALL_MS, by loops and by calls. */
static void test_daemon_does_not_greet(void)
{
    for (int loops = 0; loops < 2; loops++) {
        begin_with(60000, 60000);
        fake.hold = 1;
        struct scand_job *job = submit(input, output);
        requests_arrive();
        fake.silent_on = METHOD_hello;
        die_on(METHOD_server_stats, 1);
        int status = SCAND_OK;
        if (loops) {
            CHECK_EQ(session_send_stats(), 0);
            status = loop_until_done(job);
        } else {
            status = scand_stats(session, NULL, sizeof(struct scand_counter), 0, &(size_t){0});
        }
        CHECK_EQ(status, SCAND_TIMED_OUT);
        CHECK_CONTAINS(scand_message(session), "took the connection but did not answer");
        CHECK_EQ(scand_wait(job, 0, NULL), SCAND_TIMED_OUT);
        CHECK_CONTAINS(scand_message(session), "took the connection but did not answer");
        rig_end();
    }
}

/* A daemon that has a job for long is asked whether it is there, and by its answer is. */
static void test_long_job(void)
{
    begin();
    fake.hold = 1;
    struct scand_job *job = submit(input, output);
    CHECK_EQ(scand_wait(job, 4 * QUIET_MS, NULL), SCAND_TIMED_OUT);
    CHECK(fake.seen[METHOD_server_ping] >= 1 && fake.seen[METHOD_server_ping] <= 4);
    CHECK_EQ(fake.seen[METHOD_hello], 1);
    fake.hold = 0;
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK); /* the next question has it end */
    rig_end();
}

/* One that stands still, with its sockets open, is taken for gone; should it go on, so does the job. */
static void test_daemon_that_stands_still(void)
{
    for (int goes_on = 0; goes_on < 2; goes_on++)
        for (int loops = 0; loops < 2; loops++) {
            begin();
            fake.hold = 1;
            struct scand_job *job = submit(input, output);
            requests_arrive();
            fake.hold = 0;
            fake.silent_on = METHOD_server_ping;
            if (!goes_on)
                fake.deaf = 1;
            const int status = loops ? loop_until_done(job) : scand_wait(job, -1, NULL);
            CHECK_EQ(status, goes_on ? SCAND_OK : SCAND_TIMED_OUT);
            if (goes_on)
                check_output();
            else
                CHECK_CONTAINS(scand_message(session), "took the connection but did not answer");
            fake.deaf = 0;
            rig_end();
        }
}

static void test_jobs_are_given_up_at_once(void)
{
    begin_with(0, 0);
    fake.hold = 1;
    struct scand_job *job = submit(input, output);
    requests_arrive();
    fake_stop(&fake);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_UNAVAILABLE);
    CHECK_CONTAINS(scand_message(session), "within 0 s");
    rig_end();
}

static void test_options_are_checked(void)
{
    struct scand_options *options = NULL;
    CHECK_EQ(scand_options_create(&options), SCAND_OK);
    CHECK_EQ(scand_options_set(options, "reconnect_ms", -1), SCAND_INVALID);
    CHECK_CONTAINS(scand_connect_message(), "reconnect_ms is -1: 0 to 86400000 are allowed");
    CHECK_EQ(scand_options_set(options, "give_up_ms", OPTION_MS_MAX + 1), SCAND_INVALID);
    CHECK_EQ(scand_options_set(options, "give_up_ms", OPTION_MS_MAX), SCAND_OK);
    CHECK_EQ(scand_options_set(options, "patience", 1), SCAND_INVALID);
    CHECK_CONTAINS(scand_connect_message(), "no option \"patience\": there are reconnect_ms, give_up_ms");
    scand_options_destroy(options);
    scand_options_destroy(NULL);
}

/* The loop, and not a call, finds that one of several buffers was released while it was to be imported again. */
static void test_released_while_imported_again(void)
{
    begin_with(0, 60000);
    fake.hold = 1;
    struct scand_job *job = submit(input, output);
    struct scand_buffer *spare = buffer_of(BYTES);
    requests_arrive();
    fake.hold = 0;
    fake.late_ms = CALL_MS / 4;
    fake.late_on = METHOD_buffer_import;
    die_on(METHOD_server_ping, 1);
    CHECK_EQ(scand_ping(session, NULL), SCAND_UNAVAILABLE);
    struct pollfd loop = {.fd = scand_fd(session), .events = POLLIN};
    while (session->mending.buffer != spare) {
        REQUIRE(poll(&loop, 1, 20000) == 1);
        CHECK_EQ(scand_dispatch(session), SCAND_OK);
    }
    CHECK_EQ(scand_buffer_release(spare), SCAND_OK);
    fake.late_on = FAKE_NONE;
    CHECK_EQ(loop_until_done(job), SCAND_OK);
    CHECK_EQ(scand_wait(job, 0, NULL), SCAND_OK);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_buffer_import], 3);
    CHECK_EQ(fake.seen[METHOD_buffer_release], 1);
    rig_end();
}

/* An idle program does not wait for a daemon that it does not need: that would end in SCAND_UNAVAILABLE. */
static void test_idle(void)
{
    begin();
    fake_stop(&fake);
    CHECK_EQ(scand_dispatch(session), SCAND_OK);
    CHECK_EQ(scand_dispatch(session), SCAND_OK);
    fake_start(&fake);
    CHECK_EQ(scand_wait(submit(input, output), -1, NULL), SCAND_OK);
    rig_end();
}

static void ping_again(void *context, uint64_t rows_done, uint64_t rows)
{
    (void)rows_done;
    (void)rows;
    int *calls = context;
    if (++*calls == 1)
        die_on(METHOD_server_ping, 1);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
}

/* A callback's own call may find the connection broken, and mend it, below the one that waits. */
static void test_reconnect_in_callback(void)
{
    begin();
    struct scand_scan scan = scan_of(input, output);
    struct scand_job *job = NULL;
    int calls = 0;
    fake.progress = 3;
    CHECK_EQ(scand_submit_progress(session, &scan, ping_again, &calls, &job), SCAND_OK);
    CHECK_EQ(scand_stats(session, NULL, sizeof(struct scand_counter), 0, &(size_t){0}), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    CHECK(calls >= 1);
    check_output();
    rig_end();
}

static const struct test tests[] = {TEST(test_job_is_repeated),
                                    TEST(test_all_jobs_are_repeated_in_order),
                                    TEST(test_daemon_comes_back_later),
                                    TEST(test_time_runs_on),
                                    TEST(test_worker_ends_during_hello_and_import),
                                    TEST(test_files_are_imported_again),
                                    TEST(test_in_place_is_lost),
                                    TEST(test_extents_decide),
                                    TEST(test_written_input_is_lost),
                                    TEST(test_readers_of_a_failed_one),
                                    TEST(test_readers_that_were_on_their_way),
                                    TEST(test_readers_of_a_late_one),
                                    TEST(test_ragged_jobs),
                                    TEST(test_affine_jobs),
                                    TEST(test_device_memory_is_lost),
                                    TEST(test_poison_is_not_repeated_forever),
                                    TEST(test_no_daemon_comes_back),
                                    TEST(test_everything_is_released_without_a_daemon),
                                    TEST(test_cancelled_and_released),
                                    TEST(test_cancelled_is_not_repeated),
                                    TEST(test_requests),
                                    TEST(test_refused_buffer_is_lost),
                                    TEST(test_foreign_loop_goes_on),
                                    TEST(test_nothing_waits),
                                    TEST(test_nothing_waits_for_a_slow_daemon),
                                    TEST(test_daemon_does_not_greet),
                                    TEST(test_long_job),
                                    TEST(test_daemon_that_stands_still),
                                    TEST(test_jobs_are_given_up_at_once),
                                    TEST(test_options_are_checked),
                                    TEST(test_released_while_imported_again),
                                    TEST(test_idle),
                                    TEST(test_reconnect_in_callback),
                                    TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

/*
 * One session of libscand in several threads: jobs, cancelling, disconnecting and a daemon that ends while others wait,
 * progress functions, loops, signals. Run under the thread sanitizer as well.
 */
#include <poll.h>
#include <sched.h>
#include <signal.h>

#include "client/lib/internal.h"
#include "tests/unit/client_rig.h"

#define THREADS 8
#define ROUNDS  1000 /* small jobs of each thread */
#define SHORT   16   /* samples of those */

static pthread_t threads[THREADS];
static struct scand_buffer *buffers[THREADS];
static struct scand_job *jobs[THREADS];
static int outcomes[THREADS];
static atomic_int failures;

static void threads_start(void *(*run)(void *))
{
    failures = 0;
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, run, (void *)i), 0);
}

static void threads_join(void)
{
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(failures, 0);
}

/* Waits until so many threads wait in the session. */
static void threads_wait(unsigned count)
{
    for (bool all = false; !all; poll(NULL, 0, 1)) {
        session_lock(session);
        all = session->inside >= count && session->is_reading;
        session_unlock(session);
    }
}

static void begin(void)
{
    rig_begin();
    for (int i = 0; i < THREADS; i++)
        buffers[i] = buffer_of(BYTES);
}

static struct scand_scan short_scan(struct scand_buffer *buffer)
{
    struct scand_scan scan = scan_of(buffer, buffer);
    scan.input.shape[0] = scan.output.shape[0] = SHORT;
    return scan;
}

static void *scan_on_and_on(void *argument)
{
    struct scand_buffer *buffer = buffers[(intptr_t)argument];
    const struct scand_scan scan = short_scan(buffer);
    const float *x = scand_buffer_data(buffer);
    for (int round = 1; round <= ROUNDS; round++) {
        struct scand_job *job = NULL;
        failures += scand_submit(session, &scan, &job) != SCAND_OK || scand_wait(job, -1, NULL) != SCAND_OK;
        failures += x[0] != (float)round || x[SHORT - 1] != (float)round;
        scand_job_release(job);
    }
    return NULL;
}

static void small_jobs(void)
{
    begin();
    threads_start(scan_on_and_on);
    threads_join();
    CHECK_EQ(fake.seen[METHOD_job_submit], THREADS * ROUNDS);
    CHECK(session->jobs == NULL && session->waiters == NULL);
    CHECK_EQ(session->inside, 0);
    rig_end();
}

/* Calls of all sorts: what one thread's call brings must not reach another's. */
static void *call_on_and_on(void *argument)
{
    const uint64_t size_bytes = 100 + 100 * (uint64_t)(intptr_t)argument;
    for (int round = 0; round < ROUNDS / 10; round++) {
        struct scand_buffer *buffer = NULL;
        struct scand_device devices[4];
        size_t count = 0;
        failures += scand_buffer_create(session, SCAND_PLACE_HOST, size_bytes, &buffer) != SCAND_OK;
        failures += scand_buffer_size(buffer) != size_bytes;
        ((char *)scand_buffer_data(buffer))[size_bytes - 1] = 1;
        failures += scand_devices(session, devices, sizeof devices[0], 4, &count) != SCAND_OK || count != 2;
        failures += scand_ping(session, NULL) != SCAND_OK;
        failures += scand_buffer_release(buffer) != SCAND_OK;
    }
    return NULL;
}

static void other_calls(void)
{
    rig_begin();
    threads_start(call_on_and_on);
    threads_join();
    CHECK(session->pending == NULL && session->buffers == NULL);
    rig_end();
}

/* Each thread's own failures, whoever else's come between. */
static void *fail_on_and_on(void *argument)
{
    const unsigned axis = 1 + (unsigned)(intptr_t)argument;
    struct scand_scan scan = short_scan(buffers[0]);
    char expected[32];
    scan.axis = axis;
    snprintf(expected, sizeof expected, "axis is %u:", axis);
    for (int round = 0; round < ROUNDS; round++) {
        struct scand_job *job = NULL;
        failures += scand_submit(session, &scan, &job) != SCAND_INVALID;
        failures += strncmp(scand_message(session), expected, strlen(expected)) != 0;
    }
    return NULL;
}

static void messages(void)
{
    begin();
    CHECK_EQ(scand_message(session)[0], '\0');
    threads_start(fail_on_and_on);
    threads_join();
    CHECK_EQ(scand_message(session)[0], '\0'); /* this thread's calls have not failed */
    rig_end();
}

static void *wait_for_a_job(void *argument)
{
    const intptr_t i = (intptr_t)argument;
    outcomes[i] = scand_wait(jobs[i], -1, NULL);
    return NULL;
}

/* Jobs that do not end, each with a thread that waits for it. */
static void all_wait(void)
{
    begin();
    fake.hold = 1;
    for (int i = 0; i < THREADS; i++)
        jobs[i] = submit(buffers[i], buffers[i]);
    threads_start(wait_for_a_job);
    threads_wait(THREADS);
}

static void all_outcomes(int status)
{
    threads_join();
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(outcomes[i], status);
}

static void cancelled_by_another_thread(void)
{
    all_wait();
    for (int i = THREADS; i-- > 0;)
        CHECK_EQ(scand_cancel(jobs[i]), SCAND_OK);
    all_outcomes(SCAND_CANCELLED);
    rig_end();
}

static void *cancel_a_job(void *argument)
{
    failures += scand_cancel(jobs[(intptr_t)argument]) != SCAND_OK;
    return NULL;
}

/* A thread that waits releases the job while the other thread still waits for the answer to its cancelling. */
static void cancelled_and_released(void)
{
    begin();
    for (int round = 0; round < ROUNDS / 10; round++) {
        fake.hold = round % 2;
        failures = 0;
        jobs[0] = submit(buffers[0], buffers[0]);
        CHECK_EQ(pthread_create(&threads[0], NULL, cancel_a_job, (void *)0), 0);
        for (bool begun = false; !begun; sched_yield()) {
            session_lock(session);
            begun = jobs[0]->cancelled;
            session_unlock(session);
        }
        int status = scand_wait(jobs[0], -1, NULL);
        CHECK(status == SCAND_CANCELLED || (status == SCAND_OK && !fake.hold));
        scand_job_release(jobs[0]);
        pthread_join(threads[0], NULL);
        CHECK_EQ(failures, 0);
    }
    rig_end();
}

static void disconnected_while_others_wait(void)
{
    all_wait();
    scand_disconnect(session);
    session = NULL;
    all_outcomes(SCAND_DISCONNECTED);
    rig_end();
}

static void *ping_once(void *argument)
{
    outcomes[(intptr_t)argument] = scand_ping(session, NULL);
    return NULL;
}

/* A session is disconnected in the middle of calls, and while a daemon that is away is waited for. */
static void disconnected_in_calls(bool away)
{
    rig_begin();
    fake.silent_on = METHOD_server_ping;
    if (away)
        fake_stop(&fake);
    threads_start(ping_once);
    threads_wait(THREADS);
    scand_disconnect(session);
    session = NULL;
    all_outcomes(SCAND_DISCONNECTED);
    rig_end();
}

static void disconnected_in_calls_that_have_no_answer(void)
{
    disconnected_in_calls(false);
}

static void disconnected_while_the_daemon_is_away(void)
{
    disconnected_in_calls(true);
}

static void daemon_stops_while_all_wait(void)
{
    all_wait();
    fake_stop(&fake);
    all_outcomes(SCAND_UNAVAILABLE);
    CHECK_EQ(scand_ping(session, NULL), SCAND_UNAVAILABLE);
    rig_end();
}

/* Jobs in place are lost. A job that can be repeated is repeated once, whichever thread does it. */
static void worker_ends_while_all_wait(void)
{
    begin();
    struct scand_buffer *output = buffer_of(BYTES);
    fake.hold = 1;
    for (int i = 0; i < THREADS; i++)
        jobs[i] = submit(buffers[i], i % 2 ? output : buffers[i]);
    threads_start(wait_for_a_job);
    threads_wait(THREADS);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK); /* the daemon has all jobs */
    fake.hold = 0;
    fake.die_on = METHOD_server_ping;
    fake.die_count = 1;
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    threads_join();
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(outcomes[i], i % 2 ? SCAND_OK : SCAND_LOST);
    CHECK_EQ(fake.seen[METHOD_job_submit], THREADS + THREADS / 2);
    CHECK_EQ(fake.accepted, 2);
    rig_end();
}

/* All threads find the connection broken in the middle of something, again and again. */
static void *scan_through_deaths(void *argument)
{
    const intptr_t i = (intptr_t)argument;
    struct scand_scan scan = short_scan(buffers[i]);
    for (int round = 0; round < ROUNDS / 20; round++) {
        struct scand_job *job = NULL;
        int status = scand_submit(session, &scan, &job);
        if (status == SCAND_OK)
            status = scand_wait(job, -1, NULL);
        failures += status != SCAND_OK && status != SCAND_LOST;
        scand_job_release(job);
        status = scand_ping(session, NULL);
        failures += status != SCAND_OK && status != SCAND_LOST;
        if (i == 0 && round % 10 == 5) {
            fake.die_count = 1;
            fake.die_on = round % 20 == 5 ? METHOD_job_submit : METHOD_server_ping;
        }
    }
    return NULL;
}

static void workers_end_on_and_on(void)
{
    begin();
    threads_start(scan_through_deaths);
    threads_join();
    CHECK(fake.accepted > 1);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK(session->jobs == NULL && session->waiters == NULL);
    rig_end();
}

static atomic_int calls, running, leaves;

/* Runs for as long as the test wants. */
static void progress(void *context, uint64_t rows_done, uint64_t rows)
{
    (void)rows_done, (void)rows;
    atomic_int *here = context;
    ++*here;
    calls++;
    while (!leaves)
        poll(NULL, 0, 1);
    --*here;
}

static void *leave_soon(void *unused)
{
    (void)unused;
    poll(NULL, 0, 20);
    leaves = 1;
    return NULL;
}

/* The thread that reads calls another's progress function: that one's wait does not return before it has, and other
 * calls go on meanwhile. */
static void progress_in_another_thread(void)
{
    pthread_t other;
    begin();
    calls = running = leaves = 0;
    fake.hold = 1;
    for (int i = 0; i < THREADS; i++)
        jobs[i] = submit(buffers[i], buffers[i]);
    CHECK_EQ(pthread_create(&threads[0], NULL, wait_for_a_job, (void *)0), 0);
    threads_wait(1);
    fake.hold = 0;
    fake.progress = 1;
    struct scand_scan scan = short_scan(buffers[1]);
    struct scand_job *job = NULL;
    CHECK_EQ(scand_submit_progress(session, &scan, progress, &running, &job), SCAND_OK);
    while (!calls)
        poll(NULL, 0, 1);
    CHECK_EQ(running, 1);
    CHECK_EQ(scand_devices(session, NULL, sizeof(struct scand_device), 0, &(size_t){0}), SCAND_OK);
    CHECK_EQ(pthread_create(&other, NULL, leave_soon, NULL), 0);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    CHECK_EQ(running, 0);
    scand_job_release(job);
    pthread_join(other, NULL);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK); /* upon which held jobs end */
    pthread_join(threads[0], NULL);
    CHECK_EQ(outcomes[0], SCAND_OK);
    rig_end();
}

static void *ping_on_and_on(void *ends)
{
    while (!*(atomic_int *)ends)
        failures += scand_ping(session, NULL) != SCAND_OK;
    return NULL;
}

/* Another thread's calls take in the answers that a loop polls for. */
static void loop_beside_a_thread(void)
{
    pthread_t thread;
    atomic_int ends = 0;
    begin();
    failures = 0;
    struct pollfd loop = {.fd = scand_fd(session), .events = POLLIN};
    const struct scand_scan scan = short_scan(buffers[0]);
    CHECK_EQ(pthread_create(&thread, NULL, ping_on_and_on, &ends), 0);
    for (int round = 0; round < ROUNDS && !check_failures; round++) {
        struct scand_job *job = NULL;
        CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
        while (!scand_job_done(job) && !check_failures) {
            CHECK_EQ(poll(&loop, 1, 20000), 1);
            CHECK_EQ(scand_dispatch(session), SCAND_OK);
        }
        CHECK_EQ(scand_wait(job, 0, NULL), SCAND_OK);
        scand_job_release(job);
    }
    ends = 1;
    pthread_join(thread, NULL);
    CHECK_EQ(failures, 0);
    rig_end();
}

static void on_signal(int number)
{
    (void)number;
}

static void handle_signal(int number, int flags)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};
    CHECK_EQ(sigaction(number, &action, NULL), 0);
}

/* A signal ends the waits of the thread that reads and of threads that sleep. */
static void a_signal_ends_waits(void)
{
    all_wait();
    handle_signal(SIGUSR1, SA_RESTART);
    for (int i = 0; i < THREADS; i++)
        pthread_kill(threads[i], SIGUSR1);
    poll(NULL, 0, 5);
    threads_wait(THREADS);
    handle_signal(SIGUSR2, 0);
    for (bool waiting = true; waiting; poll(NULL, 0, 1)) { /* a handler may have run just before the wait */
        for (int i = 0; i < THREADS; i++)
            pthread_kill(threads[i], SIGUSR2);
        session_lock(session);
        waiting = session->inside > 0;
        session_unlock(session);
    }
    all_outcomes(SCAND_INTERRUPTED);
    signal(SIGUSR2, SIG_DFL);
    fake.hold = 0;
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK); /* upon which held jobs end */
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(scand_wait(jobs[i], -1, NULL), SCAND_OK);
    rig_end();
}

static const struct test tests[] = {TEST(small_jobs),
                                    TEST(other_calls),
                                    TEST(messages),
                                    TEST(cancelled_by_another_thread),
                                    TEST(cancelled_and_released),
                                    TEST(disconnected_while_others_wait),
                                    TEST(disconnected_in_calls_that_have_no_answer),
                                    TEST(disconnected_while_the_daemon_is_away),
                                    TEST(daemon_stops_while_all_wait),
                                    TEST(worker_ends_while_all_wait),
                                    TEST(workers_end_on_and_on),
                                    TEST(progress_in_another_thread),
                                    TEST(loop_beside_a_thread),
                                    TEST(a_signal_ends_waits),
                                    TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

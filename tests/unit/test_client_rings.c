/* libscand over rings: when it asks for them, what comes over them, and a daemon that refuses, lies or ends. */
#include <errno.h>
#include <poll.h>
#include <sys/wait.h>

#include "client/lib/internal.h"
#include "tests/unit/client_rig.h"

#define SMALL 1000 /* samples of a small job */

static struct scand_buffer *buffer;

static void make_buffer(void)
{
    buffer = buffer_of(SMALL * sizeof(float));
    memset(scand_buffer_data(buffer), 0, SMALL * sizeof(float));
}

/* A session with a daemon that offers rings. */
static void begin(void)
{
    rig_start();
    fake.rings = 1;
    CHECK_EQ(scand_connect(fake.path, "test", &session), SCAND_OK);
    make_buffer();
}

static struct scand_scan small_scan(void)
{
    struct scand_tensor tensor = {.buffer = buffer, .dtype = SCAND_DTYPE_F32, .rank = 1, .shape = {SMALL}};
    scand_tensor_pack(&tensor);
    return (struct scand_scan){.input = tensor, .output = tensor, .pass_count = 1};
}

static struct scand_job *submit_small(void)
{
    const struct scand_scan scan = small_scan();
    struct scand_job *job = NULL;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    return job;
}

static void run_jobs(int count)
{
    for (int i = 0; i < count; i++) {
        struct scand_job *job = submit_small();
        CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
        scand_job_release(job);
    }
}

/* Each job has added 1 to each sample. */
static void check_samples(int jobs)
{
    const float *samples = scand_buffer_data(buffer);
    int wrong = 0;
    for (int i = 0; i < SMALL; i++)
        wrong += samples[i] != (float)jobs;
    CHECK_EQ(wrong, 0);
}

static bool has_rings(void)
{
    return connection_has_rings(session->connection);
}

static void test_many_small_jobs_ask_once(void)
{
    begin();
    run_jobs(RINGS_AFTER_JOBS - 1);
    CHECK_EQ(fake.seen[METHOD_rings_open], 0);
    run_jobs(100);
    CHECK_EQ(fake.seen[METHOD_rings_open], 1);
    CHECK(has_rings());
    check_samples(RINGS_AFTER_JOBS - 1 + 100);
    /* Descriptors come and go as before. */
    struct scand_buffer *other = buffer_of(BYTES);
    int memfd = memfd_of(BYTES);
    struct scand_buffer *imported = NULL;
    CHECK_EQ(scand_buffer_import(session, memfd, BYTES, &imported), SCAND_OK);
    close(memfd);
    CHECK_EQ(scand_wait(submit(other, imported), -1, NULL), SCAND_OK);
    CHECK_EQ(((float *)scand_buffer_data(imported))[SAMPLES - 1], ((float *)scand_buffer_data(other))[SAMPLES - 1] + 1);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    rig_end();
}

static void test_batches_count_their_jobs(void)
{
    struct scand_scan scans[RINGS_AFTER_JOBS];
    struct scand_job *jobs[RINGS_AFTER_JOBS];
    begin();
    for (int i = 0; i < RINGS_AFTER_JOBS; i++)
        scans[i] = small_scan();
    for (int round = 0; round < 5; round++) {
        CHECK_EQ(scand_submit_many(session, scans, RINGS_AFTER_JOBS, jobs), SCAND_OK);
        for (int i = 0; i < RINGS_AFTER_JOBS; i++) {
            CHECK_EQ(scand_wait(jobs[i], -1, NULL), SCAND_OK);
            scand_job_release(jobs[i]);
        }
    }
    CHECK(has_rings());
    CHECK_EQ(fake.seen[METHOD_rings_open], 1);
    check_samples(5 * RINGS_AFTER_JOBS);
    rig_end();
}

static void test_large_jobs_need_none(void)
{
    enum { LARGE = SHORT_BYTES / sizeof(float) + 1 };
    begin();
    struct scand_buffer *large = buffer_of(LARGE * sizeof(float));
    struct scand_tensor tensor = {.buffer = large, .dtype = SCAND_DTYPE_F32, .rank = 1, .shape = {LARGE}};
    scand_tensor_pack(&tensor);
    const struct scand_scan scan = {.input = tensor, .output = tensor, .pass_count = 1};
    for (int i = 0; i < 2 * RINGS_AFTER_JOBS; i++) {
        struct scand_job *job = NULL;
        CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
        CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
        scand_job_release(job);
    }
    CHECK_EQ(fake.seen[METHOD_rings_open], 0);
    rig_end();
}

static void test_an_older_daemon_is_not_asked(void)
{
    rig_begin();
    make_buffer();
    run_jobs(20);
    CHECK_EQ(fake.seen[METHOD_rings_open], 0);
    CHECK(!has_rings());
    rig_end();
}

static void test_the_option(void)
{
    struct scand_options *options;
    rig_start();
    fake.rings = 1;
    CHECK_EQ(scand_options_create(&options), SCAND_OK);
    CHECK_EQ(scand_options_set(options, "rings", 2), SCAND_INVALID);
    CHECK_CONTAINS(scand_connect_message(), "0 to 1 are allowed");
    CHECK_EQ(scand_options_set(options, "rings", 0), SCAND_OK);
    CHECK_EQ(scand_connect_with(options, fake.path, "test", &session), SCAND_OK);
    scand_options_destroy(options);
    make_buffer();
    run_jobs(20);
    CHECK_EQ(fake.seen[METHOD_rings_open], 0);
    rig_end();
}

/* A daemon that refuses is not asked again; jobs that were sent behind the question have waited for that alone. */
static void test_refused(void)
{
    struct scand_job *jobs[16];
    begin();
    fake.fail_on = METHOD_rings_open;
    fake.fail_code = -EDQUOT;
    for (int i = 0; i < 16; i++)
        jobs[i] = submit_small();
    for (int i = 0; i < 16; i++)
        CHECK_EQ(scand_wait(jobs[i], -1, NULL), SCAND_OK);
    run_jobs(20);
    CHECK_EQ(fake.seen[METHOD_rings_open], 1);
    CHECK(!has_rings());
    check_samples(36);
    rig_end();
}

/* What was sent on a connection that has broken says nothing of the next one. */
static void test_each_connection_counts_anew(void)
{
    begin();
    run_jobs(RINGS_AFTER_JOBS - 1);
    fake.die_on = METHOD_server_ping;
    fake.die_count = 1;
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    run_jobs(RINGS_AFTER_JOBS - 1);
    CHECK_EQ(fake.seen[METHOD_hello], 2);
    CHECK_EQ(fake.seen[METHOD_rings_open], 0);
    run_jobs(2);
    CHECK_EQ(fake.seen[METHOD_rings_open], 1);
    rig_end();
}

/* Memory that cannot be used: the daemon uses it, so there must be another connection, which goes on without. */
static void test_wrong_memory(void)
{
    for (int lie = 2; lie <= 3; lie++) {
        begin();
        fake.lie = lie;
        run_jobs(RINGS_AFTER_JOBS);
        CHECK_EQ(scand_ping(session, NULL), SCAND_OK); /* the second time */
        fake.lie = 0;
        run_jobs(20);
        CHECK_EQ(fake.seen[METHOD_rings_open], 1);
        CHECK_EQ(fake.seen[METHOD_hello], 2);
        CHECK(!has_rings());
        rig_end();
    }
}

static void test_no_memory_at_all(void)
{
    begin();
    fake.lie = 1;
    run_jobs(RINGS_AFTER_JOBS); /* the answers come before */
    /* The session is given up; in this call, or in the last job's wait, so that this call begins anew. */
    const int status = scand_ping(session, NULL);
    CHECK(status == SCAND_MALFORMED || fake.seen[METHOD_hello] == 2);
    if (status)
        CHECK_CONTAINS(scand_message(session), "make sure that it is scand");
    rig_end();
}

static void test_worker_ends(void)
{
    static const enum method methods[] = {METHOD_rings_open, METHOD_job_submit, METHOD_server_ping};
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        begin();
        run_jobs(methods[i] == METHOD_rings_open ? 0 : 2 * RINGS_AFTER_JOBS);
        fake.die_on = (int)methods[i];
        fake.die_count = 1;
        if (methods[i] == METHOD_server_ping)
            CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
        struct scand_scan scan = small_scan();
        struct scand_buffer *output = buffer_of(SMALL * sizeof(float));
        scan.output.buffer = output; /* not in place, so that it may be repeated */
        for (int job = 0; job < 4 * RINGS_AFTER_JOBS; job++) {
            struct scand_job *made = NULL;
            CHECK_EQ(scand_submit(session, &scan, &made), SCAND_OK);
            CHECK_EQ(scand_wait(made, -1, NULL), SCAND_OK);
            scand_job_release(made);
        }
        CHECK_EQ(fake.die_count, 0);
        CHECK_EQ(fake.seen[METHOD_rings_open], 2);
        CHECK(has_rings());
        rig_end();
    }
}

/* A program with a loop sees the socket alone: also what was in the ring before it asked for the descriptor. */
static void test_a_program_with_a_loop(void)
{
    enum { JOBS = 10 };
    struct scand_job *jobs[JOBS];
    begin();
    run_jobs(2 * RINGS_AFTER_JOBS);
    CHECK(has_rings());
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < JOBS; i++)
            jobs[i] = submit_small();
        if (round == 0)
            while (!connection_is_ready(session->connection))
                poll(NULL, 0, 1);
        struct pollfd poller = {.fd = scand_fd(session), .events = POLLIN};
        for (int done = 0; done < JOBS;) {
            CHECK_EQ(poll(&poller, 1, 10000), 1);
            CHECK_EQ(scand_dispatch(session), SCAND_OK);
            done = 0;
            for (int i = 0; i < JOBS; i++)
                done += scand_job_done(jobs[i]);
            REQUIRE(check_failures == 0);
        }
        for (int i = 0; i < JOBS; i++)
            scand_job_release(jobs[i]);
    }
    check_samples(2 * RINGS_AFTER_JOBS + 20 * JOBS);
    rig_end();
}

static void *run_in_thread(void *argument)
{
    (void)argument;
    for (int i = 0; i < 100; i++) {
        struct scand_job *jobs[4];
        for (int k = 0; k < 4; k++)
            jobs[k] = submit_small();
        for (int k = 0; k < 4; k++) {
            CHECK_EQ(scand_wait(jobs[k], -1, NULL), SCAND_OK);
            scand_job_release(jobs[k]);
        }
    }
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[4];
    begin();
    for (int i = 0; i < 4; i++)
        REQUIRE(pthread_create(&threads[i], NULL, run_in_thread, NULL) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK(has_rings());
    check_samples(4 * 100 * 4);
    rig_end();
}

/* A daemon that writes anything to the memory at any time ends sessions, and harms no program. */
static void test_scribbling(void)
{
    const uint64_t seed = random_seed();
    unsigned ended = 0;
    for (int round = 0; round < 200; round++) {
        rig_start();
        fake.rings = 2;
        fake.random = seed + (uint64_t)round;
        CHECK_EQ(scand_connect(fake.path, "test", &session), SCAND_OK);
        make_buffer();
        const struct scand_scan scan = small_scan();
        int status = SCAND_OK;
        for (int i = 0; i < 40 && !status; i++) {
            struct scand_job *job = NULL;
            status = scand_submit(session, &scan, &job);
            if (!status)
                status = scand_wait(job, 20, NULL);
            scand_job_release(job);
        }
        ended += status != SCAND_OK;
        rig_end();
    }
    CHECK(ended > 0);
}

/* A child has the memory of its parent's rings, and leaves it alone. */
static void test_fork(void)
{
    begin();
    run_jobs(2 * RINGS_AFTER_JOBS);
    struct scand_job *job = submit_small();
    fflush(stderr);
    pid_t child = fork();
    if (child == 0) {
        const int status = scand_ping(session, NULL);
        scand_disconnect(session);
        _exit(status != SCAND_FORKED);
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    run_jobs(20);
    CHECK_EQ(fake.seen[METHOD_hello], 1);
    check_samples(2 * RINGS_AFTER_JOBS + 21);
    rig_end();
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(test_many_small_jobs_ask_once),
        TEST(test_batches_count_their_jobs),
        TEST(test_large_jobs_need_none),
        TEST(test_an_older_daemon_is_not_asked),
        TEST(test_the_option),
        TEST(test_refused),
        TEST(test_each_connection_counts_anew),
        TEST(test_wrong_memory),
        TEST(test_no_memory_at_all),
        TEST(test_worker_ends),
        TEST(test_a_program_with_a_loop),
        TEST(test_threads),
        TEST(test_scribbling),
        TEST(test_fork),
        TEST_END,
    };
    return test_main(argc, argv, tests);
}

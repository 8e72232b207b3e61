/*
 * libscand without a daemon: when a program gets that, and that results, errors, threads and forks are those of a
 * daemon. $SCAND names the daemon's program.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/integration/session.h"

#define NOWHERE "/nonexistent/scand.sock"

static struct server server;

static const char *const arguments[] = {"--device", "cpu", "--pool", "64M", NULL};

/* Connects with SCAND_FALLBACK set to this, NULL: unset. Returns the status. */
static int connect_with_variable(const char *path, const char *variable, struct scand **out)
{
    if (variable)
        setenv("SCAND_FALLBACK", variable, 1);
    int status = scand_connect(path, "test", out);
    unsetenv("SCAND_FALLBACK");
    return status;
}

static void test_where_no_daemon_answers(void)
{
    struct scand *session = NULL;
    CHECK_EQ(connect_with_variable(NOWHERE, NULL, &session), SCAND_UNAVAILABLE);
    CHECK_EQ(connect_with_variable(NOWHERE, "", &session), SCAND_UNAVAILABLE);
    CHECK(!session_open(NOWHERE, SCAND_LOCAL_NEVER));
    REQUIRE(connect_with_variable(NOWHERE, "cpu", &session) == SCAND_OK);
    CHECK(scand_is_local(session));
    scand_disconnect(session);
    session = session_open(NOWHERE, SCAND_LOCAL_FALLBACK);
    REQUIRE(session != NULL);
    CHECK(scand_is_local(session));
    CHECK(strncmp(scand_server_name(session), "scand ", 6) == 0);
    scand_disconnect(session);
}

static void test_where_a_daemon_answers(void)
{
    struct scand *session = NULL;
    REQUIRE(server_start(&server, session_daemon(), arguments) == 0);
    REQUIRE(connect_with_variable(server.socket, "cpu", &session) == SCAND_OK);
    CHECK(!scand_is_local(session));
    scand_disconnect(session);
    session = session_open(server.socket, SCAND_LOCAL_FALLBACK);
    REQUIRE(session != NULL);
    CHECK(!scand_is_local(session));
    scand_disconnect(session);
    session = session_open(server.socket, SCAND_LOCAL_ALWAYS);
    REQUIRE(session != NULL);
    CHECK(scand_is_local(session));
    scand_disconnect(session);
    server_stop(&server);
}

static void test_wrong_values(void)
{
    struct scand *session = NULL;
    struct scand_options *options = NULL;
    CHECK_EQ(connect_with_variable(NOWHERE, "gpu", &session), SCAND_INVALID);
    CHECK_CONTAINS(scand_connect_message(), "SCAND_FALLBACK is \"gpu\": allowed is \"cpu\"");
    CHECK_EQ(scand_options_create(&options), SCAND_OK);
    CHECK_EQ(scand_options_set(options, "local", SCAND_LOCAL_ALWAYS + 1), SCAND_INVALID);
    CHECK_CONTAINS(scand_connect_message(), "local is 4: 0 to 3 are allowed");
    scand_options_destroy(options);
}

static struct scand_scan scan_of(struct scand_buffer *buffer, uint64_t rows, uint64_t samples)
{
    struct scand_tensor tensor = {.buffer = buffer, .dtype = SCAND_DTYPE_F32, .rank = 2, .shape = {rows, samples}};
    scand_tensor_pack(&tensor);
    return (struct scand_scan){.input = tensor,
                               .output = tensor,
                               .axis = 1,
                               .passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD},
                               .pass_count = 2};
}

static void fill(float *x, size_t count, uint64_t random)
{
    for (size_t i = 0; i < count; i++)
        x[i] = (float)((double)(random_next(&random) >> 40) / (1 << 24)) - 0.5f;
}

static struct scand_job *submit(struct scand *session, const struct scand_scan *scan)
{
    struct scand_job *job = NULL;
    if (scand_submit(session, scan, &job)) {
        fprintf(stderr, "%s\n", scand_message(session));
        abort();
    }
    return job;
}

static void scan_here(struct scand *session, struct scand_buffer *buffer, uint64_t rows, uint64_t samples,
                      enum scand_accumulator accumulator)
{
    struct scand_scan scan = scan_of(buffer, rows, samples);
    scan.accumulator = accumulator;
    struct scand_job *job = submit(session, &scan);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    scand_job_release(job);
}

/* Small jobs, which are done at once; some of several chunks; a row that has turns. */
static const struct {
    uint64_t rows, samples;
} shapes[] = {{1, 1}, {1, 1000}, {7, 513}, {40, 20000}, {6000, 2001}, {1, 9000000}};

static void compare_shape(struct scand *daemon, struct scand *local, size_t number)
{
    const uint64_t rows = shapes[number].rows, samples = shapes[number].samples, random = random_seed() + number;
    const size_t count = (size_t)(rows * samples);
    struct scand_buffer *theirs = session_buffer(daemon, count * sizeof(float)),
                        *ours = session_buffer(local, count * sizeof(float));
    for (unsigned accumulator = SCAND_ACCUMULATOR_F64; accumulator <= SCAND_ACCUMULATOR_F2; accumulator++) {
        fill(scand_buffer_data(theirs), count, random);
        fill(scand_buffer_data(ours), count, random);
        scan_here(daemon, theirs, rows, samples, accumulator);
        scan_here(local, ours, rows, samples, accumulator);
        if (memcmp(scand_buffer_data(theirs), scand_buffer_data(ours), count * sizeof(float)) != 0) {
            fprintf(stderr, "%llu x %llu, accumulator %u\n", (unsigned long long)rows, (unsigned long long)samples,
                    accumulator);
            CHECK(!"the same bits");
        }
    }
    CHECK_EQ(scand_buffer_release(theirs), SCAND_OK);
    CHECK_EQ(scand_buffer_release(ours), SCAND_OK);
}

static void test_bits(void)
{
    static const char *const roomy[] = {"--device", "cpu", "--pool", "128M", NULL};
    REQUIRE(server_start(&server, session_daemon(), roomy) == 0);
    struct scand *daemon = session_open(server.socket, SCAND_LOCAL_NEVER),
                 *local = session_open(NULL, SCAND_LOCAL_ALWAYS);
    REQUIRE(daemon && local);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        compare_shape(daemon, local, i);
    scand_disconnect(local);
    scand_disconnect(daemon);
    server_stop(&server);
}

/* A file as input, beside the same samples in memory: small, of several chunks, and a long row. */
static void test_files(void)
{
    struct scand *session = session_open(NULL, SCAND_LOCAL_ALWAYS);
    REQUIRE(session);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const uint64_t rows = shapes[i].rows, samples = shapes[i].samples, bytes = rows * samples * sizeof(float);
        struct scand_buffer *memory = session_buffer(session, bytes), *output = session_buffer(session, bytes),
                            *source = NULL;
        FILE *file = tmpfile();
        fill(scand_buffer_data(memory), (size_t)(rows * samples), random_seed() + i);
        REQUIRE(file && fwrite(scand_buffer_data(memory), bytes, 1, file) == 1 && fflush(file) == 0);
        CHECK_EQ(scand_buffer_import_file(session, fileno(file), bytes, &source), SCAND_OK);
        fclose(file);
        struct scand_scan scan = scan_of(output, rows, samples);
        scan.input.buffer = source;
        struct scand_job *job = submit(session, &scan);
        CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
        scan_here(session, memory, rows, samples, scan.accumulator);
        CHECK(memcmp(scand_buffer_data(memory), scand_buffer_data(output), bytes) == 0);
        CHECK_EQ(scand_buffer_release(memory), SCAND_OK);
        CHECK_EQ(scand_buffer_release(output), SCAND_OK);
        CHECK_EQ(scand_buffer_release(source), SCAND_OK);
    }
    scand_disconnect(session);
}

static int calls_wrongly(struct scand *session, unsigned number)
{
    struct scand_buffer *buffer = session_buffer(session, 4000), *made = NULL;
    struct scand_scan scan = scan_of(buffer, 1, 1000);
    struct scand_job *job = NULL;
    struct scand_export export;
    int code;
    switch (number) {
    case 0: /* longer than its buffer */
        scan.input.shape[1] = scan.output.shape[1] = 1001;
        break;
    case 1: /* overlaps */
        scan.input.shape[1] = scan.output.shape[1] = 900;
        scan.output.offset = 4;
        break;
    case 2:
        scan.algorithm = "none-such";
        break;
    case 3:
        scan.accumulator = SCAND_ACCUMULATOR_EXACT;
        break;
    case 4: /* more than the pool ever has */
        return scand_buffer_create(session, SCAND_PLACE_HOST, UINT64_C(1) << 62, &made);
    case 5:
        return scand_buffer_create_shared(session, SCAND_SHARING_HANDLE, 4096, &made);
    default:
        return scand_buffer_export(buffer, &export);
    }
    code = scand_submit(session, &scan, &job);
    return code ? code : scand_wait(job, -1, NULL);
}

static void test_errors_are_the_daemons(void)
{
    REQUIRE(server_start(&server, session_daemon(), arguments) == 0);
    struct scand *daemon = session_open(server.socket, SCAND_LOCAL_NEVER),
                 *local = session_open(NULL, SCAND_LOCAL_ALWAYS);
    REQUIRE(daemon && local);
    for (unsigned i = 0; i <= 6; i++) {
        const int theirs = calls_wrongly(daemon, i), ours = calls_wrongly(local, i);
        CHECK(theirs != SCAND_OK);
        CHECK_EQ(ours, theirs);
        if (i != 4) /* which says how large the pool is */
            CHECK_CONTAINS(scand_message(local), scand_message(daemon));
    }
    scand_disconnect(local);
    scand_disconnect(daemon);
    server_stop(&server);
}

/* No daemon follows a service of this process, which the program has had refuse its jobs. */
static void test_drained(void)
{
    struct scand *session = session_open(NULL, SCAND_LOCAL_ALWAYS);
    REQUIRE(session != NULL);
    struct scand_buffer *buffer = session_buffer(session, 4000);
    struct scand_scan scan = scan_of(buffer, 10, 100);
    uint32_t group = 0;
    CHECK_EQ(scand_drain(session), SCAND_OK);
    CHECK_EQ(scand_wait(submit(session, &scan), -1, NULL), SCAND_DRAINING);
    CHECK_CONTAINS(scand_message(session), "takes no more jobs");
    CHECK_EQ(scand_group_begin(session, NULL, 0, &group), SCAND_DRAINING);
    scand_disconnect(session);
}

/* Rows of ones, a job each: among them are one that is refused and some that only a message can bring. */
#define JOBS    250
#define SAMPLES 100
#define REFUSED 120

static struct scand_job *submit_row(struct scand *session, struct scand_buffer *buffer, uint64_t row)
{
    struct scand_scan scan = scan_of(buffer, 1, SAMPLES);
    scan.input.offset = scan.output.offset = row * SAMPLES * sizeof(float);
    scan.pass_count = 1;
    scan.deadline_ms = row % 16 == 3 ? 60000 : 0;
    scan.algorithm = row % 16 == 5 ? "serial-cpu" : NULL;
    if (row == REFUSED) { /* the output overlaps the input */
        scan.input.shape[1] = scan.output.shape[1] = SAMPLES - 1;
        scan.output.offset += sizeof(float);
    }
    return submit(session, &scan);
}

static int wrong_sums(const float *x)
{
    int wrong = 0;
    for (int i = 0; i < SAMPLES; i++)
        wrong += x[i] != (float)(i + 1);
    return wrong;
}

/* More jobs end than have room for results without a message, and one fails, before anybody waits. */
static void test_results_that_wait(void)
{
    struct scand *session = session_open(NULL, SCAND_LOCAL_ALWAYS);
    REQUIRE(session != NULL);
    struct scand_buffer *buffer = session_buffer(session, JOBS * SAMPLES * sizeof(float));
    float *x = scand_buffer_data(buffer);
    struct scand_job *jobs[JOBS];
    for (int times = 0; times < 3; times++) {
        for (size_t i = 0; i < (size_t)JOBS * SAMPLES; i++)
            x[i] = 1;
        for (uint64_t row = 0; row < JOBS; row++)
            jobs[row] = submit_row(session, buffer, row);
        CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
        for (uint64_t row = JOBS; row-- > 0;) {
            CHECK_EQ(scand_job_done(jobs[row]), 1);
            CHECK_EQ(scand_wait(jobs[row], 0, NULL), row == REFUSED ? SCAND_INVALID : SCAND_OK);
            CHECK(row == REFUSED || wrong_sums(x + row * SAMPLES) == 0);
            scand_job_release(jobs[row]);
        }
    }
    scand_disconnect(session);
}

/* A number that the service refuses is refused in its words. */
static void test_deadline_out_of_range(void)
{
    struct scand *session = session_open(NULL, SCAND_LOCAL_ALWAYS);
    REQUIRE(session != NULL);
    struct scand_scan scan = scan_of(session_buffer(session, 4000), 1, 1000);
    scan.deadline_ms = (uint64_t)SCAND_DEADLINE_MS_MAX + 1;
    struct scand_job *job = submit(session, &scan);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "job.submit: field \"deadline_ms\" is 86400001; allowed: 0 to 86400000");
    scand_disconnect(session);
}

/* Scans by several threads, each of rows of its own, again and again: rows of ones, whose sums are known. */
#define THREADS 6
#define TIMES   40

static struct scand *shared;

static void *scan_often(void *argument)
{
    const uint64_t samples = (uintptr_t)argument;
    struct scand_buffer *buffer = session_buffer(shared, samples * sizeof(float));
    float *x = scand_buffer_data(buffer);
    intptr_t wrong = 0;
    for (int i = 0; i < TIMES; i++) {
        for (uint64_t j = 0; j < samples; j++)
            x[j] = 1;
        struct scand_scan scan = scan_of(buffer, 1, samples);
        scan.pass_count = 1;
        struct scand_job *job = NULL;
        wrong += scand_submit(shared, &scan, &job) != SCAND_OK || scand_wait(job, -1, NULL) != SCAND_OK;
        scand_job_release(job);
        for (uint64_t j = 0; j < samples; j++)
            wrong += x[j] != (float)(j + 1);
    }
    wrong += scand_buffer_release(buffer) != SCAND_OK;
    return (void *)wrong;
}

/* Threads with small jobs, which are done at once, among threads with large ones, which are not. */
static void test_threads(void)
{
    pthread_t threads[THREADS];
    shared = session_open(NULL, SCAND_LOCAL_ALWAYS);
    REQUIRE(shared != NULL);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, scan_often, (void *)(i % 2 ? 1000 + i : 300000 + i)), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        CHECK_EQ((intptr_t)wrong, 0);
    }
    scand_disconnect(shared);
}

static int child_finds(struct scand *session, struct scand_buffer *buffer)
{
    struct scand_scan scan = scan_of(buffer, 1, 1000);
    struct scand_job *job = NULL;
    int wrong = scand_submit(session, &scan, &job) != SCAND_FORKED || scand_ping(session, NULL) != SCAND_FORKED;
    scand_forget();
    struct scand *own = session_open(NULL, SCAND_LOCAL_ALWAYS);
    if (!own)
        return 2;
    scan_here(own, session_buffer(own, 4000), 1, 1000, SCAND_ACCUMULATOR_F64);
    scand_disconnect(own);
    return wrong;
}

/* While threads of the parent compute. */
static void test_fork(void)
{
#ifdef __SANITIZE_ADDRESS__
    SKIP("a child may wait for ever for a lock of this sanitizer's allocator, which a thread held in the fork");
#endif
    struct scand *session = session_open(NULL, SCAND_LOCAL_ALWAYS);
    REQUIRE(session != NULL);
    struct scand_buffer *small = session_buffer(session, 4000), *large = session_buffer(session, 40000000);
    struct scand_scan scan = scan_of(large, 1000, 10000);
    struct scand_job *job = submit(session, &scan);
    fflush(stderr);
    pid_t child = fork();
    if (child == 0)
        _exit(child_finds(session, small));
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    scan_here(session, small, 1, 1000, SCAND_ACCUMULATOR_F64);
    scand_disconnect(session);
}

/* Memory that was free in the fork, and is the parent's since, is not a child's to give back. */
static void test_child_that_forgets(void)
{
    int ends[2];
    char told;
    struct scand *session = session_open(NULL, SCAND_LOCAL_ALWAYS);
    REQUIRE(session != NULL && pipe(ends) == 0);
    CHECK_EQ(scand_buffer_release(session_buffer(session, 1 << 20)), SCAND_OK);
    pid_t child = fork();
    if (child == 0) {
        if (read(ends[0], &told, 1) == 1)
            scand_forget();
        _exit(0);
    }
    struct scand_buffer *buffer = session_buffer(session, 1 << 20);
    memset(scand_buffer_data(buffer), 1, 1 << 20);
    int status = -1, wrong = 0;
    CHECK(write(ends[1], "", 1) == 1 && child > 0 && waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
    for (int i = 0; i < 1 << 20; i++)
        wrong += ((const char *)scand_buffer_data(buffer))[i] != 1;
    CHECK_EQ(wrong, 0);
    close(ends[0]);
    close(ends[1]);
    scand_disconnect(session);
}

/* A loop is told of jobs that are done at once, and of those that are not. */
static void test_loop(void)
{
    struct scand *session = session_open(NULL, SCAND_LOCAL_ALWAYS);
    REQUIRE(session != NULL);
    struct pollfd poller = {.fd = scand_fd(session), .events = POLLIN};
    struct scand_buffer *buffer = session_buffer(session, 8000000);
    for (int i = 0; i < 20; i++) {
        struct scand_scan scan = scan_of(buffer, 1, i % 2 ? 1000 : 2000000);
        struct scand_job *job = submit(session, &scan);
        while (!scand_job_done(job)) {
            REQUIRE(poll(&poller, 1, 60000) == 1);
            CHECK_EQ(scand_dispatch(session), SCAND_OK);
        }
        CHECK_EQ(scand_wait(job, 0, NULL), SCAND_OK);
        scand_job_release(job);
    }
    CHECK_EQ(poll(&poller, 1, 0), 0);
    scand_disconnect(session);
}

/* Running jobs can be cancelled, waits end at their time, and jobs that wait too long do not begin. */
static void test_jobs_that_wait(void)
{
    struct scand *session = session_open(NULL, SCAND_LOCAL_ALWAYS);
    REQUIRE(session != NULL);
    struct scand_buffer *buffer = session_buffer(session, 400000000);
    struct scand_scan scan = scan_of(buffer, 10000, 10000), late = scan;
    struct scand_job *first = submit(session, &scan), *second = NULL;
    late.deadline_ms = 1;
    late.after_failure = 1;
    CHECK_EQ(scand_submit(session, &late, &second), SCAND_OK);
    CHECK_EQ(scand_wait(first, 0, NULL), SCAND_TIMED_OUT);
    CHECK_EQ(scand_wait(second, -1, NULL), SCAND_DEADLINE);
    CHECK_EQ(scand_cancel(first), SCAND_OK);
    CHECK_EQ(scand_wait(first, -1, NULL), SCAND_CANCELLED);
    struct scand_job *last = submit(session, &scan); /* which nobody waits for */
    (void)last;
    scand_disconnect(session);
}

/* Memory that files of memory take of this process. */
static uint64_t shared_bytes(void)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file) && sscanf(line, "RssShmem: %llu kB", &kib) != 1)
        ;
    if (file)
        fclose(file);
    return (uint64_t)kib << 10;
}

/* Released memory is the system's again, but for some that the next buffers get. */
static void test_memory_goes_back(void)
{
    const uint64_t most = (uint64_t)600 << 20;
    struct scand *session = session_open(NULL, SCAND_LOCAL_ALWAYS);
    REQUIRE(session != NULL);
    struct scand_buffer *buffer = session_buffer(session, most);
    CHECK(shared_bytes() >= most);
    CHECK_EQ(scand_buffer_release(buffer), SCAND_OK);
    CHECK(shared_bytes() < most / 2);
    scand_disconnect(session);
}

/* A session without jobs or buffers takes nothing that it does not give back. */
static void test_nothing_is_left(void)
{
    int before = open("/dev/null", O_RDONLY);
    close(before);
    for (int i = 0; i < 3; i++) {
        struct scand *session = session_open(NULL, SCAND_LOCAL_ALWAYS);
        REQUIRE(session != NULL);
        scan_here(session, session_buffer(session, 40000000), 1000, 10000, SCAND_ACCUMULATOR_F64);
        scand_disconnect(session);
    }
    int after = open("/dev/null", O_RDONLY);
    close(after);
    CHECK_EQ(before, after);
}

static const struct test tests[] = {TEST(test_where_no_daemon_answers),
                                    TEST(test_where_a_daemon_answers),
                                    TEST(test_wrong_values),
                                    TEST(test_bits),
                                    TEST(test_files),
                                    TEST(test_drained),
                                    TEST(test_errors_are_the_daemons),
                                    TEST(test_results_that_wait),
                                    TEST(test_deadline_out_of_range),
                                    TEST(test_threads),
                                    TEST(test_fork),
                                    TEST(test_child_that_forgets),
                                    TEST(test_loop),
                                    TEST(test_jobs_that_wait),
                                    TEST(test_memory_goes_back),
                                    TEST(test_nothing_is_left),
                                    TEST_END};

int main(int argc, char **argv)
{
    unsetenv("SCAND_FALLBACK");
    return test_main(argc, argv, tests);
}

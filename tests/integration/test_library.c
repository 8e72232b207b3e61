/*
 * libscand with the real daemon, which takes the processor for two devices: results, and what a killed worker does to
 * jobs, buffers and loops. $SCAND names the daemon's program;
 * without it those tests that need no worker to kill have the service of this process.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <scand/scand.h>

#include "protocol/limits.h"
#include "tests/check.h"
#include "tests/integration/session.h"
#include "tests/server.h"

#define ROWS    3000 /* several chunks */
#define SAMPLES 2000
#define BYTES   (ROWS * SAMPLES * sizeof(float))

static struct server server;
static struct scand *session;
static struct scand_buffer *input, *output;

static void begin(void)
{
    static const char *const arguments[] = {"--device", "cpu:2", "--pool", "80M", NULL};
    session = session_begin(&server, arguments);
    input = session_buffer(session, BYTES);
    output = session_buffer(session, BYTES);
    float *x = scand_buffer_data(input);
    for (size_t i = 0; i < ROWS * SAMPLES; i++)
        x[i] = (float)(i % 7);
}

static void end(void)
{
    session_end(session, &server);
}

static void worker_kill(void)
{
    pid_t worker = server_worker(&server);
    CHECK(worker > 0 && kill(worker, SIGKILL) == 0);
}

static struct scand_scan scan_of(struct scand_buffer *from, struct scand_buffer *to)
{
    struct scand_tensor tensor = {.buffer = from, .dtype = SCAND_DTYPE_F32, .rank = 2, .shape = {ROWS, SAMPLES}};
    scand_tensor_pack(&tensor);
    struct scand_scan scan = {.input = tensor, .output = tensor, .axis = 1, .pass_count = 1};
    scan.accumulator = SCAND_ACCUMULATOR_F64;
    scan.output.buffer = to;
    return scan;
}

/* Small whole numbers: their sums are exact. */
static void check_sums(const float *y)
{
    int wrong = 0;
    for (size_t row = 0; row < ROWS; row++) {
        float sum = 0;
        for (size_t i = row * SAMPLES; i < (row + 1) * SAMPLES; i++)
            wrong += y[i] != (sum += (float)(i % 7));
    }
    CHECK_EQ(wrong, 0);
}

static void kill_once(void *context, uint64_t rows_done, uint64_t rows)
{
    int *calls = context;
    CHECK(rows_done <= rows && rows == ROWS);
    if (++*calls == 1)
        worker_kill();
}

static void test_results(void)
{
    begin();
    struct scand_scan scan = scan_of(input, output);
    struct scand_job *job = NULL;
    struct scand_times times = {0};
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, 60000, &times), SCAND_OK);
    CHECK(times.total_us > 0);
    check_sums(scand_buffer_data(output));
    scan = scan_of(input, input);
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, 60000, NULL), SCAND_OK);
    check_sums(scand_buffer_data(input));
    struct scand_device device;
    size_t count = 0;
    CHECK_EQ(scand_devices(session, &device, sizeof device, 1, &count), SCAND_OK);
    CHECK(count == 1 && strcmp(device.backend, "cpu") == 0);
    end();
}

/* Sums of samples that are not negative rise, so that the greatest from each on is the row's whole sum. */
static void test_steps(void)
{
    begin();
    struct scand_scan scan = scan_of(input, output);
    struct scand_job *job = NULL;
    const float *y = scand_buffer_data(output);
    int wrong = 0;
    scan.then = &(struct scand_step){.pass_count = 1, .passes = {SCAND_PASS_BACKWARD}, .op = SCAND_OPERATOR_MAX};
    scan.then_count = 1;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, 60000, NULL), SCAND_OK);
    for (size_t row = 0; row < ROWS; row++) {
        float sum = 0;
        for (size_t i = row * SAMPLES; i < (row + 1) * SAMPLES; i++)
            sum += (float)(i % 7);
        for (size_t i = row * SAMPLES; i < (row + 1) * SAMPLES; i++)
            wrong += y[i] != sum;
    }
    CHECK_EQ(wrong, 0);
    scan.then = &(struct scand_step){.pass_count = 1, .accumulator = SCAND_ACCUMULATOR_EXACT};
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, 60000, NULL), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "\"then[0].accumulator\" is \"exact\"");
    end();
}

/* With -1 as every coefficient: one for all, one that is repeated, and one for each sample. */
static void test_affine(void)
{
    enum { FEW = 1000, COUNT = FEW * SAMPLES }; /* rows that the pool has room for */
    begin();
    struct scand_scan scan = scan_of(input, output);
    const float *x = scand_buffer_data(input), *y = scand_buffer_data(output);
    float *minus = NULL;
    struct scand_buffer *factors = session_buffer(session, COUNT * sizeof(float));
    scan.input.shape[0] = scan.output.shape[0] = FEW;
    minus = scand_buffer_data(factors);
    for (size_t i = 0; i < COUNT; i++)
        minus[i] = -1;
    scan.op = SCAND_OPERATOR_AFFINE;
    for (int i = 0; i < 3; i++) {
        struct scand_job *job = NULL;
        int wrong = 0;
        scan.coefficient = i == 0 ? -1 : 0;
        if (i > 0) {
            scan.coefficients = scan.input;
            scan.coefficients.buffer = factors;
        }
        if (i == 1)
            memset(scan.coefficients.strides, 0, sizeof scan.coefficients.strides);
        memset(scand_buffer_data(output), 0, scand_buffer_size(output));
        CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
        CHECK_EQ(scand_wait(job, 60000, NULL), SCAND_OK);
        for (size_t k = 0; k < COUNT; k++)
            wrong += y[k] != (k % SAMPLES ? x[k] - y[k - 1] : x[k]);
        CHECK_EQ(wrong, 0);
    }
    struct scand_job *job = NULL;
    scan.coefficient = 2;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, 60000, NULL), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "\"coefficient\" is 2, and there are \"coefficients\", too; give one");
    scan.coefficients.buffer = NULL;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "coefficients.buffer is NULL");
    end();
}

static void test_refused(void)
{
    begin();
    struct scand_scan scan = scan_of(input, output);
    struct scand_job *job = NULL;
    scan.output.offset = 4;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, 60000, NULL), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "output");
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    end();
}

static void test_devices(void)
{
    struct scand_device devices[4];
    struct scand_buffer *first, *second, *beside;
    size_t count;
    begin();
    CHECK_EQ(scand_devices(session, devices, sizeof *devices, 4, &count), SCAND_OK);
    CHECK_EQ(count, 2);
    CHECK_EQ(scand_buffer_create_on(session, 1, 1000, &second), SCAND_OK);
    CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_DEVICE, 100, &beside), SCAND_OK);
    CHECK_EQ(scand_buffer_create_on(session, 0, 10, &first), SCAND_OK);
    CHECK_EQ(scand_devices(session, devices, sizeof *devices, 4, &count), SCAND_OK);
    CHECK(devices[0].memory_used_bytes == 10 && devices[1].memory_used_bytes == 1100);
    CHECK(!scand_buffer_data(first) && scand_buffer_size(second) == 1000);
    CHECK(scand_buffer_device(first) == 0 && scand_buffer_device(second) == 1 && scand_buffer_device(beside) == 1);
    CHECK_EQ(scand_buffer_device(input), -1);
    CHECK_EQ(scand_buffer_create_on(session, 2, 10, &first), SCAND_NOT_FOUND);
    CHECK_CONTAINS(scand_message(session), "\"device\" is 2; allowed: 0 to 1");
    CHECK_EQ(scand_buffer_create_on(session, 4000, 10, &first), SCAND_NOT_FOUND);
    CHECK_CONTAINS(scand_message(session), "device is 4000");
    end();
}

static void test_imported(void)
{
    begin();
    struct scand_buffer *mine = NULL;
    struct scand_job *job = NULL;
    int memfd = memfd_create("mine", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(memfd >= 0 && ftruncate(memfd, BYTES) == 0);
    CHECK_EQ(scand_buffer_import(session, memfd, BYTES, &mine), SCAND_OK);
    struct scand_scan scan = scan_of(input, mine);
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, 60000, NULL), SCAND_OK);
    float *map = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, memfd, 0);
    REQUIRE(map != MAP_FAILED);
    check_sums(map);
    munmap(map, BYTES);
    close(memfd);
    end();
}

/* A file on disk with the input's samples, of which nothing but the daemon's descriptor is left. */
static struct scand_buffer *file_of_input(void)
{
    struct scand_buffer *buffer = NULL;
    FILE *file = tmpfile();
    CHECK(file && fwrite(scand_buffer_data(input), BYTES, 1, file) == 1 && fflush(file) == 0);
    CHECK_EQ(scand_buffer_import_file(session, fileno(file), 0, &buffer), SCAND_OK);
    fclose(file);
    return buffer;
}

static void test_file(void)
{
    begin();
    struct scand_job *job = NULL;
    struct scand_buffer *file = file_of_input();
    struct scand_scan scan = scan_of(file, output);
    CHECK(scand_buffer_size(file) == BYTES && !scand_buffer_data(file));
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, 60000, NULL), SCAND_OK);
    check_sums(scand_buffer_data(output));
    scan = scan_of(output, file);
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, 60000, NULL), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "which is only read");
    end();
}

/* The next worker gets the file again, and the job. */
static void test_worker_killed_while_a_file_is_read(void)
{
    begin();
    struct scand_job *job = NULL;
    struct scand_scan scan = scan_of(file_of_input(), output);
    int calls = 0;
    CHECK_EQ(scand_submit_progress(session, &scan, kill_once, &calls, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, 60000, NULL), SCAND_OK);
    CHECK(calls > 0);
    check_sums(scand_buffer_data(output));
    end();
}

static void test_worker_killed_idle(void)
{
    begin();
    struct scand_job *job = NULL;
    struct scand_scan scan = scan_of(input, output);
    worker_kill();
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, 60000, NULL), SCAND_OK);
    check_sums(scand_buffer_data(output));
    CHECK_EQ(scand_buffer_release(input), SCAND_OK);
    input = session_buffer(session, BYTES);
    end();
}

static void test_worker_killed_mid_job(void)
{
    begin();
    struct scand_job *job = NULL;
    struct scand_scan scan = scan_of(input, output);
    int calls = 0;
    CHECK_EQ(scand_submit_progress(session, &scan, kill_once, &calls, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, 60000, NULL), SCAND_OK);
    CHECK(calls > 0);
    check_sums(scand_buffer_data(output));
    end();
}

static void test_worker_killed_with_jobs_waiting(void)
{
    enum { JOBS = 8 };
    begin();
    struct scand_job *jobs[JOBS];
    struct scand_scan scan = scan_of(input, output), in_place = scan_of(output, output);
    for (int i = 0; i < JOBS; i++)
        CHECK_EQ(scand_submit(session, &scan, &jobs[i]), SCAND_OK);
    worker_kill();
    for (int i = 0; i < JOBS; i++)
        CHECK_EQ(scand_wait(jobs[i], 60000, NULL), SCAND_OK);
    check_sums(scand_buffer_data(output));
    for (int i = 0; i < JOBS; i++)
        CHECK_EQ(scand_submit(session, &in_place, &jobs[i]), SCAND_OK);
    worker_kill();
    int status = SCAND_OK;
    for (int i = 0; i < JOBS; i++) {
        status = scand_wait(jobs[i], 60000, NULL);
        CHECK(status == SCAND_OK || status == SCAND_LOST);
    }
    CHECK_EQ(status, SCAND_LOST);
    CHECK_CONTAINS(scand_message(session), "half overwritten");
    end();
}

/* Means of all rows, into the beginning of the other buffer. */
static void test_reduced(void)
{
    begin();
    struct scand_reduce reduce = {
        .input = {.buffer = input, .dtype = SCAND_DTYPE_F32, .rank = 2, .shape = {ROWS, SAMPLES}},
        .output = {.buffer = output, .dtype = SCAND_DTYPE_F64, .rank = 2, .shape = {ROWS, 1}},
        .axis = 1,
        .reduction = SCAND_REDUCTION_MEAN,
    };
    const float *x = scand_buffer_data(input);
    const double *means = scand_buffer_data(output);
    struct scand_job *job;
    scand_tensor_pack(&reduce.input);
    scand_tensor_pack(&reduce.output);
    CHECK_EQ(scand_submit_reduce(session, &reduce, NULL, NULL, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    scand_job_release(job);
    for (size_t row = 0; row < ROWS; row++) {
        double sum = 0;
        for (size_t i = 0; i < SAMPLES; i++)
            sum += (double)x[row * SAMPLES + i];
        CHECK(means[row] == sum / SAMPLES);
    }
    reduce.reduction = SCAND_REDUCTION_NONE;
    CHECK_EQ(scand_submit_reduce(session, &reduce, NULL, NULL, &job), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "reduction is SCAND_REDUCTION_NONE: give SCAND_REDUCTION_SUM");
    reduce.reduction = SCAND_REDUCTION_COUNT;
    CHECK_EQ(scand_submit_reduce(session, &reduce, NULL, NULL, &job), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "reduction is 7, which is no reduction: there are none, sum");
    end();
}

/* Three rows on one line, the second without samples; the offsets lie behind the results. */
static void test_reduced_ragged(void)
{
    begin();
    struct scand_reduce reduce = {
        .input = {.buffer = input, .dtype = SCAND_DTYPE_F32, .rank = 1, .shape = {SAMPLES}},
        .output = {.buffer = output, .dtype = SCAND_DTYPE_F64, .rank = 1, .shape = {3}},
        .offsets = {.buffer = output, .offset = 64, .dtype = SCAND_DTYPE_U64, .rank = 1, .shape = {4}},
        .reduction = SCAND_REDUCTION_SUM,
    };
    const float *x = scand_buffer_data(input);
    double *sums = scand_buffer_data(output);
    memcpy(sums + 8, (const uint64_t[]){1, 3, 3, 4}, 4 * sizeof(uint64_t));
    struct scand_job *job;
    scand_tensor_pack(&reduce.input);
    scand_tensor_pack(&reduce.output);
    scand_tensor_pack(&reduce.offsets);
    CHECK_EQ(scand_submit_reduce(session, &reduce, NULL, NULL, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    scand_job_release(job);
    CHECK(sums[0] == (double)x[1] + (double)x[2] && sums[1] == 0 && sums[2] == (double)x[3]);
    end();
}

#define MANY 200 /* jobs; a connection may have 256 */

/* Submits more jobs than one message holds, one of which is refused; then again, one of them cancelled. */
static void test_many(void)
{
    const uint64_t rows = ROWS / MANY;
    struct scand_scan scans[MANY];
    struct scand_job *jobs[MANY], *last;
    begin();
    for (size_t i = 0; i < MANY; i++) {
        scans[i] = scan_of(input, output);
        scans[i].input.offset = scans[i].output.offset = i * rows * SAMPLES * sizeof(float);
        scans[i].input.shape[0] = scans[i].output.shape[0] = rows;
    }
    scans[MANY - 1].output.offset = BYTES;
    CHECK_EQ(scand_submit_many(session, scans, MANY, jobs), SCAND_OK);
    for (size_t i = 0; i < MANY - 1; i++)
        CHECK_EQ(scand_wait(jobs[i], -1, NULL), SCAND_OK);
    CHECK_EQ(scand_wait(jobs[MANY - 1], -1, NULL), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "\"output\"");
    scans[MANY - 1].output.offset = scans[MANY - 1].input.offset;
    CHECK_EQ(scand_submit_many(session, &scans[MANY - 1], 1, &last), SCAND_OK);
    CHECK_EQ(scand_wait(last, -1, NULL), SCAND_OK);
    check_sums(scand_buffer_data(output));
    CHECK_EQ(scand_submit_many(session, scans, MANY, jobs), SCAND_OK);
    CHECK_EQ(scand_cancel(jobs[MANY - 1]), SCAND_OK);
    int status = scand_wait(jobs[MANY - 1], -1, NULL);
    CHECK(status == SCAND_CANCELLED || status == SCAND_OK); /* it may have been quick */
    CHECK_EQ(scand_wait(jobs[0], -1, NULL), SCAND_OK);
    end();
}

/* Leaves a child of its own behind, which holds what a fork has given it, and says so. */
static void own_and_fork(int ready, int until)
{
    struct scand *own = NULL;
    struct scand_buffer *buffer = NULL;
    char byte = 0;
    scand_forget();
    if (scand_connect(server.socket, "parent", &own) || scand_buffer_create(own, SCAND_PLACE_HOST, 1000, &buffer))
        _exit(1);
    if (fork() > 0)
        pause();
    if (write(ready, &byte, 1) != 1 || read(until, &byte, 1) != 0)
        _exit(1);
    _exit(0);
}

static size_t clients_open(void)
{
    struct scand_client_info clients[4];
    size_t count = 0;
    uint64_t next = 0;
    CHECK_EQ(scand_clients(session, 0, clients, sizeof *clients, 4, &count, &next), SCAND_OK);
    return count;
}

/* The daemon sees the end of a process at once, also while a child that it has forked lives on. */
static void test_killed_with_a_child(void)
{
    int ready[2], until[2], waits = 0;
    char byte = 0;
    begin();
    REQUIRE(pipe2(ready, O_CLOEXEC) == 0 && pipe2(until, O_CLOEXEC) == 0);
    pid_t parent = fork();
    if (parent == 0) {
        close(until[1]);
        own_and_fork(ready[1], until[0]);
    }
    close(ready[1]);
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    CHECK_EQ(clients_open(), 2);
    CHECK(kill(parent, SIGKILL) == 0 && waitpid(parent, NULL, 0) == parent);
    while (clients_open() > 1 && waits++ < 1000)
        usleep(10000);
    CHECK_EQ(clients_open(), 1);
    struct pollfd child = {.fd = ready[0], .events = POLLIN};
    CHECK_EQ(poll(&child, 1, 0), 0); /* which still holds the other end */
    close(until[1]);
    CHECK_EQ(read(ready[0], &byte, 1), 0);
    close(ready[0]);
    close(until[0]);
    end();
}

struct request {
    struct scand *session;
    struct scand_buffer *buffer;
    int status;
};

static void *request_run(void *argument)
{
    struct request *request = argument;
    request->status = scand_buffer_create_wait(request->session, BYTES, SCAND_WAIT_MS_MAX, &request->buffer);
    return NULL;
}

/* The pool has room for two buffers, which the session has: a third one is there once one is given back. */
static void test_waits_for_memory(void)
{
    struct request request = {.status = -1};
    pthread_t thread;
    begin();
    REQUIRE(scand_connect(server.socket, "second", &request.session) == SCAND_OK);
    CHECK_EQ(scand_buffer_create(request.session, SCAND_PLACE_HOST, BYTES, &request.buffer), SCAND_BUSY);
    CHECK_EQ(scand_buffer_create_wait(request.session, BYTES, 1, &request.buffer), SCAND_BUSY);
    CHECK(scand_retry_ms(request.session) > 0);
    REQUIRE(pthread_create(&thread, NULL, request_run, &request) == 0);
    usleep(50000); /* it waits by now, most likely */
    CHECK_EQ(scand_buffer_release(output), SCAND_OK);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(request.status, SCAND_OK);
    CHECK(request.buffer && scand_buffer_size(request.buffer) == BYTES);
    scand_disconnect(request.session);
    end();
}

#define THREADS 8

static void *scan_and_check(void *argument)
{
    struct scand_buffer *buffer = argument;
    struct scand_tensor row = {.buffer = buffer, .dtype = SCAND_DTYPE_I64, .rank = 1, .shape = {SAMPLES}};
    scand_tensor_pack(&row);
    struct scand_tensor sums = row;
    sums.offset = SAMPLES * sizeof(int64_t);
    const struct scand_scan scan = {.input = row, .output = sums, .pass_count = 1};
    int64_t *x = scand_buffer_data(buffer);
    intptr_t wrong = 0;
    for (int64_t round = 1; round <= 300; round++) {
        struct scand_job *job = NULL;
        for (size_t i = 0; i < SAMPLES; i++)
            x[i] = round;
        int status = scand_submit(session, &scan, &job);
        wrong += status || scand_wait(job, -1, NULL) || x[2 * SAMPLES - 1] != round * SAMPLES;
        if (status == SCAND_OK)
            scand_job_release(job);
    }
    return (void *)wrong;
}

/* Eight threads on one connection, whose worker is killed twice: every job gives its result. */
static void test_threads(void)
{
    pthread_t threads[THREADS];
    begin();
    for (int i = 0; i < THREADS; i++) {
        struct scand_buffer *buffer = NULL;
        CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_HOST, 2 * SAMPLES * sizeof(int64_t), &buffer), SCAND_OK);
        CHECK_EQ(pthread_create(&threads[i], NULL, scan_and_check, buffer), 0);
    }
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
        worker_kill();
        CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    }
    for (int i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        CHECK_EQ((intptr_t)wrong, 0);
    }
    end();
}

/*
 * The stack that calls take of the thread that makes them.
 */

#define STACK_BYTES MIB(8)
#define LISTED      32
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STACK_MOST       STACK_BYTES /* sanitizers need more than scand.h says */
#define STACK_MOST_LOCAL STACK_BYTES
#else
#define STACK_MOST       KIB(128)
#define STACK_MOST_LOCAL KIB(384)
#endif

static void lists_read(struct scand *own)
{
    static struct scand_parameter_info parameters[LISTED];
    static struct scand_operation_info operations[LISTED];
    static struct scand_kernel kernels[LISTED];
    static struct scand_user_info users[LISTED];
    static struct scand_event events[LISTED];
    size_t count;
    uint64_t next;
    char *text = NULL;
    CHECK_EQ(scand_operations(own, operations, sizeof *operations, LISTED, &count), SCAND_OK);
    CHECK_EQ(scand_parameters(own, "scan", parameters, sizeof *parameters, LISTED, &count), SCAND_OK);
    CHECK_EQ(scand_kernels(own, kernels, sizeof *kernels, LISTED, &count), SCAND_OK);
    CHECK_EQ(scand_users(own, users, sizeof *users, LISTED, &count), SCAND_OK);
    CHECK_EQ(scand_trace(own, 0, events, sizeof *events, LISTED, &count, &next), SCAND_OK);
    CHECK_EQ(scand_metrics(own, &text), SCAND_OK);
    free(text);
}

static void calls_make(const char *path)
{
    struct scand *own = session_open(path, path ? SCAND_LOCAL_NEVER : SCAND_LOCAL_ALWAYS);
    struct scand_buffer *buffer;
    struct scand_job *jobs[40];
    REQUIRE(scand_buffer_create_own(own, BYTES, &buffer) == SCAND_OK);
    const struct scand_scan scan = scan_of(buffer, buffer);
    static struct scand_scan scans[40];
    for (size_t i = 0; i < 40; i++) {
        scans[i] = scan;
        scans[i].input.shape[0] = scans[i].output.shape[0] = 4;
    }
    CHECK_EQ(scand_submit(own, &scan, &jobs[0]), SCAND_OK);
    CHECK_EQ(scand_wait(jobs[0], 60000, NULL), SCAND_OK);
    CHECK_EQ(scand_submit_many(own, scans, 40, jobs), SCAND_OK);
    for (size_t i = 0; i < 40; i++)
        CHECK_EQ(scand_wait(jobs[i], 60000, NULL), SCAND_OK);
    struct scand_task *task;
    CHECK_EQ(scand_task_create(&task), SCAND_OK);
    scans[1].output.offset = BYTES / 2;
    scand_task_input(task, &scans[0].input);
    scand_task_output(task, &scans[1].output);
    scand_task_axis(task, 1);
    scand_task_step(task, "triangle");
    scand_task_set(task, "half_width", "20");
    CHECK_EQ(scand_task_submit(own, task, NULL, NULL, &jobs[0]), SCAND_OK);
    CHECK_EQ(scand_wait(jobs[0], 60000, NULL), SCAND_OK);
    scand_task_destroy(task);
    lists_read(own);
    scand_disconnect(own);
}

static void *stack_fill(void *path)
{
    calls_make(path);
    return NULL;
}

static void test_stack(void)
{
    const size_t most = session_daemon() ? STACK_MOST : STACK_MOST_LOCAL;
    unsigned char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attributes;
    pthread_t thread;
    REQUIRE(stack != MAP_FAILED);
    begin();
    memset(stack, 0xA5, STACK_BYTES);
    CHECK_EQ(pthread_attr_init(&attributes), 0);
    CHECK_EQ(pthread_attr_setstack(&attributes, stack, STACK_BYTES), 0);
    CHECK_EQ(pthread_create(&thread, &attributes, stack_fill, session_daemon() ? server.socket : NULL), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    size_t untouched = 0;
    while (untouched < STACK_BYTES && stack[untouched] == 0xA5)
        untouched++;
    CHECK(STACK_BYTES - untouched <= most);
    munmap(stack, STACK_BYTES);
    end();
}

/* Small jobs, 16 of them under way, each of which sums its own row of ones. */
#define SMALL      1000
#define SMALL_JOBS 16

static void submit_small_jobs(struct scand_job *jobs[SMALL_JOBS])
{
    float *x = scand_buffer_data(input);
    struct scand_scan scan = scan_of(input, output);
    scan.input.rank = scan.output.rank = 1;
    scan.axis = 0;
    scan.input.shape[0] = scan.output.shape[0] = SMALL;
    scan.input.strides[0] = scan.output.strides[0] = sizeof(float);
    for (size_t i = 0; i < SMALL_JOBS; i++) {
        scan.input.offset = scan.output.offset = i * SMALL * sizeof(float);
        for (size_t k = 0; k < SMALL; k++)
            x[i * SMALL + k] = 1;
        CHECK_EQ(scand_submit(session, &scan, &jobs[i]), SCAND_OK);
    }
}

static void await_small_jobs(struct scand_job *jobs[SMALL_JOBS])
{
    const float *y = scand_buffer_data(output);
    int wrong = 0;
    for (size_t i = 0; i < SMALL_JOBS; i++) {
        CHECK_EQ(scand_wait(jobs[i], 60000, NULL), SCAND_OK);
        wrong += y[(i + 1) * SMALL - 1] != SMALL;
        scand_job_release(jobs[i]);
    }
    CHECK_EQ(wrong, 0);
}

static void run_small_jobs(void)
{
    struct scand_job *jobs[SMALL_JOBS];
    for (int i = 0; i < 20; i++) {
        submit_small_jobs(jobs);
        await_small_jobs(jobs);
    }
}

static uint64_t counted(struct scand *by, const char *name)
{
    uint64_t count = 0;
    struct scand_counter counters[64];
    size_t found = 0;
    CHECK_EQ(scand_stats(by, counters, sizeof counters[0], 64, &found), SCAND_OK);
    for (size_t i = 0; i < found && i < 64; i++)
        if (strcmp(counters[i].name, name) == 0)
            count = counters[i].value;
    return count;
}

/* Many small jobs take the rings, of each worker. */
static void test_rings(void)
{
    struct scand_job *jobs[SMALL_JOBS];
    begin();
    run_small_jobs();
    CHECK_EQ(counted(session, "rings_open"), session_daemon() ? 1 : 0);
    if (session_daemon()) {
        submit_small_jobs(jobs);
        worker_kill();
        await_small_jobs(jobs);
        run_small_jobs();
        CHECK_EQ(counted(session, "rings_open"), 1);
    }
    end();
}

/* Answers that were sent are there when the daemon is not. */
static void test_drained_with_answers_unread(void)
{
    struct scand_job *jobs[SMALL_JOBS];
    if (!session_daemon())
        SKIP("there is no daemon");
    begin();
    run_small_jobs();
    submit_small_jobs(jobs);
    struct scand *other = session_open(server.socket, SCAND_LOCAL_NEVER);
    while (counted(other, "jobs_done") < 21 * SMALL_JOBS)
        poll(NULL, 0, 1);
    CHECK_EQ(scand_drain(other), SCAND_OK);
    scand_disconnect(other);
    while (!server_has_ended(&server))
        poll(NULL, 0, 10);
    await_small_jobs(jobs);
    end();
}

static const struct test tests[] = {TEST(test_results),
                                    TEST(test_stack),
                                    TEST(test_rings),
                                    TEST(test_drained_with_answers_unread),
                                    TEST(test_threads),
                                    TEST(test_waits_for_memory),
                                    TEST(test_killed_with_a_child),
                                    TEST(test_many),
                                    TEST(test_affine),
                                    TEST(test_steps),
                                    TEST(test_reduced),
                                    TEST(test_reduced_ragged),
                                    TEST(test_refused),
                                    TEST(test_devices),
                                    TEST(test_imported),
                                    TEST(test_file),
                                    TEST(test_worker_killed_while_a_file_is_read),
                                    TEST(test_worker_killed_idle),
                                    TEST(test_worker_killed_mid_job),
                                    TEST(test_worker_killed_with_jobs_waiting),
                                    TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

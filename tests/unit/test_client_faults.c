/*
 * libscand when memory, descriptors or the socket fail: the n-th call of the system fails, n = 1, 2, ... until none
 * does, in each of the scenarios below. Each time every function succeeds or says why not, what is lost is a status,
 * the calls after it work or say why not as well, and nothing is left: no descriptor, mapping or memory of the heap.
 */
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "tests/unit/client_rig.h"
#include "tests/unit/failing_calls.h"

#define CALLS_MAX 1000 /* calls of a scenario: more than that never end */
#define JOBS      3
#define BUFFERS   5
#define RING_JOBS 70

static _Thread_local long pieces; /* pieces of the heap that this thread has, since it began to count */

static void *counted(void *memory)
{
    pieces += memory != NULL;
    return memory;
}

WRAP(int, fstat, (int fd, struct stat *status), (fd, status), EIO, -1)
WRAP(int, fstatfs, (int fd, struct statfs *status), (fd, status), EIO, -1)
WRAP(int, socket, (int domain, int type, int protocol), (domain, type, protocol), EMFILE, -1)
WRAP(int, connect, (int fd, const struct sockaddr *address, socklen_t size), (fd, address, size), ECONNREFUSED, -1)
WRAP(int, poll, (struct pollfd * fds, nfds_t count, int timeout_ms), (fds, count, timeout_ms), EINTR, -1)
WRAP(ssize_t, recvmsg, (int fd, struct msghdr *header, int flags), (fd, header, flags), ECONNRESET, -1)
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *header, int flags), (fd, header, flags), EPIPE, -1)

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    return call_fails(ENOMEM) ? NULL : counted(__real_malloc(size));
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
    return call_fails(ENOMEM) ? NULL : counted(__real_calloc(n, size));
}

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size)
{
    if (call_fails(ENOMEM))
        return NULL;
    void *memory = __real_realloc(old, size);
    pieces += !old && memory;
    return memory;
}

void __real_free(void *memory);
void __wrap_free(void *memory);
void __wrap_free(void *memory)
{
    pieces -= memory != NULL;
    __real_free(memory);
}

/*
 * Scenarios.
 */

static int failed; /* calls of libscand, while some of the system may fail */

/* A status is one of the list, and has a text. */
static bool note(int status, const char *message)
{
    if (status == SCAND_OK)
        return true;
    failed++;
    CHECK(status >= SCAND_INVALID && status <= SCAND_INTERNAL && message[0] != '\0');
    if (strcasestr(message, "too many open files"))
        CHECK_CONTAINS(message, "raise ulimit -n");
    return false;
}

static bool good(int status)
{
    return note(status, scand_message(session));
}

static bool connects(void)
{
    return note(scand_connect(fake.path, "faults", &session), scand_connect_message());
}

/* The buffers of a scenario, released at its end: the library keeps a note of handles that a disconnect ends. */
static struct scand_buffer *buffers[BUFFERS];
static int buffer_count;

static struct scand_buffer *noted(int status, struct scand_buffer *buffer)
{
    if (!good(status))
        return NULL;
    return buffers[buffer_count++] = buffer;
}

static struct scand_buffer *created(void)
{
    struct scand_buffer *buffer = NULL;
    int status = scand_buffer_create(session, SCAND_PLACE_HOST, BYTES, &buffer);
    return noted(status, buffer);
}

static void buffers_release(void)
{
    while (buffer_count > 0)
        good(scand_buffer_release(buffers[--buffer_count]));
}

/* A job that was accepted ends, and leaves what it should. */
static void finish(struct scand_job *job, struct scand_buffer *output)
{
    if (job && good(scand_wait(job, 20000, NULL)))
        CHECK(((float *)scand_buffer_data(output))[SAMPLES - 1] == 42);
    scand_job_release(job);
}

static void scan_once(struct scand_buffer *input, struct scand_buffer *output)
{
    struct scand_job *job = NULL;
    struct scand_scan scan = scan_of(input, output);
    ((float *)scand_buffer_data(input))[SAMPLES - 1] = 41;
    if (good(scand_submit(session, &scan, &job)))
        finish(job, output);
}

static void run_connect(void)
{
    if (connects())
        good(scand_ping(session, NULL));
}

static struct scand_buffer *imported(int memfd)
{
    struct scand_buffer *buffer = NULL;
    int status = scand_buffer_import(session, memfd, BYTES, &buffer);
    return noted(status, buffer);
}

/* The test's own calls do not fail. */
static int own_memfd(void)
{
    int left = calls_left;
    calls_left = 0;
    int memfd = memfd_of(BYTES);
    calls_left = left;
    return memfd;
}

static void run_buffers(void)
{
    struct scand_buffer *shared = NULL, *own = NULL, *file = NULL;
    if (!connects())
        return;
    struct scand_buffer *input = created();
    int memfd = own_memfd();
    struct scand_buffer *output = imported(memfd);
    int status = scand_buffer_import_cuda_fd(session, memfd, BYTES, 0, BYTES, &shared);
    noted(status, shared);
    status = scand_buffer_create_own(session, BYTES, &own);
    noted(status, own);
    status = scand_buffer_import_file(session, memfd, 0, &file);
    noted(status, file);
    close(memfd);
    if (input && output)
        scan_once(input, output);
    buffers_release();
}

static void run_jobs(void)
{
    struct scand_buffer *input, *output;
    struct scand_scan scans[JOBS];
    struct scand_job *jobs[JOBS] = {NULL};
    if (!connects() || !(input = created()) || !(output = created()))
        return;
    ((float *)scand_buffer_data(input))[SAMPLES - 1] = 41;
    for (int i = 0; i < JOBS; i++)
        scans[i] = scan_of(input, output);
    good(scand_submit_many(session, scans, JOBS, jobs));
    for (int i = 0; i < JOBS; i++)
        finish(jobs[i], output);
}

static void run_cancel(void)
{
    struct scand_buffer *input, *output;
    struct scand_job *job = NULL;
    if (!connects() || !(input = created()) || !(output = created()))
        return;
    struct scand_scan scan = scan_of(input, output);
    fake.hold = 1;
    if (good(scand_submit(session, &scan, &job)) && good(scand_cancel(job)))
        CHECK(scand_wait(job, 20000, NULL) != SCAND_OK);
    fake.hold = 0;
    scand_job_release(job);
}

static struct scand_task *task_of(struct scand_buffer *input, struct scand_buffer *output)
{
    struct scand_task *task = NULL;
    struct scand_scan scan = scan_of(input, output);
    if (scand_task_create(&task))
        return NULL;
    scand_task_input(task, &scan.input);
    scand_task_output(task, &scan.output);
    scand_task_axis(task, 0);
    scand_task_step(task, "scan");
    scand_task_set(task, "passes", "forward");
    return task;
}

static void run_task(void)
{
    struct scand_buffer *input, *output;
    struct scand_job *job = NULL;
    if (!connects() || !(input = created()) || !(output = created()))
        return;
    ((float *)scand_buffer_data(input))[SAMPLES - 1] = 41;
    struct scand_task *task = task_of(input, output);
    failed += !task;
    if (task && good(scand_task_submit(session, task, NULL, NULL, &job)))
        finish(job, output);
    scand_task_destroy(task);
}

/* The worker ends with a job: the library connects again, imports its buffers and repeats the job. */
static void run_reconnect(void)
{
    struct scand_buffer *input, *output;
    if (!connects() || !(input = created()) || !(output = created()))
        return;
    fake.die_count = 1;
    fake.die_on = METHOD_job_submit;
    scan_once(input, output);
    fake.die_on = FAKE_NONE;
    good(scand_ping(session, NULL));
}

/* Enough small jobs that the library asks for rings, and goes on by them. */
static void run_rings(void)
{
    struct scand_buffer *input, *output;
    fake.rings = 1;
    if (!connects() || !(input = created()) || !(output = created()))
        return;
    for (int i = 0; i < RING_JOBS; i++)
        scan_once(input, output);
    good(scand_ping(session, NULL));
}

/*
 * One after the other.
 */

/* Checks that, with nothing failing any more, a new session works, and so does this one, except for what it has lost.
 */
static void check_afterwards(void)
{
    struct scand *other = NULL;
    CHECK_EQ(scand_connect(fake.path, "afterwards", &other), SCAND_OK);
    CHECK_EQ(scand_ping(other, NULL), SCAND_OK);
    scand_disconnect(other);
    if (session)
        CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
}

/* Runs a scenario whose n-th call fails. Returns false when fewer calls than that were made. */
static bool run_with_fault(void (*scenario)(void), int n)
{
    rig_start();
    pieces = 0;
    calls_left = n;
    scenario();
    int left = calls_left, failed_by_then = failed;
    calls_left = 0;
    check_afterwards();
    buffers_release();
    scand_disconnect(session);
    session = NULL;
    CHECK_EQ(pieces, 0);
    CHECK_EQ(failed, failed_by_then);
    rig_end();
    if (check_failures)
        fprintf(stderr, "  when call %d failed\n", n);
    return left == 0;
}

static void run_scenario(const char *name, void (*scenario)(void))
{
    int n = 0, told = 0;
    run_with_fault(scenario, 0); /* what is made once in a program's life */
    CHECK_EQ(failed, 0);
    do {
        failed = 0;
        n++;
        if (!run_with_fault(scenario, n))
            break;
        told += failed > 0;
    } while (n < CALLS_MAX && !check_failures);
    CHECK_EQ(failed, 0); /* none has failed the last time */
    CHECK(n > 10 && n < CALLS_MAX && told > 0);
    printf("%s: each of %d calls failed, %d of which a status told\n", name, n - 1, told);
}

#define SCENARIO(NAME)                   \
    static void test_##NAME(void)        \
    {                                    \
        run_scenario(#NAME, run_##NAME); \
    }

SCENARIO(connect)
SCENARIO(buffers)
SCENARIO(jobs)
SCENARIO(cancel)
SCENARIO(task)
SCENARIO(reconnect)
SCENARIO(rings)

static const struct test tests[] = {TEST(test_connect), TEST(test_buffers),   TEST(test_jobs),  TEST(test_cancel),
                                    TEST(test_task),    TEST(test_reconnect), TEST(test_rings), TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

/*
 * libscand in a process that forks: a child's calls with its parent's handles touch nothing of the parent's, and the
 * handles can be freed in the child. Also buffers that are released after their session has ended.
 */
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "client/lib/internal.h"
#include "tests/unit/client_rig.h"

#define FORKS 50

/* Runs this in a child, which is to find nothing wrong. */
static void in_child(void (*run)(void))
{
    fflush(stderr);
    pid_t child = fork();
    if (child == 0) {
        check_failures = 0;
        run();
        _exit(check_failures ? 1 : 0);
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
}

/* Sockets of this process that are connected to the daemon. */
static int connections(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        struct sockaddr_un address = {0};
        socklen_t size = sizeof address;
        count += getpeername(fd, (struct sockaddr *)&address, &size) == 0 && !strcmp(address.sun_path, fake.path);
    }
    return count;
}

static struct scand_buffer *input, *output;
static struct scand_job *job;

static void jobs_and_buffers_are_refused(void)
{
    struct scand_scan scan = scan_of(input, output);
    struct scand_reduce reduce = {.input = scan.input, .output = scan.output, .reduction = SCAND_REDUCTION_SUM};
    struct scand_job *made = NULL;
    struct scand_buffer *buffer = NULL;
    struct scand_export export;
    CHECK_EQ(scand_submit(session, &scan, &made), SCAND_FORKED);
    CHECK_EQ(scand_submit_many(session, &scan, 1, &made), SCAND_FORKED);
    CHECK_EQ(scand_submit_reduce(session, &reduce, NULL, NULL, &made), SCAND_FORKED);
    CHECK_EQ(scand_job_done(job), 1);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_FORKED);
    CHECK_EQ(scand_cancel(job), SCAND_FORKED);
    scand_job_release(job);
    int memfd = memfd_of(BYTES);
    CHECK_EQ(scand_buffer_import(session, memfd, BYTES, &buffer), SCAND_FORKED);
    CHECK_EQ(scand_buffer_import_cuda_fd(session, memfd, BYTES, 0, BYTES, &buffer), SCAND_FORKED);
    close(memfd);
    CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_HOST, BYTES, &buffer), SCAND_FORKED);
    CHECK_EQ(scand_buffer_export(output, &export), SCAND_FORKED);
    CHECK_EQ(scand_buffer_fd(output, &memfd), SCAND_FORKED);
    CHECK_EQ(scand_buffer_create_own(session, BYTES, &buffer), SCAND_FORKED);
    CHECK_EQ(scand_wait_room(session, -1), SCAND_FORKED);
    CHECK_EQ(((float *)scand_buffer_data(input))[3], 33);
    CHECK_EQ(scand_buffer_release(input), SCAND_FORKED);
    CHECK(!made && !buffer);
}

static void all_is_refused(void)
{
    uint64_t next = 0;
    size_t count = 0;
    struct scand_device row;
    CHECK_EQ(connections(), 0);
    CHECK_EQ(scand_ping(session, NULL), SCAND_FORKED);
    CHECK_CONTAINS(scand_message(session), "the process which forked this one: connect anew here");
    CHECK_EQ(scand_dispatch(session), SCAND_FORKED);
    CHECK_EQ(scand_devices(session, &row, sizeof row, 1, &count), SCAND_FORKED);
    CHECK_EQ(scand_jobs(session, 0, NULL, 8, 0, &count, &next), SCAND_FORKED);
    CHECK_EQ(scand_cancel_job(session, 1), SCAND_FORKED);
    CHECK_EQ(scand_drain(session), SCAND_FORKED);
    jobs_and_buffers_are_refused();
    scand_disconnect(session);
}

/* The parent's job and its loop go on, whatever its child has done. */
static void a_child_touches_nothing(void)
{
    int calls = 0;
    rig_begin();
    input = buffer_of(BYTES);
    output = buffer_of(BYTES);
    ((float *)scand_buffer_data(input))[3] = 33;
    fake.hold = 1;
    job = submit(input, output);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    for (int method = 0; method < METHOD_COUNT; method++)
        calls += fake.seen[method];
    in_child(all_is_refused);
    for (int method = 0; method < METHOD_COUNT; method++)
        calls -= fake.seen[method];
    CHECK_EQ(calls, 0);
    CHECK_EQ(fake.accepted, 1);
    fake.hold = 0;
    struct scand_job *next = submit(input, output);
    struct pollfd loop = {.fd = scand_fd(session), .events = POLLIN};
    while (!scand_job_done(next)) {
        REQUIRE(poll(&loop, 1, 20000) == 1);
        CHECK_EQ(scand_dispatch(session), SCAND_OK);
    }
    CHECK_EQ(scand_wait(next, -1, NULL), SCAND_OK);
    CHECK_EQ(((float *)scand_buffer_data(output))[3], 34);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK); /* upon which held jobs end */
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    CHECK_EQ(scand_buffer_release(input), SCAND_OK);
    CHECK_EQ(fake.accepted, 1);
    rig_end();
}

static void forgets_and_connects(void)
{
    const size_t descriptors = descriptors_open();
    const int mapped = memfds_mapped();
    const int segments = (int)input->fd_count;
    scand_forget();
    CHECK_EQ(descriptors - descriptors_open(), 2 * 4 + segments); /* two sessions, a buffer */
    CHECK_EQ(mapped - memfds_mapped(), segments);
    CHECK_EQ(scand_connect(fake.path, "child", &session), SCAND_OK);
    scand_forget(); /* not what is its own */
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(connections(), 1);
    scand_disconnect(session);
}

static void a_child_forgets_all(void)
{
    struct scand *other = NULL;
    rig_begin();
    CHECK_EQ(scand_connect(fake.path, "another", &other), SCAND_OK);
    input = buffer_of(BYTES);
    in_child(forgets_and_connects);
    scand_forget(); /* nothing, here */
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(scand_ping(other, NULL), SCAND_OK);
    scand_disconnect(other);
    rig_end();
}

static void has_no_connection(void)
{
    struct scand *own = NULL;
    CHECK_EQ(connections(), 0);
    CHECK_EQ(scand_connect(fake.path, "child", &own), SCAND_OK);
    CHECK_EQ(connections(), 1);
    scand_disconnect(own);
}

static pid_t forked;

static void fork_once(void *context, uint64_t rows_done, uint64_t rows)
{
    (void)context, (void)rows_done, (void)rows;
    if (forked >= 0)
        return;
    forked = fork();
    fake.hold = 0;
    if (forked > 0)
        CHECK_EQ(scand_ping(session, NULL), SCAND_OK); /* upon which held jobs end */
}

/* The child finds itself in the middle of its parent's wait, for an answer that may be there, or for one that only
 * its parent will have. */
static void a_callback_forks(int hold)
{
    int status = -1;
    rig_begin();
    fake.hold = hold;
    input = buffer_of(BYTES);
    output = buffer_of(BYTES);
    struct scand_scan scan = scan_of(input, output);
    forked = -1;
    fake.progress = 1;
    CHECK_EQ(scand_submit_progress(session, &scan, fork_once, NULL, &job), SCAND_OK);
    int outcome = scand_wait(job, -1, NULL);
    if (forked == 0)
        _exit(outcome == SCAND_FORKED ? 0 : 1);
    CHECK_EQ(outcome, SCAND_OK);
    CHECK(forked > 0 && waitpid(forked, &status, 0) == forked);
    CHECK_EQ(status, 0);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(fake.accepted, 1);
    rig_end();
}

static void forks_with_the_answer(void)
{
    a_callback_forks(0);
}

static void forks_before_the_answer(void)
{
    a_callback_forks(1);
}

static atomic_bool ends;

static void *connect_on_and_on(void *unused)
{
    (void)unused;
    while (!ends) {
        struct scand *other = NULL;
        CHECK_EQ(scand_connect(fake.path, "thread", &other), SCAND_OK);
        scand_disconnect(other);
    }
    return NULL;
}

/* Forks are harmless whatever another thread is about to do with a socket, and with the lock that all sessions share.
 */
static void forks_beside_a_thread(void)
{
#ifdef __SANITIZE_ADDRESS__
    SKIP("a child may wait for ever for a lock of this sanitizer's allocator, which the thread held in the fork");
#endif
    pthread_t thread;
    rig_begin();
    ends = false;
    CHECK_EQ(pthread_create(&thread, NULL, connect_on_and_on, NULL), 0);
    for (int i = 0; i < FORKS; i++)
        in_child(has_no_connection);
    ends = true;
    pthread_join(thread, NULL);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    rig_end();
}

static void released_after_the_end(void)
{
    struct scand_buffer *buffers[3];
    struct scand_export export;
    rig_begin();
    for (int i = 0; i < 3; i++)
        buffers[i] = buffer_of(BYTES);
    scand_disconnect(session);
    session = NULL;
    CHECK(scand_buffer_data(buffers[1]) == NULL);
    CHECK_EQ(scand_buffer_size(buffers[1]), BYTES);
    CHECK_EQ(scand_buffer_export(buffers[1], &export), SCAND_NOT_FOUND);
    CHECK_EQ(scand_buffer_release(buffers[2]), SCAND_OK);
    CHECK_EQ(scand_buffer_release(buffers[0]), SCAND_OK);
    CHECK_EQ(scand_buffer_release(buffers[1]), SCAND_OK);
    rig_end();
}

/* A program that never releases buffers has no more handles kept than the header says. */
static void never_released(void)
{
    enum { SESSIONS = 3 };
    struct scand_buffer *last = NULL;
    rig_start();
    for (int i = 0; i < SESSIONS * BUFFERS_ENDED_MAX; i += FAKE_BUFFERS) {
        CHECK_EQ(scand_connect(fake.path, "test", &session), SCAND_OK);
        for (int k = 0; k < FAKE_BUFFERS; k++)
            last = buffer_of(1);
        scand_disconnect(session);
    }
    session = NULL;
    CHECK_EQ(scand_buffer_release(last), SCAND_OK);
    rig_end();
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(a_child_touches_nothing), TEST(a_child_forgets_all),
                                        TEST(forks_with_the_answer),   TEST(forks_before_the_answer),
                                        TEST(forks_beside_a_thread),   TEST(released_after_the_end),
                                        TEST(never_released),          TEST_END};
    return test_main(argc, argv, tests);
}

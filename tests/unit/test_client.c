/* libscand against a planned daemon: connections, buffers, and answers that are late, garbage or lies. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "client/lib/internal.h"
#include "tests/unit/client_rig.h"

static void test_connect(void)
{
    rig_begin();
    CHECK(strcmp(scand_server_name(session), "fake 1") == 0);
    struct scand *other = NULL;
    setenv("SCAND_SOCKET", fake.path, 1);
    CHECK_EQ(scand_connect(NULL, NULL, &other), SCAND_OK);
    unsetenv("SCAND_SOCKET");
    CHECK_EQ(fake.accepted, 2);
    scand_disconnect(other);
    setenv("XDG_RUNTIME_DIR", fake.folder, 1); /* where the socket is there */
    CHECK_EQ(scand_connect(NULL, NULL, &other), SCAND_OK);
    unsetenv("XDG_RUNTIME_DIR");
    CHECK_EQ(fake.accepted, 3);
    scand_disconnect(other);
    scand_disconnect(NULL);
    rig_end();
}

static void test_connect_names_places(void)
{
    char folder[] = "/tmp/scand-test-XXXXXX";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct scand *none = NULL;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(mkdtemp(folder) && fd >= 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/scand.sock", folder);
    CHECK_EQ(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    unsetenv("SCAND_SOCKET");
    setenv("XDG_RUNTIME_DIR", folder, 1);
    CHECK_EQ(scand_connect(NULL, NULL, &none), SCAND_UNAVAILABLE);
    CHECK_CONTAINS(scand_connect_message(), address.sun_path);
    CHECK_CONTAINS(scand_connect_message(), "nobody listens there; start scand (before that: SCAND_SOCKET is not set)");
    CHECK_EQ(scand_connect(address.sun_path, NULL, &none), SCAND_UNAVAILABLE);
    CHECK(!strstr(scand_connect_message(), "before that"));
    unsetenv("XDG_RUNTIME_DIR");
    CHECK(close(fd) == 0 && unlink(address.sun_path) == 0 && rmdir(folder) == 0);
}

static void test_connect_fails(void)
{
    rig_begin();
    struct scand *none = NULL;
    char path[200];
    CHECK_EQ(scand_connect("/nowhere/scand.sock", "test", &none), SCAND_UNAVAILABLE);
    CHECK_CONTAINS(scand_connect_message(), "/nowhere/scand.sock");
    CHECK_CONTAINS(scand_message(none), "/nowhere/scand.sock");
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = '\0';
    CHECK_EQ(scand_connect(path, "test", &none), SCAND_INVALID);
    fake.silent_on = METHOD_hello;
    CHECK_EQ(scand_connect(fake.path, "test", &none), SCAND_TIMED_OUT);
    CHECK_CONTAINS(scand_connect_message(), "did not answer");
    fake.silent_on = FAKE_NONE;
    fake.fail_on = METHOD_hello;
    fake.fail_code = -EPROTONOSUPPORT;
    CHECK_EQ(scand_connect(fake.path, "test", &none), SCAND_VERSION);
    CHECK_CONTAINS(scand_connect_message(), "planned failure");
    CHECK_EQ(scand_retry_ms(NULL), 0);
    fake.fail_code = -EAGAIN;
    CHECK_EQ(scand_connect(fake.path, "test", &none), SCAND_BUSY);
    CHECK_EQ(scand_retry_ms(NULL), 70);
    fake.fail_on = FAKE_NONE;
    fake.version = PROTOCOL_VERSION + 1;
    CHECK_EQ(scand_connect(fake.path, "test", &none), SCAND_VERSION);
    CHECK_CONTAINS(scand_connect_message(), "version 2");
    CHECK_EQ(scand_retry_ms(NULL), 0);
    CHECK(none == NULL);
    rig_end();
}

/* A daemon that ends before it answers hello was there: the next one is waited for, but not one that always ends. */
static void test_connect_while_a_daemon_ends(void)
{
    rig_begin();
    struct scand_options *options = NULL;
    struct scand *other = NULL, *none = NULL;
    fake.die_on = METHOD_hello;
    fake.die_count = 2;
    fake.away_ms = 150;
    CHECK_EQ(scand_connect(fake.path, "test", &other), SCAND_OK);
    CHECK_EQ(fake.die_count, 0);
    scand_disconnect(other);
    fake.away_ms = 0;
    fake.die_count = 1;
    CHECK_EQ(scand_options_create(&options), SCAND_OK);
    CHECK_EQ(scand_options_set(options, "reconnect_ms", 0), SCAND_OK);
    CHECK_EQ(scand_connect_with(options, fake.path, "test", &none), SCAND_UNAVAILABLE);
    CHECK_CONTAINS(scand_connect_message(), "closed the connection");
    scand_options_destroy(options);
    fake.die_count = 1000;
    CHECK_EQ(scand_connect(fake.path, "test", &none), SCAND_UNAVAILABLE);
    CHECK_CONTAINS(scand_connect_message(), "closed the connection");
    CHECK_EQ(fake.die_count, 1000 - ATTEMPTS_MAX);
    fake.away_ms = 2 * RECONNECT_MS;
    CHECK_EQ(scand_connect(fake.path, "test", &none), SCAND_UNAVAILABLE);
    CHECK_CONTAINS(scand_connect_message(), "no daemon at");
    fake.die_count = 0;
    CHECK(none == NULL);
    rig_end();
}

/* A daemon that listens and still starts CUDA. */
static void test_connect_to_a_slow_daemon(void)
{
    rig_begin();
    struct scand *other = NULL;
    fake.late_ms = CALL_MS / 2;
    fake.late_on = METHOD_hello;
    CHECK_EQ(scand_connect(fake.path, "test", &other), SCAND_OK);
    scand_disconnect(other);
    rig_end();
}

static void test_buffer_create(void)
{
    rig_begin();
    struct scand_buffer *buffer = buffer_of(3 * 8192 - 100), *device = NULL, *none = NULL;
    REQUIRE(buffer);
    CHECK_EQ(scand_buffer_size(buffer), 3 * 8192 - 100);
    uint8_t *data = scand_buffer_data(buffer);
    for (uint64_t i = 0; i < scand_buffer_size(buffer); i++)
        data[i] = (uint8_t)(data[i] + i);
    CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_DEVICE, 1, &device), SCAND_OK);
    CHECK(scand_buffer_data(device) == NULL);
    CHECK_EQ(scand_buffer_release(device), SCAND_OK);
    CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_HOST, 0, &none), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "size_bytes is 0");
    CHECK_EQ(scand_buffer_create(session, (enum scand_place)7, 1, &none), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "place is 7");
    CHECK_EQ(scand_buffer_create_wait(session, 1, SCAND_WAIT_MS_MAX + 1, &none), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "wait_ms is 60001: at most 60000");
    CHECK_EQ(fake.wait_ms, 0);
    fake.fail_on = METHOD_buffer_create;
    fake.fail_code = -EAGAIN;
    CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_HOST, 1, &none), SCAND_BUSY);
    CHECK_EQ(scand_retry_ms(session), 70);
    CHECK(none == NULL);
    CHECK_EQ(scand_buffer_release(buffer), SCAND_OK);
    CHECK_EQ(scand_buffer_release(NULL), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_buffer_release], 2);
    rig_end();
}

static void test_file_import(void)
{
    rig_begin();
    struct scand_buffer *buffer = NULL;
    int memfd = memfd_of(10000), fd = -1;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", memfd);
    int read_only = open(path, O_RDONLY | O_CLOEXEC);
    CHECK_EQ(scand_buffer_import_file(session, -1, 100, &buffer), SCAND_DESCRIPTOR);
    CHECK_CONTAINS(scand_message(session), "fd -1: Bad file descriptor");
    fake.fail_on = METHOD_buffer_import_file;
    fake.fail_code = -EBADF;
    CHECK_EQ(scand_buffer_import_file(session, read_only, 10000, &buffer), SCAND_DESCRIPTOR);
    fake.fail_code = -ENOSYS;
    CHECK_EQ(scand_buffer_import_file(session, read_only, 10000, &buffer), SCAND_UNKNOWN_METHOD);
    CHECK(buffer == NULL);
    fake.fail_on = FAKE_NONE;
    CHECK_EQ(scand_buffer_import_file(session, read_only, 0, &buffer), SCAND_OK);
    REQUIRE(buffer);
    CHECK(scand_buffer_data(buffer) == NULL && scand_buffer_size(buffer) == 10000);
    CHECK(scand_buffer_fd(buffer, &fd) == SCAND_OK && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
    close(fd);
    close(read_only);
    CHECK_EQ(scand_buffer_release(buffer), SCAND_OK);
    CHECK_EQ(scand_buffer_import_file(session, memfd, 5000, &buffer), SCAND_OK);
    CHECK_EQ(scand_buffer_size(buffer), 5000);
    CHECK_EQ(ftruncate(memfd, 0), 0);
    CHECK_EQ(scand_buffer_import_file(session, memfd, 0, &buffer), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "the file is empty");
    close(memfd);
    rig_end();
}

static void test_buffer_import(void)
{
    rig_begin();
    struct scand_buffer *buffer = NULL;
    int memfd = memfd_of(10000), ends[2];
    REQUIRE(pipe(ends) == 0);
    CHECK_EQ(scand_buffer_import(session, ends[0], 100, &buffer), SCAND_DESCRIPTOR);
    CHECK_EQ(scand_buffer_import(session, -1, 100, &buffer), SCAND_DESCRIPTOR);
    CHECK_EQ(scand_buffer_import(session, memfd, 0, &buffer), SCAND_INVALID);
    CHECK_EQ(scand_buffer_import(session, memfd, 10001, &buffer), SCAND_DESCRIPTOR);
    CHECK_CONTAINS(scand_message(session), "10000");
    fake.fail_on = METHOD_buffer_import;
    fake.fail_code = -EDQUOT;
    CHECK_EQ(scand_buffer_import(session, memfd, 10000, &buffer), SCAND_QUOTA);
    CHECK(buffer == NULL);
    fake.fail_on = FAKE_NONE;
    CHECK_EQ(scand_buffer_import(session, memfd, 10000, &buffer), SCAND_OK);
    REQUIRE(buffer);
    CHECK_EQ(pwrite(memfd, "x", 1, 9999), 1);
    CHECK_EQ(((char *)scand_buffer_data(buffer))[9999], 'x');
    close(memfd);
    close(ends[0]);
    close(ends[1]);
    CHECK_EQ(scand_buffer_release(buffer), SCAND_OK);
    rig_end();
}

static void test_tensor_pack(void)
{
    struct scand_tensor tensor = {.dtype = SCAND_DTYPE_F64, .rank = 3, .shape = {2, 3, 5}};
    scand_tensor_pack(&tensor);
    CHECK_EQ(tensor.strides[0], 120);
    CHECK_EQ(tensor.strides[1], 40);
    CHECK_EQ(tensor.strides[2], 8);
    tensor.dtype = (enum scand_dtype)77;
    scand_tensor_pack(&tensor);
    tensor = (struct scand_tensor){.rank = 9};
    scand_tensor_pack(&tensor);
}

static void test_status(void)
{
    CHECK(strcmp(scand_status_word(SCAND_BUSY), "busy") == 0);
    CHECK_CONTAINS(scand_status_text(SCAND_LOST), "lost");
    CHECK_EQ(scand_status_exit_code(SCAND_UNAVAILABLE), 69);
    CHECK_EQ(scand_status_exit_code(SCAND_OK), 0);
    CHECK_EQ(scand_status_exit_code(12345), 70);
    CHECK(scand_status_word(-1) != NULL);
}

static void test_no_answer(void)
{
    rig_begin();
    struct scand_buffer *buffer = NULL;
    fake.silent_on = METHOD_server_ping;
    CHECK_EQ(scand_ping(session, NULL), SCAND_TIMED_OUT);
    CHECK_CONTAINS(scand_message(session), "server.ping");
    fake.silent_on = FAKE_NONE;
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    /* A buffer that comes too late is given back. */
    fake.late_ms = CALL_MS * 3 / 2;
    fake.late_on = METHOD_buffer_create;
    CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_HOST, 20000, &buffer), SCAND_TIMED_OUT);
    fake.late_on = FAKE_NONE;
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_buffer_release], 1);
    /* A call that may wait for its memory has that much longer. */
    fake.late_on = METHOD_buffer_create;
    CHECK_EQ(scand_buffer_create_wait(session, 100, SCAND_WAIT_MS_MAX, &buffer), SCAND_OK);
    CHECK_EQ(fake.wait_ms, SCAND_WAIT_MS_MAX);
    fake.late_on = FAKE_NONE;
    CHECK_EQ(scand_buffer_release(buffer), SCAND_OK);
    buffer = buffer_of(100);
    CHECK_EQ(scand_buffer_release(buffer), SCAND_OK);
    rig_end();
}

static void test_garbage(void)
{
    rig_begin();
    struct scand_buffer *buffer = buffer_of(BYTES);
    struct scand_scan scan = scan_of(buffer, buffer);
    struct scand_job *job = NULL;
    for (int garbage = 0; garbage < FAKE_GARBAGE_MESSAGES; garbage++) {
        fake.garbage = garbage;
        fake.garbage_on = METHOD_server_stats;
        struct scand_counter counter;
        size_t count;
        CHECK_EQ(scand_stats(session, &counter, sizeof counter, 1, &count), SCAND_MALFORMED);
        CHECK_CONTAINS(scand_message(session), fake.path);
        fake.garbage_on = METHOD_job_submit;
        CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
        CHECK_EQ(scand_wait(job, -1, NULL), SCAND_MALFORMED);
        scand_job_release(job);
    }
    fake.garbage = FAKE_GARBAGE_MESSAGES;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    fake.garbage_on = METHOD_hello;
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    rig_end();
}

/* An answer counts, and the connection behind it has ended. */
static void test_garbage_behind_an_answer(void)
{
    rig_begin();
    struct scand_counter counter;
    struct scand *other = NULL;
    size_t count = 0;
    fake.garbage = FAKE_GARBAGE_BEHIND;
    fake.garbage_on = METHOD_server_stats;
    CHECK_EQ(scand_stats(session, &counter, sizeof counter, 1, &count), SCAND_OK);
    CHECK(count == 1 && session->connection == NULL);
    fake.garbage_on = METHOD_hello;
    CHECK_EQ(scand_ping(session, NULL), SCAND_MALFORMED);
    CHECK_EQ(scand_connect(fake.path, "test", &other), SCAND_MALFORMED);
    CHECK_CONTAINS(scand_connect_message(), "sent bytes that are no message: make sure that it is scand");
    fake.garbage_on = FAKE_NONE;
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK(other == NULL);
    rig_end();
}

/* Descriptors that no answer announces would be kept, or taken for those of the next buffer. */
static void test_descriptors_that_nobody_asked_for(void)
{
    rig_begin();
    fake.hold = 1;
    struct scand_job *job = submit(buffer_of(BYTES), buffer_of(BYTES));
    fake.garbage = FAKE_GARBAGE_FILES;
    fake.garbage_on = METHOD_server_ping;
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK(session->connection == NULL);
    CHECK_EQ(scand_wait(job, 2000, NULL), SCAND_MALFORMED);
    CHECK_CONTAINS(scand_message(session), "breaks the protocol (2 descriptors that it did not announce)");
    rig_end();
}

/* Calls of sendmsg that fail as where too many descriptors of this user are on their way; of this thread alone. */
static _Thread_local int sends_refused;
ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    if (sends_refused == 0)
        return __real_sendmsg(fd, message, flags);
    sends_refused--;
    errno = ETOOMANYREFS;
    return -1;
}

/* No socket tells when there is room for them, so it is tried again. */
static void test_too_many_descriptors_on_their_way(void)
{
    rig_begin();
    struct scand_buffer *buffer = NULL;
    int memfd = memfd_of(BYTES);
    sends_refused = 3;
    CHECK_EQ(scand_buffer_import(session, memfd, BYTES, &buffer), SCAND_OK);
    CHECK_EQ(sends_refused, 0);
    close(memfd);
    sends_refused = 3;
    CHECK_EQ(loop_until_done(submit(buffer, buffer)), SCAND_OK);
    CHECK_EQ(sends_refused, 0);
    rig_end();
}

static void test_random_bytes(void)
{
    rig_begin();
    fake.random = random_seed();
    fake.garbage = FAKE_GARBAGE_RANDOM;
    fake.garbage_on = METHOD_server_devices;
    for (int i = 0; i < 200; i++) {
        struct msg_devices_result result;
        struct call call = {.method = METHOD_server_devices, .params = &i, .result = &result, .timeout_ms = 5};
        SESSION_GUARD(session);
        int code = call_run(session, &call);
        /* Bytes that promise more leave the call waiting. */
        CHECK(code == -EBADMSG || code == -ETIMEDOUT);
    }
    fake.garbage_on = FAKE_NONE;
    (void)scand_ping(session, NULL);
    rig_end();
}

/* Wrong claims of a daemon about a buffer that it made. */
static void test_lies_about_buffers(void)
{
    rig_begin();
    struct scand_buffer *buffer = NULL;
    fake.lie = 1;
    CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_HOST, 20000, &buffer), SCAND_MALFORMED);
    CHECK_CONTAINS(scand_message(session), "descriptors");
    fake.lie = 2;
    CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_HOST, 20000, &buffer), SCAND_DESCRIPTOR);
    fake.lie = 3;
    CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_HOST, 20000, &buffer), SCAND_DESCRIPTOR);
    fake.lie = 4;
    CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_HOST, 20000, &buffer), SCAND_MALFORMED);
    fake.lie = 6;
    CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_HOST, 20000, &buffer), SCAND_MALFORMED);
    CHECK(buffer == NULL);
    fake.lie = 0;
    buffer = buffer_of(20000);
    rig_end();
}

/* Of a buffer's memory only what it takes is filled, whatever the daemon says of segments. */
static void test_a_segment_is_not_filled(void)
{
    struct stat status = {0};
    rig_begin();
    fake.lie = 5;
    struct scand_buffer *buffer = buffer_of(100);
    CHECK_EQ(fstat(buffer->fds[0], &status), 0);
    CHECK_EQ(status.st_size, GIB(64));
    CHECK(status.st_blocks <= 16);
    memset(scand_buffer_data(buffer), 1, 100);
    CHECK_EQ(scand_buffer_release(buffer), SCAND_OK);
    rig_end();
}

/* A daemon that says it takes no jobs is asked nevertheless: waiting for room would have no end. */
static void test_no_room_at_all(void)
{
    rig_start();
    fake.client_jobs = 0;
    session = NULL;
    CHECK_EQ(scand_connect(fake.path, "test", &session), SCAND_OK);
    CHECK_EQ(scand_wait_room(session, -1), SCAND_OK);
    CHECK_EQ(scand_wait(submit(buffer_of(BYTES), buffer_of(BYTES)), -1, NULL), SCAND_OK);
    rig_end();
}

static const struct test tests[] = {TEST(test_connect),
                                    TEST(test_connect_names_places),
                                    TEST(test_connect_fails),
                                    TEST(test_connect_while_a_daemon_ends),
                                    TEST(test_connect_to_a_slow_daemon),
                                    TEST(test_buffer_create),
                                    TEST(test_buffer_import),
                                    TEST(test_file_import),
                                    TEST(test_file_import),
                                    TEST(test_tensor_pack),
                                    TEST(test_status),
                                    TEST(test_no_answer),
                                    TEST(test_garbage),
                                    TEST(test_garbage_behind_an_answer),
                                    TEST(test_descriptors_that_nobody_asked_for),
                                    TEST(test_too_many_descriptors_on_their_way),
                                    TEST(test_random_bytes),
                                    TEST(test_lies_about_buffers),
                                    TEST(test_a_segment_is_not_filled),
                                    TEST(test_no_room_at_all),
                                    TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

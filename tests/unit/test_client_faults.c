/*
 * libscand when memory, descriptors or the socket fail: the n-th call of the system fails, n = 1, 2, ... until none
 * does. Each time every function succeeds or says why not, what is lost is a status, and nothing leaks. Linked with
 * --wrap for the calls below.
 */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <scand/scand.h>

#include "tests/check.h"
#include "tests/unit/fake_daemon.h"

#define SAMPLES 5000

/* Counts down in the thread that sets it: the fake daemon's calls do not fail. */
static _Thread_local int calls_left;

static bool call_fails(int code)
{
    if (calls_left == 0 || --calls_left > 0)
        return false;
    errno = code;
    return true;
}

#define WRAP(TYPE, NAME, PARAMETERS, ARGUMENTS, CODE, FAILURE)       \
    TYPE __real_##NAME PARAMETERS;                                   \
    TYPE __wrap_##NAME PARAMETERS;                                   \
    TYPE __wrap_##NAME PARAMETERS                                    \
    {                                                                \
        return call_fails(CODE) ? FAILURE : __real_##NAME ARGUMENTS; \
    }

WRAP(void *, calloc, (size_t n, size_t size), (n, size), ENOMEM, NULL)
WRAP(void *, realloc, (void *old, size_t size), (old, size), ENOMEM, NULL)
WRAP(void *, mmap, (void *at, size_t size, int prot, int flags, int fd, off_t offset),
     (at, size, prot, flags, fd, offset), ENOMEM, MAP_FAILED)
WRAP(int, socket, (int domain, int type, int protocol), (domain, type, protocol), EMFILE, -1)
WRAP(int, epoll_create1, (int flags), (flags), EMFILE, -1)
WRAP(int, epoll_ctl, (int epoll, int operation, int fd, struct epoll_event *event), (epoll, operation, fd, event),
     ENOMEM, -1)
WRAP(int, poll, (struct pollfd * fds, nfds_t count, int timeout_ms), (fds, count, timeout_ms), EINTR, -1)
WRAP(ssize_t, recvmsg, (int fd, struct msghdr *header, int flags), (fd, header, flags), ECONNRESET, -1)
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *header, int flags), (fd, header, flags), EPIPE, -1)

static struct fake fake;

static void note(int status, const char *message, int *failed)
{
    if (status == SCAND_OK)
        return;
    ++*failed;
    CHECK(status >= SCAND_INVALID && status <= SCAND_INTERNAL && message[0] != '\0');
}

static void scan_once(struct scand *daemon, struct scand_buffer *input, struct scand_buffer *output, int *failed)
{
    struct scand_job *job = NULL;
    struct scand_scan scan = {.pass_count = 1};
    scan.input = (struct scand_tensor){.buffer = input, .rank = 1, .shape = {SAMPLES}};
    scand_tensor_pack(&scan.input);
    scan.output = scan.input;
    scan.output.buffer = output;
    float *x = scand_buffer_data(input), *y = scand_buffer_data(output);
    x[SAMPLES - 1] = 41;
    int status = scand_submit(daemon, &scan, &job);
    note(status, scand_message(daemon), failed);
    if (status)
        return;
    status = scand_wait(job, 20000, NULL);
    note(status, scand_message(daemon), failed);
    CHECK(status || y[SAMPLES - 1] == 42);
    scand_job_release(job);
}

static void session_once(int *failed)
{
    struct scand *daemon = NULL;
    struct scand_buffer *input = NULL, *output = NULL;
    int status = scand_connect(fake.path, "faults", &daemon);
    note(status, scand_connect_message(), failed);
    if (status)
        return;
    note(scand_buffer_create(daemon, SCAND_PLACE_HOST, SAMPLES * 4, &input), scand_message(daemon), failed);
    int memfd = memfd_create("mine", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(memfd >= 0 && ftruncate(memfd, SAMPLES * 4) == 0);
    note(scand_buffer_import(daemon, memfd, SAMPLES * 4, &output), scand_message(daemon), failed);
    close(memfd);
    if (input && output)
        scan_once(daemon, input, output, failed);
    note(scand_ping(daemon, NULL), scand_message(daemon), failed);
    note(scand_buffer_release(input), scand_message(daemon), failed);
    scand_disconnect(daemon);
}

static void test_nth_call_fails(void)
{
    int n = 0, left, faults = 0;
    fake_init(&fake);
    int descriptors = descriptors_open();
    do {
        int failed = 0;
        fake_start(&fake);
        calls_left = ++n;
        session_once(&failed);
        left = calls_left;
        calls_left = 0;
        faults += failed;
        fake_stop(&fake);
        CHECK_EQ(memfds_mapped(), 0);
        CHECK_EQ(descriptors_open(), descriptors);
    } while (left == 0 && n < 1000 && !check_failures);
    CHECK(n > 30 && n < 1000);
    CHECK(faults > 0 && faults < n); /* one fault harms one call, or none */
    rmdir(fake.folder);
}

static const struct test tests[] = {TEST(test_nth_call_fails), TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

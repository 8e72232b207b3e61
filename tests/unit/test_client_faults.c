/*
 * libscand when memory, descriptors or the socket fail: the n-th call of the system fails, n = 1, 2, ... until none
 * does. Each time every function succeeds or says why not, what is lost is a status, and nothing leaks. Linked with
 * --wrap for the calls below.
 */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "tests/unit/client_rig.h"

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
WRAP(int, fstat, (int fd, struct stat *status), (fd, status), EIO, -1)
WRAP(int, socket, (int domain, int type, int protocol), (domain, type, protocol), EMFILE, -1)
WRAP(int, epoll_create1, (int flags), (flags), EMFILE, -1)
WRAP(int, timerfd_create, (int clock, int flags), (clock, flags), EMFILE, -1)
WRAP(int, eventfd, (unsigned count, int flags), (count, flags), EMFILE, -1)
WRAP(int, epoll_ctl, (int epoll, int operation, int fd, struct epoll_event *event), (epoll, operation, fd, event),
     ENOMEM, -1)
WRAP(int, poll, (struct pollfd * fds, nfds_t count, int timeout_ms), (fds, count, timeout_ms), EINTR, -1)
WRAP(ssize_t, recvmsg, (int fd, struct msghdr *header, int flags), (fd, header, flags), ECONNRESET, -1)
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *header, int flags), (fd, header, flags), EPIPE, -1)

static void note(int status, const char *message, int *failed)
{
    if (status == SCAND_OK)
        return;
    ++*failed;
    CHECK(status >= SCAND_INVALID && status <= SCAND_INTERNAL && message[0] != '\0');
}

static void scan_once(struct scand_buffer *input, struct scand_buffer *output, int *failed)
{
    struct scand_job *job = NULL;
    struct scand_scan scan = scan_of(input, output);
    float *x = scand_buffer_data(input), *y = scand_buffer_data(output);
    x[SAMPLES - 1] = 41;
    int status = scand_submit(session, &scan, &job);
    note(status, scand_message(session), failed);
    if (status)
        return;
    status = scand_wait(job, 20000, NULL);
    note(status, scand_message(session), failed);
    CHECK(status || y[SAMPLES - 1] == 42);
    scand_job_release(job);
}

static void session_once(int *failed)
{
    struct scand_buffer *input = NULL, *output = NULL, *shared = NULL;
    int status = scand_connect(fake.path, "faults", &session);
    note(status, scand_connect_message(), failed);
    if (status)
        return;
    note(scand_buffer_create(session, SCAND_PLACE_HOST, BYTES, &input), scand_message(session), failed);
    int memfd = memfd_of(BYTES);
    note(scand_buffer_import(session, memfd, BYTES, &output), scand_message(session), failed);
    note(scand_buffer_import_cuda_fd(session, memfd, BYTES, 0, BYTES, &shared), scand_message(session), failed);
    close(memfd);
    if (input && output)
        scan_once(input, output, failed);
    note(scand_ping(session, NULL), scand_message(session), failed);
    note(scand_buffer_release(input), scand_message(session), failed);
    scand_disconnect(session);
    session = NULL;
}

static void test_nth_call_fails(void)
{
    int n = 0, left, faults = 0;
    do {
        int failed = 0;
        rig_start();
        calls_left = ++n;
        session_once(&failed);
        left = calls_left;
        calls_left = 0;
        faults += failed;
        rig_end();
    } while (left == 0 && n < 1000 && !check_failures);
    CHECK(n > 30 && n < 1000);
    CHECK(faults > 0 && faults < n); /* one fault harms one call, or none */
}

static const struct test tests[] = {TEST(test_nth_call_fails), TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

/*
 * The rig of tests of the listener: a listener in a real loop, with a device that does nothing, a clock that moves with
 * each look at it, and calls of the kernel that fail. Include after nothing else: it brings tests/check.h.
 *
 * A test begins with begin and ends with end, which checks that no client and no descriptor is left.
 */
#ifndef TESTS_UNIT_LISTENER_RIG_H
#define TESTS_UNIT_LISTENER_RIG_H

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/core/client_rings.h"
#include "daemon/net/listener.h"
#include "daemon/net/peer.h"
#include "protocol/rings.h"
#include "tests/check.h"
#include "tests/unit/device_manual.h"
#include "tests/unit/open_descriptors.h"

#define HELLO "\x94\x00\x01\xa5hello\x91\x82\xabversion_min\x01\xabversion_max\x01"
#define PING  "\x94\x00\x07\xabserver.ping\x90"
#define PONG  "\x94\x01\x07\xc0\x80"

static struct rig {
    struct manual manual;
    struct device_set devices;
    struct pool pool;
    struct service service;
    struct listener listener;
    uv_loop_t loop;
    int listen_fd;
    char path[64];
    unsigned runs;    /* runs of libuv's loop */
    uv_timer_t hour;  /* so that there is something to wait for */
    uv_check_t check; /* counts runs */
    unsigned hours;   /* timers of an hour that have ended */
    uint64_t step_us, now_us;
    struct work *work; /* deferred */
    uint8_t *rings;    /* memory of a client's rings, which it says are full again and again */
    size_t descriptors;
} rig;

/*
 * Calls that fail.
 */

static int fail_watch;               /* errno of the next epoll_ctl that would watch a socket */
static int fail_accept;              /* errno of accept4 */
static bool fail_accept_once_in_two; /* EMFILE */
static unsigned accepted;            /* calls of accept4 */
static bool fail_map;                /* the next mmap */
static bool is_late;                 /* between any two looks at the coarse clock a second passes, else nothing */
static int fail_send;                /* errno of sendmsg, */
static unsigned fail_sends;          /* for so many calls */
static struct {
    unsigned waits, reads, sends, unseen; /* unseen: reads and sends at which nobody knows whose memory is touched */
    int timeout_ms;                       /* of the latest wait */
    uint64_t read_bytes;
} calls;

int __real_epoll_ctl(int set, int how, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int set, int how, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int set, int how, int fd, struct epoll_event *event)
{
    if (how == EPOLL_CTL_ADD && fail_watch) {
        errno = fail_watch;
        fail_watch = 0;
        return -1;
    }
    return __real_epoll_ctl(set, how, fd, event);
}

int __real_epoll_wait(int set, struct epoll_event *events, int most, int timeout_ms);
int __wrap_epoll_wait(int set, struct epoll_event *events, int most, int timeout_ms);
int __wrap_epoll_wait(int set, struct epoll_event *events, int most, int timeout_ms)
{
    calls.waits++;
    calls.timeout_ms = timeout_ms;
    return __real_epoll_wait(set, events, most, timeout_ms);
}

ssize_t __real_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
    ssize_t n = __real_recvmsg(fd, message, flags);
    calls.reads++;
    calls.unseen += !rig.service.touches;
    calls.read_bytes += n > 0 ? (uint64_t)n : 0;
    return n;
}

ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    calls.sends++;
    calls.unseen += !rig.service.touches;
    if (fail_sends > 0) {
        fail_sends--;
        errno = fail_send;
        return -1;
    }
    return __real_sendmsg(fd, message, flags);
}

int __real_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
    accepted++;
    if (fail_accept_once_in_two && accepted % 2) {
        errno = EMFILE;
        return -1;
    }
    if (fail_accept) {
        errno = fail_accept;
        return -1;
    }
    return __real_accept4(fd, address, size, flags);
}

void *__real_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (fail_map) {
        fail_map = false;
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return __real_mmap(at, size, protection, flags, fd, offset);
}

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    static time_t late_s;
    if (clock != CLOCK_MONOTONIC_COARSE)
        return __real_clock_gettime(clock, now);
    late_s += is_late;
    *now = (struct timespec){.tv_sec = late_s};
    return 0;
}

/*
 * The daemon.
 */

static inline void ops_start(void *context, struct chunk *chunks)
{
    (void)context, (void)chunks;
}

/* Work waits for the test's end. */
static inline void ops_defer(void *context, struct work *work)
{
    (void)context;
    work->next = rig.work;
    rig.work = work;
}

static inline void run_work(void)
{
    for (struct work *work; (work = rig.work) != NULL;) {
        rig.work = work->next;
        work_run(work);
        service_work_done(&rig.service, work);
    }
}

static inline void ops_output(void *context, struct client *client)
{
    (void)context;
    peer_output(&rig.listener, client);
}

static inline void ops_nothing(void *context)
{
    (void)context;
}

/* As PROTOCOL.md tells the memory of rings: says that all of the ring has been written anew, and all answers read. */
static inline void rings_fill(void)
{
    _Atomic uint64_t *written = (void *)rig.rings, *read = (void *)(rig.rings + 64),
                     *answers_written = (void *)(rig.rings + 128), *answers_read = (void *)(rig.rings + 192);
    *written = 2 * (*read / 32 * 32 + LIMIT_RING_BYTES);
    *answers_read = *answers_written / 2;
}

static inline uint64_t ops_now_us(void *context)
{
    (void)context;
    if (rig.rings)
        rings_fill();
    return rig.now_us += rig.step_us;
}

static inline void ops_wake(void *context, uint64_t at_us)
{
    (void)context, (void)at_us;
}

/* The loop sleeps whenever somebody asks. */
static inline bool ops_slept(void *context)
{
    (void)context;
    return true;
}

static inline void begin(void)
{
    static const struct service_ops ops = {ops_start,   ops_defer,  ops_defer, ops_output, ops_nothing,
                                           ops_nothing, ops_now_us, ops_wake,  ops_slept};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memset(&rig, 0, sizeof rig);
    rig.step_us = 1;
    fail_watch = fail_accept = 0;
    accepted = fail_sends = 0;
    snprintf(rig.path, sizeof rig.path, "test_server.%d", (int)getpid());
    strcpy(address.sun_path, rig.path);
    rig.listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(rig.listen_fd, (struct sockaddr *)&address, sizeof address), 0);
    CHECK_EQ(listen(rig.listen_fd, SOMAXCONN), 0);
    manual_init(&rig.manual, 2, 4096);
    rig.devices = (struct device_set){{&rig.manual.device}, 1};
    CHECK_EQ(pool_init(&rig.pool, &rig.devices, LIMIT_LARGE_SEGMENT_BYTES), 0);
    service_init(&rig.service, &ops, &rig, &rig.devices, &rig.pool, getuid());
    CHECK_EQ(uv_loop_init(&rig.loop), 0);
    rig.descriptors = descriptors_open();
    CHECK_EQ(listener_start(&rig.listener, &rig.loop, &rig.service, rig.listen_fd), 0);
}

static inline void end(void)
{
    fail_accept = 0;
    listener_stop(&rig.listener);
    uv_run(&rig.loop, UV_RUN_DEFAULT);
    CHECK_EQ(rig.service.stats.clients_open, 0);
    run_work();
    CHECK_EQ(descriptors_open(), rig.descriptors);
    CHECK_EQ(uv_loop_close(&rig.loop), 0);
    service_finish(&rig.service);
    pool_finish(&rig.pool);
    close(rig.listen_fd);
    unlink(rig.path);
}

static inline void rounds(unsigned count)
{
    while (count-- > 0) {
        listener_wait(&rig.listener, false);
        listener_serve(&rig.listener);
    }
}

/*
 * The listener's clients.
 */

static inline int client_open(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    strcpy(address.sun_path, rig.path);
    CHECK_EQ(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static inline void client_send(int fd, const char *bytes, size_t size)
{
    CHECK_EQ(send(fd, bytes, size, MSG_NOSIGNAL), size);
}

/* The bytes that have come, all of them thrown away; 0: the end; -1: nothing has. */
static inline ssize_t client_read(int fd)
{
    static char bytes[1 << 20];
    return recv(fd, bytes, sizeof bytes, 0);
}

static inline int client_greet(void)
{
    int fd = client_open();
    client_send(fd, HELLO, sizeof HELLO - 1);
    rounds(6);
    CHECK(client_read(fd) > 0);
    return fd;
}

static inline bool client_pings(int fd)
{
    client_send(fd, PING, sizeof PING - 1);
    rounds(6);
    return client_read(fd) == sizeof PONG - 1;
}

static inline void count_run(uv_check_t *check)
{
    (void)check;
    rig.runs++;
}

static inline void hour_ends(uv_timer_t *timer)
{
    (void)timer;
    rig.hours++;
}

/* Begins to count calls, with a handle in the loop, as a daemon's loop always has. */
static inline void count_calls(void)
{
    uv_timer_init(&rig.loop, &rig.hour);
    uv_timer_start(&rig.hour, hour_ends, 3600000, 0);
    uv_check_init(&rig.loop, &rig.check);
    uv_check_start(&rig.check, count_run);
    rounds(2);
    memset(&calls, 0, sizeof calls);
    rig.runs = 0;
}

static inline void end_counting(void)
{
    uv_close((uv_handle_t *)&rig.hour, NULL);
    uv_close((uv_handle_t *)&rig.check, NULL);
    end();
}

#endif

/* The listener in a real loop, with calls of the kernel that fail and a device that does nothing. */
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
} rig;

/*
 * Calls that fail.
 */

static int fail_watch;               /* errno of the next epoll_ctl that would watch a socket */
static int fail_accept;              /* errno of accept4 */
static bool fail_accept_once_in_two; /* EMFILE */
static unsigned accepted;            /* calls of accept4 */
static bool fail_map;                /* the next mmap */
static bool is_late;        /* between any two looks at the coarse clock more time passes than a look may take */
static int fail_send;       /* errno of sendmsg, */
static unsigned fail_sends; /* for so many calls */
static struct {
    unsigned waits, reads, sends;
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
    return __real_epoll_wait(set, events, most, timeout_ms);
}

ssize_t __real_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
    ssize_t n = __real_recvmsg(fd, message, flags);
    calls.reads++;
    calls.read_bytes += n > 0 ? (uint64_t)n : 0;
    return n;
}

ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    calls.sends++;
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
    const int r = __real_clock_gettime(clock, now);
    if (is_late && clock == CLOCK_MONOTONIC_COARSE)
        now->tv_sec += ++late_s;
    return r;
}

/*
 * The daemon.
 */

static void ops_start(void *context, struct chunk *chunks)
{
    (void)context, (void)chunks;
}

/* Work waits for the test's end. */
static void ops_defer(void *context, struct work *work)
{
    (void)context;
    work->next = rig.work;
    rig.work = work;
}

static void run_work(void)
{
    for (struct work *work; (work = rig.work) != NULL;) {
        rig.work = work->next;
        work_run(work);
        service_work_done(&rig.service, work);
    }
}

static void ops_output(void *context, struct client *client)
{
    (void)context;
    peer_output(&rig.listener, client);
}

static void ops_nothing(void *context)
{
    (void)context;
}

/* As PROTOCOL.md tells the memory of rings: says that all of the ring has been written anew, and all answers read. */
static void rings_fill(void)
{
    _Atomic uint64_t *written = (void *)rig.rings, *read = (void *)(rig.rings + 64),
                     *answers_written = (void *)(rig.rings + 128), *answers_read = (void *)(rig.rings + 192);
    *written = 2 * (*read / 32 * 32 + LIMIT_RING_BYTES);
    *answers_read = *answers_written / 2;
}

static uint64_t ops_now_us(void *context)
{
    (void)context;
    if (rig.rings)
        rings_fill();
    return rig.now_us += rig.step_us;
}

static void ops_wake(void *context, uint64_t at_us)
{
    (void)context, (void)at_us;
}

/* The loop sleeps whenever somebody asks. */
static bool ops_slept(void *context)
{
    (void)context;
    return true;
}

static void begin(void)
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
    CHECK_EQ(listener_start(&rig.listener, &rig.loop, &rig.service, rig.listen_fd), 0);
}

static void end(void)
{
    fail_accept = 0;
    listener_stop(&rig.listener);
    uv_run(&rig.loop, UV_RUN_DEFAULT);
    CHECK_EQ(uv_loop_close(&rig.loop), 0);
    CHECK_EQ(rig.service.stats.clients_open, 0);
    run_work();
    service_finish(&rig.service);
    pool_finish(&rig.pool);
    close(rig.listen_fd);
    unlink(rig.path);
}

static void rounds(unsigned count)
{
    while (count-- > 0) {
        listener_wait(&rig.listener, false);
        listener_serve(&rig.listener);
    }
}

/*
 * The listener's clients.
 */

static int client_open(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    strcpy(address.sun_path, rig.path);
    CHECK_EQ(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void client_send(int fd, const char *bytes, size_t size)
{
    CHECK_EQ(send(fd, bytes, size, MSG_NOSIGNAL), size);
}

/* The bytes that have come, all of them thrown away; 0: the end; -1: nothing has. */
static ssize_t client_read(int fd)
{
    static char bytes[1 << 20];
    return recv(fd, bytes, sizeof bytes, 0);
}

static int client_greet(void)
{
    int fd = client_open();
    client_send(fd, HELLO, sizeof HELLO - 1);
    rounds(6);
    CHECK(client_read(fd) > 0);
    return fd;
}

static bool client_pings(int fd)
{
    client_send(fd, PING, sizeof PING - 1);
    rounds(6);
    return client_read(fd) == sizeof PONG - 1;
}

static void count_run(uv_check_t *check)
{
    (void)check;
    rig.runs++;
}

static void hour_ends(uv_timer_t *timer)
{
    (void)timer;
    rig.hours++;
}

/* Begins to count calls, with a handle in the loop, as a daemon's loop always has. */
static void count_calls(void)
{
    uv_timer_init(&rig.loop, &rig.hour);
    uv_timer_start(&rig.hour, hour_ends, 3600000, 0);
    uv_check_init(&rig.loop, &rig.check);
    uv_check_start(&rig.check, count_run);
    rounds(2);
    memset(&calls, 0, sizeof calls);
    rig.runs = 0;
}

static void end_counting(void)
{
    uv_close((uv_handle_t *)&rig.hour, NULL);
    uv_close((uv_handle_t *)&rig.check, NULL);
    end();
}

/* The thread hears of it by the call that it waits in, and libuv has nothing to do. */
static void a_message_takes_few_calls(void)
{
    begin();
    int fd = client_greet();
    count_calls();
    client_send(fd, PING, sizeof PING - 1);
    listener_wait(&rig.listener, true);
    listener_serve(&rig.listener);
    listener_wait(&rig.listener, false);
    CHECK_EQ(client_read(fd), sizeof PONG - 1);
    CHECK_EQ(calls.waits, 2);
    CHECK_EQ(calls.reads, 1);
    CHECK_EQ(calls.sends, 1);
    CHECK_EQ(rig.runs, 0);
    close(fd);
    end_counting();
}

/* Several wakes are one event until the thread has seen it, and timers end the wait, too. */
static void waits_end(void)
{
    begin();
    count_calls();
    for (int i = 0; i < 2; i++) {
        listener_wake(&rig.listener);
        listener_wake(&rig.listener);
        listener_wait(&rig.listener, true);
    }
    CHECK_EQ(calls.waits, 2);
    CHECK_EQ(rig.runs, 0);
    uv_timer_start(&rig.hour, hour_ends, 1, 0);
    while (rig.hours == 0)
        listener_wait(&rig.listener, true);
    CHECK_EQ(rig.runs, 1);
    end_counting();
}

/* A client of which more messages wait gets its answers together, but does not wait long for any. */
static void answers_are_gathered(void)
{
    enum { MANY = 8 * LIMIT_GATHER_US };
    static char flood[MANY * (sizeof PING - 1)];
    begin();
    int fd = client_greet();
    count_calls();
    for (size_t i = 0; i < MANY; i++)
        memcpy(flood + i * (sizeof PING - 1), PING, sizeof PING - 1);
    client_send(fd, flood, sizeof flood);
    rounds(2 * MANY / LIMIT_TURN_US);
    CHECK_EQ(client_read(fd), MANY * (sizeof PONG - 1));
    CHECK(calls.sends >= 4 && calls.sends <= MANY / LIMIT_TURN_US / 2);
    close(fd);
    end_counting();
}

/* A client that sends something other than messages costs one small read, however much it sends. */
static void garbage_is_read_once(void)
{
    static char garbage[LIMIT_MESSAGE_BYTES];
    memset(garbage, 0xc1, sizeof garbage);
    begin();
    count_calls();
    for (unsigned i = 1; i <= 8; i++) {
        int fd = client_open();
        client_send(fd, garbage, sizeof garbage);
        rounds(4);
        CHECK_EQ(calls.reads, i);
        CHECK_EQ(calls.read_bytes, i * LIMIT_FIRST_READ_BYTES);
        CHECK(client_read(fd) <= 0);
        close(fd);
    }
    CHECK_EQ(rig.service.stats.clients_open, 0);
    end_counting();
}

/* Connections that are made and closed count as their user's time: its messages come after those of others. */
static void accepting_is_charged(void)
{
    enum { MANY = 20 };
    begin();
    int fd = client_greet();
    const struct user *user = rig.service.clients->user;
    uint64_t had_us = user->turn.had_us;
    accepted = 0;
    for (int i = 0; i < MANY; i++)
        close(client_open());
    rounds(4);
    CHECK_EQ(accepted, MANY + 1); /* and once in vain */
    CHECK(user->turn.had_us >= had_us + MANY);
    close(fd);
    end();
}

/* A round accepts for as long as a turn takes, also where each is turned away for want of descriptors. */
static void accepting_is_cut_into_turns(void)
{
    enum { MANY = 3 * LIMIT_TURN_US };
    int fds[MANY];
    begin();
    for (int i = 0; i < MANY; i++)
        fds[i] = client_open();
    rounds(1);
    CHECK(accepted > 0 && accepted <= LIMIT_TURN_US + 1);
    fail_accept_once_in_two = true;
    accepted = 0;
    rounds(1);
    CHECK(accepted > 0 && accepted <= 2 * LIMIT_TURN_US + 2);
    fail_accept_once_in_two = false;
    rounds(8);
    for (int i = 0; i < MANY; i++)
        close(fds[i]);
    rounds(8);
    CHECK_EQ(rig.service.stats.clients_open, 0);
    end();
}

/* A socket that cannot be watched ends only its own connection. */
static void a_socket_that_cannot_be_watched(void)
{
    const int codes[] = {ENOMEM, ENOSPC};
    begin();
    int other = client_greet();
    for (size_t i = 0; i < 2; i++) {
        fail_watch = codes[i];
        int fd = client_open();
        rounds(4);
        CHECK_EQ(client_read(fd), 0);
        CHECK(client_pings(other));
        close(fd);
    }
    CHECK_EQ(rig.service.stats.clients_open, 1);
    close(other);
    end();
}

/* Where there is no memory for a connection, what waits in its socket is not closed by the loop, which it might hold
 * up: a reader does. */
static void a_socket_without_memory_for_its_connection(void)
{
    begin();
    int other = client_greet(), fd = client_open();
    client_send(fd, HELLO, sizeof HELLO - 1);
    fail_map = true;
    rounds(4);
    CHECK(!fail_map);
    CHECK(rig.work != NULL);
    CHECK_EQ(rig.service.lent_fds.used, 1);
    run_work();
    CHECK_EQ(rig.service.lent_fds.used, 0);
    CHECK(client_read(fd) <= 0);
    CHECK(client_pings(other));
    CHECK_EQ(rig.service.stats.clients_open, 1);
    close(fd);
    close(other);
    end();
}

/* The loop does not try again and again, other clients are served, and later the connection is. */
static void connections_that_cannot_be_accepted(void)
{
    const int codes[] = {ENOMEM, ENOBUFS, EMFILE, EPERM};
    for (size_t i = 0; i < 4; i++) {
        begin();
        int other = client_greet(), late = client_open();
        accepted = 0;
        fail_accept = codes[i];
        rounds(50);
        CHECK(accepted >= 1 && accepted <= 2); /* and once more with the spare descriptor */
        CHECK(client_pings(other));
        fail_accept = 0;
        client_send(late, HELLO, sizeof HELLO - 1);
        for (int waits = 0; waits < 10000 && client_read(late) < 0; waits++) {
            poll(NULL, 0, 1);
            rounds(1);
        }
        CHECK_EQ(rig.service.stats.clients_open, 2);
        close(other);
        close(late);
        end();
    }
}

/* A client that dies right after its last request is noticed, and the request counts. */
static void the_last_request_of_a_client(void)
{
    begin();
    int fd = client_greet();
    uint64_t refused = rig.service.stats.messages_refused;
    client_send(fd, "\x94\x00\x07\xa1x\x90", 6);
    client_send(fd, "\x94\x00\x08\xa1x\x90", 6);
    close(fd);
    rounds(6);
    CHECK_EQ(rig.service.stats.messages_refused, refused + 2);
    CHECK_EQ(rig.service.stats.clients_open, 0);
    end();
}

/* A socket full of requests is handled turn by turn: of the clock's time, and in between all others get theirs. */
static void a_flood_is_cut_into_turns(void)
{
    enum { MANY = 1000 };
    static char flood[MANY * (sizeof PING - 1)];
    begin();
    int loud = client_greet(), quiet = client_greet();
    for (size_t i = 0; i < MANY; i++)
        memcpy(flood + i * (sizeof PING - 1), PING, sizeof PING - 1);
    client_send(loud, flood, sizeof flood);
    rounds(1);
    CHECK(client_read(loud) < (ssize_t)(LIMIT_TURN_US * (sizeof PONG - 1)));
    CHECK(client_pings(quiet));
    ssize_t got = 0, part;
    while ((part = client_read(loud)) > 0)
        got += part;
    CHECK(got < (ssize_t)(6 * LIMIT_TURN_US * (sizeof PONG - 1)));
    rounds(MANY);
    CHECK(client_read(loud) > 0);
    CHECK(client_pings(loud));
    CHECK_EQ(rig.service.turns.users != NULL, 0);
    close(loud);
    close(quiet);
    end();
}

/* Turns have a number of messages, so that they also end when the clock stands still. */
static void turns_have_a_number_of_messages(void)
{
    enum { MANY = 3 * LIMIT_TURN_MESSAGES };
    static char flood[MANY * (sizeof PING - 1)];
    begin();
    int fd = client_greet();
    rig.step_us = 0;
    for (size_t i = 0; i < MANY; i++)
        memcpy(flood + i * (sizeof PING - 1), PING, sizeof PING - 1);
    client_send(fd, flood, sizeof flood);
    struct client *client = rig.service.clients;
    CHECK(connection_receive(client->connection) > 0);
    CHECK_EQ(service_input(client, UINT64_MAX), 1);
    CHECK_EQ(service_input(client, 0), 1);
    connection_flush(client->connection);
    CHECK_EQ(client_read(fd), (LIMIT_TURN_MESSAGES + 1) * (sizeof PONG - 1));
    close(fd);
    end();
}

/* A client with an answer that was not sent, as the next `times` sends fail. */
static int client_owed(int code, unsigned times)
{
    int fd = client_greet();
    fail_send = code;
    fail_sends = times;
    client_send(fd, PING, sizeof PING - 1);
    listener_wait(&rig.listener, false);
    listener_serve(&rig.listener);
    memset(&calls, 0, sizeof calls);
    return fd;
}

/* The last answers are sent as soon as possible: when a socket has room, or after a while where no event tells. */
static void the_last_answers_are_sent(void)
{
    static const int codes[] = {EAGAIN, ETOOMANYREFS};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        begin();
        int fd = client_owed(codes[i], 3);
        listener_flush(&rig.listener, 60000);
        CHECK_EQ(client_read(fd), sizeof PONG - 1);
        CHECK_EQ(calls.sends, 4);
        close(fd);
        end();
    }
}

/* No client is waited for longer than the time allowed, nor by asking all the time. */
static void the_last_answers_are_not_waited_for(void)
{
    begin();
    int fd = client_owed(ETOOMANYREFS, 1000);
    listener_flush(&rig.listener, 3 * RESEND_MS);
    CHECK(calls.sends >= 1 && calls.sends <= 5);
    CHECK(client_read(fd) < 0);
    fail_sends = 0;
    close(fd);
    end();
}

/* At the end whatever has come is answered, and nothing more comes. */
static void the_last_requests_are_answered(void)
{
    enum { MANY = 1000 };
    static char flood[MANY * (sizeof PING - 1)];
    begin();
    int loud = client_greet(), quiet = client_greet();
    for (size_t i = 0; i < MANY; i++)
        memcpy(flood + i * (sizeof PING - 1), PING, sizeof PING - 1);
    client_send(loud, flood, sizeof flood);
    client_send(quiet, PING, sizeof PING - 1);
    listener_end_input(&rig.listener, 60000);
    CHECK_EQ(client_read(loud), MANY * (sizeof PONG - 1));
    CHECK_EQ(client_read(quiet), sizeof PONG - 1);
    CHECK(send(quiet, PING, sizeof PING - 1, MSG_NOSIGNAL) < 0 && errno == EPIPE);
    close(loud);
    close(quiet);
    end();
}

/* A client that takes its answers, and writes on as if it had not been told that the reader of its ring sleeps, holds
 * up the end for no longer than that. */
static void whoever_goes_on_is_not_waited_for(void)
{
    static const char frame[] = "\x1c\0\0\0\x94\x00\x07\xabserver.ping\x91\x81\xa9"
                                "aaaaaaaaa\xc0";
    struct rings *rings;
    int fd;
    begin();
    int loud = client_greet();
    struct client *client = rig.service.clients;
    CHECK_EQ(rings_create(&rings, &fd), 0);
    uint8_t *memory = mmap(NULL, 4096 + 2 * LIMIT_RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(memory != MAP_FAILED);
    close(fd);
    for (size_t at = 0; at < LIMIT_RING_BYTES; at += sizeof frame - 1)
        memcpy(memory + 4096 + at, frame, sizeof frame - 1);
    connection_use_rings(client->connection, rings);
    rig.rings = memory;
    listener_end_input(&rig.listener, 20);
    rig.rings = NULL;
    CHECK(*(uint64_t *)(memory + 64) > 2 * LIMIT_RING_BYTES);
    munmap(memory, 4096 + 2 * LIMIT_RING_BYTES);
    close(loud);
    end();
}

/* Gives a client rings, and returns the program's end of them. */
static struct rings *rings_of(struct client *client)
{
    struct rings *rings, *own;
    int fd;
    CHECK_EQ(rings_create(&rings, &fd), 0);
    client_use_rings(client, rings);
    CHECK_EQ(rings_attach(fd, &own), 0);
    close(fd);
    return own;
}

/* A connection whose ring had the loop sleep ends, and its memory goes back. */
static void rings_at_which_the_loop_sleeps_end(void)
{
    begin();
    int bad = client_greet(), good = client_greet();
    struct client *client = rig.service.clients->next;
    struct rings *own = rings_of(client);
    CHECK_EQ(rings_announce(own, sizeof PING - 1), 0);
    client_send(bad, PING, sizeof PING - 1);
    rig.step_us = LIMIT_SLEPT_MS * 1000;
    rounds(4);
    rig.step_us = 1;
    CHECK(user_find(&rig.service.users, getuid())->distrusted);
    rounds(4);
    CHECK(client_read(bad) <= 0);
    CHECK(client_pings(good));
    CHECK_EQ(rig.service.stats.clients_open, 1);
    run_work();
    CHECK_EQ(rig.service.stats.rings_open, 0);
    rings_destroy(own);
    close(bad);
    close(good);
    end();
}

/* Rings are looked at together, so where that has lasted all their users are suspected. A ring that has nothing is left
 * to its socket after so many looks. */
static void rings_are_looked_at(void)
{
    begin();
    int bell = client_greet();
    struct client *client = rig.service.clients;
    const struct peer *peer = client->peer;
    struct rings *own = rings_of(client);
    CHECK_EQ(rings_announce(own, sizeof PING - 1), 0);
    client_send(bell, PING, sizeof PING - 1);
    rounds(4);
    CHECK(peer->awake && !client->user->suspected);
    is_late = true;
    rounds(1);
    is_late = false;
    CHECK(peer->awake && client->user->suspected);
    rounds(LIMIT_RING_LOOKS);
    CHECK(!peer->awake && rings_reader_sleeps(own));
    rings_destroy(own);
    close(bell);
    end();
}

/* A client that sleeps with many jobs under way is woken for several answers at once, and in time. */
static void whoever_sleeps_is_woken_for_several_answers(void)
{
    uint8_t bytes[KIB(1)];
    begin();
    int asleep = client_greet();
    struct client *client = rig.service.clients;
    struct rings *own = rings_of(client);
    for (uint64_t jobs = LIMIT_GATHER_JOBS - 1; jobs <= LIMIT_GATHER_JOBS; jobs++) {
        rig.now_us += LIMIT_GATHER_ASLEEP_US;
        CHECK_EQ(rings_announce(own, sizeof PING - 1), 0);
        client_send(asleep, PING, sizeof PING - 1);
        rounds(4);
        CHECK(rings_read(own, bytes, sizeof bytes) > 0);
        CHECK(rings_sleep(own));
        client->job_count += jobs;
        CHECK_EQ(rings_announce(own, sizeof PING - 1), 0);
        client_send(asleep, PING, sizeof PING - 1);
        rounds(4);
        CHECK_EQ(client_read(asleep) > 0, jobs < LIMIT_GATHER_JOBS);
        rig.now_us += LIMIT_GATHER_ASLEEP_US;
        rounds(2);
        CHECK_EQ(client_read(asleep) > 0, jobs >= LIMIT_GATHER_JOBS);
        client->job_count -= jobs;
        while (rings_read(own, bytes, sizeof bytes) > 0) /* tells of the socket */
            continue;
        rings_took(own, rings_due_bytes(own));
        rings_rise(own);
    }
    rings_destroy(own);
    close(asleep);
    end();
}

/* A client that opens more connections than it may is told so a few times; further ones are closed, and nothing is
 * read. */
static void connections_beyond_the_allowance(void)
{
    static char garbage[KIB(4)];
    begin();
    int first = client_greet(), fds[3 * LIMIT_UNADMITTED];
    struct user *user = user_find(&rig.service.users, getuid());
    memset(garbage, 0xc1, sizeof garbage);
    while (user_connects_left(&rig.service.users, getuid(), rig.now_us + 1000) > LIMIT_UNADMITTED)
        user_count_connect(user, rig.now_us);
    count_calls();
    rig.step_us = 0;
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        fds[i] = client_open();
        client_send(fds[i], garbage, sizeof garbage);
        rounds(6);
        CHECK(client_read(fds[i]) <= 0);
        close(fds[i]);
    }
    CHECK(calls.reads <= LIMIT_UNADMITTED);
    CHECK(client_pings(first));
    close(first);
    end_counting();
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(the_last_answers_are_sent),
        TEST(the_last_answers_are_not_waited_for),
        TEST(the_last_requests_are_answered),
        TEST(whoever_goes_on_is_not_waited_for),
        TEST(rings_at_which_the_loop_sleeps_end),
        TEST(rings_are_looked_at),
        TEST(whoever_sleeps_is_woken_for_several_answers),
        TEST(connections_beyond_the_allowance),
        TEST(a_socket_that_cannot_be_watched),
        TEST(a_socket_without_memory_for_its_connection),
        TEST(connections_that_cannot_be_accepted),
        TEST(the_last_request_of_a_client),
        TEST(a_flood_is_cut_into_turns),
        TEST(turns_have_a_number_of_messages),
        TEST(a_message_takes_few_calls),
        TEST(waits_end),
        TEST(answers_are_gathered),
        TEST(garbage_is_read_once),
        TEST(accepting_is_charged),
        TEST(accepting_is_cut_into_turns),
        TEST_END,
    };
    return test_main(argc, argv, tests);
}

/* The listener as it accepts connections, and turns them away. */
#include <fcntl.h>
#include <netinet/in.h>

#include "daemon/net/close_now.h"
#include "tests/unit/listener_rig.h"

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
    fail_map = true;
    rounds(4);
    CHECK(fail_map); /* nobody who has left gets the memory of a connection */
    fail_map = false;
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

/* Greets when the listener accepts again. */
static void greet_late(int fd)
{
    client_send(fd, HELLO, sizeof HELLO - 1);
    for (int waits = 0; waits < 10000 && client_read(fd) < 0; waits++) {
        poll(NULL, 0, 1);
        rounds(1);
    }
}

/* The loop does not try again and again, other clients are served, and later the connection is. */
static void connections_that_cannot_be_accepted(void)
{
    static const struct {
        int code;
        unsigned calls; /* once more with the spare descriptor */
    } cases[] = {{ENOMEM, 1}, {ENOBUFS, 1}, {EMFILE, 2}, {ENFILE, 2}, {EPERM, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin();
        int other = client_greet(), late = client_open();
        accepted = 0;
        fail_accept = cases[i].code;
        rounds(50);
        CHECK_EQ(accepted, cases[i].calls);
        CHECK(client_pings(other));
        fail_accept = 0;
        greet_late(late);
        CHECK_EQ(rig.service.stats.clients_open, 2);
        close(other);
        close(late);
        end();
    }
}

/* The spare descriptor is there again when it has served, or later if there was none left for it. */
static void the_spare_descriptor_comes_back(void)
{
    begin();
    int away = client_open(), late = client_open();
    accepted = 0;
    fail_accept_once_in_two = true;
    rounds(1);
    CHECK(client_read(away) == 0 && client_read(late) == 0);
    CHECK(fcntl(rig.listener.spare_fd, F_GETFD) >= 0);
    close(away);
    close(late);
    close(rig.listener.spare_fd);
    rig.listener.spare_fd = -1;
    late = client_open();
    accepted = 0;
    rounds(1);
    CHECK_EQ(accepted, 1);
    fail_accept_once_in_two = false;
    greet_late(late);
    CHECK(fcntl(rig.listener.spare_fd, F_GETFD) >= 0);
    close(late);
    end();
}

/* Connections that are gone before they are accepted keep nobody else waiting. */
static void connections_that_are_gone(void)
{
    static const int codes[] = {ECONNABORTED, EINTR};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        begin();
        int fd = client_open();
        fail_accept = codes[i];
        rounds(1);
        fail_accept = 0;
        close(client_greet());
        close(fd);
        end();
    }
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
    const uint64_t had_us = user->turn.had_us;
    rig.step_us = 1;
    fail_map = true;
    const int another = client_open();
    rounds(1);
    CHECK(fail_map);
    CHECK(user->turn.had_us > had_us);
    fail_map = false;
    close(another);
    CHECK(client_pings(first));
    close(first);
    end_counting();
}

/* Returns a socket that takes nothing more of what nobody reads; its last close waits for minutes that it is read. */
static int socket_lingering(int *other)
{
    const struct linger linger = {.l_onoff = 1, .l_linger = 600};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    static char bytes[1 << 16];
    const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
              fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(server, (struct sockaddr *)&address, size) == 0 && listen(server, 1) == 0);
    CHECK_EQ(getsockname(server, (struct sockaddr *)&address, &size), 0);
    CHECK_EQ(connect(fd, (struct sockaddr *)&address, size), 0);
    *other = accept(server, NULL, NULL);
    while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        continue;
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
    close(server);
    return fd;
}

/* No close lasts, and no timer is left that goes on to interrupt. */
static void what_lingers_is_closed_now(void)
{
    int other;
    char line[64];
    close_now_init();
    for (int i = 0; i < 2; i++) {
        const int fd = socket_lingering(&other);
        close_now(fd);
        CHECK(fcntl(fd, F_GETFD) < 0);
        close(other);
    }
    FILE *timers = fopen("/proc/self/timers", "r"); /* not with every system */
    CHECK(!timers || !fgets(line, sizeof line, timers));
    if (timers)
        fclose(timers);
}

static const struct test tests[] = {
    TEST(garbage_is_read_once),
    TEST(accepting_is_charged),
    TEST(accepting_is_cut_into_turns),
    TEST(a_socket_that_cannot_be_watched),
    TEST(a_socket_without_memory_for_its_connection),
    TEST(connections_that_cannot_be_accepted),
    TEST(the_spare_descriptor_comes_back),
    TEST(connections_that_are_gone),
    TEST(connections_beyond_the_allowance),
    TEST(what_lingers_is_closed_now),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

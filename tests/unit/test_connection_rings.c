/* Messages and descriptors over a socketpair with rings beside it: which way what takes, and that it has one order. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/connection.h"
#include "protocol/memory.h"
#include "protocol/rings.h"
#include "tests/check.h"

#define SIZE 100 /* of most messages */

static unsigned sends; /* calls of sendmsg */
ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    sends++;
    return __real_sendmsg(fd, message, flags);
}

/* Two connections, of which `a` has made the rings. */
static struct connection *a, *b;
static struct rings *rings_a;
static int socket_a;

static void begin_without(void)
{
    int fds[2] = {-1, -1};
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    socket_a = fds[0];
    a = connection_create(fds[0]);
    b = connection_create(fds[1]);
    sends = 0;
}

static void begin(void)
{
    struct rings *second;
    int fd;
    begin_without();
    CHECK_EQ(rings_create(&rings_a, &fd), 0);
    CHECK_EQ(rings_attach(fd, &second), 0);
    close(fd);
    connection_use_rings(a, rings_a);
    connection_use_rings(b, second);
}

static void end(void)
{
    connection_destroy(a);
    connection_destroy(b);
}

/* Queues a binary with a mark, `size` bytes in all. */
static void queue(struct connection *connection, size_t size, uint8_t mark, int fd)
{
    static uint8_t bytes[LIMIT_MESSAGE_BYTES];
    bytes[0] = 0xc5;
    bytes[1] = (uint8_t)((size - 3) >> 8);
    bytes[2] = (uint8_t)(size - 3);
    memset(bytes + 3, mark, size - 3);
    CHECK_EQ(connection_send(connection, bytes, size, &fd, fd >= 0), 0);
}

static void send_one(struct connection *connection, uint8_t mark)
{
    queue(connection, SIZE, mark, -1);
    CHECK_EQ(connection_flush(connection), 0);
}

/* `a` sends the last message, and ends, after `b` has found its ring empty and before `b` looks at the socket. */
static bool ends_meanwhile;
ssize_t __real_recv(int fd, void *bytes, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags);

ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags)
{
    if (ends_meanwhile) {
        ends_meanwhile = false;
        send_one(a, 1);
        connection_destroy(a);
        a = NULL;
    }
    return __real_recv(fd, bytes, size, flags);
}

/* The next message has that size and mark, and so many descriptors have come by now. */
static void check_next(struct connection *connection, size_t size, uint8_t mark)
{
    const uint8_t *bytes;
    size_t got = 0;
    while (connection_peek(connection, &bytes, &got) == 0)
        REQUIRE(connection_receive(connection) > 0);
    CHECK_EQ(got, size);
    CHECK_EQ(bytes[3], mark);
    CHECK_EQ(bytes[size - 1], mark);
    connection_consume(connection);
}

static void bytes_need_no_call_of_the_system(void)
{
    begin();
    CHECK_EQ(connection_receive(b), -EAGAIN);
    CHECK(!connection_is_ready(b));
    for (uint8_t i = 0; i < 10; i++)
        send_one(a, i);
    CHECK(connection_is_ready(b));
    CHECK_EQ(connection_receive(b), 10 * SIZE);
    CHECK(connection_is_drained(b) && !connection_is_ready(b));
    for (uint8_t i = 0; i < 10; i++)
        check_next(b, SIZE, i);
    send_one(b, 7);
    check_next(a, SIZE, 7);
    CHECK_EQ(sends, 0);
    CHECK_EQ(connection_sent_bytes(a), 10 * SIZE);
    end();
}

static void the_socket_wakes_a_sleeper(void)
{
    uint8_t byte;
    begin();
    CHECK(!connection_peer_sleeps(a));
    CHECK(connection_sleep(b));
    CHECK(connection_peer_sleeps(a) && !connection_peer_sleeps(b));
    send_one(a, 1);
    CHECK(!connection_peer_sleeps(a));
    CHECK_EQ(sends, 1);
    CHECK_EQ(recv(connection_fd(b), &byte, 1, MSG_PEEK | MSG_DONTWAIT), 1);
    send_one(a, 2); /* it is on its way to waking up */
    CHECK_EQ(sends, 1);
    CHECK_EQ(connection_receive(b), SIZE);
    CHECK(!connection_is_drained(b));
    check_next(b, SIZE, 1);
    check_next(b, SIZE, 2);
    CHECK(connection_sleep(b));
    connection_rise(b);
    send_one(a, 3);
    CHECK_EQ(sends, 1);
    CHECK(!connection_sleep(b));
    check_next(b, SIZE, 3);
    end();
}

/* A memfd that can be told from others by its size. */
static void check_fd(struct connection *connection, off_t size)
{
    struct stat status = {0};
    int fd = -1;
    REQUIRE(connection_fd_count(connection) > 0 && connection_pop_fds(connection, &fd, 1) == 0);
    CHECK_EQ(fstat(fd, &status), 0);
    CHECK_EQ(status.st_size, size);
    close(fd);
}

/* Descriptors come with their messages, and neither before those that were sent earlier nor after later ones. */
static void descriptors_keep_the_order(void)
{
    const int first = memory_create(11), second = memory_create(22);
    begin();
    queue(a, SIZE, 1, -1);
    queue(a, SIZE, 2, first);
    queue(a, SIZE, 3, -1);
    queue(a, SIZE, 4, second);
    CHECK_EQ(connection_flush(a), 0);
    CHECK_EQ(sends, 2);
    send_one(a, 5);
    CHECK_EQ(sends, 2);
    check_next(b, SIZE, 1);
    CHECK_EQ(connection_fd_count(b), 0);
    check_next(b, SIZE, 2);
    CHECK_EQ(connection_fd_count(b), 1);
    check_fd(b, 11);
    check_next(b, SIZE, 3);
    CHECK_EQ(connection_fd_count(b), 0);
    check_next(b, SIZE, 4);
    check_fd(b, 22);
    check_next(b, SIZE, 5);
    CHECK_EQ(connection_fd_count(b), 0);
    close(first);
    close(second);
    end();
}

/* Ring, socket and outbox take so much; then all of it arrives, in its order. */
static void a_peer_that_does_not_read(void)
{
    const int room = 20000;
    unsigned queued = 0, arrived = 0;
    int r = 0;
    begin();
    setsockopt(socket_a, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    while (!connection_is_clogged(a)) {
        queue(a, 1000, (uint8_t)queued++, -1);
        r = connection_flush(a);
        CHECK(r == 0 || r == -EAGAIN);
    }
    CHECK_EQ(r, -EAGAIN);
    CHECK(connection_output_bytes(a) > LIMIT_UNREAD_BYTES);
    while (arrived < queued) {
        check_next(b, 1000, (uint8_t)arrived++);
        r = connection_flush(a);
        REQUIRE(r == 0 || r == -EAGAIN);
    }
    CHECK_EQ(r, 0);
    CHECK(!connection_has_output(a));
    end();
}

/* Every message by another way, as the reader sleeps or not, with sizes up to the largest. */
static void any_mixture_keeps_the_order(void)
{
    enum { MESSAGES = 2000 };
    const uint64_t seed = random_seed();
    uint64_t sender = seed, reader = seed, chance = ~seed;
    const int fd = memory_create(33);
    unsigned queued = 0, arrived = 0;
    begin();
    while (arrived < MESSAGES) {
        if (queued < MESSAGES && !connection_is_clogged(a) && random_next(&chance) % 3) {
            const uint64_t dice = random_next(&sender);
            queue(a, dice % 50 ? 5 + dice % 300 : LIMIT_MESSAGE_BYTES, (uint8_t)queued, dice % 7 ? -1 : fd);
            queued++;
        }
        if (random_next(&chance) % 2)
            CHECK(connection_flush(a) != -EPROTO);
        if (random_next(&chance) % 4 == 0)
            connection_sleep(b);
        const uint8_t *bytes;
        size_t size;
        if (connection_peek(b, &bytes, &size) == 0 && random_next(&chance) % 2)
            CHECK(connection_receive(b) != -EPROTO);
        while (connection_peek(b, &bytes, &size) == 1) {
            const uint64_t dice = random_next(&reader);
            CHECK_EQ(size, dice % 50 ? 5 + dice % 300 : LIMIT_MESSAGE_BYTES);
            check_next(b, size, (uint8_t)arrived++);
            if (dice % 7 == 0)
                check_fd(b, 33);
            REQUIRE(check_failures == 0);
        }
    }
    CHECK_EQ(connection_fd_count(b), 0);
    close(fd);
    end();
}

/* How a connection gets its rings: its requests wait, so that the daemon knows which bytes come by which way. */
static void a_connection_changes_over(void)
{
    struct rings *first, *second;
    const uint8_t *bytes;
    size_t size;
    int fd;
    begin_without();
    send_one(a, 1);
    connection_hold(a);
    send_one(a, 2); /* waits */
    CHECK(connection_has_output(a));
    CHECK_EQ(connection_receive(b), SIZE);
    check_next(b, SIZE, 1);
    CHECK(connection_may_have_rings(b));
    CHECK_EQ(rings_create(&first, &fd), 0);
    queue(b, SIZE, 3, fd);
    connection_use_rings(b, first);
    queue(b, SIZE, 4, -1);
    CHECK_EQ(connection_flush(b), 0);
    CHECK_EQ(connection_receive(a), SIZE); /* not what follows: descriptors end a read */
    CHECK_EQ(connection_peek(a, &bytes, &size), 1);
    CHECK(connection_may_have_rings(a));
    CHECK_EQ(rings_attach(fd, &second), 0);
    connection_use_rings(a, second);
    check_next(a, SIZE, 3);
    check_fd(a, 4096 + 2 * LIMIT_RING_BYTES);
    CHECK_EQ(connection_flush(a), 0);
    CHECK(!connection_has_output(a));
    check_next(a, SIZE, 4);
    check_next(b, SIZE, 2);
    CHECK_EQ(sends, 2);
    CHECK(connection_has_rings(a) && !connection_may_have_rings(a));
    close(fd);
    end();
}

static void a_refused_connection_goes_on(void)
{
    begin_without();
    send_one(a, 1);
    connection_hold(a);
    send_one(a, 2);
    CHECK_EQ(connection_receive(b), SIZE);
    connection_release(a);
    CHECK_EQ(connection_flush(a), 0);
    check_next(b, SIZE, 1);
    check_next(b, SIZE, 2);
    send_one(a, 3);
    send_one(a, 4);
    CHECK_EQ(connection_receive(b), 2 * SIZE);
    check_next(b, SIZE, 3);
    CHECK(!connection_may_have_rings(b)); /* bytes behind it have come already */
    end();
}

static void positions_count_both_ways(void)
{
    begin();
    send_one(a, 1);
    CHECK_EQ(connection_arrived_bytes(b), SIZE);
    CHECK(!connection_sleep(b));
    check_next(b, SIZE, 1);
    CHECK(connection_sleep(b));
    send_one(a, 2);
    send_one(a, 3);
    CHECK_EQ(sends, 1);
    CHECK_EQ(connection_arrived_bytes(b), 3 * SIZE);
    CHECK_EQ(connection_position(b), SIZE);
    check_next(b, SIZE, 2);
    CHECK_EQ(connection_arrived_bytes(b), 3 * SIZE);
    check_next(b, SIZE, 3);
    CHECK_EQ(connection_position(b), 3 * SIZE);
    end();
}

/* What was sent before the end is read before the end, whichever way it took. */
static void the_end_comes_last(void)
{
    for (int sleeps = 0; sleeps < 2; sleeps++) {
        begin();
        send_one(b, 9); /* unread */
        if (sleeps)
            CHECK(connection_sleep(b));
        send_one(a, 1);
        send_one(a, 2);
        connection_destroy(a);
        a = NULL;
        check_next(b, SIZE, 1);
        check_next(b, SIZE, 2);
        CHECK_EQ(connection_receive(b), 0);
        end();
    }
}

static void an_end_beside_a_look(void)
{
    begin();
    ends_meanwhile = true;
    check_next(b, SIZE, 1);
    CHECK_EQ(connection_receive(b), 0);
    CHECK(!ends_meanwhile);
    end();
}

static void bytes_that_no_ring_tells_of(void)
{
    begin();
    send_one(a, 1);
    CHECK_EQ(send(socket_a, "stray", 5, 0), 5);
    check_next(b, SIZE, 1);
    CHECK_EQ(connection_receive(b), -EPROTO);
    end();
}

static void a_wiped_peer_breaks_off(void)
{
    begin();
    send_one(a, 1);
    rings_wipe(rings_a);
    CHECK_EQ(connection_receive(b), -EAGAIN); /* nothing was read, and there is nothing */
    queue(b, SIZE, 2, -1);
    CHECK_EQ(connection_flush(b), 0);
    end();
    begin();
    send_one(a, 1);
    check_next(b, SIZE, 1);
    rings_wipe(rings_a);
    CHECK_EQ(connection_receive(b), -EPROTO);
    end();
}

static void rings_are_taken_from_an_end(void)
{
    begin();
    send_one(a, 1);
    CHECK(connection_take_rings(a) == rings_a);
    CHECK(!connection_has_rings(a) && !connection_take_rings(a));
    check_next(b, SIZE, 1);
    end();
    rings_destroy(rings_a);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(bytes_need_no_call_of_the_system),
        TEST(the_socket_wakes_a_sleeper),
        TEST(descriptors_keep_the_order),
        TEST(a_peer_that_does_not_read),
        TEST(any_mixture_keeps_the_order),
        TEST(a_connection_changes_over),
        TEST(a_refused_connection_goes_on),
        TEST(positions_count_both_ways),
        TEST(the_end_comes_last),
        TEST(an_end_beside_a_look),
        TEST(bytes_that_no_ring_tells_of),
        TEST(a_wiped_peer_breaks_off),
        TEST(rings_are_taken_from_an_end),
        TEST_END,
    };
    return test_main(argc, argv, tests);
}

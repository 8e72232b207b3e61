/* Bytes and descriptors over a socketpair: what arrives with what, what waits, what is refused. */
#include "protocol/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/memory.h"
#include "tests/check.h"
#include "tests/unit/open_descriptors.h"

static int sendmsg_fails; /* the errno that sendmsg fails with; 0: it does not fail */
ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    errno = sendmsg_fails;
    return sendmsg_fails ? -1 : __real_sendmsg(fd, message, flags);
}

/* Two connections to each other. */
struct pair {
    struct connection *a, *b;
};

static struct pair pair_create(void)
{
    int fds[2] = {-1, -1};
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    return (struct pair){connection_create(fds[0]), connection_create(fds[1])};
}

static void pair_destroy(struct pair *pair)
{
    connection_destroy(pair->a);
    connection_destroy(pair->b);
}

/* A connection, and a bare socket to do to it whatever can be done. */
static struct connection *bare_create(int *peer)
{
    int fds[2] = {-1, -1};
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    *peer = fds[0];
    return connection_create(fds[1]);
}

static ssize_t bare_send(int peer, const void *bytes, size_t size, const int *fds, size_t count)
{
    union {
        char bytes[CMSG_SPACE(253 * sizeof(int))];
        struct cmsghdr align;
    } control;
    memset(&control, 0, sizeof control);
    struct iovec span = {(void *)bytes, size};
    struct msghdr header = {.msg_iov = &span, .msg_iovlen = 1};
    if (count > 0) {
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *part = CMSG_FIRSTHDR(&header);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(part), fds, count * sizeof(int));
    }
    return sendmsg(peer, &header, MSG_NOSIGNAL);
}

/* A message of `size` bytes, 3 or more, with a mark in it: a binary. */
static uint8_t *blob(uint8_t *bytes, size_t size, uint8_t mark)
{
    bytes[0] = 0xc5;
    bytes[1] = (uint8_t)((size - 3) >> 8);
    bytes[2] = (uint8_t)(size - 3);
    memset(bytes + 3, mark, size - 3);
    return bytes;
}

/* The next message is a blob of that size and mark. */
static void check_blob(struct connection *connection, size_t size, uint8_t mark)
{
    const uint8_t *bytes;
    size_t got = 0;
    REQUIRE(connection_peek(connection, &bytes, &got) == 1);
    CHECK_EQ(got, size);
    bool marked = true;
    for (size_t i = 3; i < got; i++)
        marked = marked && bytes[i] == mark;
    CHECK(marked);
    connection_consume(connection);
}

/* A memfd that can be told from others by its size. */
static int numbered_fd(uint64_t number)
{
    return memory_create(number + 1);
}

static uint64_t fd_number(int fd)
{
    struct stat status = {0};
    CHECK_EQ(fstat(fd, &status), 0);
    return (uint64_t)status.st_size - 1;
}

static void check_fd(struct connection *connection, uint64_t number)
{
    int fd = -1;
    REQUIRE(connection_pop_fds(connection, &fd, 1) == 0);
    CHECK_EQ(fd_number(fd), number);
    CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    close(fd);
}

static void messages_arrive_whole_and_in_order(void)
{
    struct pair pair = pair_create();
    uint8_t bytes[1000];
    const uint8_t *got;
    size_t size = 7;
    CHECK_EQ(connection_receive(pair.b), -EAGAIN);
    CHECK_EQ(connection_peek(pair.b, &got, &size), 0);
    CHECK(!connection_has_output(pair.a));
    CHECK_EQ(connection_flush(pair.a), 0);
    for (uint8_t i = 0; i < 10; i++)
        CHECK_EQ(connection_send(pair.a, blob(bytes, 100u * i + 3, i), 100u * i + 3, NULL, 0), 0);
    CHECK(connection_has_output(pair.a));
    CHECK_EQ(connection_flush(pair.a), 0);
    CHECK(!connection_has_output(pair.a));
    CHECK_EQ(connection_receive(pair.b), LIMIT_FIRST_READ_BYTES);
    CHECK(!connection_is_drained(pair.b));
    CHECK_EQ(connection_receive(pair.b), 4530 - LIMIT_FIRST_READ_BYTES);
    CHECK(connection_is_drained(pair.b));
    for (uint8_t i = 0; i < 10; i++)
        check_blob(pair.b, 100u * i + 3, i);
    CHECK_EQ(connection_peek(pair.b, &got, &size), 0);
    CHECK_EQ(connection_receive(pair.b), -EAGAIN);
    CHECK_EQ(fcntl(connection_fd(pair.a), F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    pair_destroy(&pair);
}

static void a_message_cut_at_every_byte(void)
{
    const uint8_t message[] = {0x94, 0x00, 0xcd, 0x01, 0x02, 0xa3, 'a', 'b', 'c', 0x91, 0x81, 0xa1, 'x', 0xc4, 0x01, 0};
    for (size_t cut = 1; cut < sizeof message; cut++) {
        int peer;
        struct connection *connection = bare_create(&peer);
        const uint8_t *bytes;
        size_t size;
        CHECK(!connection_is_partial(connection));
        CHECK_EQ(bare_send(peer, message, cut, NULL, 0), cut);
        CHECK_EQ(connection_receive(connection), cut);
        CHECK(connection_is_partial(connection)); /* before and after a look */
        CHECK_EQ(connection_peek(connection, &bytes, &size), 0);
        CHECK(connection_is_partial(connection));
        CHECK_EQ(bare_send(peer, message + cut, sizeof message - cut, NULL, 0), sizeof message - cut);
        CHECK_EQ(connection_receive(connection), sizeof message - cut);
        CHECK(!connection_is_partial(connection));
        REQUIRE(connection_peek(connection, &bytes, &size) == 1);
        CHECK(!connection_is_partial(connection));
        CHECK(size == sizeof message && memcmp(bytes, message, size) == 0);
        connection_consume(connection);
        CHECK(!connection_is_partial(connection));
        connection_destroy(connection);
        close(peer);
    }
}

static void hostile_bytes_are_reported(void)
{
    static const struct {
        const char *bytes;
        size_t size;
        int code;
    } cases[] = {
        {"\xdd\xff\xff\xff\xff", 5, -EMSGSIZE},
        {"\xc1", 1, -EBADMSG},
        {"\x92\xd4", 2, -EBADMSG},
        {"\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91", LIMIT_MESSAGE_DEPTH + 1, -EBADMSG},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int peer;
        struct connection *connection = bare_create(&peer);
        const uint8_t *bytes;
        size_t size;
        CHECK_EQ(bare_send(peer, "\x01", 1, NULL, 0), 1); /* a whole one first */
        CHECK_EQ(bare_send(peer, cases[i].bytes, cases[i].size, NULL, 0), cases[i].size);
        CHECK_EQ(connection_receive(connection), cases[i].size + 1);
        CHECK_EQ(connection_peek(connection, &bytes, &size), 1);
        connection_consume(connection);
        CHECK_EQ(connection_peek(connection, &bytes, &size), cases[i].code);
        CHECK(size == cases[i].size && memcmp(bytes, cases[i].bytes, size) == 0);
        CHECK_EQ(connection_peek(connection, &bytes, &size), cases[i].code); /* and it stays so */
        CHECK(!connection_is_partial(connection));
        connection_destroy(connection);
        close(peer);
    }
}

static void the_largest_message_fits(void)
{
    struct pair pair = pair_create();
    uint8_t *bytes = malloc(LIMIT_MESSAGE_BYTES + 1);
    blob(bytes, LIMIT_MESSAGE_BYTES, 'm');
    CHECK_EQ(connection_send(pair.a, bytes, LIMIT_MESSAGE_BYTES + 1, NULL, 0), -EMSGSIZE);
    CHECK_EQ(connection_send(pair.a, bytes, 0, NULL, 0), -EMSGSIZE);
    CHECK_EQ(connection_send(pair.a, (uint8_t[]){0xc0}, 1, NULL, 0), 0);
    CHECK_EQ(connection_send(pair.a, bytes, LIMIT_MESSAGE_BYTES, NULL, 0), 0);
    CHECK_EQ(connection_flush(pair.a), 0);
    const uint8_t *got;
    size_t size;
    CHECK_EQ(connection_receive(pair.b), LIMIT_FIRST_READ_BYTES);
    CHECK(!connection_is_drained(pair.b));
    CHECK_EQ(connection_receive(pair.b), LIMIT_MESSAGE_BYTES - LIMIT_FIRST_READ_BYTES);
    CHECK(!connection_is_drained(pair.b));
    CHECK_EQ(connection_receive(pair.b), -ENOBUFS); /* and not 0, the end of the stream */
    CHECK_EQ(connection_peek(pair.b, &got, &size), 1);
    CHECK_EQ(size, 1);
    connection_consume(pair.b);
    CHECK_EQ(connection_peek(pair.b, &got, &size), 0);
    CHECK_EQ(connection_receive(pair.b), 1);
    check_blob(pair.b, LIMIT_MESSAGE_BYTES, 'm');
    free(bytes);
    pair_destroy(&pair);
}

static void descriptors_follow_their_messages(void)
{
    struct pair pair = pair_create();
    uint8_t bytes[100];
    uint64_t number = 0;
    size_t before = descriptors_open();
    for (uint8_t i = 0; i < 12; i++) {
        int fds[3];
        size_t count = i % 4;
        for (size_t j = 0; j < count; j++)
            fds[j] = numbered_fd(number++);
        CHECK_EQ(connection_send(pair.a, blob(bytes, 50, i), 50, fds, count), 0);
        for (size_t j = 0; j < count; j++)
            close(fds[j]); /* the connection has its own */
    }
    CHECK_EQ(descriptors_open(), before + number);
    CHECK_EQ(connection_flush(pair.a), 0);
    CHECK_EQ(descriptors_open(), before);
    number = 0;
    for (uint8_t i = 0; i < 12; i++) {
        const uint8_t *got;
        size_t size;
        while (connection_peek(pair.b, &got, &size) == 0)
            REQUIRE(connection_receive(pair.b) > 0);
        check_blob(pair.b, 50, i);
        for (size_t j = 0; j < i % 4; j++)
            check_fd(pair.b, number++);
    }
    CHECK_EQ(connection_fd_count(pair.b), 0);
    CHECK_EQ(connection_receive(pair.b), -EAGAIN);
    CHECK_EQ(descriptors_open(), before);
    pair_destroy(&pair);
}

/* Descriptors never come with the message before: its receiver would hold descriptors that nothing it has read
 * announces. */
static void descriptors_do_not_come_early(void)
{
    struct pair pair = pair_create();
    uint8_t bytes[100];
    int fd = numbered_fd(5);
    CHECK_EQ(connection_send(pair.a, blob(bytes, 10, 1), 10, NULL, 0), 0);
    CHECK_EQ(connection_send(pair.a, blob(bytes, 20, 2), 20, &fd, 1), 0);
    CHECK_EQ(connection_send(pair.a, blob(bytes, 30, 3), 30, NULL, 0), 0);
    CHECK_EQ(connection_flush(pair.a), 0);
    char byte;
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    size_t at = 0, arrived_at = SIZE_MAX;
    for (; at < 60; at++) { /* byte by byte, which one do they come with? */
        struct iovec span = {&byte, 1};
        struct msghdr header = {
            .msg_iov = &span, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
        CHECK_EQ(recvmsg(connection_fd(pair.b), &header, MSG_CMSG_CLOEXEC), 1);
        if (header.msg_controllen > 0) {
            CHECK(arrived_at == SIZE_MAX);
            arrived_at = at;
            int got;
            memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof got);
            CHECK_EQ(fd_number(got), 5);
            close(got);
        }
    }
    CHECK_EQ(arrived_at, 10);
    close(fd);
    pair_destroy(&pair);
}

static void the_most_descriptors(void)
{
    struct pair pair = pair_create();
    uint8_t bytes[10];
    int fds[LIMIT_MESSAGE_FDS + 1];
    size_t before = descriptors_open();
    for (size_t i = 0; i <= LIMIT_MESSAGE_FDS; i++)
        fds[i] = numbered_fd(i);
    CHECK_EQ(connection_send(pair.a, blob(bytes, 10, 1), 10, fds, LIMIT_MESSAGE_FDS + 1), -EMSGSIZE);
    CHECK_EQ(connection_send(pair.a, bytes, 10, fds, LIMIT_MESSAGE_FDS), 0);
    CHECK_EQ(connection_flush(pair.a), 0);
    for (size_t i = 0; i <= LIMIT_MESSAGE_FDS; i++)
        close(fds[i]);
    CHECK_EQ(connection_receive(pair.b), 10);
    CHECK_EQ(connection_fd_count(pair.b), LIMIT_MESSAGE_FDS);
    CHECK_EQ(connection_pop_fds(pair.b, fds, LIMIT_MESSAGE_FDS + 1), -EBADF);
    CHECK_EQ(connection_fd_count(pair.b), LIMIT_MESSAGE_FDS);
    CHECK_EQ(connection_pop_fds(pair.b, fds, 0), 0);
    CHECK_EQ(connection_pop_fds(pair.b, NULL, 0), 0);
    REQUIRE(connection_pop_fds(pair.b, fds, LIMIT_MESSAGE_FDS) == 0);
    for (size_t i = 0; i < LIMIT_MESSAGE_FDS; i++) {
        CHECK_EQ(fd_number(fds[i]), i);
        close(fds[i]);
    }
    CHECK_EQ(connection_pop_fds(pair.b, fds, 1), -EBADF);
    CHECK_EQ(descriptors_open(), before);
    pair_destroy(&pair);
}

/* Closes descriptors that belong to no message. Returns how many there were. */
static size_t close_lost(struct connection *connection)
{
    int lost[LOST_FDS];
    const size_t count = connection_take_lost(connection, lost);
    for (size_t i = 0; i < count; i++)
        close(lost[i]);
    return count;
}

static void more_descriptors_than_a_message_may_have(void)
{
    int peer, fds[253];
    struct connection *connection = bare_create(&peer);
    size_t before = descriptors_open();
    for (size_t i = 0; i < 253; i++)
        fds[i] = peer;
    CHECK_EQ(bare_send(peer, "\x01", 1, fds, LIMIT_MESSAGE_FDS + 1), 1);
    CHECK_EQ(connection_receive(connection), -EBADF);
    CHECK_EQ(descriptors_open(), before + LIMIT_MESSAGE_FDS + 1);
    CHECK_EQ(bare_send(peer, "\x01", 1, fds, 253), 1);
    CHECK_EQ(connection_receive(connection), -EBADF); /* these are closed: the connection should have ended before */
    CHECK_EQ(connection_fd_count(connection), 0);
    CHECK_EQ(close_lost(connection), LIMIT_MESSAGE_FDS + 1);
    CHECK_EQ(close_lost(connection), 0);
    CHECK_EQ(descriptors_open(), before);
    /* Two messages' worth may wait, not three. */
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(bare_send(peer, "\x01", 1, fds, LIMIT_MESSAGE_FDS), 1);
        CHECK_EQ(connection_receive(connection), i < 2 ? 1 : -EBADF);
    }
    CHECK_EQ(connection_fd_count(connection), 2 * LIMIT_MESSAGE_FDS);
    CHECK_EQ(descriptors_open(), before + 3 * LIMIT_MESSAGE_FDS);
    connection_destroy(connection); /* with those that nobody took */
    CHECK_EQ(descriptors_open(), before - 1);
    close(peer);
}

/* Whatever waits in a socket, descriptors perhaps, ends with it, and nothing more comes in. */
static void the_end_of_a_socket(void)
{
    for (int unread = 0; unread < 2; unread++) {
        int peer;
        struct connection *connection = bare_create(&peer);
        const int fd = connection_fd(connection);
        CHECK_EQ(bare_send(peer, "\x01\x02", 2, &peer, 1), 2);
        if (!unread)
            CHECK_EQ(connection_receive(connection), 2);
        CHECK_EQ(connection_end(connection), unread ? fd : -1);
        CHECK(send(peer, "x", 1, MSG_NOSIGNAL) < 0 && errno == EPIPE);
        CHECK_EQ(connection_end(connection), -1);
        connection_destroy(connection);
        CHECK_EQ(fcntl(fd, F_GETFD) >= 0, unread);
        if (unread)
            close(fd);
        close(peer);
    }
}

static void no_room_for_descriptors(void)
{
    int peer, fds[20];
    struct connection *connection = bare_create(&peer);
    size_t before = descriptors_open();
    for (size_t i = 0; i < 20; i++)
        fds[i] = peer;
    struct rlimit limit, low;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = limit;
    int next = dup(peer); /* the lowest that is free */
    close(next);
    for (rlim_t room = 0; room < 20; room += 7) { /* none of them fits, or some do */
        CHECK_EQ(bare_send(peer, "\x01", 1, fds, 20), 1);
        low.rlim_cur = (rlim_t)next + room;
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
        CHECK_EQ(connection_receive(connection), -EMFILE);
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
        CHECK_EQ(connection_fd_count(connection), 0);
        CHECK(close_lost(connection) <= room);
        CHECK_EQ(descriptors_open(), before);
        const uint8_t *bytes;
        size_t size;
        CHECK_EQ(connection_peek(connection, &bytes, &size), 1); /* the bytes are there */
        connection_consume(connection);
    }
    CHECK_EQ(bare_send(peer, "\x01", 1, fds, 20), 1); /* and later it works again */
    CHECK_EQ(connection_receive(connection), 1);
    CHECK_EQ(connection_fd_count(connection), 20);
    connection_destroy(connection);
    close(peer);
}

static void no_room_to_duplicate(void)
{
    struct pair pair = pair_create();
    uint8_t bytes[10];
    int fds[8];
    for (size_t i = 0; i < 8; i++)
        fds[i] = numbered_fd(i);
    size_t before = descriptors_open();
    struct rlimit limit, low;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = limit;
    low.rlim_cur = (rlim_t)fds[7] + 4;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    CHECK_EQ(connection_send(pair.a, blob(bytes, 10, 1), 10, fds, 8), -EMFILE);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK(!connection_has_output(pair.a));
    CHECK_EQ(connection_send(pair.a, bytes, 10, (int[]){fds[0], -1}, 2), -EBADF);
    CHECK(!connection_has_output(pair.a));
    CHECK_EQ(descriptors_open(), before);
    CHECK_EQ(connection_send(pair.a, bytes, 10, fds, 8), 0);
    CHECK_EQ(descriptors_open(), before + 8);
    for (size_t i = 0; i < 8; i++)
        close(fds[i]);
    pair_destroy(&pair); /* with what was not sent */
    CHECK_EQ(descriptors_open(), before - 8 - 2);
}

/* A socket that takes little at once: messages, some with descriptors, arrive whole and in order all the same. */
static void partial_sends(void)
{
    struct pair pair = pair_create();
    int tiny = 1;
    CHECK_EQ(setsockopt(connection_fd(pair.a), SOL_SOCKET, SO_SNDBUF, &tiny, sizeof tiny), 0);
    uint64_t seed = random_seed();
    uint8_t *bytes = malloc(LIMIT_MESSAGE_BYTES);
    size_t sizes[200], sent = 0, got = 0, again = 0, before = descriptors_open();
    for (size_t i = 0; i < 200; i++)
        sizes[i] = 3 + random_next(&seed) % (i % 10 ? 300 : 30000);
    while (got < 200) {
        while (sent < 200) {
            int fd = sent % 3 == 0 ? numbered_fd(sent) : -1;
            int code = connection_send(pair.a, blob(bytes, sizes[sent], (uint8_t)sent), sizes[sent], &fd, fd >= 0);
            if (fd >= 0)
                close(fd);
            if (code) {
                CHECK_EQ(code, -ENOBUFS);
                break;
            }
            sent++;
            if (random_next(&seed) % 4 == 0)
                break;
        }
        int code = connection_flush(pair.a);
        CHECK(code == 0 || code == -EAGAIN);
        CHECK_EQ(connection_has_output(pair.a), code == -EAGAIN);
        again += code == -EAGAIN;
        code = connection_receive(pair.b);
        CHECK(code > 0 || code == -EAGAIN);
        const uint8_t *peeked;
        size_t size;
        while ((code = connection_peek(pair.b, &peeked, &size)) == 1) {
            check_blob(pair.b, sizes[got], (uint8_t)got);
            if (got % 3 == 0)
                check_fd(pair.b, got);
            got++;
        }
        REQUIRE(code == 0);
    }
    CHECK(again > 0);
    CHECK_EQ(connection_fd_count(pair.b), 0);
    CHECK_EQ(descriptors_open(), before);
    free(bytes);
    pair_destroy(&pair);
}

static void a_peer_that_does_not_read(void)
{
    struct pair pair = pair_create();
    uint8_t *bytes = malloc(LIMIT_MESSAGE_BYTES);
    blob(bytes, LIMIT_MESSAGE_BYTES, 'x');
    int code = 0;
    while (code != -EAGAIN) { /* fill the socket */
        CHECK_EQ(connection_send(pair.a, bytes, LIMIT_MESSAGE_BYTES, NULL, 0), 0);
        code = connection_flush(pair.a);
        REQUIRE(code == 0 || code == -EAGAIN);
    }
    size_t queued = 0;
    while ((code = connection_send(pair.a, bytes, LIMIT_MESSAGE_BYTES, NULL, 0)) == 0)
        REQUIRE(++queued < 100);
    CHECK_EQ(code, -ENOBUFS);
    CHECK(queued >= LIMIT_OUTBOX_BYTES / LIMIT_MESSAGE_BYTES - 1);
    CHECK_EQ(connection_flush(pair.a), -EAGAIN);
    size_t got = 0;
    while ((code = connection_receive(pair.b)) > 0) { /* once it reads, all of it comes */
        const uint8_t *peeked;
        size_t size;
        while (connection_peek(pair.b, &peeked, &size) == 1) {
            check_blob(pair.b, LIMIT_MESSAGE_BYTES, 'x');
            got++;
        }
        int flushed = connection_flush(pair.a);
        CHECK(flushed == 0 || flushed == -EAGAIN);
    }
    CHECK_EQ(code, -EAGAIN);
    CHECK(got > queued);
    CHECK(!connection_has_output(pair.a));
    free(bytes);
    pair_destroy(&pair);
}

static void waiting_descriptors_are_bounded(void)
{
    struct pair pair = pair_create();
    int fds[LIMIT_MESSAGE_FDS];
    size_t before = descriptors_open();
    for (size_t i = 0; i < LIMIT_MESSAGE_FDS; i++)
        fds[i] = connection_fd(pair.b);
    uint8_t bytes[10];
    blob(bytes, 10, 1);
    for (size_t i = 0; i < LIMIT_OUTBOX_FDS / LIMIT_MESSAGE_FDS; i++)
        CHECK_EQ(connection_send(pair.a, bytes, 10, fds, LIMIT_MESSAGE_FDS), 0);
    CHECK_EQ(connection_send(pair.a, bytes, 10, fds, 1), -ENOBUFS);
    CHECK_EQ(connection_send(pair.a, bytes, 10, NULL, 0), 0);
    CHECK_EQ(descriptors_open(), before + LIMIT_OUTBOX_FDS);
    pair_destroy(&pair);
    CHECK_EQ(descriptors_open(), before - 2);
}

/* Descriptors that cannot go yet, since too many of this user are on their way, are kept, and sent by a later flush. */
static void descriptors_that_cannot_go_yet(void)
{
    struct pair pair = pair_create();
    int fd = connection_fd(pair.b), got = -1;
    uint8_t bytes[10];
    const uint8_t *message;
    size_t size;
    CHECK_EQ(connection_send(pair.a, blob(bytes, 10, 1), 10, &fd, 1), 0);
    sendmsg_fails = ETOOMANYREFS;
    CHECK_EQ(connection_flush(pair.a), -ETOOMANYREFS);
    CHECK(connection_has_output(pair.a));
    CHECK_EQ(connection_sent_bytes(pair.a), 0);
    sendmsg_fails = 0;
    CHECK_EQ(connection_flush(pair.a), 0);
    CHECK_EQ(connection_sent_bytes(pair.a), 10);
    CHECK_EQ(connection_receive(pair.b), 10);
    CHECK_EQ(connection_peek(pair.b, &message, &size), 1);
    CHECK_EQ(connection_pop_fds(pair.b, &got, 1), 0);
    close(got);
    pair_destroy(&pair);
}

static void a_peer_that_does_not_read_clogs(void)
{
    struct pair pair = pair_create();
    uint8_t *bytes = blob(malloc(LIMIT_MESSAGE_BYTES), LIMIT_MESSAGE_BYTES, 1);
    int fds[LIMIT_MESSAGE_FDS];
    for (size_t i = 0; i < LIMIT_UNREAD_BYTES / LIMIT_MESSAGE_BYTES; i++)
        CHECK_EQ(connection_send(pair.a, bytes, LIMIT_MESSAGE_BYTES, NULL, 0), 0);
    CHECK(!connection_is_clogged(pair.a));
    CHECK_EQ(connection_send(pair.a, bytes, 10, NULL, 0), 0);
    CHECK(connection_is_clogged(pair.a));
    CHECK_EQ(connection_flush(pair.a), -EAGAIN);
    CHECK(!connection_is_clogged(pair.a));
    pair_destroy(&pair);
    pair = pair_create();
    for (size_t i = 0; i < LIMIT_MESSAGE_FDS; i++)
        fds[i] = connection_fd(pair.b);
    for (size_t i = 1; i < LIMIT_OUTBOX_FDS / LIMIT_MESSAGE_FDS; i++)
        CHECK_EQ(connection_send(pair.a, bytes, 10, fds, LIMIT_MESSAGE_FDS), 0);
    CHECK(!connection_is_clogged(pair.a)); /* there is room for as many as a message may have */
    CHECK_EQ(connection_send(pair.a, bytes, 10, fds, 1), 0);
    CHECK(connection_is_clogged(pair.a));
    free(bytes);
    pair_destroy(&pair);
}

/* A position counts what was consumed, and what has arrived also what nobody has read yet. */
static void positions(void)
{
    uint8_t bytes[500];
    int peer;
    struct connection *connection = bare_create(&peer);
    CHECK_EQ(connection_position(connection), 0);
    CHECK_EQ(connection_arrived_bytes(connection), 0);
    CHECK_EQ(bare_send(peer, blob(bytes, 500, 7), 500, NULL, 0), 500);
    CHECK_EQ(bare_send(peer, bytes, 100, NULL, 0), 100); /* the beginning of another */
    CHECK_EQ(connection_arrived_bytes(connection), 600);
    CHECK_EQ(connection_receive(connection), 600);
    CHECK_EQ(connection_position(connection), 0);
    check_blob(connection, 500, 7);
    CHECK_EQ(connection_position(connection), 500);
    CHECK_EQ(bare_send(peer, bytes + 100, 400, NULL, 0), 400);
    CHECK_EQ(connection_position(connection), 500);
    CHECK_EQ(connection_arrived_bytes(connection), 1000);
    CHECK_EQ(connection_receive(connection), 400); /* moves the first part to the front */
    check_blob(connection, 500, 7);
    CHECK_EQ(connection_position(connection), 1000);
    close(peer);
    CHECK_EQ(connection_arrived_bytes(connection), 1000);
    connection_destroy(connection);
}

static void the_end_of_the_stream(void)
{
    struct pair pair = pair_create();
    uint8_t bytes[10];
    CHECK_EQ(connection_send(pair.a, blob(bytes, 10, 1), 10, NULL, 0), 0);
    CHECK_EQ(connection_flush(pair.a), 0);
    connection_destroy(pair.a);
    CHECK_EQ(connection_receive(pair.b), 10); /* its last message first */
    check_blob(pair.b, 10, 1);
    CHECK_EQ(connection_receive(pair.b), 0);
    CHECK_EQ(connection_send(pair.b, bytes, 10, NULL, 0), 0);
    CHECK_EQ(connection_flush(pair.b), -EPIPE); /* and no signal */
    connection_destroy(pair.b);
    connection_destroy(NULL);
}

/* A client that dies with replies unread: what it sent can still be read. */
static void a_peer_that_dies_with_unread_replies(void)
{
    struct pair pair = pair_create();
    uint8_t bytes[10];
    CHECK_EQ(connection_send(pair.b, blob(bytes, 10, 2), 10, NULL, 0), 0);
    CHECK_EQ(connection_flush(pair.b), 0);
    CHECK_EQ(connection_send(pair.a, blob(bytes, 10, 1), 10, NULL, 0), 0);
    CHECK_EQ(connection_flush(pair.a), 0);
    connection_destroy(pair.a);
    CHECK_EQ(connection_receive(pair.b), 10);
    check_blob(pair.b, 10, 1);
    CHECK(connection_receive(pair.b) <= 0);
    connection_destroy(pair.b);
}

static void descriptors_that_cannot_be_a_connection(void)
{
    size_t before = descriptors_open();
    errno = 0;
    CHECK(!connection_create(-1));
    CHECK_EQ(errno, EBADF);
    int fd = memory_create(10);
    struct connection *connection = connection_create(fd);
    REQUIRE(connection != NULL);
    CHECK_EQ(connection_receive(connection), -ENOTSOCK);
    connection_destroy(connection);
    CHECK_EQ(descriptors_open(), before);
}

static const struct test tests[] = {
    TEST(messages_arrive_whole_and_in_order),
    TEST(a_message_cut_at_every_byte),
    TEST(hostile_bytes_are_reported),
    TEST(the_largest_message_fits),
    TEST(descriptors_follow_their_messages),
    TEST(descriptors_do_not_come_early),
    TEST(the_most_descriptors),
    TEST(more_descriptors_than_a_message_may_have),
    TEST(the_end_of_a_socket),
    TEST(no_room_for_descriptors),
    TEST(no_room_to_duplicate),
    TEST(partial_sends),
    TEST(a_peer_that_does_not_read),
    TEST(waiting_descriptors_are_bounded),
    TEST(descriptors_that_cannot_go_yet),
    TEST(a_peer_that_does_not_read_clogs),
    TEST(positions),
    TEST(the_end_of_the_stream),
    TEST(a_peer_that_dies_with_unread_replies),
    TEST(descriptors_that_cannot_be_a_connection),
    TEST_END,
};

int main(int argc, char **argv)
{
    size_t before = descriptors_open();
    int code = test_main(argc, argv, tests);
    if (descriptors_open() != before) {
        fprintf(stderr, "%zu descriptors before the tests, %zu after\n", before, descriptors_open());
        return 1;
    }
    return code;
}

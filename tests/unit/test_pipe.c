/* A connection within a process, by two pipes: what arrives with what, and what waits for room. */
#include "daemon/local/pipe.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/connection.h"
#include "protocol/memory.h"
#include "tests/check.h"

/* Each end writes to one pipe and reads the other. */
struct end {
    struct pipe *out, *in;
};

static struct pipe there, back;
static struct end ends[2] = {{&there, &back}, {&back, &there}};
static unsigned closed;

static int end_write(void *context, const uint8_t *bytes, size_t size, const int *fds, size_t fd_count)
{
    return pipe_write(((struct end *)context)->out, bytes, size, fds, fd_count);
}

static int end_read(void *context, uint8_t *bytes, size_t size, int *fds, size_t *fd_count)
{
    return pipe_read(((struct end *)context)->in, bytes, size, fds, fd_count);
}

static void end_close(void *context)
{
    pipe_finish(((struct end *)context)->in);
    closed++;
}

static const struct carrier carrier = {end_write, end_read, end_close};
static struct connection *a, *b;

static void begin(void)
{
    there = back = (struct pipe){.start = 0};
    closed = 0;
    a = connection_create_on(&carrier, &ends[0]);
    b = connection_create_on(&carrier, &ends[1]);
    CHECK(a && b);
    CHECK_EQ(connection_fd(a), -1);
}

static void end(void)
{
    connection_destroy(a);
    connection_destroy(b);
    CHECK_EQ(closed, 2);
}

/* A message of `size` bytes: a MessagePack string. */
static void send_text(size_t size, const int *fds, size_t fd_count)
{
    static uint8_t bytes[LIMIT_MESSAGE_BYTES];
    bytes[0] = 0xda;
    bytes[1] = (uint8_t)((size - 3) >> 8);
    bytes[2] = (uint8_t)(size - 3);
    memset(bytes + 3, 'x', size - 3);
    CHECK_EQ(connection_send(a, bytes, size, fds, fd_count), 0);
}

/* The size of the next message that arrives; 0: none does. */
static size_t take(void)
{
    const uint8_t *bytes;
    size_t size;
    int code;
    while ((code = connection_peek(b, &bytes, &size)) == 0)
        if (connection_receive(b) <= 0)
            return 0;
    CHECK_EQ(code, 1);
    connection_consume(b);
    return size;
}

static void test_messages(void)
{
    begin();
    CHECK_EQ(connection_receive(b), -EAGAIN);
    for (size_t size = 10; size < 5000; size += 700)
        send_text(size, NULL, 0);
    CHECK_EQ(connection_flush(a), 0);
    for (size_t size = 10; size < 5000; size += 700)
        CHECK_EQ(take(), size);
    CHECK_EQ(take(), 0);
    end();
}

static void test_what_does_not_fit_waits(void)
{
    begin();
    for (int i = 0; i < 5; i++)
        send_text(30000, NULL, 0);
    CHECK_EQ(connection_flush(a), -EAGAIN);
    CHECK(connection_has_output(a));
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(take(), 30000);
        (void)connection_flush(a);
    }
    CHECK(!connection_has_output(a));
    end();
}

/* The descriptors of the second message stay with it, and are those that were sent. */
static void test_descriptors(void)
{
    struct stat sent, taken;
    int fd = memory_create(4096), arrived = -1;
    const int first = fd;
    begin();
    CHECK_EQ(fstat(fd, &sent), 0);
    send_text(100, NULL, 0);
    send_text(200, &fd, 1);
    send_text(300, &fd, 1);
    close(fd);
    CHECK_EQ(connection_flush(a), -EAGAIN);
    CHECK_EQ(take(), 100);
    CHECK_EQ(connection_fd_count(b), 0);
    CHECK_EQ(connection_flush(a), -EAGAIN);
    CHECK_EQ(take(), 200);
    CHECK_EQ(connection_fd_count(b), 1);
    CHECK_EQ(connection_pop_fds(b, &arrived, 1), 0);
    CHECK(fstat(arrived, &taken) == 0 && taken.st_ino == sent.st_ino);
    close(arrived);
    CHECK_EQ(connection_flush(a), 0); /* nobody takes it */
    end();
    fd = memory_create(4096);
    CHECK_EQ(fd, first); /* all are closed */
    close(fd);
}

static const struct test tests[] = {TEST(test_messages), TEST(test_what_does_not_fit_waits), TEST(test_descriptors),
                                    TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

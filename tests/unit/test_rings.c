/* Two rings alone: bytes in their order, sleep, what the socket has to bring, and an end that breaks every rule. */
#include "protocol/rings.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/limits.h"
#include "protocol/memory.h"
#include "tests/check.h"

/* How the memory lies, as PROTOCOL.md tells it. */
#define MEMORY_BYTES (4096 + 2 * LIMIT_RING_BYTES)
#define BY_SOCKET    UINT32_C(0x80000000)

static struct ends {
    struct rings *a, *b; /* a has made the memory, and reads ring 0 */
    int fd;
    uint8_t *memory; /* as a hostile end has it */
} ends;

static void begin(void)
{
    CHECK_EQ(rings_create(&ends.a, &ends.fd), 0);
    CHECK_EQ(rings_attach(ends.fd, &ends.b), 0);
    ends.memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, ends.fd, 0);
    CHECK(ends.memory != MAP_FAILED);
}

static void end(void)
{
    rings_destroy(ends.a);
    rings_destroy(ends.b);
    munmap(ends.memory, MEMORY_BYTES);
    close(ends.fd);
}

/* The positions of the ring that `a` reads, or writes; a written one is doubled. */
static _Atomic uint64_t *written(int ring)
{
    return (_Atomic uint64_t *)(ends.memory + 128 * ring);
}

static _Atomic uint64_t *read_(int ring)
{
    return (_Atomic uint64_t *)(ends.memory + 128 * ring + 64);
}

static void put_word(int ring, uint64_t at, uint32_t word)
{
    memcpy(ends.memory + 4096 + (uint64_t)ring * LIMIT_RING_BYTES + at % LIMIT_RING_BYTES, &word, sizeof word);
}

static void check_read(struct rings *rings, const char *text)
{
    uint8_t bytes[64];
    const int size = (int)strlen(text);
    CHECK_EQ(rings_read(rings, bytes, sizeof bytes), size);
    CHECK(memcmp(bytes, text, (size_t)size) == 0);
}

static int write_text(struct rings *rings, const char *text)
{
    return rings_write(rings, (const uint8_t *)text, strlen(text));
}

static void bytes_arrive_in_order_both_ways(void)
{
    uint8_t bytes[8];
    begin();
    CHECK(!rings_is_ready(ends.a));
    CHECK_EQ(rings_read(ends.a, bytes, sizeof bytes), 0);
    CHECK_EQ(write_text(ends.b, "hello"), 5);
    CHECK_EQ(write_text(ends.a, "answer"), 6);
    CHECK_EQ(write_text(ends.b, ", you"), 5);
    CHECK(rings_is_ready(ends.a) && rings_is_ready(ends.b));
    CHECK_EQ(rings_unread_bytes(ends.a), 10);
    CHECK_EQ(rings_read(ends.a, bytes, 3), 3);
    CHECK(memcmp(bytes, "hel", 3) == 0);
    CHECK_EQ(rings_unread_bytes(ends.a), 7);
    check_read(ends.a, "lo, you");
    check_read(ends.b, "answer");
    CHECK(!rings_is_ready(ends.a) && !rings_is_ready(ends.b));
    CHECK_EQ(rings_unread_bytes(ends.a), 0);
    end();
}

/* Every length up to more than the ring has, over its end many times. */
static void lengths_of_all_kinds(void)
{
    enum { LENGTHS = 3000 };
    static uint8_t sent[LENGTHS + 1], got[LENGTHS + 1];
    uint64_t random = 1;
    begin();
    for (size_t size = 1; size <= LENGTHS; size++) {
        for (size_t i = 0; i < size; i++)
            sent[i] = (uint8_t)random_next(&random);
        REQUIRE(rings_write(ends.b, sent, size) == (int)size);
        const size_t first = size / 3;
        CHECK(first == 0 || rings_read(ends.a, got, first) == (int)first);
        CHECK_EQ(rings_read(ends.a, got + first, sizeof got - first), size - first);
        REQUIRE(memcmp(sent, got, size) == 0);
    }
    end();
}

/* A ring full of crumbs is not read at once, nor does a writer follow a reader who makes room for crumbs. */
static void crumbs(void)
{
    static uint8_t bytes[LIMIT_RING_BYTES];
    begin();
    for (int i = 0; i < 2 * RINGS_FRAMES; i++)
        CHECK_EQ(rings_write(ends.b, (const uint8_t *)"x", 1), 1);
    CHECK_EQ(rings_read(ends.a, bytes, sizeof bytes), RINGS_FRAMES);
    CHECK(rings_is_ready(ends.a));
    CHECK_EQ(rings_read(ends.a, bytes, sizeof bytes), RINGS_FRAMES);
    CHECK(!rings_is_ready(ends.a));
    while (rings_write(ends.b, bytes, 1000) > 0)
        ;
    *read_(0) = *written(0) / 2 - LIMIT_RING_BYTES + KIB(4) + 100; /* room for 100 bytes beside the reserve */
    CHECK_EQ(rings_write(ends.b, bytes, 101), 0);
    CHECK_EQ(rings_write(ends.b, bytes, 100), 100);
    end();
}

/* A full ring takes no bytes, but tells of the socket's: a thousand times, and then of none until something is read. */
static void full_ring_leaves_bytes_to_the_socket(void)
{
    static uint8_t bytes[LIMIT_RING_BYTES];
    int n, told = 0;
    size_t taken = 0;
    begin();
    while ((n = rings_write(ends.b, bytes, sizeof bytes)) > 0)
        taken += (size_t)n;
    CHECK_EQ(n, 0);
    CHECK(taken >= LIMIT_RING_BYTES - KIB(4) - 16 && taken < LIMIT_RING_BYTES);
    while ((n = rings_announce(ends.b, 1)) == 0)
        told++;
    CHECK_EQ(n, -EAGAIN);
    CHECK(told >= 1000);
    CHECK_EQ(rings_unread_bytes(ends.a), taken);
    CHECK_EQ(rings_read(ends.a, bytes, sizeof bytes), taken);
    for (int i = 0; i < told; i++) {
        REQUIRE(rings_due_bytes(ends.a) == 1);
        rings_took(ends.a, 1);
        CHECK_EQ(rings_read(ends.a, bytes, sizeof bytes), 0);
    }
    CHECK_EQ(rings_due_bytes(ends.a), 0);
    CHECK_EQ(write_text(ends.b, "again"), 5);
    check_read(ends.a, "again");
    end();
}

static void sleeper_has_its_bytes_by_the_socket(void)
{
    uint8_t bytes[8];
    begin();
    CHECK(rings_sleep(ends.a) && rings_sleep(ends.a));
    CHECK(!rings_is_ready(ends.a));
    CHECK_EQ(write_text(ends.b, "one"), 0);
    CHECK_EQ(rings_announce(ends.b, 3), 0);
    /* What wakes it is on its way: what follows finds it awake. */
    CHECK_EQ(write_text(ends.b, "two"), 3);
    CHECK(rings_is_ready(ends.a));
    CHECK_EQ(rings_read(ends.a, bytes, sizeof bytes), 0);
    CHECK_EQ(rings_due_bytes(ends.a), 3);
    CHECK(!rings_is_ready(ends.a)); /* the socket tells */
    CHECK(rings_sleep(ends.a));
    rings_took(ends.a, 2);
    CHECK_EQ(rings_read(ends.a, bytes, sizeof bytes), 0);
    rings_took(ends.a, 1);
    CHECK(rings_is_ready(ends.a) && !rings_sleep(ends.a));
    check_read(ends.a, "two");
    /* It may wake by itself. */
    CHECK(rings_sleep(ends.a));
    rings_rise(ends.a);
    CHECK_EQ(write_text(ends.b, "three"), 5);
    CHECK(!rings_sleep(ends.a));
    check_read(ends.a, "three");
    end();
}

/* Whoever holds the other end cannot make a reader read, or a writer write, what is not the ring's. */
static void wrong_words_are_found(void)
{
    static const uint32_t words[] = {
        0, BY_SOCKET, 1, (uint32_t)LIMIT_RING_BYTES, INT32_MAX, UINT32_MAX, BY_SOCKET | (RINGS_SOCKET_BYTES + 1)};
    uint8_t bytes[64];
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        begin();
        put_word(0, 0, words[i]);
        *written(0) = 4 << 1; /* a word, and none of its bytes */
        CHECK(rings_is_ready(ends.a));
        CHECK_EQ(rings_read(ends.a, bytes, sizeof bytes), -EPROTO);
        CHECK(rings_unread_bytes(ends.a) <= UINT32_MAX);
        end();
    }
}

static void wrong_positions_are_found(void)
{
    static const uint64_t positions[] = {1, 2, 3, LIMIT_RING_BYTES + 4, UINT64_MAX / 2, UINT64_MAX / 2 - 3};
    uint8_t bytes[64];
    begin(); /* a whole frame, and a byte that no frame begins with */
    put_word(0, 0, 1);
    *written(0) = 9 << 1;
    CHECK_EQ(rings_read(ends.a, bytes, sizeof bytes), -EPROTO);
    end();
    for (size_t i = 0; i < sizeof positions / sizeof positions[0]; i++) {
        begin();
        *written(0) = positions[i] << 1;
        CHECK(rings_is_ready(ends.a) && !rings_sleep(ends.a));
        rings_unread_bytes(ends.a);
        CHECK_EQ(rings_read(ends.a, bytes, sizeof bytes), -EPROTO);
        end();
        begin(); /* more was read than was written */
        *read_(1) = positions[i];
        CHECK_EQ(write_text(ends.a, "x"), -EPROTO);
        CHECK_EQ(rings_announce(ends.a, 1), -EPROTO);
        end();
        begin(); /* what this end has written is another's */
        *written(1) = positions[i] << 1;
        CHECK_EQ(write_text(ends.a, "x"), -EPROTO);
        CHECK_EQ(rings_announce(ends.a, 1), -EPROTO);
        end();
    }
}

/* An end's own positions are its own: writing over those that it has published changes nothing for it. */
static void published_positions_are_copies(void)
{
    begin();
    CHECK_EQ(write_text(ends.b, "first"), 5);
    check_read(ends.a, "first");
    *read_(0) = 8;
    CHECK_EQ(write_text(ends.b, "second"), 6);
    *read_(0) = UINT64_MAX;
    check_read(ends.a, "second");
    end();
}

static void memory_is_checked(void)
{
    struct rings *rings;
    const int small = memory_create(MEMORY_BYTES - 1), unsealed = memfd_create("unsealed", MFD_CLOEXEC),
              file = open("/dev/null", O_RDWR | O_CLOEXEC);
    CHECK_EQ(ftruncate(unsealed, MEMORY_BYTES), 0);
    CHECK_EQ(rings_attach(small, &rings), -EPROTO);
    CHECK_EQ(rings_attach(unsealed, &rings), -EPROTO);
    CHECK_EQ(rings_attach(file, &rings), -EPROTO);
    CHECK_EQ(rings_attach(-1, &rings), -EPROTO);
    close(small);
    close(unsealed);
    close(file);
    begin();
    CHECK_EQ(fcntl(ends.fd, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    CHECK(ftruncate(ends.fd, 0) != 0);
    end();
}

/* The memory goes back to the system, whoever keeps it open, and the other end finds that out. */
static void wiped_memory_is_found(void)
{
    uint8_t bytes[8];
    struct stat status = {0};
    begin();
    CHECK_EQ(write_text(ends.b, "first"), 5);
    check_read(ends.a, "first");
    CHECK_EQ(write_text(ends.a, "answer"), 6);
    check_read(ends.b, "answer");
    rings_wipe(ends.a);
    CHECK_EQ(fstat(ends.fd, &status), 0);
    CHECK_EQ(status.st_blocks, 0);
    CHECK(rings_is_ready(ends.b) && !rings_sleep(ends.b));
    CHECK_EQ(rings_read(ends.b, bytes, sizeof bytes), -EPROTO);
    CHECK_EQ(write_text(ends.b, "second"), -EPROTO);
    end();
}

/*
 * Two threads, of which one looks for bytes, and sleeps at times; a pipe is the socket.
 */

#define ALL_BYTES 3000000

static int pipe_fds[2];

static void *write_all(void *context)
{
    (void)context;
    static uint8_t bytes[5000];
    uint64_t random = 7, at = 0;
    while (at < ALL_BYTES) {
        size_t size = 1 + random_next(&random) % sizeof bytes;
        size = size < ALL_BYTES - at ? size : ALL_BYTES - at;
        for (size_t i = 0; i < size; i++)
            bytes[i] = (uint8_t)((at + i) * 31 >> 3);
        int n = rings_write(ends.b, bytes, size);
        if (n == 0 && rings_announce(ends.b, size) == 0)
            n = (int)write(pipe_fds[1], bytes, size);
        if (n < 0)
            break;
        at += (uint64_t)n;
    }
    return NULL;
}

/* Reads once, by whichever way; returns as read does. */
static int read_some(uint8_t *bytes, size_t size)
{
    int n = rings_read(ends.a, bytes, size);
    const size_t due = n ? 0 : rings_due_bytes(ends.a);
    if (n || (due == 0 && !rings_sleep(ends.a)))
        return n;
    n = (int)read(pipe_fds[0], bytes, due == 0 ? 1 : due < size ? due : size);
    if (n <= 0)
        return n;
    if (due == 0) /* asleep until now: what tells of this byte was written before it was sent */
        CHECK(rings_read(ends.a, bytes, size) == 0 && rings_due_bytes(ends.a) > 0);
    rings_took(ends.a, (size_t)n);
    return n;
}

static void threads_lose_nothing(void)
{
    static uint8_t bytes[7000];
    pthread_t writer;
    uint64_t at = 0;
    int n = 0;
    begin();
    CHECK_EQ(pipe(pipe_fds), 0);
    REQUIRE(pthread_create(&writer, NULL, write_all, NULL) == 0);
    bool right = true;
    while (at < ALL_BYTES && n >= 0 && right) {
        n = read_some(bytes, sizeof bytes);
        for (int i = 0; i < n; i++)
            right = right && bytes[i] == (uint8_t)((at + (uint64_t)i) * 31 >> 3);
        at += n > 0 ? (uint64_t)n : 0;
    }
    CHECK(right && n >= 0);
    close(pipe_fds[0]); /* ends a writer that is not done */
    pthread_join(writer, NULL);
    close(pipe_fds[1]);
    CHECK_EQ(at, ALL_BYTES);
    end();
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(bytes_arrive_in_order_both_ways),
        TEST(lengths_of_all_kinds),
        TEST(crumbs),
        TEST(full_ring_leaves_bytes_to_the_socket),
        TEST(sleeper_has_its_bytes_by_the_socket),
        TEST(wrong_words_are_found),
        TEST(wrong_positions_are_found),
        TEST(published_positions_are_copies),
        TEST(memory_is_checked),
        TEST(wiped_memory_is_found),
        TEST(threads_lose_nothing),
        TEST_END,
    };
    return test_main(argc, argv, tests);
}

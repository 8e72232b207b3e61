/* The memory of NumPy's arrays: which of it is shared, recycled and given back, by several threads and in a child. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/python/allocator.h"
#include "tests/check.h"

#define MIB (UINT64_C(1) << 20)

static const struct scand_array_handler *handler;

static uint8_t *make(uint64_t size)
{
    uint8_t *memory = handler->allocate(NULL, size);
    CHECK(memory);
    return memory;
}

static void drop(void *memory, uint64_t size)
{
    handler->release(NULL, memory, size);
}

/* The block of this array; false where it is ordinary memory. */
static bool find(const void *memory, struct scand_array_block *out)
{
    return scand_array_find((uint64_t)(uintptr_t)memory, out);
}

static bool all_bytes(const uint8_t *memory, uint64_t size, uint8_t value)
{
    for (uint64_t i = 0; i < size; i++)
        if (memory[i] != value)
            return false;
    return true;
}

static void large_ones_are_shared(void)
{
    struct scand_array_block block;
    uint8_t *small = make(MIB - 1), *none = make(0), *large = make(3 * MIB + 5);
    CHECK(!find(small, &block) && !find(none, &block));
    CHECK(find(large, &block));
    CHECK_EQ(block.address, (uintptr_t)large);
    CHECK(block.size_bytes >= 3 * MIB + 5 && block.size_bytes < 4 * MIB && scand_array_has(block.serial));
    uint64_t serial = block.serial;
    CHECK(find(large + block.size_bytes - 1, &block));
    CHECK_EQ(block.serial, serial);
    CHECK(!find(large - 1, &block) || block.serial != serial);
    memset(large, 7, 3 * MIB + 5);
    uint8_t seen[2] = {0};
    CHECK_EQ(pread(block.fd, seen, 2, 3 * (off_t)MIB), 2);
    CHECK(seen[0] == 7 && seen[1] == 7);
    CHECK(fcntl(block.fd, F_GETFD) & FD_CLOEXEC);
    drop(small, MIB - 1);
    drop(none, 0);
    drop(large, 3 * MIB + 5);
    scand_array_trim();
    CHECK(!scand_array_has(serial));
}

static void memory_is_recycled_and_zeroed(void)
{
    uint8_t *first = make(8 * MIB), *again;
    memset(first, 9, 8 * MIB);
    drop(first, 8 * MIB);
    again = handler->allocate_zeros(NULL, 2 * MIB, 4);
    CHECK(again == first);
    CHECK(all_bytes(again, 8 * MIB, 0));
    drop(again, 8 * MIB);
    uint8_t *much_smaller = make(3 * MIB);
    CHECK(much_smaller != first);
    drop(much_smaller, 3 * MIB);
    scand_array_trim();
    CHECK(handler->allocate_zeros(NULL, SIZE_MAX / 2, 3) == NULL);
    CHECK(handler->allocate(NULL, SIZE_MAX / 2) == NULL);
    uint8_t *few = handler->allocate_zeros(NULL, 10, 10);
    CHECK(few && all_bytes(few, 100, 0));
    drop(few, 100);
}

/* Contents stay when an array is resized from one kind of memory to the other and back. */
static void contents_stay(void)
{
    static const uint64_t sizes[] = {100, 2 * MIB, 2 * MIB + 100, 9 * MIB, 5 * MIB, 1000, 20 * MIB, 10, 0, 30};
    struct scand_array_block block;
    uint64_t before = 100;
    uint8_t *memory = handler->resize(NULL, NULL, before);
    memset(memory, 1, before);
    for (size_t i = 1; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t kept = before < sizes[i] ? before : sizes[i];
        memory = handler->resize(NULL, memory, sizes[i]);
        CHECK(memory && all_bytes(memory, kept, (uint8_t)i));
        CHECK_EQ(find(memory, &block), sizes[i] >= MIB);
        memset(memory, (int)i + 1, sizes[i]);
        before = sizes[i];
    }
    drop(memory, before);
    CHECK(handler->resize(NULL, memory = make(2 * MIB), SIZE_MAX / 2) == NULL);
    drop(memory, 2 * MIB);
}

static void a_retired_block_is_nobody_elses(void)
{
    struct scand_array_block block;
    uint8_t *memory = make(4 * MIB);
    CHECK(find(memory, &block));
    scand_array_retire(block.serial);
    CHECK(scand_array_has(block.serial) && find(memory, &block));
    memory[0] = 1;
    uint64_t drops = scand_array_drops();
    drop(memory, 4 * MIB);
    CHECK(!scand_array_has(block.serial) && !find(memory, &block));
    CHECK_EQ(scand_array_drops(), drops + 1);
    memory = make(4 * MIB);
    CHECK(find(memory, &block));
    drop(memory, 4 * MIB);
    scand_array_retire(block.serial); /* one that is kept */
    CHECK(!scand_array_has(block.serial));
    scand_array_retire(block.serial);
}

/* Each of 40 arrays is found where it is, and nowhere else, whatever the order of making and giving back. */
static void blocks_are_found(void)
{
    enum { COUNT = 40 };
    struct scand_array_block blocks[COUNT], found;
    uint8_t *memory[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        memory[i] = make(MIB + i * 300 * 1000);
        CHECK(find(memory[i], &blocks[i]));
    }
    for (unsigned i = 0; i < COUNT; i++) {
        CHECK(find(memory[i] + MIB / 2 + i, &found));
        CHECK_EQ(found.serial, blocks[i].serial);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        unsigned at = i * 17 % COUNT;
        scand_array_retire(blocks[at].serial);
        drop(memory[at], 0);
        CHECK(!scand_array_has(blocks[at].serial));
        for (unsigned j = i + 1; j < COUNT; j++)
            CHECK(scand_array_has(blocks[j * 17 % COUNT].serial));
    }
}

/* Half of a process's descriptors stay for other uses: then memory is ordinary, and kept blocks make room first. */
static void descriptors_are_left(void)
{
    enum { COUNT = 60 };
    struct rlimit before, few = {64, 64};
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    few.rlim_max = before.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    uint8_t *memory[COUNT];
    unsigned shared = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        struct scand_array_block block;
        memory[i] = make(MIB);
        memory[i][MIB - 1] = 1;
        shared += find(memory[i], &block);
    }
    CHECK_EQ(shared, 32);
    for (unsigned i = 0; i < COUNT; i++)
        drop(memory[i], MIB);
    for (unsigned i = 0; i < COUNT; i++) { /* larger than what is kept */
        struct scand_array_block block;
        memory[i] = make(4 * MIB);
        CHECK_EQ(find(memory[i], &block), i < 32);
    }
    for (unsigned i = 0; i < COUNT; i++)
        drop(memory[i], 4 * MIB);
    scand_array_trim();
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Arrays that a child makes are its own; arrays from before the fork are there for both. */
static void a_child_makes_its_own(void)
{
    struct scand_array_block block, other;
    uint8_t *mine = make(2 * MIB), *kept = make(6 * MIB);
    memset(mine, 1, 2 * MIB);
    CHECK(find(kept, &block));
    drop(kept, 6 * MIB);
    fflush(stderr);
    pid_t child = fork();
    if (child == 0) {
        bool right = all_bytes(mine, 2 * MIB, 1) && !scand_array_has(block.serial);
        mine[0] = 77;
        drop(mine, 2 * MIB);
        uint8_t *own = make(2 * MIB), *more = make(6 * MIB);
        memset(own, 3, 2 * MIB);
        memset(more, 3, 6 * MIB);
        _exit(right && find(own, &other) && find(more, &other) ? 0 : 1);
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
    CHECK(mine[0] == 77 && all_bytes(mine + 1, 2 * MIB - 1, 1));
    CHECK(scand_array_has(block.serial));
    drop(mine, 2 * MIB);
    scand_array_trim();
}

/* Arrays of a thread keep what it has written, while others come and go. */
static void *churn(void *argument)
{
    unsigned mark = *(const unsigned *)argument, state = mark;
    uint8_t *memory[6] = {NULL};
    uint64_t sizes[6] = {0};
    for (unsigned turn = 0; turn < 300; turn++) {
        unsigned at = (state = state * 1664525 + 1013904223) >> 16, slot = at % 6;
        uint64_t size = sizes[slot];
        if (memory[slot])
            CHECK(memory[slot][0] == mark && memory[slot][size / 2] == mark && memory[slot][size - 1] == mark);
        size = 1000 + (at % 5) * 700 * 1000;
        if (memory[slot] && at % 3 == 0) {
            memory[slot] = handler->resize(NULL, memory[slot], size);
        } else {
            drop(memory[slot], sizes[slot]);
            memory[slot] = make(size);
        }
        sizes[slot] = size;
        memory[slot][0] = memory[slot][size / 2] = memory[slot][size - 1] = (uint8_t)mark;
        if (turn % 50 == 0)
            scand_array_trim();
    }
    for (unsigned slot = 0; slot < 6; slot++)
        drop(memory[slot], sizes[slot]);
    return NULL;
}

static void threads(void)
{
    pthread_t made[4];
    unsigned marks[4] = {1, 2, 3, 4};
    for (unsigned i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&made[i], NULL, churn, &marks[i]), 0);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(made[i], NULL);
    scand_array_trim();
}

static const struct test tests[] = {
    TEST(large_ones_are_shared),
    TEST(memory_is_recycled_and_zeroed),
    TEST(contents_stay),
    TEST(a_retired_block_is_nobody_elses),
    TEST(blocks_are_found),
    TEST(descriptors_are_left),
    TEST(a_child_makes_its_own),
    TEST(threads),
    TEST_END,
};

int main(int argc, char **argv)
{
    handler = scand_array_handler();
    CHECK(!strcmp(handler->name, "scand") && !strcmp(scand_array_handler_name(), "mem_handler"));
    return test_main(argc, argv, tests);
}

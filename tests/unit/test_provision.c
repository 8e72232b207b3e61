/* The memory that a daemon promises, compared with what the machine has. */
#include "daemon/process/provision.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "protocol/limits.h"
#include "protocol/status.h"
#include "tests/check.h"

static void pools_and_memory(void)
{
    struct error error;
    CHECK_EQ(provision_memory(0, 0, "x", &error), 0);
    CHECK_EQ(provision_memory(MIB(64), MIB(80), "x", &error), 0);
    CHECK_EQ(provision_memory(MIB(64), MIB(80) - 1, "x", &error), -ENOMEM);
    CHECK_EQ(provision_memory(GIB(256), UINT64_MAX, "x", &error), 0);
    CHECK_EQ(provision_memory(GIB(256), GIB(21), "available memory of the moon", &error), -ENOMEM);
    CHECK_CONTAINS(error.message, "pool is 262144M, and the available memory of the moon suffices for 21488M");
    CHECK_CONTAINS(error.message, "a smaller --pool, at most 21488M");
    for (uint64_t available = 0; available < MIB(200); available += MIB(1) - 1)
        CHECK_EQ(provision_memory(provision_pool_most(available), available, "x", &error), 0);
}

static void segments_and_files(void)
{
    struct error error;
    CHECK_EQ(provision_files(10, 68, 110, &error), 0);
    CHECK_EQ(provision_files(10, 68, 109, &error), -EMFILE);
    CHECK_CONTAINS(error.message, "the limit of open files is 109; needed: 110, of these 68 for the pool");
    CHECK_CONTAINS(error.message, "LimitNOFILE=");
    CHECK_EQ(provision_files(10, 68, UINT64_MAX, &error), 0);
}

static void descriptors_are_counted(void)
{
    size_t before = descriptors_count();
    CHECK(before >= 3);
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK_EQ(descriptors_count(), before + 1);
    close(fd);
    CHECK_EQ(descriptors_count(), before);
}

/* All that clients may make the daemon open fits beside what it has open. */
static void descriptors_are_shared_out(void)
{
    uint64_t connections, others;
    for (uint64_t most = 200; most < 100000; most += most / 3) {
        provision_descriptors(most, 100, 50, &connections, &others);
        CHECK(connections + others + 150 < most);
        CHECK(connections > 0 && connections <= LIMIT_CLIENTS && others >= connections);
    }
    provision_descriptors(20000, 100, 50, &connections, &others);
    CHECK(connections == LIMIT_CLIENTS && others > UINT64_C(4) * LIMIT_FILES);
    provision_descriptors(10, 100, 50, &connections, &others); /* more are open than may be: a few, should some end */
    CHECK(connections == 8 && others == 8);
}

static const struct test tests[] = {
    TEST(pools_and_memory),
    TEST(segments_and_files),
    TEST(descriptors_are_counted),
    TEST(descriptors_are_shared_out),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

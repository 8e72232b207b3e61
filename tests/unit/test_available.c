/* Available memory, read from files of a /proc and a /sys/fs/cgroup of the test's own. */
#include "protocol/available.h"

#include <ftw.h>
#include <sys/stat.h>

#include "protocol/limits.h"
#include "tests/check.h"
#include "tests/unit/open_descriptors.h"

static char root[64]; /* root folder of the running test */
static size_t descriptors;

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
    (void)status, (void)type, (void)at;
    return remove(path);
}

static void begin(void)
{
    strcpy(root, "/tmp/scandXXXXXX");
    CHECK(mkdtemp(root) != NULL);
    descriptors = descriptors_open();
}

static void end(void)
{
    CHECK_EQ(descriptors_open(), descriptors);
    nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* A file below the root, with the folders that it lies in. */
static void put(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    REQUIRE(file);
    fputs(text, file);
    fclose(file);
}

/* Checks the memory available in MiB, without what is held back; `words` must be in the limit's name. */
static void check_mib(uint64_t mib, const char *words)
{
    const char *limit = NULL;
    CHECK_EQ(memory_available_below(root, &limit), MIB(mib) - LIMIT_MEMORY_RESERVE_BYTES);
    CHECK_CONTAINS(limit, words);
}

#define MEMINFO "MemTotal: 9000000 kB\nMemFree: 1 kB\nMemAvailableNot: 5 kB\nMemAvailable:    8388608 kB\n"

static void nothing_is_known(void)
{
    const char *limit;
    begin();
    CHECK(memory_available_below(root, &limit) == UINT64_MAX);
    put("/proc/meminfo", "MemAvailable_7\nMemAvailable"); /* whose end is not what the line before it left there */
    put("/proc/self/cgroup", "nonsense\n::\n");
    CHECK(memory_available_below(root, &limit) == UINT64_MAX);
    end();
}

static void the_machine_limits(void)
{
    begin();
    put("/proc/meminfo", MEMINFO);
    check_mib(8192, "MemAvailable");
    put("/proc/self/cgroup", "0::/\n");
    check_mib(8192, "MemAvailable");
    end();
}

static void the_smallest_of_all_groups_counts(void)
{
    begin();
    put("/proc/meminfo", MEMINFO);
    put("/proc/self/cgroup", "nonsense\n1:cpu:/elsewhere\n0::/a/b\n");
    put("/sys/fs/cgroup/a/b/memory.max", "max\n");
    put("/sys/fs/cgroup/a/b/memory.current", "1048576\n");
    check_mib(8192, "MemAvailable");
    put("/sys/fs/cgroup/a/memory.max", "1073741824\n");
    put("/sys/fs/cgroup/a/memory.current", "536870912\n");
    check_mib(512, "control group");
    put("/sys/fs/cgroup/a/b/memory.max", "536870912\n");
    check_mib(511, "control group");
    put("/sys/fs/cgroup/memory.max", "209715200\n"); /* the top of what a container sees */
    put("/sys/fs/cgroup/memory.current", "0\n");
    check_mib(200, "control group");
    put("/proc/self/cgroup", "0::/not/to/be/seen\n");
    check_mib(200, "control group");
    put("/proc/self/cgroup", "0::/\n");
    check_mib(200, "control group");
    end();
}

static void pages_of_files_can_be_had(void)
{
    begin();
    put("/proc/self/cgroup", "0::/a\n");
    put("/sys/fs/cgroup/a/memory.max", "1073741824\n");
    put("/sys/fs/cgroup/a/memory.current", "1073741824\n");
    put("/sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 104857600\nactive_file 209715200\n");
    check_mib(300, "control group");
    put("/sys/fs/cgroup/a/memory.current", "209715200\n"); /* fewer than there were when the pages were counted */
    check_mib(1024, "control group");
    end();
}

static void the_first_version_of_groups(void)
{
    begin();
    put("/proc/meminfo", MEMINFO);
    put("/proc/self/cgroup", "0::/\n5:pids:/x\n4:hugetlb,memory:/job\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "123456\n");
    check_mib(8192, "MemAvailable");
    put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "536870912\n");
    put("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "268435456\n");
    put("/sys/fs/cgroup/memory/job/memory.stat",
        "cache 99\nactive_file 1\ntotal_inactive_file 10485760\ntotal_active_file 5242880\n");
    check_mib(271, "control group");
    end();
}

static void nothing_is_left(void)
{
    const char *limit;
    begin();
    put("/proc/self/cgroup", "0::/a\n");
    put("/sys/fs/cgroup/a/memory.max", "1000\n");
    put("/sys/fs/cgroup/a/memory.current", "2000\n");
    CHECK_EQ(memory_available_below(root, &limit), 0);
    end();
}

static void this_machine(void)
{
    CHECK(memory_available_bytes() > 0);
}

static const struct test tests[] = {
    TEST(nothing_is_known),
    TEST(the_machine_limits),
    TEST(the_smallest_of_all_groups_counts),
    TEST(pages_of_files_can_be_had),
    TEST(the_first_version_of_groups),
    TEST(nothing_is_left),
    TEST(this_machine),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

/* Shared memory: what is sealed, what is refused, how segments are mapped. */
#include "protocol/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/status.h"
#include "tests/check.h"
#include "tests/unit/open_descriptors.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define PAGE  4096

static int memfd(unsigned flags, off_t size)
{
    int fd = memfd_create("test", MFD_CLOEXEC | flags);
    if (fd >= 0 && ftruncate(fd, size)) {
        close(fd);
        return -1;
    }
    return fd;
}

static int fallocate_fails; /* an errno for the next call; 0: none */
static bool fallocate_interrupted;
int __real_fallocate(int fd, int mode, off_t offset, off_t size);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t size);

int __wrap_fallocate(int fd, int mode, off_t offset, off_t size)
{
    errno = fallocate_interrupted ? EINTR : fallocate_fails;
    fallocate_interrupted = false;
    return errno ? -1 : __real_fallocate(fd, mode, offset, size);
}

/* Checks that memory is refused with these words; closes fd. */
static void check_refused(int fd, uint64_t size, const char *words)
{
    struct error error = {0};
    REQUIRE(fd >= 0);
    CHECK_EQ(memory_accept(fd, size, &error), -EBADF);
    CHECK_EQ(error.code, -EBADF);
    CHECK_CONTAINS(error.message, words);
    close(fd);
}

static void created_memory_is_sealed_and_zero(void)
{
    int fd = memory_create(3 * PAGE + 1);
    REQUIRE(fd >= 0);
    struct stat status;
    CHECK_EQ(fstat(fd, &status), 0);
    CHECK_EQ(status.st_size, 3 * PAGE + 1);
    CHECK_EQ(fcntl(fd, F_GET_SEALS), SEALS);
    CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    CHECK(ftruncate(fd, PAGE) != 0 && errno == EPERM);
    CHECK(ftruncate(fd, 4 * PAGE) != 0 && errno == EPERM);
    CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) != 0 && errno == EPERM);
    char *base = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(base != MAP_FAILED);
    for (size_t i = 0; i < 3 * PAGE + 1; i++)
        CHECK(base[i] == 0);
    munmap(base, 4 * PAGE);
    struct error error;
    CHECK_EQ(memory_accept(fd, 3 * PAGE + 1, &error), 0);
    close(fd);
}

static void sizes_that_cannot_be(void)
{
    CHECK_EQ(memory_create(0), -EINVAL);
    CHECK_EQ(memory_create(UINT64_MAX), -EINVAL);
}

/* Memory without pages left for it is refused at once, and nothing is kept. */
static void memory_that_is_not_there(void)
{
    size_t before = descriptors_open();
    const int codes[][2] = {{ENOSPC, -ENOMEM}, {ENOMEM, -ENOMEM}, {EIO, -EIO}};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        struct error error;
        int fd = memfd(MFD_ALLOW_SEALING, 2 * PAGE);
        fallocate_fails = codes[i][0];
        CHECK_EQ(memory_create(PAGE), codes[i][1]);
        CHECK_EQ(memory_accept(fd, 2 * PAGE, &error), codes[i][1]);
        fallocate_fails = 0;
        CHECK_CONTAINS(error.message, "no memory for the 8192 bytes of the memfd: ");
        close(fd);
    }
    CHECK_EQ(descriptors_open(), before);
}

/* Where it looks before it begins: by the time that fallocate fails, other programs have been ended. */
static void more_memory_than_the_machine_has(void)
{
    size_t before = descriptors_open();
    struct error error;
    fallocate_fails = EIO; /* of a call that must not be */
    CHECK_EQ(memory_create(UINT64_C(1) << 46), -ENOMEM);
    int fd = memfd(MFD_ALLOW_SEALING, (off_t)1 << 46);
    REQUIRE(fd >= 0);
    CHECK_EQ(memory_accept(fd, UINT64_C(1) << 46, &error), -ENOMEM);
    CHECK_CONTAINS(error.message, "no memory for the 70368744177664 bytes of the memfd: ");
    fallocate_fails = 0;
    CHECK_EQ(memory_accept(fd, PAGE, &error), 0);
    close(fd);
    CHECK_EQ(descriptors_open(), before);
}

/* Linux sends a signal to who makes a file too large, which ends programs that do not expect it. */
static void more_memory_than_a_file_may_have(void)
{
    struct rlimit limit, small = {.rlim_cur = 1 << 20};
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small.rlim_max = limit.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    CHECK_EQ(memory_create((1 << 20) + 1), -EFBIG);
    CHECK_EQ(memory_create_sparse(UINT64_C(1) << 40), -EFBIG);
    int fd = memory_create(1 << 20);
    CHECK(fd >= 0);
    close(fd);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void every_page_is_there(void)
{
    struct error error;
    struct stat status;
    fallocate_interrupted = true;
    int fd = memory_create(5 * PAGE);
    CHECK_EQ(fstat(fd, &status), 0);
    CHECK(status.st_blocks * 512 >= 5 * PAGE);
    close(fd);
    fd = memfd(MFD_ALLOW_SEALING, 9 * PAGE);
    fallocate_interrupted = true;
    CHECK_EQ(memory_accept(fd, 5 * PAGE, &error), 0);
    CHECK_EQ(fstat(fd, &status), 0);
    CHECK(status.st_blocks * 512 >= 5 * PAGE);
    close(fd);
}

/* Memory that has all its pages is not looked at page by page; a single hole is found. */
static void only_holes_are_filled(void)
{
    struct error error;
    int fd = memory_create(5 * PAGE + 1);
    fallocate_fails = EIO;
    CHECK_EQ(memory_accept(fd, 2 * PAGE, &error), 0);
    CHECK_EQ(memory_accept(fd, 5 * PAGE + 1, &error), 0);
    CHECK_EQ(__real_fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 3 * PAGE, PAGE), 0);
    CHECK_EQ(memory_accept(fd, 5 * PAGE + 1, &error), -EIO);
    fallocate_fails = 0;
    CHECK_EQ(memory_accept(fd, 5 * PAGE + 1, &error), 0);
    fallocate_fails = EIO;
    CHECK_EQ(memory_accept(fd, 5 * PAGE + 1, &error), 0);
    fallocate_fails = 0;
    close(fd);
}

static void an_unsealed_memfd_is_sealed(void)
{
    struct error error;
    int fd = memfd(MFD_ALLOW_SEALING, 2 * PAGE);
    CHECK_EQ(memory_accept(fd, 2 * PAGE, &error), 0);
    CHECK_EQ(fcntl(fd, F_GET_SEALS), SEALS);
    CHECK(ftruncate(fd, PAGE) != 0);
    CHECK_EQ(memory_accept(fd, PAGE, &error), 0); /* a second time, and for less */
    close(fd);
    fd = memfd(MFD_ALLOW_SEALING, PAGE);
    CHECK_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0); /* some seals already */
    CHECK_EQ(memory_accept(fd, PAGE, &error), 0);
    CHECK_EQ(fcntl(fd, F_GET_SEALS), SEALS);
    close(fd);
}

static void unsealable_memfds_are_refused(void)
{
    check_refused(memfd(0, PAGE), PAGE, "cannot be sealed");
    int fd = memfd(MFD_ALLOW_SEALING, PAGE);
    CHECK_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL), 0);
    check_refused(fd, PAGE, "cannot be sealed");
    fd = memfd(MFD_ALLOW_SEALING, PAGE);
    CHECK_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL), 0);
    check_refused(fd, PAGE, "cannot be sealed");
}

static void write_seals_are_refused(void)
{
    int fd = memfd(MFD_ALLOW_SEALING, PAGE);
    CHECK_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
    check_refused(fd, PAGE, "sealed against writing");
    fd = memfd(MFD_ALLOW_SEALING, PAGE);
    CHECK_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | SEALS), 0);
    check_refused(fd, PAGE, "sealed against writing");
}

static void too_small_is_refused(void)
{
    check_refused(memfd(MFD_ALLOW_SEALING, PAGE), PAGE + 1, "has 4096 bytes; needed: 4097");
    check_refused(memfd(MFD_ALLOW_SEALING, 0), 1, "has 0 bytes; needed: 1");
    check_refused(memfd(MFD_ALLOW_SEALING, PAGE), UINT64_MAX, "needed: 18446744073709551615");
}

static void what_is_no_memfd_is_refused(void)
{
    int pair[2];
    CHECK_EQ(pipe2(pair, O_CLOEXEC), 0);
    check_refused(pair[0], 1, "no memfd");
    check_refused(pair[1], 1, "no memfd");
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    check_refused(pair[0], 1, "no memfd");
    close(pair[1]);
    check_refused(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), 1, "memfd");
    check_refused(open("/dev/zero", O_RDWR | O_CLOEXEC), 1, "memfd");
    check_refused(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0, "memfd");
    check_refused(open("/dev/zero", O_PATH | O_CLOEXEC), 0, "memfd");
    struct error error;
    CHECK_EQ(memory_accept(-1, 1, &error), -EBADF);
    CHECK_EQ(memory_accept(-1, 1, NULL), -EBADF);
}

static void ordinary_files_are_refused(void)
{
    const char *const folders[] = {"/dev/shm", "/tmp", "."};
    for (size_t i = 0; i < 3; i++) {
        int fd = open(folders[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (fd < 0)
            continue;
        CHECK_EQ(ftruncate(fd, PAGE), 0);
        check_refused(fd, PAGE, "memfd");
    }
}

static void a_memfd_opened_for_reading_is_refused(void)
{
    int fd = memfd(MFD_ALLOW_SEALING, PAGE);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    check_refused(open(path, O_RDONLY | O_CLOEXEC), PAGE, "not open for reading and writing");
    check_refused(open(path, O_WRONLY | O_CLOEXEC), PAGE, "not open for reading and writing");
    close(fd);
}

/* For complete memory nothing has to wait for programs that write to it. */
static void complete_memory_is_told(void)
{
    int fd = memfd(MFD_ALLOW_SEALING, 2 * PAGE), zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
    CHECK(!memory_is_complete(fd, PAGE));
    CHECK_EQ(fallocate(fd, 0, 0, 2 * PAGE), 0);
    CHECK(!memory_is_complete(fd, PAGE)); /* it is not sealed */
    CHECK_EQ(fcntl(fd, F_ADD_SEALS, SEALS), 0);
    CHECK(memory_is_complete(fd, PAGE) && memory_is_complete(fd, 2 * PAGE));
    CHECK(!memory_is_complete(fd, 2 * PAGE + 1));
    CHECK_EQ(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE), 0);
    CHECK(!memory_is_complete(fd, 2 * PAGE));
    CHECK(!memory_is_complete(zero, PAGE) && !memory_is_complete(-1, PAGE));
    close(fd);
    close(zero);
}

static void huge_pages_are_refused(void)
{
    int fd = memfd(MFD_ALLOW_SEALING | MFD_HUGETLB, 0);
    if (fd < 0)
        SKIP("no huge pages here");
    check_refused(fd, 0, "huge pages");
}

static void segments_follow_each_other(void)
{
    int fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = memory_create(2 * PAGE);
        char mark = (char)('a' + i);
        CHECK_EQ(pwrite(fds[i], &mark, 1, 0), 1);
        CHECK_EQ(pwrite(fds[i], &mark, 1, 2 * PAGE - 1), 1);
    }
    void *memory = NULL;
    REQUIRE(memory_map(fds, 3, 2 * PAGE, 5 * PAGE + 1, &memory) == 0);
    char *base = memory;
    CHECK(base[0] == 'a' && base[2 * PAGE - 1] == 'a' && base[2 * PAGE] == 'b' && base[4 * PAGE] == 'c');
    base[3 * PAGE] = 'x';
    base[5 * PAGE] = 'y';
    char byte;
    CHECK_EQ(pread(fds[1], &byte, 1, PAGE), 1);
    CHECK_EQ(byte, 'x');
    CHECK_EQ(pread(fds[2], &byte, 1, PAGE), 1);
    CHECK_EQ(byte, 'y');
    memory_unmap(memory, 5 * PAGE + 1);
    CHECK(msync(memory, PAGE, MS_ASYNC) != 0 && errno == ENOMEM);
    CHECK(msync(base + 5 * PAGE, PAGE, MS_ASYNC) != 0 && errno == ENOMEM);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    memory_unmap(NULL, PAGE);
}

static void one_segment_of_any_size(void)
{
    int fd = memory_create(1000);
    void *memory = NULL;
    REQUIRE(memory_map(&fd, 1, 1000, 999, &memory) == 0);
    memset(memory, 1, 999);
    memory_unmap(memory, 999);
    close(fd);
}

static long faults(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) ? -1 : usage.ru_minflt;
}

/* Faults that writing to each page of a mapping takes. */
static long faults_of_writing(int fd, size_t pages, bool populated)
{
    void *memory = NULL;
    CHECK_EQ(memory_map(&fd, 1, pages * PAGE, pages * PAGE, &memory), 0);
    if (populated)
        memory_populate(memory, pages * PAGE);
    const long before = faults();
    for (size_t i = 0; memory && i < pages; i++)
        ((volatile char *)memory)[i * PAGE] = 1;
    const long taken = faults() - before;
    memory_unmap(memory, pages * PAGE);
    return taken;
}

static void pages_are_there(void)
{
    enum { PAGES = 1000 };
    int fd = memory_create(PAGES * PAGE);
    if (faults_of_writing(fd, PAGES, false) < PAGES)
        SKIP("larger pages here");
    if (madvise(NULL, 0, 22) != 0)
        SKIP("a system older than Linux 5.14");
    CHECK(faults_of_writing(fd, PAGES, true) < PAGES / 2);
    close(fd);
}

static void mappings_that_cannot_be(void)
{
    int fds[2] = {memory_create(PAGE), memory_create(PAGE)};
    void *memory = &fds;
    CHECK_EQ(memory_map(fds, 0, PAGE, PAGE, &memory), -EINVAL);
    CHECK_EQ(memory_map(fds, 2, PAGE, 0, &memory), -EINVAL);
    CHECK_EQ(memory_map(fds, 2, PAGE, 2 * PAGE + 1, &memory), -EINVAL);
    CHECK_EQ(memory_map(fds, 2, PAGE + 8, PAGE, &memory), -EINVAL);
    CHECK_EQ(memory_map(fds, 2, 0, PAGE, &memory), -EINVAL);
    CHECK_EQ(memory_map(fds, 2, UINT64_C(1) << 63, 2 * PAGE, &memory), -EINVAL);
    CHECK_EQ(memory_map(fds, 1, UINT64_MAX, UINT64_MAX, &memory), -EINVAL);
    CHECK_EQ(memory_map(fds, 1, INT64_MAX, INT64_MAX, &memory), -ENOMEM);
    CHECK_EQ(memory_map((int[]){fds[0], -1}, 2, PAGE, 2 * PAGE, &memory), -EBADF);
    CHECK(memory == &fds);
    close(fds[0]);
    close(fds[1]);
}

/* Runs last. */
static void no_descriptor_is_left(void)
{
    size_t before = descriptors_open();
    sizes_that_cannot_be();
    an_unsealed_memfd_is_sealed();
    unsealable_memfds_are_refused();
    what_is_no_memfd_is_refused();
    segments_follow_each_other();
    mappings_that_cannot_be();
    CHECK_EQ(descriptors_open(), before);
}

static const struct test tests[] = {
    TEST(created_memory_is_sealed_and_zero),
    TEST(sizes_that_cannot_be),
    TEST(memory_that_is_not_there),
    TEST(more_memory_than_the_machine_has),
    TEST(more_memory_than_a_file_may_have),
    TEST(every_page_is_there),
    TEST(only_holes_are_filled),
    TEST(an_unsealed_memfd_is_sealed),
    TEST(unsealable_memfds_are_refused),
    TEST(write_seals_are_refused),
    TEST(too_small_is_refused),
    TEST(what_is_no_memfd_is_refused),
    TEST(ordinary_files_are_refused),
    TEST(a_memfd_opened_for_reading_is_refused),
    TEST(complete_memory_is_told),
    TEST(huge_pages_are_refused),
    TEST(segments_follow_each_other),
    TEST(one_segment_of_any_size),
    TEST(pages_are_there),
    TEST(mappings_that_cannot_be),
    TEST(no_descriptor_is_left),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

/* Pages are freed by threads that nobody waits for longer than for a while, and nothing is kept of them in the end. */
#include "daemon/process/punches.h"

#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/check.h"

#define SIZE 8192

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* held: calls of fallocate do not return */
static atomic_uint calls;
int __real_fallocate(int fd, int mode, off_t offset, off_t size);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t size);

int __wrap_fallocate(int fd, int mode, off_t offset, off_t size)
{
    if (mode & FALLOC_FL_PUNCH_HOLE) {
        calls++;
        pthread_mutex_lock(&gate);
        pthread_mutex_unlock(&gate);
    }
    return __real_fallocate(fd, mode, offset, size);
}

static struct punches punches;

static int full_memfd(void)
{
    const int fd = memfd_create("test", MFD_CLOEXEC);
    CHECK(fd >= 0 && ftruncate(fd, SIZE) == 0 && fallocate(fd, 0, 0, SIZE) == 0);
    return fd;
}

static bool is_empty(int fd)
{
    struct stat status = {.st_blocks = 1};
    CHECK_EQ(fstat(fd, &status), 0);
    return status.st_blocks == 0;
}

static unsigned left(void)
{
    pthread_mutex_lock(&punches.lock);
    const unsigned count = punches.left;
    pthread_mutex_unlock(&punches.lock);
    return count;
}

static void pages_are_freed_by_the_return(void)
{
    punches_init(&punches);
    const int fd = full_memfd();
    CHECK(!is_empty(fd));
    punches_free(&punches, fd, SIZE);
    CHECK(is_empty(fd));
    CHECK_EQ(left(), 0);
    punches_free(&punches, -1, SIZE);
    close(fd);
}

static void what_is_held_is_left_behind(void)
{
    int fds[PUNCHES_LEFT + 1];
    punches_init(&punches);
    calls = 0;
    pthread_mutex_lock(&gate);
    for (int i = 0; i <= PUNCHES_LEFT; i++) {
        fds[i] = full_memfd();
        punches_free(&punches, fds[i], SIZE);
        CHECK(!is_empty(fds[i]));
    }
    CHECK_EQ(left(), PUNCHES_LEFT);
    CHECK_EQ(calls, PUNCHES_LEFT); /* the last was not tried */
    pthread_mutex_unlock(&gate);
    while (left() > 0)
        poll(NULL, 0, 1);
    for (int i = 0; i <= PUNCHES_LEFT; i++) {
        CHECK(is_empty(fds[i]) == (i < PUNCHES_LEFT));
        close(fds[i]);
    }
    const int fd = full_memfd();
    punches_free(&punches, fd, SIZE);
    CHECK(is_empty(fd));
    close(fd);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(pages_are_freed_by_the_return),
        TEST(what_is_held_is_left_behind),
        TEST_END,
    };
    return test_main(argc, argv, tests);
}

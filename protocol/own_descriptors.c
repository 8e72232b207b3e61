#include "own_descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int own_descriptors_occupy(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            return -errno;
    return 0;
}

void own_descriptors_close_inherited(unsigned kept)
{
    const unsigned first = STDERR_FILENO + 1 + kept;
    const unsigned long most = (unsigned long)sysconf(_SC_OPEN_MAX);
    if (syscall(SYS_close_range, first, ~0U, 0) == 0)
        return;
    /* A kernel before 5.9. */
    for (unsigned fd = first; fd < most; fd++)
        close((int)fd);
}

uint64_t own_descriptors_limit(void)
{
    struct rlimit files = {.rlim_cur = RLIM_INFINITY};
    getrlimit(RLIMIT_NOFILE, &files);
    return files.rlim_cur;
}

void own_descriptors_raise_limit(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files))
        return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

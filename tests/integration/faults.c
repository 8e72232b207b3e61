/*
 * Preloaded into a daemon (LD_PRELOAD): fails one call of a process that it forks. $SCAND_FAULT names a file with the
 * number of that call, counted from the fork on, over all functions below and up to the first message that the process
 * sends: a worker's start. Then the file is removed and the call named on stderr, so each file fails one call, and who
 * made it sees whether it was reached. Without the file nothing fails.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma GCC visibility push(default)

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

static atomic_long calls_left; /* until the one that fails; 0 or less: none does */

/* In the child of a fork. */
static void begin(void)
{
    char text[24] = "";
    const char *path = getenv("SCAND_FAULT");
    int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    if (read(fd, text, sizeof text - 1) > 0)
        atomic_store(&calls_left, atol(text));
    close(fd);
}

__attribute__((constructor)) static void install(void)
{
    pthread_atfork(NULL, NULL, begin);
}

static bool fails(const char *function, int code)
{
    char line[64] = "fault: ";
    if (atomic_load(&calls_left) <= 0 || atomic_fetch_sub(&calls_left, 1) != 1)
        return false;
    strcat(strcat(line, function), "\n");
    ssize_t written = write(STDERR_FILENO, line, strlen(line));
    (void)written;
    unlink(getenv("SCAND_FAULT"));
    errno = code;
    return true;
}

#define NEXT(NAME) ((__typeof__(&NAME))dlsym(RTLD_NEXT, #NAME))

void *malloc(size_t size)
{
    return fails("malloc", ENOMEM) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails("calloc", ENOMEM) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    return fails("realloc", ENOMEM) ? NULL : __libc_realloc(memory, size);
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    return fails("mmap", ENOMEM) ? MAP_FAILED : NEXT(mmap)(at, size, protection, flags, fd, offset);
}

int memfd_create(const char *name, unsigned flags)
{
    return fails("memfd_create", EMFILE) ? -1 : NEXT(memfd_create)(name, flags);
}

int fallocate(int fd, int mode, off_t offset, off_t size)
{
    return fails("fallocate", ENOSPC) ? -1 : NEXT(fallocate)(fd, mode, offset, size);
}

int epoll_create1(int flags)
{
    return fails("epoll_create1", EMFILE) ? -1 : NEXT(epoll_create1)(flags);
}

int epoll_ctl(int set, int operation, int fd, struct epoll_event *event)
{
    return fails("epoll_ctl", ENOMEM) ? -1 : NEXT(epoll_ctl)(set, operation, fd, event);
}

int eventfd(unsigned value, int flags)
{
    return fails("eventfd", EMFILE) ? -1 : NEXT(eventfd)(value, flags);
}

int pipe2(int ends[2], int flags)
{
    return fails("pipe2", EMFILE) ? -1 : NEXT(pipe2)(ends, flags);
}

int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    unsigned mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(arguments, unsigned) : 0;
    va_end(arguments);
    return fails("open", EMFILE) ? -1 : NEXT(open)(path, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    return fails("fopen", EMFILE) ? NULL : NEXT(fopen)(path, mode);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    return fails("pthread_create", EAGAIN) ? EAGAIN : NEXT(pthread_create)(thread, attributes, run, argument);
}

/* The first message: nothing fails any more. */
ssize_t send(int fd, const void *data, size_t size, int flags)
{
    atomic_store(&calls_left, 0);
    return NEXT(send)(fd, data, size, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    atomic_store(&calls_left, 0);
    return NEXT(sendmsg)(fd, message, flags);
}

/*
 * Preloaded into a daemon (LD_PRELOAD): fails one call of one of its processes. $SCAND_FAULTS names a file, shared by
 * all of them and by the test, with a struct plan: which call is to fail, counted over all functions below, and whose.
 * The plan says afterwards whether the call was reached, and which function it was. Calls from one place, such as those
 * for each segment of the pool, are alike: only the first few count.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma GCC visibility push(default)

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

#define PLACES           (1 << 16)
#define CALLS_OF_A_PLACE 4
#define CALLERS          8 /* a place is the function that is called, and so many callers */

struct plan {
    atomic_long calls_left;              /* until the one that fails; 0 or less: none does */
    atomic_int process;                  /* process that is meant; FORKED: the next that is forked */
    atomic_int until_message;            /* 1: up to the first message that the process sends */
    char function[32];                   /* name of the function that has failed */
    atomic_uchar calls_of_place[PLACES]; /* by a hash of the place */
};

#define FORKED (-1)
#define LOADED (-2)

static struct plan *plan;
static pid_t own_process;

static void begin(int meant)
{
    own_process = getpid();
    atomic_compare_exchange_strong(&plan->process, &meant, own_process);
}

/* Called in the child of a fork. */
static void begin_forked(void)
{
    begin(FORKED);
}

__attribute__((constructor)) static void install(void)
{
    const char *path = getenv("SCAND_FAULTS");
    int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *memory = (void *)syscall(SYS_mmap, NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (memory == MAP_FAILED)
        return;
    void *callers[CALLERS];
    backtrace(callers, CALLERS); /* which loads a library the first time */
    plan = memory;
    pthread_atfork(NULL, NULL, begin_forked);
}

typedef int program(int count, char **arguments, char **environment);

static program *program_main;

/* Begins the phase LOADED at main(), since calls before it are the libraries' own: the CUDA runtime ends by SIGSEGV
 * there where it finds no memory. */
static int main_begins(int count, char **arguments, char **environment)
{
    if (plan)
        begin(LOADED);
    return program_main(count, arguments, environment);
}

int __libc_start_main(program *main, int count, char **arguments, program *init, void (*fini)(void),
                      void (*loader_fini)(void), void *stack_end);

/* The C library's, which every program begins with. */
int __libc_start_main(program *main, int count, char **arguments, program *init, void (*fini)(void),
                      void (*loader_fini)(void), void *stack_end)
{
    __typeof__(&__libc_start_main) next = (__typeof__(next))dlsym(RTLD_NEXT, "__libc_start_main");
    program_main = main;
    return next(main_begins, count, arguments, init, fini, loader_fini, stack_end);
}

static bool is_one_of_many(void)
{
    void *callers[CALLERS];
    uint32_t hash = 0;
    for (int i = backtrace(callers, CALLERS); i-- > 0; hash ^= hash >> 15)
        hash = (hash ^ (uint32_t)(uintptr_t)callers[i]) * UINT32_C(0x9e3779b1);
    atomic_uchar *calls = &plan->calls_of_place[hash % PLACES];
    return atomic_load(calls) == CALLS_OF_A_PLACE || atomic_fetch_add(calls, 1) >= CALLS_OF_A_PLACE;
}

static bool fails(const char *function, int code)
{
    if (!plan || atomic_load(&plan->process) != own_process || atomic_load(&plan->calls_left) <= 0 ||
        is_one_of_many() || atomic_fetch_sub(&plan->calls_left, 1) != 1)
        return false;
    strncpy(plan->function, function, sizeof plan->function - 1);
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

int ftruncate(int fd, off_t size)
{
    return fails("ftruncate", EIO) ? -1 : NEXT(ftruncate)(fd, size);
}

int fstat(int fd, struct stat *status)
{
    return fails("fstat", EIO) ? -1 : NEXT(fstat)(fd, status);
}

int fcntl(int fd, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *); /* whatever it is, or is not */
    va_end(arguments);
    return fails("fcntl", command == F_DUPFD_CLOEXEC ? EMFILE : EPERM) ? -1 : NEXT(fcntl)(fd, command, argument);
}

int accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
    return fails("accept4", EMFILE) ? -1 : NEXT(accept4)(fd, address, size, flags);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    return fails("recvmsg", ECONNRESET) ? -1 : NEXT(recvmsg)(fd, message, flags);
}

/* The first message of a start ends the failures. */
static bool message_fails(const char *function)
{
    if (plan && atomic_load(&plan->until_message) && atomic_load(&plan->process) == own_process)
        atomic_store(&plan->calls_left, 0);
    return fails(function, EPIPE);
}

ssize_t send(int fd, const void *data, size_t size, int flags)
{
    return message_fails("send") ? -1 : NEXT(send)(fd, data, size, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    return message_fails("sendmsg") ? -1 : NEXT(sendmsg)(fd, message, flags);
}

/*
 * Calls of the system of which the n-th fails. A program that includes this is linked with --wrap for the calls below
 * and for those that it wraps itself.
 */
#ifndef TESTS_FAILING_CALLS_H
#define TESTS_FAILING_CALLS_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/mman.h>

/* Counts down in the thread that sets it, whose call at 1 fails; 0: none does. */
static _Thread_local int calls_left;

static inline bool call_fails(int code)
{
    if (calls_left == 0 || --calls_left > 0)
        return false;
    errno = code;
    return true;
}

#define WRAP(TYPE, NAME, PARAMETERS, ARGUMENTS, CODE, FAILURE)       \
    TYPE __real_##NAME PARAMETERS;                                   \
    TYPE __wrap_##NAME PARAMETERS;                                   \
    TYPE __wrap_##NAME PARAMETERS                                    \
    {                                                                \
        return call_fails(CODE) ? FAILURE : __real_##NAME ARGUMENTS; \
    }

WRAP(void *, mmap, (void *at, size_t size, int prot, int flags, int fd, off_t offset),
     (at, size, prot, flags, fd, offset), ENOMEM, MAP_FAILED)
WRAP(int, memfd_create, (const char *name, unsigned flags), (name, flags), EMFILE, -1)
WRAP(int, ftruncate, (int fd, off_t size), (fd, size), ENOSPC, -1)
WRAP(int, epoll_create1, (int flags), (flags), EMFILE, -1)
WRAP(int, timerfd_create, (int clock, int flags), (clock, flags), EMFILE, -1)
WRAP(int, eventfd, (unsigned count, int flags), (count, flags), EMFILE, -1)
WRAP(int, epoll_ctl, (int epoll, int operation, int fd, struct epoll_event *event), (epoll, operation, fd, event),
     ENOMEM, -1)

int __real_fcntl(int fd, int command, long argument);
int __wrap_fcntl(int fd, int command, long argument);
int __wrap_fcntl(int fd, int command, long argument)
{
    return call_fails(command == F_DUPFD_CLOEXEC ? EMFILE : EPERM) ? -1 : __real_fcntl(fd, command, argument);
}

#endif

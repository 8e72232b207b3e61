/* The service inside this program, for use without a daemon. It is in libscand-local, which is linked with the program,
 * or opened when it is needed. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client/lib/internal.h"

#pragma weak scand_local_library

#define TEXT(NUMBER)  TEXT_(NUMBER)
#define TEXT_(NUMBER) #NUMBER
#if SCAND_VERSION_MAJOR == 0 /* the soname has the same: client/lib/CMakeLists.txt */
#define SONAME_VERSION "0." TEXT(SCAND_VERSION_MINOR)
#else
#define SONAME_VERSION TEXT(SCAND_VERSION_MAJOR)
#endif
#define LIBRARY "libscand-local.so." SONAME_VERSION
#define INSTALL "install the package libscand-local" SONAME_VERSION ", or install scand from its sources"

int local_choose(struct scand *daemon, enum scand_local *out)
{
    const char *variable = getenv("SCAND_FALLBACK");
    const bool is_set = variable && *variable;
    if (is_set && strcmp(variable, "cpu") != 0)
        return session_fail(daemon, -EINVAL,
                            "SCAND_FALLBACK is \"%.64s\": allowed is \"cpu\", which computes in this process where no "
                            "daemon answers; unset it to need a daemon",
                            variable);
    *out = (enum scand_local)daemon->options.local;
    if (*out == SCAND_LOCAL_DEFAULT)
        *out = is_set ? SCAND_LOCAL_FALLBACK : SCAND_LOCAL_NEVER;
    return 0;
}

/* Opens a library for good: its threads may run until the program ends. */
static void *library_open_at(const char *path)
{
    return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

/* Opens the library in libscand's own folder, except in a program with more rights than its caller, who may have chosen
 * that folder. */
static void *library_open_beside(void)
{
    char path[PATH_MAX];
    Dl_info own;
    if (getauxval(AT_SECURE) || !dladdr((void *)library_open_at, &own) || own.dli_fname[0] != '/')
        return NULL;
    const int folder = (int)(strrchr(own.dli_fname, '/') - own.dli_fname);
    const int length = snprintf(path, sizeof path, "%.*s/" LIBRARY, folder, own.dli_fname);
    return (size_t)length < sizeof path ? library_open_at(path) : NULL;
}

/* Explains why the library could not be opened; dlopen itself tells a text alone. */
static void library_refused(struct scand *daemon)
{
    const char *why = dlerror();
    const int spare = fcntl(daemon->wake, F_DUPFD_CLOEXEC, 0), code = spare < 0 ? errno : 0;
    if (code)
        session_fail(daemon, -EBADF, "cannot compute in this process, for which " LIBRARY " is opened: %s%s",
                     strerror(code), errno_advice(code));
    else
        session_fail(daemon, -ECONNREFUSED,
                     "cannot compute in this process, for which " LIBRARY " is needed (%.200s): " INSTALL,
                     why ? why : "it has no scand_local_library");
    if (spare >= 0)
        close(spare);
}

static const struct local_library *library_open(struct scand *daemon)
{
    void *handle = library_open_beside();
    if (!handle)
        handle = library_open_at(LIBRARY);
    const struct local_library *library = handle ? dlsym(handle, "scand_local_library") : NULL;
    if (!library)
        library_refused(daemon);
    return library;
}

const struct local_library *local_find(struct scand *daemon)
{
    const struct local_library *library = &scand_local_library ? &scand_local_library : library_open(daemon);
    if (!library || strcmp(library->release, SCAND_VERSION_TEXT) == 0)
        return library;
    session_fail(daemon, -ECONNREFUSED,
                 "cannot compute in this process: " LIBRARY " is of version %.32s, and libscand of " SCAND_VERSION_TEXT
                 ": install both of one version",
                 library->release);
    return NULL;
}

int local_prepare(struct scand *daemon)
{
    daemon->local = local_find(daemon);
    snprintf(daemon->path, sizeof daemon->path, "this process");
    daemon->options.spin_us = 0; /* small jobs are computed in the program's own calls */
    return daemon->local ? 0 : session_error(daemon)->code;
}

/* Wakes the reader, from any thread. */
static void local_wake(void *context)
{
    const struct scand *daemon = context;
    eventfd_write(daemon->wake, 1);
}

int local_connect(struct scand *daemon)
{
    struct local *service;
    int code = daemon->local->open(local_wake, daemon, &service, session_error(daemon));
    if (code)
        return code;
    if (!process_carry(daemon, &daemon->local->carrier, service))
        return session_fail(daemon, -ENOMEM, "out of memory to compute in this process");
    daemon->service = service;
    struct epoll_event event = {.events = EPOLLIN};
    if (epoll_ctl(daemon->epoll, EPOLL_CTL_ADD, daemon->wake, &event) && errno != EEXIST)
        return session_fail(daemon, -ENOMEM, "cannot watch what is computed in this process: %s", strerror(errno));
    return 0;
}

bool local_is_as_read(const struct msg_job_submit_params *params)
{
    return params->deadline_ms <= LIMIT_DEADLINE_MS && params->algorithm[0] == '\0' && params->then_count == 0;
}

bool local_submit(const struct scand_job *job)
{
    const struct scand *daemon = job->daemon;
    return daemon->local && job->method == METHOD_job_submit && local_is_as_read(&job->params.submit) &&
           !connection_has_output(daemon->connection) &&
           daemon->local->submit(daemon->service, job->pending.msgid, &job->params.submit);
}

bool local_result(const struct scand *daemon, uint32_t *msgid, struct msg_job_submit_result *result)
{
    return daemon->local->result(daemon->service, msgid, result);
}

bool local_is_ready(const struct scand *daemon)
{
    return daemon->local && daemon->connection && daemon->local->is_ready(daemon->service);
}

int64_t local_due_ms(const struct scand *daemon)
{
    const uint64_t due_us = daemon->local && daemon->connection ? daemon->local->due_us(daemon->service) : UINT64_MAX;
    return due_us == UINT64_MAX ? INT64_MAX : (int64_t)(due_us / 1000) + 1;
}

#include "supervisor.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "daemon/net/metrics_http.h"
#include "log.h"
#include "protocol/descriptors.h"
#include "protocol/status.h"
#include "worker.h"

/* A worker that lives shorter than this counts as a quick failure; after so many in a row the supervisor gives up. */
#define QUICK_S            10
#define QUICK_FAILURES_MAX 5

struct supervisor {
    struct options *options;
    int listen_fd, metrics_fd, ready_fd;
    struct socket_file file;
    pid_t worker;
    time_t started;
    bool stopping; /* told to end */
    struct shared_page *shared_page;
    unsigned quick_failures;
    sigset_t signals;
};

static time_t now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* Otherwise LeakSanitizer looks at exit, which a worker does not pass: it ends without what libraries do there. */
static void check_leaks(void)
{
#ifdef __SANITIZE_ADDRESS__
    __lsan_do_leak_check();
#endif
}

/* The child is a plain copy: the supervisor has neither threads nor a CUDA context that a fork could harm. */
static int start_worker(struct supervisor *self)
{
    pid_t parent = getpid();
    self->started = now_s();
    self->shared_page->starts++;
    self->worker = fork();
    if (self->worker < 0)
        return -errno;
    if (self->worker > 0)
        return 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EX_SOFTWARE);
    signal(SIGHUP, SIG_IGN); /* until the worker looks for it */
    sigprocmask(SIG_UNBLOCK, &self->signals, NULL);
    int code = worker_run(self->options, self->listen_fd, self->metrics_fd, self->ready_fd, self->shared_page);
    check_leaks();
    _exit(code);
}

static void describe_end(int status, char *text, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(text, size, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(text, size, "exit code %d", WEXITSTATUS(status));
}

/* By a request to end that it does not catch yet: it has no jobs. */
static bool was_starting(int status)
{
    return WIFSIGNALED(status) && (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGINT);
}

/* The worker has ended: -1 when another one runs, else the supervisor's own exit code. */
static int after_worker(struct supervisor *self, int status)
{
    char end[64];
    describe_end(status, end, sizeof end);
    bool quick = now_s() - self->started < QUICK_S;
    if (WIFEXITED(status) && WEXITSTATUS(status) != WORKER_LOST)
        return WEXITSTATUS(status);
    if (self->stopping && was_starting(status)) {
        log_info("stopped before it was ready");
        return EX_OK;
    }
    /* The worker may have been told to drain by a client. */
    if (self->stopping || atomic_load(&self->shared_page->draining)) {
        log_error("the worker ended by %s before it was drained; jobs that it had are lost", end);
        return EX_OK;
    }
    self->quick_failures = quick ? self->quick_failures + 1 : 0;
    if (self->quick_failures > QUICK_FAILURES_MAX) {
        log_error("the worker ended again by %s, %d times within %d s of its start: giving up", end,
                  QUICK_FAILURES_MAX + 1, QUICK_S);
        return EX_SOFTWARE;
    }
    log_error("the worker ended by %s; starting another", end);
    int r = start_worker(self);
    if (r)
        log_error("could not start a worker: %s", strerror(-r));
    return r ? EX_OSERR : -1;
}

/* First a request to drain, then the end. */
static void stop_worker(struct supervisor *self)
{
    kill(self->worker, self->stopping ? SIGKILL : SIGTERM);
    self->stopping = true;
}

/* Here and not in the worker: looking up users may take long, and the next worker has to know, too. */
static void reload(struct supervisor *self)
{
    struct error error;
    if (options_reload(self->options, &error)) {
        log_error("%s; the settings stay as they were", error.message);
        return;
    }
    shared_page_give_grants(self->shared_page, &self->options->grants);
    kill(self->worker, SIGHUP);
    log_info("settings were read again: quotas and weights of %zu users and of all others",
             self->options->grants.own_count);
}

static int supervise(struct supervisor *self)
{
    for (;;) {
        siginfo_t info = {0};
        int status, code = -1, number = sigwaitinfo(&self->signals, &info);
        bool hung_up = number == SIGHUP && info.si_code == SI_KERNEL; /* the terminal is gone */
        if (number == SIGTERM || number == SIGINT || hung_up)
            stop_worker(self);
        else if (number == SIGHUP)
            reload(self);
        while (code < 0 && waitpid(self->worker, &status, WNOHANG) == self->worker)
            code = after_worker(self, status);
        if (code >= 0)
            return code;
    }
}

static void block_signals(struct supervisor *self)
{
    sigemptyset(&self->signals);
    sigaddset(&self->signals, SIGTERM);
    sigaddset(&self->signals, SIGINT);
    sigaddset(&self->signals, SIGHUP);
    sigaddset(&self->signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &self->signals, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* Sockets outlive workers, and clients wait there for the next one. 0, or -errno with *error. */
static int open_sockets(struct supervisor *self, struct error *error)
{
    const struct options *options = self->options;
    /* As root the daemon serves every user. */
    self->listen_fd = socket_listen(options->socket, getuid() == 0 ? 0666 : 0600, &self->file, error);
    if (self->listen_fd < 0)
        return self->listen_fd;
    self->metrics_fd = -1;
    if (listen_choice_loopback(options->metrics_listen) == LOOPBACK_NONE)
        return 0;
    self->metrics_fd = metrics_http_listen(options->metrics_listen, error);
    if (self->metrics_fd >= 0)
        return 0;
    socket_remove(options->socket, &self->file);
    return self->metrics_fd;
}

int supervisor_run(struct options *options, int ready_fd)
{
    struct supervisor self = {.options = options, .ready_fd = ready_fd};
    struct error error;
    block_signals(&self);
    descriptors_raise_limit(); /* every client needs one, and those that wait to be sent count too */
    self.shared_page = shared_page_create();
    if (!self.shared_page) {
        log_error("no memory to share with workers: %s", strerror(errno));
        return EX_OSERR;
    }
    shared_page_give_grants(self.shared_page, &options->grants);

    /* Before CUDA starts, so that early clients wait instead of failing. */
    int r = open_sockets(&self, &error);
    if (r) {
        log_error("%s", error.message);
        return r == -EACCES || r == -EPERM ? EX_NOPERM : EX_UNAVAILABLE;
    }
    r = start_worker(&self);
    if (r)
        log_error("could not start a worker: %s", strerror(-r));
    int code = r ? EX_OSERR : supervise(&self);
    socket_remove(options->socket, &self.file);
    return code;
}

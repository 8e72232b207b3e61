#include "supervisor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "channel.h"
#include "daemon/core/trust.h"
#include "daemon/net/metrics_http.h"
#include "log.h"
#include "notify.h"
#include "pool_store.h"
#include "protocol/clock.h"
#include "protocol/limits.h"
#include "protocol/own_descriptors.h"
#include "protocol/status.h"
#include "provision.h"
#include "starvation.h"
#include "watchdog.h"
#include "worker.h"

/* A worker has failed when it ends before it serves, or sooner than QUICK_MS after. The next one comes at once, then
 * after a pause that doubles with each failure in a row. QUICK_MS is short: whoever makes workers end again and again
 * must not get long pauses for it, through which all others wait. */
#ifndef QUICK_MS
#define QUICK_MS LIMIT_QUICK_MS
#endif
#ifndef PAUSE_FIRST_MS
#define PAUSE_FIRST_MS 50
#endif
#ifndef PAUSE_MOST_MS
#define PAUSE_MOST_MS 60000
#endif

#define REST_MS     3600000   /* the pause of a supervisor with nothing to do */
#define EXTEND_US   120000000 /* the extension that a manager is asked for, again and again */
#define TOGETHER_MS 20 /* signals that come so close are one request: timeout(1) asks a program, then its group */

struct supervisor {
    struct options *options;
    int listen_fd, metrics_fd, ready_fd, signal_fd;
    struct socket_file file;
    struct channel channel; /* connects to the worker */
    pid_t worker;           /* 0: no worker runs, and the next one starts at start_ms */
    int64_t start_ms;
    int64_t ready_ms;     /* time at which the worker began to serve; 0: not yet */
    bool served;          /* a worker has begun to serve */
    unsigned failures;    /* failures in a row */
    bool stopping;        /* a signal asked for the end */
    int64_t stop_ms;      /* time of that signal */
    int64_t drain_end_ms; /* time at which a drain has lasted for too long; 0: none does */
    sigset_t signals;
    struct shared_page *shared_page;
    struct pool_store store;
    struct watchdog watchdog;
    struct starvation starvation;
    int64_t check_ms;          /* time at which to check the worker next */
    uint64_t notify_period_ms; /* between two WATCHDOG=1; 0: none */
    int64_t notify_ms;         /* time at which the next WATCHDOG=1 is due */
    bool hung;                 /* the worker hangs and is being killed */
};

/* Checks for leaks here, since LeakSanitizer would do it at exit: a worker ends by _exit, without what libraries do at
 * exit. */
static void check_leaks(void)
{
#ifdef __SANITIZE_ADDRESS__
    __lsan_do_leak_check();
#endif
}

/*
 * Starting a worker.
 */

static uint64_t pause_ms(unsigned failures)
{
    uint64_t ms = PAUSE_FIRST_MS;
    if (failures <= 1)
        return 0;
    for (unsigned i = 2; i < failures && ms < PAUSE_MOST_MS; i++)
        ms *= 2;
    return ms < PAUSE_MOST_MS ? ms : PAUSE_MOST_MS;
}

/* Plans another worker, now or after a pause. `why` is what the worker has said itself, or "". */
static void plan_start(struct supervisor *self, const char *cause, const char *why)
{
    char when[48] = "";
    self->failures++;
    uint64_t pause = pause_ms(self->failures);
    self->start_ms = clock_ms() + pause;
    if (pause > 0)
        snprintf(when, sizeof when, " in %.2f s", (double)pause / 1000);
    log_error("%s; starting another%s", cause, when);
    notify_send("STATUS=%s%s%s; starting another%s", cause, *why ? ": " : "", why, when);
}

/* Runs the worker in the child, a plain copy: the supervisor has neither threads nor a CUDA context that a fork could
 * harm. */
static void run_worker(struct supervisor *self, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EX_SOFTWARE);
    signal(SIGHUP, SIG_IGN); /* until the worker handles it */
    sigprocmask(SIG_UNBLOCK, &self->signals, NULL);
    close(self->channel.supervisor_fd);
    close(self->signal_fd);
    if (self->ready_fd >= 0)
        close(self->ready_fd);
    const struct worker_ends ends = {self->listen_fd, self->metrics_fd, self->channel.worker_fd, &self->store};
    int code = worker_run(self->options, &ends, self->shared_page);
    check_leaks();
    _exit(code);
}

static int fork_worker(struct supervisor *self)
{
    pid_t parent = getpid();
    int r = channel_open(&self->channel);
    if (r)
        return r;
    pid_t worker = fork();
    if (worker == 0)
        run_worker(self, parent);
    if (worker < 0) {
        r = -errno;
        channel_close(&self->channel);
        return r;
    }
    close(self->channel.worker_fd);
    self->channel.worker_fd = -1;
    self->worker = worker;
    return 0;
}

static void start_worker(struct supervisor *self)
{
    char cause[128];
    self->ready_ms = 0;
    self->hung = false;
    self->shared_page->starts++;
    progress_init(&self->shared_page->progress);
    watchdog_init(&self->watchdog, self->options->watchdog_ms);
    self->starvation = (struct starvation){0};
    self->check_ms = clock_ms() + self->watchdog.period_ms;
    self->shared_page->started_us = clock_us();
    self->shared_page->cause[0] = '\0';
    int r = fork_worker(self);
    if (!r)
        return;
    snprintf(cause, sizeof cause, "could not start a worker: %s", strerror(-r));
    plan_start(self, cause, "");
}

/*
 * The worker's life and end.
 */

static void worker_is_ready(struct supervisor *self)
{
    ssize_t told;
    self->ready_ms = clock_ms();
    self->served = true;
    notify_send("READY=1\nSTATUS=serving at %s", self->options->socket);
    if (self->ready_fd < 0)
        return;
    told = write(self->ready_fd, "", 1);
    (void)told; /* a failure is ignored: whoever started the daemon may have gone */
    close(self->ready_fd);
    self->ready_fd = -1;
}

static void hear_worker(struct supervisor *self)
{
    struct channel_message message;
    int r;
    while ((r = channel_receive(self->channel.supervisor_fd, &message)) > 0)
        switch (message.word) {
        case CHANNEL_READY:
            worker_is_ready(self);
            break;
        case CHANNEL_DRAINING:
            self->drain_end_ms = self->options->drain_ms > 0 ? clock_ms() + self->options->drain_ms : 0;
            notify_send("STOPPING=1");
            break;
        case CHANNEL_SEGMENT:
            pool_store_replace(&self->store, message.index, message.fd);
        }
    if (r) /* an ending worker may stay for long in a driver, and the end of its socket would wake poll all the while */
        channel_end_close(&self->channel.supervisor_fd);
}

static void describe_end(int status, char *text, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(text, size, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(text, size, "exit code %d", WEXITSTATUS(status));
}

/* True when a request to end killed a worker that did not catch it yet: that worker had no jobs. */
static bool was_starting(int status)
{
    return WIFSIGNALED(status) && (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGINT);
}

/* True when no other worker is to follow: the worker has drained, or the first worker cannot have what the settings ask
 * for. What a later worker cannot have may be there again in a while. */
static bool is_end(const struct supervisor *self, int status)
{
    if (!WIFEXITED(status))
        return false;
    return WEXITSTATUS(status) == EX_OK || (WEXITSTATUS(status) == EX_UNAVAILABLE && !self->served);
}

/* Handles the worker's end. Returns -1 when another worker is to follow, else the supervisor's own exit code. */
static int after_worker(struct supervisor *self, int status)
{
    char end[64], cause[128];
    hear_worker(self);
    channel_close(&self->channel);
    self->worker = 0;
    describe_end(status, end, sizeof end);
    if (is_end(self, status))
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
    /* Clients wait since the end of the last worker that served. */
    if (self->ready_ms > 0)
        self->shared_page->lost_us = clock_us();
    pool_store_settle(&self->store);
    if (self->ready_ms > 0 && clock_ms() - self->ready_ms >= QUICK_MS)
        self->failures = 0;
    snprintf(cause, sizeof cause, "the worker ended by %s", end);
    plan_start(self, cause, self->shared_page->cause);
    return -1;
}

/* Asks the worker to drain, and kills it when asked once more. SIGCONT goes first, since a stopped process handles
 * SIGTERM only when it goes on. A SIGCONT after SIGTERM would wake an ending worker that its own leak check has
 * stopped, and that check waits for the stop. */
static int stop(struct supervisor *self)
{
    if (!self->worker) {
        log_info("stopped while no worker ran");
        return EX_OK;
    }
    if (self->stopping && clock_ms() - self->stop_ms < TOGETHER_MS)
        return -1;
    kill(self->worker, SIGCONT);
    kill(self->worker, self->stopping ? SIGKILL : SIGTERM);
    if (!self->stopping)
        self->stop_ms = clock_ms();
    self->stopping = true;
    return -1;
}

/* Reloads the settings, in the supervisor: looking up users may take long, and the next worker has to know the grants,
 * too. */
static void reload(struct supervisor *self)
{
    struct error error;
    if (options_reload(self->options, &error)) {
        log_error("%s; the settings stay as they were", error.message);
        return;
    }
    shared_page_give_grants(self->shared_page, &self->options->grants);
    if (self->worker)
        kill(self->worker, SIGHUP);
    log_info("settings were read again: quotas and weights, also those of %zu [user] sections",
             self->options->grants.own_count);
}

/* Handles a signal. Returns -1 to go on, or an exit code. */
static int obey(struct supervisor *self, const struct signalfd_siginfo *signal)
{
    const bool hung_up = signal->ssi_signo == SIGHUP && signal->ssi_code == SI_KERNEL; /* the terminal is gone */
    int status;
    if (signal->ssi_signo == SIGTERM || signal->ssi_signo == SIGINT || hung_up)
        return stop(self);
    if (signal->ssi_signo == SIGHUP)
        reload(self);
    else if (self->worker && waitpid(self->worker, &status, WNOHANG) == self->worker)
        return after_worker(self, status);
    return -1;
}

static int obey_all(struct supervisor *self)
{
    struct signalfd_siginfo signal;
    int code = -1;
    while (code < 0 && read(self->signal_fd, &signal, sizeof signal) == sizeof signal)
        code = obey(self, &signal);
    return code;
}

/*
 * Watching the worker.
 */

/* Extends the manager's timeout while jobs are being finished. */
static void notify_draining(const struct supervisor *self)
{
    if (!self->hung && atomic_load(&self->shared_page->draining))
        notify_send("EXTEND_TIMEOUT_USEC=%d\nSTATUS=draining: no more jobs are taken, %llu are left", EXTEND_US,
                    (unsigned long long)self->shared_page->service.stats.jobs_open);
}

static void check_worker(struct supervisor *self)
{
    char *cause = self->shared_page->cause;
    if (!self->worker || self->watchdog.period_ms == 0 || clock_ms() < self->check_ms)
        return;
    self->check_ms = clock_ms() + self->watchdog.period_ms;
    notify_draining(self);
    const struct progress *progress = &self->shared_page->progress;
    self->watchdog.asleep = starvation_sleeps(self->worker);
    const bool starved = watchdog_watches_threads(progress) &&
                         starvation_check_others(&self->starvation, self->worker, self->watchdog.period_ms);
    if (starvation_check(&self->starvation, self->worker, self->watchdog.period_ms) ||
        !watchdog_check(&self->watchdog, progress, &self->shared_page->service, starved, cause,
                        sizeof self->shared_page->cause))
        return;
    if (!self->hung)
        log_error("%s: it is ended", cause);
    self->hung = true;
    if (self->watchdog.asleep)
        trust_accuse(&self->shared_page->service);
    kill(self->worker, SIGKILL);
}

/* Ends a worker whose jobs take too long for a drain: any user may have jobs that take for ever. */
static void check_drain(struct supervisor *self)
{
    if (!self->worker || self->drain_end_ms == 0 || clock_ms() < self->drain_end_ms)
        return;
    log_error("the drain has lasted for %g s (drain), and %llu jobs are left: the worker is ended",
              (double)self->options->drain_ms / 1000, (unsigned long long)self->shared_page->service.stats.jobs_open);
    self->drain_end_ms = 0;
    kill(self->worker, SIGKILL);
}

/* Tells the manager that the daemon is alive, except while a worker hangs: should killing the worker not help, the
 * manager starts everything anew. */
static void notify_alive(struct supervisor *self)
{
    if (self->notify_period_ms == 0 || self->hung || clock_ms() < self->notify_ms)
        return;
    self->notify_ms = clock_ms() + self->notify_period_ms;
    notify_send("WATCHDOG=1");
}

/* Returns the earlier of two times, of which the second counts only if `counts`. */
static int64_t earlier(int64_t a_ms, int64_t b_ms, bool counts)
{
    return counts && b_ms < a_ms ? b_ms : a_ms;
}

/* Blocks until there is something to do. */
static void rest(const struct supervisor *self)
{
    struct pollfd fds[] = {{.fd = self->signal_fd, .events = POLLIN},
                           {.fd = self->channel.supervisor_fd, .events = POLLIN}};
    int64_t now_ms = clock_ms(), next_ms = now_ms + REST_MS;
    next_ms = earlier(next_ms, self->start_ms, !self->worker);
    next_ms = earlier(next_ms, self->check_ms, self->worker && self->watchdog.period_ms > 0);
    next_ms = earlier(next_ms, self->drain_end_ms, self->worker && self->drain_end_ms > 0);
    next_ms = earlier(next_ms, self->notify_ms, self->notify_period_ms > 0 && !self->hung);
    poll(fds, 2, next_ms > now_ms ? (int)(next_ms - now_ms) : 0);
}

static int supervise(struct supervisor *self)
{
    int code = -1;
    while (code < 0) {
        if (!self->worker && clock_ms() >= self->start_ms)
            start_worker(self);
        rest(self);
        if (self->worker)
            hear_worker(self);
        code = obey_all(self);
        check_worker(self);
        check_drain(self);
        notify_alive(self);
    }
    return code;
}

/*
 * The supervisor's own start.
 */

static int catch_signals(struct supervisor *self)
{
    static const int caught[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD};
    sigemptyset(&self->signals);
    for (size_t i = 0; i < sizeof caught / sizeof caught[0]; i++)
        sigaddset(&self->signals, caught[i]);
    sigprocmask(SIG_BLOCK, &self->signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a log or a pool beyond RLIMIT_FSIZE is an error and not the end */
    self->signal_fd = signalfd(-1, &self->signals, SFD_CLOEXEC | SFD_NONBLOCK);
    return self->signal_fd < 0 ? -errno : 0;
}

/* A daemon of root serves every user unless told otherwise. */
static struct socket_access access_of(const struct options *options)
{
    const unsigned standard = getuid() == 0 ? 0666 : 0600;
    return (struct socket_access){.mode = options->socket_mode ? options->socket_mode : standard,
                                  .group = options->socket_group > 0 ? (gid_t)(options->socket_group - 1)
                                                                     : SOCKET_GROUP_OWN};
}

static int open_socket(struct supervisor *self, struct error *error)
{
    const struct options *options = self->options;
    if (options->listen_fd >= 0) { /* the service manager has set its mode and group */
        self->listen_fd = options->listen_fd;
        return 0;
    }
    const struct socket_access access = access_of(options);
    self->listen_fd = socket_listen(options->socket, &access, &self->file, error);
    return self->listen_fd < 0 ? self->listen_fd : 0;
}

static void remove_socket(struct supervisor *self)
{
    if (self->options->listen_fd < 0)
        socket_remove(self->options->socket, &self->file);
}

/* Opens the sockets, which outlive workers: clients wait there for the next worker. Returns 0, or -errno with *error.
 */
static int open_sockets(struct supervisor *self, struct error *error)
{
    const struct options *options = self->options;
    int r = open_socket(self, error);
    if (r)
        return r;
    self->metrics_fd = -1;
    if (listen_choice_loopback(options->metrics_listen) == LOOPBACK_NONE)
        return 0;
    self->metrics_fd = metrics_http_listen(options->metrics_listen, error);
    if (self->metrics_fd >= 0)
        return 0;
    remove_socket(self);
    return self->metrics_fd;
}

/* A worker without room for its stack would end at the first message, and so would the next ones. */
static int check_stacks(struct error *error)
{
    struct rlimit stacks = {.rlim_cur = RLIM_INFINITY};
    getrlimit(RLIMIT_STACK, &stacks);
    return provision_stacks(stacks.rlim_cur, error);
}

int supervisor_run(struct options *options, int ready_fd)
{
    struct supervisor self = {.options = options, .ready_fd = ready_fd, .channel = {-1, -1}};
    struct error error;
    int r = catch_signals(&self);
    /* Every client needs a descriptor, and descriptors on their way to clients count, too. */
    own_descriptors_raise_limit();
    self.shared_page = shared_page_create();
    if (!self.shared_page)
        r = -errno;
    if (r) {
        log_error("no descriptor or no memory for the supervisor: %s", strerror(-r));
        return EX_OSERR;
    }
    shared_page_give_grants(self.shared_page, &options->grants);
    self.notify_period_ms = notify_period_ms();

    r = check_stacks(&error);
    if (!r)
        r = pool_store_create(&self.store, options->pool_bytes, &error);
    if (!r) {
        /* The sockets open before CUDA starts, so that early clients wait instead of failing. */
        r = open_sockets(&self, &error);
        if (r)
            pool_store_destroy(&self.store);
    }
    if (r) {
        log_error("%s", error.message);
        return r == -EACCES || r == -EPERM ? EX_NOPERM : EX_UNAVAILABLE;
    }
    int code = supervise(&self);
    remove_socket(&self);
    pool_store_destroy(&self.store);
    return code;
}

/*
 * The supervisor around workers of the test's own: each start of a worker does what the test has planned for it. System
 * calls of a start fail when the test says so. What the service manager is told comes to a socket of the test's.
 */
#include "daemon/process/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/process/channel.h"
#include "daemon/process/worker.h"
#include "tests/check.h"

#define STARTS_MAX 64
#define WAIT_MS    20000 /* for what has to come */

/* The actions of a worker (STILL: without any progress; DRAINING: with jobs that do not end; DUMB: without its end of
 * the channel); other numbers are its exit code or, negated, its signal, with SERVED added when it ends after serving.
 */
enum { SERVE = 1000, SERVE_STOPPED, SERVE_STILL, SERVE_DUMB, SERVE_DRAINING, SERVED = 2000 };

/* The plan of a test, shared with all its processes. */
static struct plan {
    atomic_uint workers;         /* workers that ran */
    _Atomic pid_t worker;        /* the latest of them */
    atomic_uint fail_from, fail; /* calls of this kind of which so many fail, from this one on */
    atomic_uint calls;
    atomic_uint waits;   /* calls of poll */
    const char *failing; /* the function that fails */
    uint64_t watchdog_ms, drain_ms;
    int ends[STARTS_MAX];
} * plan;

static bool call_fails(const char *function)
{
    if (!plan->failing || strcmp(plan->failing, function) != 0)
        return false;
    unsigned call = atomic_fetch_add(&plan->calls, 1) + 1;
    errno = EAGAIN;
    return call >= plan->fail_from && call < plan->fail_from + plan->fail;
}

pid_t __real_fork(void);
pid_t __wrap_fork(void);
pid_t __wrap_fork(void)
{
    return call_fails("fork") ? -1 : __real_fork();
}

int __real_socketpair(int domain, int type, int protocol, int ends[2]);
int __wrap_socketpair(int domain, int type, int protocol, int ends[2]);
int __wrap_socketpair(int domain, int type, int protocol, int ends[2])
{
    return call_fails("socketpair") ? -1 : __real_socketpair(domain, type, protocol, ends);
}

int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    atomic_fetch_add(&plan->waits, 1);
    return __real_poll(fds, count, timeout_ms);
}

/* Replaces the daemon's worker. */
int worker_run(const struct options *options, const struct worker_ends *ends, struct shared_page *shared_page)
{
    sigset_t signals;
    int number = -1, end = plan->ends[atomic_fetch_add(&plan->workers, 1)];
    const bool serves = end >= SERVE;
    (void)options;
    atomic_store(&plan->worker, getpid());
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    atomic_store(&shared_page->progress.phase, serves ? PHASE_SERVING : PHASE_STARTING);
    if (serves)
        channel_send(ends->channel_fd, &(struct channel_message){.word = CHANNEL_READY, .fd = -1});
    if (end == SERVE_STOPPED)
        raise(SIGSTOP);
    if (end == SERVE_DUMB)
        close(ends->channel_fd);
    if (end == SERVE_DRAINING) {
        atomic_store(&shared_page->draining, true);
        channel_send(ends->channel_fd, &(struct channel_message){.word = CHANNEL_DRAINING, .fd = -1});
    }
    const struct timespec turn = {.tv_nsec = 1000000};
    for (number = -1; end >= SERVE && end <= SERVE_DRAINING && number < 0;
         number = sigtimedwait(&signals, NULL, &turn)) {
        atomic_fetch_add(&shared_page->progress.turns, end != SERVE_STILL);
    }
    if (number > 0)
        return EX_OK;
    end -= serves ? SERVED : 0;
    snprintf(shared_page->cause, sizeof shared_page->cause, "planned end %d", end);
    if (end < 0)
        kill(getpid(), -end);
    return end;
}

/* A supervisor in a process of its own. */
struct rig {
    char folder[64], log_path[80];
    pid_t pid;
    int ready_fd, manager_fd;
    char told[8192]; /* text that the service manager has been told */
};

static int manager_open(struct rig *rig)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/notify", rig->folder);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return bind(fd, (const struct sockaddr *)&address, sizeof address) ? -1 : fd;
}

static void supervisor_main(const struct rig *rig, int ready_fd)
{
    static struct options options = {.listen_fd = -1};
    FILE *log = freopen(rig->log_path, "w", stderr);
    setvbuf(stderr, NULL, _IOLBF, 0);
    options.watchdog_ms = plan->watchdog_ms;
    options.drain_ms = plan->drain_ms;
    snprintf(options.socket, sizeof options.socket, "%s/socket", rig->folder);
    _exit(log ? supervisor_run(&options, ready_fd) : EX_SOFTWARE);
}

static void rig_begin(struct rig *rig)
{
    int ready[2];
    *rig = (struct rig){.folder = "/tmp/supervisorXXXXXX"};
    REQUIRE(mkdtemp(rig->folder));
    snprintf(rig->log_path, sizeof rig->log_path, "%s/log", rig->folder);
    rig->manager_fd = manager_open(rig);
    REQUIRE(rig->manager_fd >= 0 && pipe(ready) == 0);
    fflush(NULL);
    rig->pid = __real_fork();
    if (rig->pid == 0) {
        close(ready[0]);
        supervisor_main(rig, ready[1]);
    }
    close(ready[1]);
    rig->ready_fd = ready[0];
}

/* True when a worker has begun to serve. */
static bool is_ready(const struct rig *rig)
{
    char byte;
    struct pollfd ready = {.fd = rig->ready_fd, .events = POLLIN};
    return poll(&ready, 1, WAIT_MS) == 1 && read(rig->ready_fd, &byte, 1) == 1;
}

/* Gathers what the manager is told until it contains the words. */
static bool is_told(struct rig *rig, const char *words)
{
    struct pollfd manager = {.fd = rig->manager_fd, .events = POLLIN};
    while (!strstr(rig->told, words)) {
        size_t length = strlen(rig->told);
        if (length + 1100 > sizeof rig->told || poll(&manager, 1, WAIT_MS) != 1)
            return false;
        ssize_t n = read(rig->manager_fd, rig->told + length, 1023);
        snprintf(rig->told + length + (n > 0 ? n : 0), 2, "\n");
    }
    return true;
}

/* The supervisor's exit code, once it has ended; -1: it was killed since it did not. */
static int rig_wait(const struct rig *rig)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    int status, ended = 0;
    for (int i = 0; i < WAIT_MS / 10 && !ended; i++) {
        ended = waitpid(rig->pid, &status, WNOHANG);
        if (!ended)
            nanosleep(&pause, NULL);
    }
    if (ended == rig->pid)
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    kill(rig->pid, SIGKILL);
    waitpid(rig->pid, &status, 0);
    return -1;
}

static void rig_end(struct rig *rig, char *log, size_t size)
{
    char path[96];
    FILE *file = fopen(rig->log_path, "r");
    size_t length = file ? fread(log, 1, size - 1, file) : 0;
    log[length] = '\0';
    if (file)
        fclose(file);
    close(rig->ready_fd);
    close(rig->manager_fd);
    unlink(rig->log_path);
    snprintf(path, sizeof path, "%s/notify", rig->folder);
    unlink(path);
    CHECK_EQ(rmdir(rig->folder), 0); /* the socket and its lock are gone */
}

/* All workers after those that a test plans serve. */
static void plan_begin(void)
{
    if (!plan)
        plan = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *plan = (struct plan){.failing = NULL};
    for (int i = 0; i < STARTS_MAX; i++)
        plan->ends[i] = SERVE;
}

static unsigned count_of(const char *text, const char *words)
{
    unsigned count = 0;
    while ((text = strstr(text, words)))
        count++, text++;
    return count;
}

static char log_text[16384];

/* Waits until the worker after the planned ones serves; then sends SIGTERM. */
static void live_through(unsigned planned)
{
    static struct rig rig;
    rig_begin(&rig);
    CHECK(is_ready(&rig));
    for (unsigned told = 0; atomic_load(&plan->workers) <= planned && told < WAIT_MS; told++)
        usleep(1000);
    kill(rig.pid, SIGTERM);
    CHECK_EQ(rig_wait(&rig), EX_OK);
    CHECK_EQ(atomic_load(&plan->workers), planned + 1);
    rig_end(&rig, log_text, sizeof log_text);
}

/* Of workers that never serve, and of such as serve for a moment. */
static void deaths_in_quick_succession(void)
{
    for (int serves = 0; serves < 2; serves++) {
        plan_begin();
        for (int i = 0; i < 20; i++)
            plan->ends[i] = (serves ? SERVED : 0) - SIGKILL;
        live_through(20);
        CHECK_EQ(count_of(log_text, "the worker ended by signal 9 (Killed); starting another\n"), 1);
        CHECK_EQ(count_of(log_text, "the worker ended by signal 9 (Killed); starting another in "), 19);
    }
}

/* A resource that a worker lacks when it follows another one may come back: a GPU, memory, threads. */
static void whatever_a_later_worker_ends_by(void)
{
    static const int ends[] = {
        SERVED - SIGSEGV,     EX_UNAVAILABLE,         EX_OSERR, EX_SOFTWARE, -SIGABRT, WORKER_LOST,
        SERVED + WORKER_LOST, SERVED + EX_UNAVAILABLE};
    plan_begin();
    memcpy(plan->ends, ends, sizeof ends);
    live_through(sizeof ends / sizeof ends[0]);
    CHECK_EQ(count_of(log_text, "the worker ended by exit code 69; starting another"), 2);
    CHECK_EQ(count_of(log_text, "the worker ended by exit code 3; starting another"), 2);
    CHECK_EQ(count_of(log_text, "; starting another"), sizeof ends / sizeof ends[0]);
}

static void settings_that_cannot_be(void)
{
    static struct rig rig;
    plan_begin();
    plan->ends[0] = EX_UNAVAILABLE;
    rig_begin(&rig);
    CHECK(!is_ready(&rig));
    CHECK_EQ(rig_wait(&rig), EX_UNAVAILABLE);
    CHECK_EQ(atomic_load(&plan->workers), 1);
    rig_end(&rig, log_text, sizeof log_text);
}

/* Starts fail at the beginning and after a death, ten times in a row. */
static void starts_that_fail(void)
{
    static const char *const calls[] = {"fork", "socketpair"};
    for (size_t i = 0; i < 2; i++)
        for (unsigned from = 1; from <= 2; from++) {
            plan_begin();
            plan->failing = calls[i];
            plan->fail_from = from;
            plan->fail = 10;
            plan->ends[0] = SERVED - SIGKILL;
            live_through(1);
            CHECK_EQ(count_of(log_text, "could not start a worker: Resource temporarily unavailable; starting another"),
                     10);
        }
}

/* The cause, before the next start. */
static void the_manager_is_told(void)
{
    static struct rig rig;
    plan_begin();
    plan->ends[0] = SERVED + WORKER_LOST;
    plan->ends[1] = EX_OSERR;
    rig_begin(&rig);
    CHECK(is_told(&rig, "READY=1\nSTATUS=serving at /tmp/supervisor"));
    CHECK(is_told(&rig, "\nSTATUS=the worker ended by exit code 3: planned end 3; starting another\n"));
    CHECK(is_told(&rig, "\nSTATUS=the worker ended by exit code 71: planned end 71; starting another in "));
    rig.told[0] = '\0';
    CHECK(is_told(&rig, "READY=1"));
    kill(rig.pid, SIGTERM);
    CHECK_EQ(rig_wait(&rig), EX_OK);
    rig_end(&rig, log_text, sizeof log_text);
}

/* True when the latest worker does not run: it was told to stop. */
static bool is_stopped(void)
{
    char path[40], line[256] = "";
    for (int i = 0; i < WAIT_MS; i++) {
        snprintf(path, sizeof path, "/proc/%d/stat", (int)atomic_load(&plan->worker));
        FILE *file = fopen(path, "re");
        if (file && fgets(line, sizeof line, file) && strstr(line, ") T "))
            i = WAIT_MS;
        if (file)
            fclose(file);
        usleep(1000);
    }
    return strstr(line, ") T ");
}

static void a_stopped_worker_can_be_ended(void)
{
    static struct rig rig;
    plan_begin();
    plan->ends[0] = SERVE_STOPPED;
    rig_begin(&rig);
    CHECK(is_ready(&rig) && is_stopped());
    kill(rig.pid, SIGTERM);
    CHECK_EQ(rig_wait(&rig), EX_OK);
    rig_end(&rig, log_text, sizeof log_text);
}

/* Workers hang, stopped, or alive and without progress; the daemon goes on with the next one, and tells why. */
static void workers_that_hang(void)
{
    static const int hangs[] = {SERVE_STOPPED, SERVE_STILL};
    for (size_t i = 0; i < sizeof hangs / sizeof hangs[0]; i++) {
        static struct rig rig;
        plan_begin();
        plan->watchdog_ms = 1000;
        plan->ends[0] = hangs[i];
        rig_begin(&rig);
        CHECK(is_told(&rig, "STATUS=the worker ended by signal 9 (Killed): the worker does nothing for 1.0 s"));
        rig.told[0] = '\0';
        CHECK(is_told(&rig, "READY=1"));
        kill(rig.pid, SIGTERM);
        CHECK_EQ(rig_wait(&rig), EX_OK);
        CHECK_EQ(atomic_load(&plan->workers), 2);
        rig_end(&rig, log_text, sizeof log_text);
        CHECK_EQ(count_of(log_text, "error: the worker does nothing for 1.0 s; no job is with a device: it is ended"),
                 1);
    }
}

/* A worker that ends may stay in a driver for as long as that likes, with its files closed: its supervisor sleeps. */
static void the_end_of_the_channel_is_waited_for_once(void)
{
    static struct rig rig;
    plan_begin();
    plan->ends[0] = SERVE_DUMB;
    rig_begin(&rig);
    CHECK(is_ready(&rig));
    usleep(50000);
    CHECK(atomic_load(&plan->waits) < 10);
    kill(rig.pid, SIGTERM);
    CHECK_EQ(rig_wait(&rig), EX_OK);
    rig_end(&rig, log_text, sizeof log_text);
}

/* No other worker follows. */
static void drains_that_last(void)
{
    static struct rig rig;
    plan_begin();
    plan->drain_ms = 300;
    plan->ends[0] = SERVE_DRAINING;
    rig_begin(&rig);
    CHECK(is_told(&rig, "STOPPING=1"));
    CHECK_EQ(rig_wait(&rig), EX_OK);
    CHECK_EQ(atomic_load(&plan->workers), 1);
    rig_end(&rig, log_text, sizeof log_text);
    CHECK_EQ(
        count_of(log_text, "error: the drain has lasted for 0.3 s (drain), and 0 jobs are left: the worker is ended"),
        1);
}

/* The manager hears WATCHDOG=1 as often as it wants, with a watchdog of the daemon's own or without. */
static void the_manager_hears_of_life(void)
{
    for (int own = 0; own < 2; own++) {
        static struct rig rig;
        plan_begin();
        plan->watchdog_ms = own ? 1000 : 0;
        setenv("WATCHDOG_USEC", "20000", 1);
        rig_begin(&rig);
        for (int i = 0; i < 10; i++) {
            CHECK(is_told(&rig, "WATCHDOG=1\n"));
            rig.told[0] = '\0';
        }
        unsetenv("WATCHDOG_USEC");
        kill(rig.pid, SIGTERM);
        CHECK_EQ(rig_wait(&rig), EX_OK);
        rig_end(&rig, log_text, sizeof log_text);
    }
}

static void ended_between_two_workers(void)
{
    static struct rig rig;
    plan_begin();
    plan->failing = "fork";
    plan->fail_from = 1;
    plan->fail = UINT32_MAX - 1;
    rig_begin(&rig);
    CHECK(is_told(&rig, "STATUS=could not start a worker"));
    kill(rig.pid, SIGTERM);
    CHECK_EQ(rig_wait(&rig), EX_OK);
    rig_end(&rig, log_text, sizeof log_text);
    CHECK_CONTAINS(log_text, "stopped while no worker ran");
}

static const struct test tests[] = {
    TEST(deaths_in_quick_succession), TEST(whatever_a_later_worker_ends_by),
    TEST(settings_that_cannot_be),    TEST(starts_that_fail),
    TEST(the_manager_is_told),        TEST(a_stopped_worker_can_be_ended),
    TEST(workers_that_hang),          TEST(the_end_of_the_channel_is_waited_for_once),
    TEST(drains_that_last),           TEST(the_manager_hears_of_life),
    TEST(ended_between_two_workers),  TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

/*
 * Threads in a session. One at a time is at work in it, under the session's lock; what takes time is done without it:
 * waiting, and the program's progress functions. One of the threads that wait reads for all of them, the others sleep
 * until what they wait for is done, or until somebody must read.
 *
 * A child made by fork has no other threads, and locks as they were in its parent's: it takes none.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "client/lib/internal.h"

/* A thread that sleeps, on its stack and in the session's list. */
struct waiter {
    struct waiter *next;
    const bool *done;       /* flag that the thread waits for */
    bool reads;             /* the thread can read, if nobody does */
    _Atomic uint32_t woken; /* a futex */
};

int monitor_init(struct scand *daemon)
{
    struct epoll_event event = {.events = EPOLLIN};
    pthread_mutex_init(&daemon->lock, NULL);
    daemon->is_quiet = true;
    daemon->alarm_ms = daemon->held_due_ms = daemon->resend_ms = INT64_MAX;
    daemon->epoll = epoll_create1(EPOLL_CLOEXEC);
    daemon->alarm = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    daemon->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (daemon->epoll >= 0 && daemon->alarm >= 0 && daemon->wake >= 0 &&
        epoll_ctl(daemon->epoll, EPOLL_CTL_ADD, daemon->alarm, &event) == 0)
        return 0;
    return errno == EMFILE || errno == ENFILE ? -EBADF : -ENOMEM;
}

void monitor_finish(struct scand *daemon)
{
    const int fds[] = {daemon->epoll, daemon->alarm, daemon->wake};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    if (!process_is_child(daemon)) /* in a child the lock may be held by a thread that does not exist */
        pthread_mutex_destroy(&daemon->lock);
}

static void waiter_wake(struct waiter *waiter)
{
    if (waiter->woken)
        return;
    waiter->woken = 1;
    syscall(SYS_futex, &waiter->woken, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Wakes the threads that have what they wait for and, if nobody reads, one that can. */
static void waiters_wake(struct scand *daemon)
{
    bool somebody = daemon->is_reading;
    for (struct waiter *waiter = daemon->waiters; waiter; waiter = waiter->next) {
        if (daemon->has_changed || *waiter->done)
            waiter_wake(waiter);
        somebody = somebody || (waiter->woken && waiter->reads);
    }
    daemon->has_changed = false;
    for (struct waiter *waiter = daemon->waiters; waiter && !somebody; waiter = waiter->next)
        if (waiter->reads) {
            waiter_wake(waiter);
            somebody = true;
        }
}

void session_hears(struct scand *daemon)
{
    if (!daemon->local)
        daemon->heard_ms = clock_ms();
}

int64_t session_probe_ms(const struct scand *daemon)
{
    if (!daemon->is_up || daemon->local || daemon->jobs_open == 0)
        return INT64_MAX;
    return daemon->probe_end_ms > 0 ? daemon->probe_end_ms : daemon->heard_ms + QUIET_MS;
}

int64_t session_due_ms(const struct scand *daemon)
{
    const int64_t probe_ms = session_probe_ms(daemon);
    return probe_ms < daemon->held_due_ms ? probe_ms : daemon->held_due_ms;
}

/* Returns when scand_dispatch has something to do that no message will tell of. */
static int64_t due_ms(const struct scand *daemon)
{
    /* From here on the ring's bytes come by the socket, which the program's loop sees; what is there, it does not. */
    const bool sleeps = !daemon->connection || connection_sleep(daemon->connection);
    if (daemon->has_news || local_is_ready(daemon) || !sleeps)
        return 1;
    if (daemon->is_up)
        return daemon->local ? local_due_ms(daemon) : session_due_ms(daemon);
    if (daemon->connection)
        return daemon->mending.call_end_ms;
    return daemon->jobs_open ? daemon->mending.next_try_ms : INT64_MAX;
}

/* True when the alarm may stay as it is set. A probe's time moves on with each message; the alarm may go off before
 * that time, rather than be set again for each message. */
static bool alarm_may_stay(const struct scand *daemon, int64_t due_ms)
{
    return daemon->is_watched && daemon->is_up && !daemon->local && daemon->alarm_ms > 1 &&
           daemon->alarm_ms <= due_ms && daemon->alarm_ms > clock_ms();
}

/* Sets the alarm, which makes what scand_fd shows readable at that time. */
static void alarm_set(struct scand *daemon)
{
    int64_t alarm_ms = daemon->is_watched ? due_ms(daemon) : INT64_MAX;
    if (daemon->is_watched && daemon->resend_ms < alarm_ms)
        alarm_ms = daemon->resend_ms;
    if (alarm_ms == daemon->alarm_ms || alarm_may_stay(daemon, alarm_ms))
        return;
    daemon->alarm_ms = alarm_ms;
    struct itimerspec when = {.it_value.tv_sec = 0}; /* disarmed */
    if (alarm_ms < INT64_MAX)
        when.it_value = (struct timespec){alarm_ms / 1000, alarm_ms % 1000 * 1000000};
    timerfd_settime(daemon->alarm, TFD_TIMER_ABSTIME, &when, NULL);
}

void session_lock(struct scand *daemon)
{
    if (!process_has_forked(daemon))
        pthread_mutex_lock(&daemon->lock);
}

void session_unlock(struct scand *daemon)
{
    if (process_has_forked(daemon))
        return;
    waiters_wake(daemon);
    alarm_set(daemon);
    pthread_mutex_unlock(&daemon->lock);
}

struct scand *session_enter(struct scand *daemon)
{
    if (!daemon || process_is_child(daemon))
        return NULL;
    session_lock(daemon);
    daemon->inside++;
    return daemon;
}

void session_leave(struct scand **entered)
{
    struct scand *daemon = *entered;
    if (!daemon)
        return;
    daemon->inside--;
    daemon->is_empty = daemon->inside == 0;
    session_unlock(daemon);
}

void session_wake_reader(struct scand *daemon)
{
    if (daemon->is_reading)
        eventfd_write(daemon->wake, 1);
}

void session_end(struct scand *daemon)
{
    session_lock(daemon);
    daemon->is_ending = daemon->has_changed = true;
    daemon->is_empty = daemon->inside == 0;
    session_wake_reader(daemon);
    while (!daemon->is_empty)
        (void)session_sleep(daemon, &daemon->is_empty, false, INT64_MAX);
    session_unlock(daemon);
}

/* True where a handler is installed after which system calls are not to go on. Those of faults are no interruption. */
static bool signals_interrupt(void)
{
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL || number == SIGABRT ||
            number == SIGTRAP || sigaction(number, NULL, &action))
            continue;
        if (!(action.sa_flags & SA_RESTART) && action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN)
            return true;
    }
    return false;
}

int session_interrupted(struct scand *daemon)
{
    return signals_interrupt()
               ? session_fail(daemon, -EINTR,
                              "a signal's handler has run while the call waited: nothing is lost, call it again")
               : 0;
}

int session_sleep(struct scand *daemon, const bool *done, bool reads, int64_t deadline_ms)
{
    struct waiter waiter = {.next = daemon->waiters, .done = done, .reads = reads}, **link = &daemon->waiters;
    int64_t left_ms = deadline_ms == INT64_MAX ? INT64_MAX : deadline_ms - clock_ms();
    if (left_ms <= 0)
        return -ETIMEDOUT;
    struct timespec left = {.tv_sec = left_ms / 1000, .tv_nsec = left_ms % 1000 * 1000000};
    daemon->waiters = &waiter;
    session_unlock(daemon);
    int code = 0;
    if (syscall(SYS_futex, &waiter.woken, FUTEX_WAIT_PRIVATE, 0, left_ms == INT64_MAX ? NULL : &left, NULL, 0))
        code = errno;
    session_lock(daemon);
    while (*link != &waiter)
        link = &(*link)->next;
    *link = waiter.next;
    if (waiter.woken)
        return 0;
    if (code == ETIMEDOUT)
        return -ETIMEDOUT;
    return code == EINTR ? session_interrupted(daemon) : 0;
}

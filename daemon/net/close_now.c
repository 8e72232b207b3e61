#include "close_now.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#define SIGNAL    SIGALRM
#define PERIOD_NS 500000 /* a signal that comes before the wait begins ends nothing: there is another */

#ifndef sigev_notify_thread_id /* glibc has the member, and no name for it */
#define sigev_notify_thread_id _sigev_un._tid
#endif

static void interrupt(int number)
{
    (void)number;
}

void close_now_init(void)
{
    const struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART};
    sigaction(SIGNAL, &action, NULL);
}

void close_now(int fd)
{
    const struct itimerspec period = {{0, PERIOD_NS}, {0, PERIOD_NS}};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGNAL};
    timer_t timer;
    event.sigev_notify_thread_id = gettid();
    const int r = timer_create(CLOCK_MONOTONIC, &event, &timer);
    if (!r)
        timer_settime(timer, 0, &period, NULL);
    close(fd);
    if (!r)
        timer_delete(timer);
}

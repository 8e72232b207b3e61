/* Processes without a processor, and processes that need none. */
#include "daemon/process/starvation.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check.h"

#define PERIOD_MS 100

static void to_one_processor(void)
{
    cpu_set_t all, one;
    int first = 0;
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

static void run_for_ever(void)
{
    for (volatile unsigned i = 0;; i++)
        ;
}

static void sleep_for_ever(void)
{
    for (;;)
        pause();
}

static pid_t child_begin(int policy, void (*act)(void))
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child > 0)
        return child;
    to_one_processor();
    CHECK_EQ(sched_setscheduler(0, policy, &(struct sched_param){0}), 0);
    act();
    _exit(0);
}

static void child_end(pid_t child)
{
    kill(child, SIGKILL);
    CHECK_EQ(waitpid(child, NULL, 0), child);
}

/* The first look tells nothing: it is not known since when. */
static bool is_starved(pid_t child)
{
    struct starvation starvation = {0};
    usleep(PERIOD_MS * 1000);
    starvation_check(&starvation, child, PERIOD_MS);
    usleep(PERIOD_MS * 1000);
    return starvation_check(&starvation, child, PERIOD_MS);
}

/* Two processes share one processor, which is for the idle one when nobody else wants it. */
static void beside_another(void)
{
    pid_t other = child_begin(SCHED_OTHER, run_for_ever), idle = child_begin(SCHED_IDLE, run_for_ever);
    CHECK(is_starved(idle));
    child_end(idle);
    child_end(other);
}

static bool has_starved_threads(pid_t child)
{
    struct starvation starvation = {0};
    usleep(PERIOD_MS * 1000);
    starvation_check_others(&starvation, child, PERIOD_MS);
    usleep(PERIOD_MS * 1000);
    return starvation_check_others(&starvation, child, PERIOD_MS);
}

static void *thread_run(void *argument)
{
    (void)argument;
    run_for_ever();
    return NULL;
}

/* The first thread sleeps, another one has work. */
static void run_beside(void)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, thread_run, NULL), 0);
    sleep_for_ever();
}

static void other_threads(void)
{
    pid_t other = child_begin(SCHED_OTHER, run_for_ever), idle = child_begin(SCHED_IDLE, run_beside);
    bool starved = true;
    for (int i = 0; i < 50 && starved; i++) /* its first thread needs the processor to get as far as sleeping */
        starved = is_starved(idle);
    CHECK(!starved);
    CHECK(has_starved_threads(idle));
    kill(idle, SIGSTOP);
    CHECK_EQ(waitpid(idle, NULL, WUNTRACED), idle);
    CHECK(!has_starved_threads(idle));
    child_end(idle);
    child_end(other);
    CHECK(!has_starved_threads(idle));
}

static void asleep(void)
{
    pid_t other = child_begin(SCHED_OTHER, run_for_ever), idle = child_begin(SCHED_IDLE, sleep_for_ever);
    kill(idle, SIGSTOP);
    CHECK_EQ(waitpid(idle, NULL, WUNTRACED), idle);
    CHECK(!is_starved(idle));
    child_end(idle);
    child_end(other);
}

static void gone(void)
{
    pid_t child = child_begin(SCHED_OTHER, sleep_for_ever);
    child_end(child);
    CHECK(!is_starved(child));
}

static const struct test tests[] = {TEST(beside_another), TEST(other_threads), TEST(asleep), TEST(gone), TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

/* Threads that read: as many as there is work, reused, and what becomes of work that never ends. */
#include "daemon/process/readers.h"

#include <semaphore.h>

#include "tests/check.h"

#define SOME 8

static struct readers sets[3], *readers; /* one for each test: threads never end */
static sem_t begun, gate, told;

/* Work that says that it has begun, and waits until it may go on; as often as it has units. */
struct task {
    struct work work; /* first */
    unsigned units;
    bool waits;
};

static bool task_run(struct work *work)
{
    struct task *task = (struct task *)work;
    if (task->waits) {
        sem_post(&begun);
        sem_wait(&gate);
    }
    return --task->units > 0;
}

static void notify(void *context)
{
    CHECK(context == readers);
    sem_post(&told);
}

static void begin(void)
{
    readers = readers ? readers + 1 : sets;
    sem_init(&begun, 0, 0);
    sem_init(&gate, 0, 0);
    sem_init(&told, 0, 0);
    CHECK_EQ(readers_start(readers, notify, readers), 0);
}

static void submit(struct task *task, unsigned units, bool waits)
{
    *task = (struct task){.work.run = task_run, .units = units, .waits = waits};
    readers_submit(readers, &task->work);
}

static unsigned collect(void)
{
    unsigned count = 0;
    for (struct work *work = readers_collect(readers); work; work = work->next)
        count++;
    return count;
}

/* Each unit has a thread, so that none waits for another that hangs. Threads stay, and are used again. */
static void each_has_a_thread(void)
{
    static struct task tasks[SOME];
    begin();
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < SOME; i++)
            submit(&tasks[i], 1, true);
        for (int i = 0; i < SOME; i++)
            sem_wait(&begun); /* all of them, at the same time */
        CHECK_EQ(readers_out(readers), SOME);
        CHECK_EQ(collect(), 0);
        for (int i = 0; i < SOME; i++)
            sem_post(&gate);
        unsigned done = 0;
        while (done < SOME) {
            sem_wait(&told);
            done += collect();
        }
        CHECK_EQ(done, SOME);
        CHECK_EQ(readers_out(readers), 0);
    }
    CHECK(readers->threads >= SOME && readers->threads <= SOME + 1);
}

static void more_is_left(void)
{
    static struct task task;
    begin();
    submit(&task, 2, false);
    sem_wait(&told);
    struct work *work = readers_collect(readers);
    REQUIRE(work == &task.work && work->more && !work->next);
    readers_submit(readers, work);
    sem_wait(&told);
    CHECK(readers_collect(readers) == work && !work->more);
}

/* At the end units that are done soon are waited for, and nobody is notified; a unit that hangs is left. */
static void the_end_is_bounded(void)
{
    static struct task quick, hung;
    int times;
    begin();
    readers_silence(readers);
    submit(&hung, 1, true);
    sem_wait(&begun);
    submit(&quick, 1, false);
    CHECK(readers_wait(readers, 60000));
    CHECK_EQ(collect(), 1);
    CHECK(!readers_wait(readers, 1));
    CHECK_EQ(readers_out(readers), 1);
    sem_post(&gate);
    CHECK(readers_wait(readers, 60000));
    CHECK_EQ(collect(), 1);
    CHECK(!readers_wait(readers, 60000)); /* at once: none is out */
    CHECK(sem_getvalue(&told, &times) == 0 && times == 0);
}

static const struct test tests[] = {TEST(each_has_a_thread), TEST(more_is_left), TEST(the_end_is_bounded), TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

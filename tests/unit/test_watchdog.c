/* The watchdog, look by look: what hangs, and what only takes its time. */
#include "daemon/process/watchdog.h"

#include "tests/check.h"

#define LIMIT_MS  8000
#define PERIOD_MS (LIMIT_MS / WATCHDOG_CHECKS)

static struct progress progress;
static struct service service;
static struct watchdog watchdog;
static char cause[256];
static bool starved;

static void begin(enum phase phase)
{
    progress_init(&progress);
    watchdog_init(&watchdog, LIMIT_MS);
    atomic_store(&progress.phase, phase);
    CHECK_EQ(watchdog.period_ms, PERIOD_MS);
}

/* Returns how many looks it takes to find a hang, at most `most`, with the loop turning meanwhile or not. */
static unsigned looks(unsigned most, bool turns)
{
    for (unsigned i = 1; i <= most; i++) {
        atomic_fetch_add(&progress.turns, turns ? 1 : 0);
        if (watchdog_check(&watchdog, &progress, &service, starved, cause, sizeof cause))
            return i;
    }
    return 0;
}

static void hand_over(unsigned device, uint64_t handed_us, uint64_t allowed_ms)
{
    atomic_store(&progress.devices[device].job, 17);
    atomic_store(&progress.devices[device].user, 1000);
    atomic_store(&progress.devices[device].allowed_ms, allowed_ms);
    atomic_store(&progress.devices[device].served_ms, allowed_ms);
    atomic_store(&progress.devices[device].handed_us, handed_us);
}

static void a_loop_that_turns(void)
{
    begin(PHASE_SERVING);
    CHECK_EQ(looks(1000, true), 0);
    hand_over(0, 5, UINT64_MAX);
    CHECK_EQ(looks(1000, true), 0);
}

/* The look at which it turned last counts as none. */
static void a_loop_that_stands(void)
{
    begin(PHASE_SERVING);
    CHECK_EQ(looks(3, true), 0);
    CHECK_EQ(looks(100, false), WATCHDOG_CHECKS);
    CHECK_CONTAINS(cause, "the worker does nothing for 8.0 s; no job is with a device");
    /* The device's chunk is looked up when the hang is found: the device may have got it since the loop last showed it.
     */
    service.scheduler.stations[3].chunks[1] =
        (struct chunk){.owner = &service, .job = 17, .user = 1000, .handed_us = 5};
    service.scheduler.stations[3].chunks[2] = (struct chunk){.owner = &service, .job = 18, .handed_us = 6};
    begin(PHASE_SERVING);
    looks(100, false);
    CHECK_CONTAINS(cause, "device 3 has job 17 of user 1000");
    begin(PHASE_STARTING);
    looks(100000, false);
    CHECK_CONTAINS(cause, "no job is with a device");
    service = (struct service){0};
}

/* Three looks without a turn, again and again, are a slow machine. */
static void a_slow_loop(void)
{
    begin(PHASE_SERVING);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(looks(1, true), 0);
        CHECK_EQ(looks(WATCHDOG_CHECKS - 1, false), 0);
    }
}

static void beginning_and_end_have_longer(void)
{
    begin(PHASE_STARTING);
    CHECK_EQ(looks(100000, false), WATCHDOG_START_MS / PERIOD_MS);
    CHECK_CONTAINS(cause, "the worker has not begun to serve for 300.0 s");
    begin(PHASE_ENDING);
    CHECK_EQ(looks(100000, false), WATCHDOG_ENDING_MS / PERIOD_MS);
    CHECK_CONTAINS(cause, "the worker does not end for 60.0 s");
    begin(PHASE_STARTING);
    looks(100, false);
    atomic_fetch_add(&progress.turns, 1);
    atomic_store(&progress.phase, PHASE_SERVING);
    CHECK_EQ(looks(1, false), 0);
}

/* A loop that sleeps at memory which a client gives back cannot be ended, and goes on by itself. */
static void a_loop_that_sleeps_has_longer(void)
{
    begin(PHASE_SERVING);
    watchdog.asleep = true;
    CHECK_EQ(looks(100, false), WATCHDOG_ASLEEP * WATCHDOG_CHECKS);
    begin(PHASE_SERVING);
    watchdog.asleep = true;
    CHECK_EQ(looks(WATCHDOG_CHECKS + 1, false), 0);
    watchdog.asleep = false;
    CHECK_EQ(looks(1, false), 1);
}

/* A GPU gives a chunk back, or hangs; threads may have to wait, and a variant of a tutorial is slow. */
static void how_long_a_chunk_may_take(void)
{
    struct device gpu = {.info = {.backend = "cuda"}}, processor = {.info = {.on_processor = true}};
    struct step step = {.operation = OPERATION_scan}, variant = {.rule = {.algorithm = 1}};
    const struct chunk plain = {.device = &gpu, .steps = &step, .step_count = 1};
    const struct chunk slow = {.device = &gpu, .steps = &variant, .step_count = 1};
    const struct chunk threads = {.device = &processor, .steps = &step, .step_count = 1};
    const struct chunk values = {.device = &gpu, .below = 10};
    CHECK_EQ(progress_floor_ms(&plain, 5000, false), 5000);
    CHECK_EQ(progress_floor_ms(&plain, 5000, true), 5000);
    CHECK_EQ(progress_floor_ms(&values, 5000, false), 5000);
    CHECK_EQ(progress_floor_ms(&slow, 5000, true), 30000);
    CHECK_EQ(progress_floor_ms(&threads, 5000, false), 30000);
    CHECK_EQ(progress_floor_ms(&threads, 5000, true), 5000);
}

/* Besides, a chunk may take a hundred times as long as its user was charged for it, by the user's weight. */
static void a_hundred_estimates_are_allowed(void)
{
    static struct job job;
    struct fair_user user = {.weight = 3};
    struct lane lane = {.user = &user};
    struct device device = {.number = 0};
    begin(PHASE_SERVING);
    job.lane = &lane;
    service.scheduler.station_count = 1;
    service.scheduler.stations[0].chunks[0] =
        (struct chunk){.owner = &job, .device = &device, .handed_us = 9, .charge_ns = 2000000};
    progress_show(&progress, &service, LIMIT_MS);
    CHECK_EQ(atomic_load(&progress.devices[0].handed_us), 9);
    CHECK_EQ(atomic_load(&progress.devices[0].allowed_ms), LIMIT_MS + 100 * 3 * 2);
    CHECK_EQ(atomic_load(&progress.devices[0].served_ms), LIMIT_MS + 100 * 3 * 2);
    service.scheduler.stations[0].chunks[0] = (struct chunk){.owner = NULL};
    progress_show(&progress, &service, LIMIT_MS);
    CHECK_EQ(atomic_load(&progress.devices[0].handed_us), 0);
    service.scheduler.station_count = 0;
}

/* A chunk that stays longer than its allowance is a hang, though the loop turns. */
static void a_chunk_that_stays(void)
{
    const uint64_t allowed_ms = 6 * LIMIT_MS;
    begin(PHASE_SERVING);
    hand_over(1, 99, allowed_ms);
    CHECK_EQ(looks(1000, true), 1 + allowed_ms / PERIOD_MS);
    CHECK_CONTAINS(cause, "device 1 has had a chunk of job 17 of user 1000 for 48.0 s, where 48.0 s are allowed");
}

/* Only the time in which its threads have processors counts for a device that computes; but they may not wait for ever.
 */
static void threads_that_compute(void)
{
    begin(PHASE_SERVING);
    CHECK(!watchdog_watches_threads(&progress));
    hand_over(2, 99, 6 * LIMIT_MS);
    CHECK(!watchdog_watches_threads(&progress));
    atomic_store(&progress.devices[2].served_ms, LIMIT_MS);
    CHECK(watchdog_watches_threads(&progress));
    CHECK_EQ(looks(1, true), 0);
    starved = true;
    CHECK_EQ(looks(3 * WATCHDOG_CHECKS, true), 0);
    starved = false;
    CHECK_EQ(looks(1000, true), WATCHDOG_CHECKS);
    CHECK_CONTAINS(cause, "for 32.0 s, where 8.0 s are allowed");
    hand_over(2, 100, 6 * LIMIT_MS);
    atomic_store(&progress.devices[2].served_ms, LIMIT_MS);
    starved = true;
    CHECK_EQ(looks(1000, true), 1 + 6 * WATCHDOG_CHECKS);
    CHECK_CONTAINS(cause, "for 48.0 s, where 48.0 s are allowed");
    starved = false;
}

static void chunks_that_come_back(void)
{
    begin(PHASE_SERVING);
    for (uint64_t i = 1; i < 1000; i++) {
        hand_over(0, i, 2 * PERIOD_MS);
        CHECK_EQ(looks(2, true), 0);
    }
    hand_over(0, 0, 0);
    CHECK_EQ(looks(1000, true), 0);
}

static void nobody_looks(void)
{
    watchdog_init(&watchdog, 0);
    CHECK_EQ(watchdog.period_ms, 0);
}

static const struct test tests[] = {
    TEST(a_loop_that_turns),
    TEST(a_loop_that_stands),
    TEST(a_slow_loop),
    TEST(beginning_and_end_have_longer),
    TEST(a_loop_that_sleeps_has_longer),
    TEST(how_long_a_chunk_may_take),
    TEST(a_hundred_estimates_are_allowed),
    TEST(a_chunk_that_stays),
    TEST(threads_that_compute),
    TEST(chunks_that_come_back),
    TEST(nobody_looks),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

/* Which of several devices, of different kinds, runs which job. */
#include "tests/unit/scheduler_rig.h"

/* Two devices with room for one chunk each, of which the first is ten times as fast. */
static void begin_unlike(void)
{
    begin_devices(2, 1);
    add(0, 0, 2, 0, 1);
    struct chunk *chunks[2] = {scheduler_next(&scheduler, 1), scheduler_next(&scheduler, 1)};
    for (unsigned i = 0; i < 2; i++) {
        chunks[i]->kernel_us = chunks[i]->device == &devices[0] ? 1000 : 10000;
        end(chunks[i], 0);
    }
}

static void ends_are_left_to_the_faster(void)
{
    begin_unlike();
    struct job *first = add(0, 1, 3, 0, 1);
    struct chunk *chunk = scheduler_next(&scheduler, 1);
    CHECK(owner_of(chunk) == first && chunk->device == &devices[0]);
    CHECK(!scheduler_next(&scheduler, 1)); /* the other would take longer than all three rows do */
    struct job *large = add(1, 2, 100, 2, 3);
    struct chunk *other = scheduler_next(&scheduler, 1);
    CHECK(owner_of(other) == large && other->device == &devices[1]);
    chunk->kernel_us = 1000;
    end(chunk, 0);
    chunk = scheduler_next(&scheduler, 1);
    CHECK(chunk && chunk->device == &devices[0] && !scheduler_next(&scheduler, 1));
}

static void each_gets_what_it_is_fast_at(void)
{
    begin_unlike();
    add(0, 1, 1000, 0, 1);
    unsigned had[2] = {0};
    uint64_t busy_until[2] = {0};
    struct chunk *out[2] = {0};
    for (;;) {
        const unsigned first = !out[1] || (out[0] && busy_until[0] <= busy_until[1]) ? 0 : 1;
        const uint64_t now = out[first] ? busy_until[first] : 0;
        if (out[first]) {
            end(out[first], 0);
            out[first] = NULL;
        }
        for (struct chunk *chunk; (chunk = scheduler_next(&scheduler, 1));) {
            const unsigned number = chunk->device->number;
            chunk->kernel_us = number == 0 ? 1000 : 10000;
            busy_until[number] = now + chunk->kernel_us;
            out[number] = chunk;
            had[number]++;
        }
        if (!out[0] && !out[1])
            break;
    }
    CHECK_EQ(had[0] + had[1], 1000);
    CHECK(had[1] >= 89 && had[1] <= 91);          /* an eleventh */
    CHECK(busy_until[1] <= busy_until[0] + 1000); /* a chunk of the faster at most */
}

/* Runs a small job that its device has for away_us of that device. Returns the device. */
static struct device *run_small(unsigned lane, unsigned number, const uint64_t away_us[2])
{
    struct job *job = add(lane, number, 1, 2 * lane, 2 * lane + 1);
    struct chunk *chunk = scheduler_next(&scheduler, 1);
    CHECK(owner_of(chunk) == job && chunk->small);
    struct device *device = chunk->device;
    chunk->away_us = away_us[device->number];
    end(chunk, 0);
    return device;
}

static void small_jobs_go_where_they_return_soonest(void)
{
    static const uint64_t away_us[2] = {30, 3};
    begin_devices(2, 1);
    for (unsigned i = 0; i < 2; i++) {
        devices[i].info.small_slots = 2;
        devices[i].info.small_bytes = 4;
    }
    scheduler_init(&scheduler, &(struct device_set){{&devices[0], &devices[1]}, 2});
    unsigned had[2] = {0};
    for (unsigned i = 0; i < 2000; i++)
        had[run_small(0, 0, away_us)->number]++;
    CHECK(had[0] >= 2 && had[0] <= 10); /* tried again from time to time */
}

/* Helpers leave some jobs: those that they would have to do to their end, or cannot do. */
static void helpers_leave_some_jobs(void)
{
    begin_devices(2, 1);
    devices[1].info.helps = true;
    devices[1].info.chunk_bytes = 400;
    struct job *named = add(0, 0, 10, 0, 1);
    named->step_count = 1;
    named->steps[0].rule.algorithm = 1;
    struct job *longer = add_sized(1, SCAND_PRIORITY_NORMAL, 1, 10, 801, 2, 3);
    struct job *other = add_sized(2, SCAND_PRIORITY_NORMAL, 2, 10, 800, 4, 5);
    CHECK(!job_fits_device(named, &devices[1]) && !job_fits_device(longer, &devices[1]));
    CHECK(job_fits_device(other, &devices[1]) && job_fits_device(longer, &devices[0]));
    longer->long_bytes = 1; /* such rows are left off */
    CHECK(job_fits_device(longer, &devices[1]));
    longer->long_bytes = 0;
    struct chunk *chunks[2] = {scheduler_next(&scheduler, 1), scheduler_next(&scheduler, 1)};
    CHECK(chunks[0] && chunks[1] && owner_of(chunks[chunks[1]->device == &devices[1]]) == other);
}

static const struct test tests[] = {
    TEST(ends_are_left_to_the_faster),
    TEST(each_gets_what_it_is_fast_at),
    TEST(small_jobs_go_where_they_return_soonest),
    TEST(helpers_leave_some_jobs),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

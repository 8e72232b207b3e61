/* The order of rows, and a random run against the rules. test_scheduler_devices.c has
 * several devices, and test_shares.c tests how much each user gets. */
#include <errno.h>

#include "tests/unit/scheduler_rig.h"

static void nothing_to_do(void)
{
    begin(2);
    CHECK(!scheduler_next(&scheduler, 1));
}

static void never_more_than_depth(void)
{
    for (unsigned depth = 1; depth <= LIMIT_CHUNKS_IN_FLIGHT + 1; depth++) {
        struct chunk *first = NULL;
        unsigned out = 0;
        begin(depth);
        add(0, 0, 100, 0, 1);
        for (struct chunk *chunk; (chunk = scheduler_next(&scheduler, 1)); out++)
            first = chunk;
        CHECK_EQ(out, depth < LIMIT_CHUNKS_IN_FLIGHT ? depth : LIMIT_CHUNKS_IN_FLIGHT);
        end(first, 0);
        CHECK(scheduler_next(&scheduler, 1));
        CHECK(!scheduler_next(&scheduler, 1));
    }
}

/* A device with as many small slots, for jobs of one row. */
static void begin_small(unsigned small)
{
    begin(1);
    devices[0].info.small_slots = small;
    devices[0].info.small_bytes = 4;
    scheduler_init(&scheduler, &(struct device_set){{&devices[0]}, 1});
}

static void small_jobs_have_slots_of_their_own(void)
{
    begin_small(2);
    struct job *large = add(0, 0, 2, 0, 1), *first = add(1, 1, 1, 2, 3), *second = add(1, 2, 1, 4, 5);
    struct job *third = add(2, 3, 1, 0, 2);
    struct chunk *chunk = scheduler_next(&scheduler, 1);
    CHECK(owner_of(chunk) == large && !chunk->small);
    struct chunk *small = scheduler_next(&scheduler, 1), *other = scheduler_next(&scheduler, 1);
    CHECK(owner_of(small) == first && small->small);
    CHECK(owner_of(other) == third && other->small);
    CHECK(!scheduler_next(&scheduler, 1));
    end(other, 0);
    other = scheduler_next(&scheduler, 1);
    CHECK(owner_of(other) == second && other->small);
    end(small, 0);
    CHECK(!scheduler_next(&scheduler, 1)); /* a large job does not take a small slot */
    end(chunk, 0);
    chunk = scheduler_next(&scheduler, 1);
    CHECK(owner_of(chunk) == large && !chunk->small);
    end(other, 0);
    end(chunk, 0);
}

static void small_jobs_take_other_slots_too(void)
{
    begin_small(1);
    add(0, 0, 1, 0, 1);
    struct job *second = add(0, 1, 1, 2, 3);
    struct chunk *small = scheduler_next(&scheduler, 1), *other = scheduler_next(&scheduler, 1);
    CHECK(small && small->small);
    CHECK(owner_of(other) == second && !other->small);
    end(other, 0);
    end(small, 0);
}

/* A user's own copies do not have to make up for how long its small jobs took; nor are they taken to be as slow. */
static void small_jobs_cost_their_bytes(void)
{
    begin_small(1);
    lanes[1].user = &fair_users[0];
    struct job *mixed = add_sized(0, SCAND_PRIORITY_NORMAL, 0, 100, 4000, 0, 1);
    struct job *plain = add_sized(2, SCAND_PRIORITY_NORMAL, 1, 100, 4000, 2, 3);
    unsigned had[JOBS] = {0};
    for (int i = 0; i < 100; i++) {
        struct job *small = add(1, 2, 1, 4, 5);
        struct chunk *out[2] = {scheduler_next(&scheduler, 1), scheduler_next(&scheduler, 1)};
        REQUIRE(out[0] && out[1] && !scheduler_next(&scheduler, 1));
        for (int j = 0; j < 2; j++) {
            struct job *owner = owner_of(out[j]);
            CHECK_EQ(out[j]->small, owner == small);
            had[owner - jobs]++;
            out[j]->kernel_us = out[j]->small ? 1000 : 100;
            end(out[j], 0);
        }
    }
    unsigned first = had[mixed - jobs], second = had[plain - jobs];
    CHECK_EQ(first + second, 100);
    CHECK(first >= 48 && second >= 48);
}

static void small_jobs_cost_little_however_slow_others_were(void)
{
    begin_small(1);
    add_sized(0, SCAND_PRIORITY_NORMAL, 0, 1, 8, 0, 1);
    struct chunk *chunk = scheduler_next(&scheduler, 1);
    chunk->kernel_us = 1000000;
    end(chunk, 0);
    add(1, 2, 1, 4, 5);
    chunk = scheduler_next(&scheduler, 1);
    CHECK(chunk->small && chunk->charge_ns == 200 * 1000);
    end(chunk, 0);
}

static void small_jobs_have_few_bytes_together(void)
{
    const uint64_t half = LIMIT_SMALL_OUT_BYTES / 2;
    begin_small(4);
    devices[0].info.small_bytes = scheduler.small_bytes = half;
    add_sized(0, SCAND_PRIORITY_NORMAL, 0, 1, half + 1, 0, 1);
    struct chunk *large = scheduler_next(&scheduler, 1), *small[3];
    for (unsigned i = 0; i < 3; i++)
        add_sized(i, SCAND_PRIORITY_NORMAL, 1 + i, 1, half, 0, 2 + i);
    small[0] = scheduler_next(&scheduler, 1);
    small[1] = scheduler_next(&scheduler, 1);
    CHECK(!large->small && small[0] && small[0]->small && small[1] && small[1]->small);
    CHECK(!scheduler_next(&scheduler, 1));
    end(small[0], -EIO);
    small[2] = scheduler_next(&scheduler, 1);
    CHECK(small[2] && small[2]->small);
    end(small[1], 0);
    end(small[2], 0);
    end(large, 0);
    CHECK_EQ(scheduler.stations[0].small_out_bytes, 0);
}

static void small_jobs_pass_no_more_urgent_ones(void)
{
    begin_small(2);
    struct job *large = add_class(0, HIGH, 0, 2, 0, 1), *after = add_class(0, HIGH, 1, 1, 2, 3);
    add_class(0, LOW, 2, 1, 4, 5);
    struct chunk *chunk = scheduler_next(&scheduler, 1);
    CHECK(owner_of(chunk) == large);
    CHECK(!scheduler_next(&scheduler, 1));
    end(chunk, 0);
    chunk = scheduler_next(&scheduler, 1);
    CHECK(owner_of(chunk) == large);
    struct chunk *small = scheduler_next(&scheduler, 1);
    CHECK(owner_of(small) == after && small->small);
    end(small, 0);
    end(chunk, 0);
}

static void want_of_room_costs_nothing(void)
{
    begin_small(1);
    add(0, 0, 3, 0, 1);
    struct chunk *chunk = scheduler_next(&scheduler, 1);
    uint64_t before_ns = fair_users[0].account_ns[0];
    for (unsigned i = 1; i < 10; i++) {
        add(1, i, 1, 2, 3);
        struct chunk *small = scheduler_next(&scheduler, 1);
        CHECK(small && small->small);
        small->kernel_us = 1000;
        end(small, 0);
    }
    CHECK_EQ(fair_users[0].account_ns[0], before_ns);
    end(chunk, 0);
}

static void users_take_turns(void)
{
    begin(1);
    struct job *a = add(0, 0, 10, 0, 1), *b = add(1, 1, 2, 2, 3), *c = add(2, 2, 3, 4, 5);
    struct job *expected[] = {a, b, c, a, b, c, a, c, a, a};
    for (int i = 0; i < 10; i++)
        CHECK(step() == expected[i]);
}

/* The lanes of a user take turns in those of the user. */
static void lanes_take_turns(void)
{
    begin(1);
    lanes[1].user = &fair_users[0];
    struct job *a = add(0, 0, 3, 0, 1), *b = add(1, 1, 2, 2, 3), *other = add(2, 2, 5, 4, 5);
    struct job *expected[] = {a, other, b, other, a, other, b, other, a, other};
    for (int i = 0; i < 10; i++)
        CHECK(step() == expected[i]);
}

/* A newcomer waits for a turn of each other user, not for their jobs, however much they have queued. */
static void newcomer_waits_a_turn(void)
{
    begin(1);
    for (unsigned i = 0; i < 10; i++)
        add(0, i, 1000, 0, 1);
    for (int i = 0; i < 7; i++)
        CHECK(step() == &jobs[0]);
    struct job *newcomer = add(1, 10, 5, 2, 3);
    CHECK(step() == newcomer);
    for (int i = 0; i < 4; i++) {
        struct job *first = step(), *second = step();
        CHECK((first == newcomer) != (second == newcomer));
    }
}

static void order_inside_a_lane(void)
{
    begin(1);
    struct job *a = add(0, 0, 2, 0, 1), *b = add(0, 1, 2, 2, 3);
    CHECK(step() == a && step() == a && step() == b && step() == b && !step());
}

static void apart_jobs_overlap(void)
{
    begin(3);
    struct job *a = add(0, 0, 1, 0, 1), *b = add(0, 1, 1, 0, 2), *c = add(0, 2, 1, 0, 3);
    CHECK(owner_of(scheduler_next(&scheduler, 1)) == a);
    CHECK(owner_of(scheduler_next(&scheduler, 1)) == b);
    CHECK(owner_of(scheduler_next(&scheduler, 1)) == c);
}

static void touching_jobs_wait(void)
{
    begin(4);
    struct job *a = add(0, 0, 2, 0, 1), *b = add(0, 1, 1, 1, 2), *other = add(1, 2, 1, 3, 4);
    struct chunk *a1 = scheduler_next(&scheduler, 1), *o = scheduler_next(&scheduler, 1);
    struct chunk *a2 = scheduler_next(&scheduler, 1);
    CHECK(owner_of(a1) == a && owner_of(a2) == a && owner_of(o) == other);
    CHECK(!scheduler_next(&scheduler, 1));
    end(a2, 0);
    CHECK(!scheduler_next(&scheduler, 1));
    end(a1, 0);
    CHECK(owner_of(scheduler_next(&scheduler, 1)) == b);
}

/* A job that could run does not pass one that waits before it: it may depend on that one. */
static void no_overtaking(void)
{
    begin(4);
    add(0, 0, 1, 0, 1);
    add(0, 1, 1, 1, 2);
    add(0, 2, 1, 3, 4);
    struct chunk *chunk = scheduler_next(&scheduler, 1);
    CHECK(!scheduler_next(&scheduler, 1));
    end(chunk, 0);
    CHECK(scheduler_next(&scheduler, 1));
    CHECK(scheduler_next(&scheduler, 1));
}

static void stopped_jobs_still_block(void)
{
    begin(4);
    struct job *a = add(0, 0, 10, 0, 1), *b = add(0, 1, 1, 1, 2);
    struct chunk *chunk = scheduler_next(&scheduler, 1);
    CHECK(!job_stop(a, -ECANCELED, "stop"));
    scheduler_stop(&scheduler, a);
    CHECK(!scheduler_next(&scheduler, 1));
    end(chunk, 0);
    CHECK(owner_of(scheduler_next(&scheduler, 1)) == b);
}

static void failed_jobs_hand_out_no_more(void)
{
    begin(2);
    struct job *a = add(0, 0, 10, 0, 1), *b = add(0, 1, 1, 2, 3);
    struct chunk *first = scheduler_next(&scheduler, 1), *second = scheduler_next(&scheduler, 1);
    end(first, -EIO);
    CHECK(owner_of(scheduler_next(&scheduler, 1)) == b);
    end(second, 0);
    CHECK_EQ(a->state, JOB_ENDED);
    CHECK(!scheduler.turn);
}

static void remove_from_anywhere(void)
{
    begin(1);
    struct job *a = add(0, 0, 1, 0, 1), *b = add(0, 1, 1, 2, 3), *c = add(1, 2, 1, 4, 5);
    scheduler_remove(&scheduler, a);
    scheduler_remove(&scheduler, b);
    scheduler_remove(&scheduler, b); /* not there: nothing */
    CHECK(step() == c);
    CHECK(!step());
    CHECK(!scheduler.turn);
}

static unsigned compared; /* pairs of jobs whose operands were compared */

bool __real_job_operands_conflict(const struct job *later, const struct job *earlier);
bool __wrap_job_operands_conflict(const struct job *later, const struct job *earlier);

bool __wrap_job_operands_conflict(const struct job *later, const struct job *earlier)
{
    compared++;
    return __real_job_operands_conflict(later, earlier);
}

/* A job that reads two buffers, so that one glance does not tell what it is apart from. */
static void add_wide(enum scand_priority priority, unsigned number, unsigned input, unsigned further, unsigned output)
{
    struct job *job = add_class(0, priority, number, 1, input, output);
    job->operands[OPERAND_FURTHER] =
        (struct operand){.buffer = &buffers[further], .extent = {0, 100}, .access = ACCESS_READ};
    job->operand_count = OPERAND_FURTHER + 1;
    job_find_reach(job);
}

/* However often something is looked for while jobs wait: others' chunks return, messages come. */
static void jobs_are_compared_once(void)
{
    begin(2);
    add(0, 0, 1, 0, 1);
    struct chunk *chunk = scheduler_next(&scheduler, 0);
    for (unsigned i = 1; i < JOBS - 1; i++)
        add_wide(LOW, i, 1, 2, 3);
    add_wide(HIGH, JOBS - 1, 1, 4, 5);
    compared = 0;
    for (int i = 0; i < 50; i++)
        CHECK(!scheduler_next(&scheduler, 0));
    CHECK(compared >= JOBS - 2 && compared <= JOBS);
    end(chunk, 0);
    chunk = scheduler_next(&scheduler, 0);
    CHECK(owner_of(chunk) == &jobs[JOBS - 1]);
    end(chunk, 0);
    while ((chunk = scheduler_next(&scheduler, 0)))
        end(chunk, 0);
    CHECK(lane_is_empty(&lanes[0]));
}

/* A user none of whose jobs can run is looked at again once memory is there, or something happens to them. */
static void jobs_that_wait_are_left_alone(void)
{
    begin(1);
    struct buffer *input = &buffers[0];
    CHECK_EQ(pin_units_init(&input->pin_units, 100), 0);
    for (int round = 0; round < 2; round++) {
        input->span.staged = false;
        struct job *job = add(0, 0, 1, 0, 1);
        job->operands[OPERAND_INPUT].length = job->operands[OPERAND_INPUT].item_bytes = 4;
        CHECK(!scheduler_next(&scheduler, 1));
        input->span.staged = true; /* which nobody has said */
        CHECK(!scheduler_next(&scheduler, 1));
        struct job *other = add(1, 1, 1, 2, 3);
        CHECK(step() == other);
        CHECK(!step());
        if (round == 0)
            scheduler_look_again(&scheduler);
        else
            add(0, 2, 1, 4, 5);
        CHECK(step() == job);
        CHECK(step() == (round == 0 ? NULL : &jobs[2]));
    }
    pin_units_finish(&input->pin_units);
    *input = (struct buffer){0};
}

/*
 * Long rows.
 */

/* Each slice is a turn, and the row stays in its job until it is done. */
static void long_rows_take_turns(void)
{
    begin(1);
    struct job *job = add_long(0, SCAND_PRIORITY_NORMAL, 0, 1, 0, 1), *other = add(1, 1, 3, 2, 3);
    for (int i = 0; i < 3; i++) {
        struct chunk *chunk = scheduler_next(&scheduler, 1);
        CHECK(owner_of(chunk) == job && chunk->slice_us == 100 && (i == 0) == !chunk->rest);
        go_on(chunk);
        chunk->kernel_us = 10;
        leave_off(chunk);
        CHECK_EQ(job->state, JOB_RUNNING);
        chunk = scheduler_next(&scheduler, 1);
        CHECK(owner_of(chunk) == other && chunk->slice_us == 0);
        chunk->kernel_us = 10;
        end(chunk, 0);
    }
    CHECK_EQ(fair_users[0].queued_bytes, 1000);
    struct chunk *chunk = scheduler_next(&scheduler, 1);
    go_on(chunk);
    end(chunk, 0);
    CHECK_EQ(job->state, JOB_ENDED);
    CHECK(!scheduler.turn && rests == 0 && lane_is_empty(&lanes[0]) && !fair_users[0].long_job[job->rank]);
}

/* One long row of a user and class is begun at a time; short rows, other classes and other users do not wait. */
static void long_rows_of_a_user_wait(void)
{
    begin(4);
    lanes[1].user = &fair_users[0];
    struct job *first = add_long(0, SCAND_PRIORITY_NORMAL, 0, 2, 0, 1);
    struct chunk *chunk = scheduler_next(&scheduler, 1);
    CHECK(owner_of(chunk) == first && !scheduler_next(&scheduler, 1));
    leave_off(chunk);
    struct job *second = add_long(1, SCAND_PRIORITY_NORMAL, 1, 1, 2, 3), *shorter = add(1, 2, 1, 2, 1);
    struct job *urgent = add_long(1, HIGH, 3, 1, 4, 5), *other = add_long(2, SCAND_PRIORITY_NORMAL, 4, 1, 2, 3);
    struct chunk *out[4];
    unsigned had = 0;
    for (int i = 0; i < 4; i++) {
        out[i] = scheduler_next(&scheduler, 1);
        REQUIRE(out[i]);
        had |= 1u << (owner_of(out[i]) - jobs);
        go_on(out[i]);
    }
    CHECK_EQ(had, 1u << 0 | 1u << 2 | 1u << 3 | 1u << 4);
    CHECK(!scheduler_next(&scheduler, 1));
    for (int i = 0; i < 4; i++)
        end(out[i], 0);
    for (int i = 0; i < 2; i++) { /* its second row, and the second job, one after the other */
        chunk = scheduler_next(&scheduler, 1);
        CHECK(chunk && chunk->slice_us > 0 && !scheduler_next(&scheduler, 1));
        end(chunk, 0);
    }
    CHECK(!scheduler.turn && second->state == JOB_ENDED && first->state == JOB_ENDED);
    CHECK(shorter->state == JOB_ENDED && urgent->state == JOB_ENDED && other->state == JOB_ENDED);
}

/* Rows that have been left off end at once, those on a device when they come back; then another user may begin its long
 * row. */
static void long_rows_are_stopped(void)
{
    for (int out = 0; out < 2; out++) {
        begin(1);
        struct job *job = add_long(0, SCAND_PRIORITY_NORMAL, 0, 2, 0, 1),
                   *next = add_long(0, SCAND_PRIORITY_NORMAL, 1, 1, 2, 3);
        struct chunk *chunk = scheduler_next(&scheduler, 1);
        if (!out)
            leave_off(chunk);
        CHECK_EQ(job_stop(job, -ECANCELED, "stop"), !out);
        scheduler_stop(&scheduler, job);
        if (out) {
            scheduler_drop(&scheduler, job);
            CHECK(chunk_is_dropped(chunk));
            leave_off(chunk); /* before it saw that */
        } else {
            scheduler_remove(&scheduler, job);
        }
        CHECK_EQ(job->state, JOB_ENDED);
        CHECK_EQ(rests, 0);
        chunk = scheduler_next(&scheduler, 1);
        CHECK(owner_of(chunk) == next && !chunk_is_dropped(chunk));
        end(chunk, -EIO);
        CHECK(!scheduler.turn && lane_is_empty(&lanes[0]));
    }
}

/*
 * Classes.
 */

static void urgent_jobs_first(void)
{
    begin(1);
    struct job *low = add_class(0, LOW, 0, 2, 0, 1), *normal = add(0, 1, 2, 2, 3);
    CHECK(step() == normal);
    struct job *high = add_class(0, HIGH, 2, 2, 4, 5);
    CHECK(step() == high && step() == high && step() == normal && step() == low && step() == low);
}

/* The user's own, over all its lanes; another user goes on with what it has. */
static void classes_order_a_users_own_jobs(void)
{
    begin(1);
    lanes[1].user = &fair_users[0];
    struct job *low = add_class(0, LOW, 0, 2, 0, 1), *high = add_class(1, HIGH, 1, 2, 2, 3);
    struct job *other = add_class(2, LOW, 2, 4, 4, 5);
    struct job *expected[] = {high, other, high, other, low, other, low, other};
    for (int i = 0; i < 8; i++)
        CHECK(step() == expected[i]);
}

/* An urgent job waits for the low one whose output it reads. Jobs before that one in its class keep their place; others
 * stay behind. */
static void urgent_jobs_wait_for_what_they_need(void)
{
    begin(1);
    struct job *normal = add(0, 0, 1, 4, 5), *before = add_class(0, LOW, 1, 1, 2, 3);
    struct job *needed = add_class(0, LOW, 2, 2, 0, 1), *behind = add_class(0, LOW, 3, 1, 4, 0);
    struct job *high = add_class(0, HIGH, 4, 1, 1, 2);
    CHECK(step() == before && step() == needed && step() == needed && step() == high);
    CHECK(step() == normal && step() == behind && !step());
}

/* While a class waits for what is with the device, the next one has its turn. */
static void waiting_classes_give_way(void)
{
    begin(3);
    add(0, 0, 1, 0, 1);
    struct chunk *first = scheduler_next(&scheduler, 1);
    struct job *high = add_class(0, HIGH, 1, 1, 1, 2), *low = add_class(0, LOW, 2, 1, 3, 4);
    add_class(0, LOW, 3, 1, 2, 5); /* which reads what the high one writes */
    CHECK(owner_of(scheduler_next(&scheduler, 1)) == low);
    CHECK(!scheduler_next(&scheduler, 1));
    end(first, 0);
    CHECK(owner_of(scheduler_next(&scheduler, 1)) == high);
    CHECK(!scheduler_next(&scheduler, 1));
}

/*
 * A random run: every rule checked at every chunk.
 */

/* Checks that a chunk may start: it touches nothing that an unfinished earlier job of its lane writes, and writes
 * nothing that one reads; and it is not before an earlier job of its class that could have run there. One of several
 * devices may leave that job to another. */
static void check_start(const struct chunk *chunk)
{
    const struct job *job = chunk->owner;
    CHECK(job_fits_device(job, chunk->device));
    for (const struct job *earlier = jobs; earlier < job; earlier++)
        if (earlier->lane == job->lane && earlier->state != JOB_ENDED) {
            CHECK(scheduler.station_count > 1 || !job_has_rows(earlier) || earlier->rank != job->rank ||
                  !job_fits_device(earlier, chunk->device) || job_next_is_long(earlier));
            CHECK(!job_conflicts(job, earlier));
        }
}

static void random_add(uint64_t *state, unsigned number)
{
    unsigned lane = (unsigned)(random_next(state) % LANES), input = (unsigned)(random_next(state) % BUFFER_COUNT);
    unsigned output = (unsigned)(random_next(state) % BUFFER_COUNT);
    enum scand_priority priority = (enum scand_priority)(random_next(state) % SCAND_PRIORITY_COUNT);
    if (buffers[input].device && buffers[output].device)
        output = input; /* which is on one device */
    (random_next(state) % 4 ? add_class : add_long)(lane, priority, number, 1 + random_next(state) % 5, input, output);
}

static void random_cancel(uint64_t *state, unsigned added)
{
    struct job *job = &jobs[random_next(state) % added];
    if (job->state == JOB_ENDED)
        return;
    const bool ended = job_stop(job, -ECANCELED, "stop");
    scheduler_stop(&scheduler, job);
    if (ended)
        scheduler_remove(&scheduler, job);
}

static void random_run(uint64_t *state)
{
    struct chunk *out[DEVICES * LIMIT_CHUNKS_IN_FLIGHT];
    unsigned out_count = 0, added = 0, count = 1 + (unsigned)(random_next(state) % DEVICES);
    begin_devices(count, 1 + (unsigned)(random_next(state) % LIMIT_CHUNKS_IN_FLIGHT));
    for (unsigned i = 0; i < BUFFER_COUNT; i++)
        buffers[i].device = random_next(state) % 3 ? NULL : &devices[random_next(state) % count];
    for (unsigned i = 0; i < LANES; i++)
        lanes[i].user = &fair_users[i / 2]; /* two users, of two lanes each */
    while (added < JOBS || scheduler.turn || out_count) {
        if (added < JOBS && random_next(state) % 2)
            random_add(state, added++);
        if (added && random_next(state) % 30 == 0)
            random_cancel(state, added);
        for (struct chunk *chunk; (chunk = scheduler_next(&scheduler, 1)); out[out_count++] = chunk) {
            check_start(chunk);
            go_on(chunk);
        }
        if (out_count == 0) {
            CHECK(!scheduler.turn); /* with nothing out, nothing blocks */
            continue;
        }
        unsigned index = (unsigned)(random_next(state) % out_count);
        if (out[index]->slice_us && random_next(state) % 3)
            leave_off(out[index]);
        else
            end(out[index], random_next(state) % 20 ? 0 : -EIO);
        out[index] = out[--out_count];
    }
    for (unsigned i = 0; i < JOBS; i++)
        CHECK_EQ(jobs[i].state, JOB_ENDED);
    CHECK_EQ(rests, 0);
    for (unsigned i = 0; i < LANES; i++)
        CHECK(lane_is_empty(&lanes[i]));
    memset(buffers, 0, sizeof buffers);
}

/* With the first two seeds a job that had left off a row once stood behind one that waited for another long row. */
static void random_runs(void)
{
    for (uint64_t i = 0, seeds[] = {86, 114, random_seed()}; i < 1500 && !check_failures; i++)
        random_run(&seeds[i / 500]);
}

static const struct test tests[] = {
    TEST(nothing_to_do),
    TEST(never_more_than_depth),
    TEST(small_jobs_have_slots_of_their_own),
    TEST(small_jobs_take_other_slots_too),
    TEST(small_jobs_cost_their_bytes),
    TEST(small_jobs_cost_little_however_slow_others_were),
    TEST(small_jobs_have_few_bytes_together),
    TEST(small_jobs_pass_no_more_urgent_ones),
    TEST(want_of_room_costs_nothing),
    TEST(users_take_turns),
    TEST(lanes_take_turns),
    TEST(newcomer_waits_a_turn),
    TEST(order_inside_a_lane),
    TEST(apart_jobs_overlap),
    TEST(touching_jobs_wait),
    TEST(no_overtaking),
    TEST(stopped_jobs_still_block),
    TEST(failed_jobs_hand_out_no_more),
    TEST(remove_from_anywhere),
    TEST(jobs_are_compared_once),
    TEST(jobs_that_wait_are_left_alone),
    TEST(long_rows_take_turns),
    TEST(long_rows_of_a_user_wait),
    TEST(long_rows_are_stopped),
    TEST(urgent_jobs_first),
    TEST(classes_order_a_users_own_jobs),
    TEST(urgent_jobs_wait_for_what_they_need),
    TEST(waiting_classes_give_way),
    TEST(random_runs),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

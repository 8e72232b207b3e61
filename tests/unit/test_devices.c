/*
 * Several devices: which one gets a chunk, jobs that must run on one of them, and how users share them, on devices of
 * different speeds in simulated time. The rules are those of scheduler.h.
 */
#include "daemon/core/schedule/scheduler.h"

#include "tests/check.h"

#define DEVICES 3
#define USERS   5
#define LANES   8 /* lanes of a user: more than the devices have chunks of it, so that it always has something to run */
#define DEPTH   LIMIT_CHUNKS_IN_FLIGHT
#define ROWS    16 /* rows of a chunk, at most */

/* Runs chunks one after the other, in the order in which they come. */
static struct machine {
    struct device device; /* first */
    uint64_t row_us;
    struct chunk *out[DEPTH];
    uint64_t ends_us[DEPTH];
    unsigned out_count;
    uint64_t rows; /* done */
} machines[DEVICES];

/* A user with a job in each of some lanes, followed by the next when it ends. */
static struct stream {
    struct fair_user fair;
    struct lane lanes[LANES];
    struct job jobs[LANES];
    struct buffer buffers[LANES];
    uint64_t time_us[DEVICES]; /* had of each device */
    uint64_t started_us;       /* time at which it last got a chunk */
    bool once;                 /* no job follows */
} streams[USERS];

static struct scheduler scheduler;
static unsigned machine_count;
static uint64_t now_us, state;

static uint64_t below(uint64_t bound)
{
    return random_next(&state) % bound;
}

static void begin(unsigned count, const uint64_t *row_us)
{
    struct device_set set = {.count = machine_count = count};
    memset(machines, 0, sizeof machines);
    memset(streams, 0, sizeof streams);
    now_us = 0;
    for (unsigned i = 0; i < count; i++) {
        machines[i] = (struct machine){.device = {.info.slots = DEPTH, .number = i}, .row_us = row_us[i]};
        set.devices[i] = &machines[i].device;
    }
    scheduler_init(&scheduler, &set);
    for (int i = 0; i < USERS; i++) {
        streams[i].fair.weight = 1;
        for (int lane = 0; lane < LANES; lane++)
            streams[i].lanes[lane].user = &streams[i].fair;
    }
}

static struct stream *stream_of(const struct job *job)
{
    return (struct stream *)job->lane->user;
}

/* Rows of a KiB in place; on one device, or where it may be. */
static struct job *submit(struct stream *stream, int lane, uint64_t rows, struct machine *machine)
{
    struct job *job = &stream->jobs[lane];
    struct buffer *buffer = &stream->buffers[lane];
    buffer->device = machine ? &machine->device : NULL;
    *job = (struct job){.rows = {.length = 256, .row_count = rows},
                        .operands = {[OPERAND_INPUT] = {.buffer = buffer, .extent = {0, 1}, .access = ACCESS_READ},
                                     [OPERAND_OUTPUT] = {.buffer = buffer, .extent = {0, 1}, .access = ACCESS_WRITE}},
                        .operand_count = OPERAND_FURTHER,
                        .chunk_rows = ROWS,
                        .sample_bytes = 4};
    scheduler_add(&scheduler, &stream->lanes[lane], job);
    return job;
}

static void submit_all(struct stream *stream, struct machine *machine)
{
    for (int lane = 0; lane < LANES; lane++)
        submit(stream, lane, 1 + below(100), machine);
}

static void start(struct chunk *chunk)
{
    struct machine *machine = (struct machine *)chunk->device;
    unsigned before = machine->out_count++;
    CHECK(before < DEPTH && job_fits_device(chunk->owner, chunk->device));
    machine->out[before] = chunk;
    machine->ends_us[before] = (before ? machine->ends_us[before - 1] : now_us) + chunk->count * machine->row_us;
    stream_of(chunk->owner)->started_us = now_us;
}

static void pump(void)
{
    for (struct chunk *chunk; (chunk = scheduler_next(&scheduler, now_us));)
        start(chunk);
}

static void finish(struct machine *machine)
{
    struct chunk *chunk = machine->out[0];
    struct job *job = chunk->owner;
    struct stream *stream = stream_of(job);
    now_us = machine->ends_us[0];
    machine->out_count--;
    memmove(machine->out, machine->out + 1, machine->out_count * sizeof machine->out[0]);
    memmove(machine->ends_us, machine->ends_us + 1, machine->out_count * sizeof machine->ends_us[0]);
    machine->rows += chunk->count;
    chunk->kernel_us = chunk->count * machine->row_us;
    stream->time_us[machine - machines] += chunk->kernel_us;
    bool ended = job_return(job, chunk);
    scheduler_return(&scheduler, chunk);
    if (!ended)
        return;
    scheduler_remove(&scheduler, job);
    if (!stream->once)
        submit(stream, (int)(job - stream->jobs), 1 + below(100),
               (struct machine *)job->operands[OPERAND_INPUT].buffer->device);
}

/* Steps to the end of the next chunk. False: nothing runs. */
static bool step(void)
{
    struct machine *next = NULL;
    pump();
    for (unsigned i = 0; i < machine_count; i++)
        if (machines[i].out_count > 0 && (!next || machines[i].ends_us[0] < next->ends_us[0]))
            next = &machines[i];
    if (next)
        finish(next);
    return next;
}

static void run_until(uint64_t end_us)
{
    while (now_us < end_us && step())
        ;
}

static uint64_t time_of(const struct stream *stream)
{
    uint64_t us = 0;
    for (unsigned i = 0; i < machine_count; i++)
        us += stream->time_us[i];
    return us;
}

static bool has_jobs(const struct stream *stream)
{
    for (int lane = 0; lane < LANES; lane++)
        if (stream->jobs[lane].state != JOB_ENDED)
            return true;
    return false;
}

/* True when a : b is as p : q, within 5 %. */
static bool is_ratio(uint64_t a, uint64_t b, double p, double q)
{
    double ratio = (double)a * q / ((double)b * p);
    return ratio > 0.95 && ratio < 1.05;
}

/*
 * The choice of a device.
 */

static void all_devices_work_on_one_job(void)
{
    begin(3, (uint64_t[]){100, 100, 100});
    streams[0].once = true;
    submit(&streams[0], 0, 100 * ROWS, NULL);
    pump();
    for (int i = 0; i < 3; i++)
        CHECK_EQ(machines[i].out_count, DEPTH);
    while (step())
        ;
    CHECK_EQ(machines[0].rows + machines[1].rows + machines[2].rows, 100 * ROWS);
    CHECK_EQ(now_us, 34 * ROWS * 100); /* none waits while another has two */
}

/* A device that is four times as fast does four times as much, and the job ends as early as it can but for a chunk. */
static void faster_devices_do_more(void)
{
    begin(2, (uint64_t[]){400, 100});
    streams[0].once = true;
    submit(&streams[0], 0, 1000 * ROWS, NULL);
    while (step())
        ;
    CHECK(is_ratio(machines[1].rows, machines[0].rows, 4, 1));
    CHECK(now_us <= 1000 * ROWS * 80 + DEPTH * ROWS * 400);
}

/* Single chunks on idle devices go to the fastest one, once its speed is known. */
static void idle_devices_are_taken_by_speed(void)
{
    begin(2, (uint64_t[]){400, 100});
    streams[0].once = true;
    submit(&streams[0], 0, 4 * ROWS, NULL);
    while (step())
        ;
    uint64_t before = machines[0].rows;
    for (int i = 0; i < 10; i++) {
        submit(&streams[0], 0, ROWS, NULL);
        while (step())
            ;
    }
    CHECK_EQ(machines[0].rows, before);
}

/* The device with the least time outstanding is chosen, not the least bytes: while the slow one has a chunk, the fast
 * one has four. */
static void time_outstanding_counts(void)
{
    static const int expected[] = {1, 0, 1, 1, 1, 0, 0, 0};
    begin(2, (uint64_t[]){100, 100});
    scheduler.stations[0].rate = (struct rate){.bytes = 1024, .us = 400};
    scheduler.stations[1].rate = (struct rate){.bytes = 1024, .us = 100};
    submit(&streams[0], 0, 100 * ROWS, NULL);
    for (int i = 0; i < 8; i++)
        CHECK(scheduler_next(&scheduler, 0)->device == &machines[expected[i]].device);
    CHECK(!scheduler_next(&scheduler, 0));
}

/*
 * Jobs that must run on one.
 */

static void device_memory_pins_its_jobs(void)
{
    begin(2, (uint64_t[]){100, 100});
    submit(&streams[0], 0, 100 * ROWS, &machines[1]);
    run_until(50 * ROWS * 100);
    CHECK(machines[0].rows == 0 && machines[1].rows > 0);
}

/* In one lane, jobs pass one that needs a busy device, but not one on which they depend. */
static void others_pass_at_other_devices(void)
{
    static struct buffer result;
    begin(2, (uint64_t[]){100, 100});
    struct stream *stream = &streams[0];
    struct job *bound = submit(stream, 0, 100 * ROWS, &machines[1]);
    bound->operands[OPERAND_OUTPUT].buffer = &result;
    job_find_reach(bound);
    struct job *reader = submit(stream, 1, ROWS, NULL), *other = submit(stream, 2, ROWS, NULL);
    scheduler_remove(&scheduler, reader);
    scheduler_remove(&scheduler, other);
    reader->operands[OPERAND_INPUT].buffer = &result;
    scheduler_add(&scheduler, &stream->lanes[0], reader);
    scheduler_add(&scheduler, &stream->lanes[0], other);
    pump();
    CHECK(machines[0].out_count == 0 && machines[1].out_count == DEPTH);
    scheduler_remove(&scheduler, reader);
    pump();
    CHECK(machines[0].out_count == 1 && machines[0].out[0]->owner == other);
}

/*
 * Shares.
 */

/* True when |Ti/wi - Tj/wj| <= 2 D (Ci/wi + Cj/wj), as scheduler.h has it: D chunks in flight on all devices, C the
 * longest. */
static bool is_fair(const struct stream *a, const struct stream *b, uint64_t chunk_us)
{
    const double wa = (double)a->fair.weight, wb = (double)b->fair.weight,
                 apart = (double)time_of(a) / wa - (double)time_of(b) / wb,
                 most = 2.0 * DEPTH * machine_count * (double)chunk_us * (1 / wa + 1 / wb);
    return apart <= most && -apart <= most;
}

/* Users of whatever weights and speeds of devices, who may use all of them and always have something to run. */
static void shares_are_of_all_devices(void)
{
    state = random_seed();
    for (int round = 0; round < 20; round++) {
        uint64_t longest_us = 0;
        uint64_t row_us[DEVICES] = {50 + below(200), 50 + below(200), 50 + below(200)};
        begin(1 + (unsigned)below(DEVICES), row_us);
        for (int i = 0; i < USERS; i++) {
            streams[i].fair.weight = 1 + below(5);
            submit_all(&streams[i], NULL);
        }
        for (unsigned i = 0; i < machine_count; i++)
            longest_us = row_us[i] > longest_us ? row_us[i] : longest_us;
        run_until(5000 * ROWS * longest_us);
        for (int i = 1; i < USERS; i++)
            for (int k = 0; k < i; k++)
                CHECK(is_fair(&streams[i], &streams[k], ROWS * longest_us));
    }
}

/* One must use the second device, one may use both: each has as much, so the one has the second alone. */
static void who_can_go_elsewhere_does(void)
{
    begin(2, (uint64_t[]){100, 100});
    submit_all(&streams[0], NULL);
    submit_all(&streams[1], &machines[1]);
    run_until(5000 * ROWS * 100);
    CHECK(is_ratio(time_of(&streams[0]), time_of(&streams[1]), 1, 1));
    CHECK(streams[0].time_us[1] * 20 < streams[0].time_us[0]);
}

/* Jobs bound to each of the devices make no two users of one. */
static void a_user_is_one_on_all_devices(void)
{
    begin(2, (uint64_t[]){100, 100});
    for (int lane = 0; lane < LANES; lane++)
        submit(&streams[0], lane, 50, &machines[lane % 2]);
    submit_all(&streams[1], NULL);
    run_until(5000 * ROWS * 100);
    CHECK(is_ratio(time_of(&streams[0]), time_of(&streams[1]), 1, 1));
}

/* Weights hold among those who must use one device, whatever goes on at the others. */
static void weights_hold_on_a_crowded_device(void)
{
    begin(2, (uint64_t[]){100, 100});
    streams[1].fair.weight = 3;
    submit_all(&streams[0], &machines[1]);
    submit_all(&streams[1], &machines[1]);
    submit_all(&streams[2], &machines[0]);
    run_until(5000 * ROWS * 100);
    CHECK(is_ratio(time_of(&streams[0]), time_of(&streams[1]), 1, 3));
    CHECK(is_ratio(time_of(&streams[0]) + time_of(&streams[1]), time_of(&streams[2]), 1, 1));
}

/* A user who was bound to a crowded device, and had little there, does not get all of another device on coming there.
 */
static void crowds_earn_nothing_elsewhere(void)
{
    begin(2, (uint64_t[]){100, 100});
    submit_all(&streams[0], &machines[1]);
    submit_all(&streams[1], &machines[1]);
    submit_all(&streams[2], &machines[0]);
    run_until(5000 * ROWS * 100);
    streams[0].once = true;
    while (has_jobs(&streams[0]))
        step();
    streams[0].once = false;
    submit_all(&streams[0], &machines[0]);
    uint64_t before = streams[2].time_us[0];
    run_until(now_us + 1000 * ROWS * 100);
    CHECK(is_ratio(streams[0].time_us[0], streams[2].time_us[0] - before, 1, 1));
}

/* Nobody waits longer than for the chunks in flight on a device and one chunk of each other user. */
static void nobody_starves(void)
{
    const uint64_t slowest_us = 400;
    state = random_seed();
    for (int round = 0; round < 20; round++) {
        begin(3, (uint64_t[]){100, 250, slowest_us});
        for (int i = 0; i < USERS - 1; i++)
            submit_all(&streams[i], below(2) ? &machines[below(DEVICES)] : NULL);
        run_until(below(1000) * ROWS * 100);
        struct stream *newcomer = &streams[USERS - 1];
        submit_all(newcomer, below(2) ? &machines[below(DEVICES)] : NULL);
        uint64_t came_us = now_us;
        newcomer->started_us = UINT64_MAX;
        while (newcomer->started_us == UINT64_MAX && !check_failures) {
            CHECK(now_us - came_us <= (DEPTH + USERS) * ROWS * slowest_us);
            step();
        }
    }
}

static const struct test tests[] = {
    TEST(all_devices_work_on_one_job),
    TEST(faster_devices_do_more),
    TEST(idle_devices_are_taken_by_speed),
    TEST(time_outstanding_counts),
    TEST(device_memory_pins_its_jobs),
    TEST(others_pass_at_other_devices),
    TEST(shares_are_of_all_devices),
    TEST(who_can_go_elsewhere_does),
    TEST(a_user_is_one_on_all_devices),
    TEST(weights_hold_on_a_crowded_device),
    TEST(crowds_earn_nothing_elsewhere),
    TEST(nobody_starves),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

/*
 * Users' portions of device time, on a device of several slots whose chunks take random times, in a clock of its own.
 * Bounds are those of scheduler.h.
 */
#include "daemon/core/schedule/scheduler.h"

#include <errno.h>

#include "tests/check.h"

#define USERS     6
#define LANES_MAX 10
#define ROWS      16   /* rows of a chunk, at most */
#define LONGEST   1600 /* us that so many rows take, and a tenth of it */
#define SHORTEST  160

/* A user who always has something queued, unless told otherwise: a job for each lane, each lane in its own buffers. */
struct stream {
    struct fair_user fair;
    struct lane lanes[LANES_MAX];
    struct job jobs[LANES_MAX];
    struct buffer buffers[LANES_MAX];
    uint64_t started; /* chunks */
    uint64_t ahead;   /* of those, the ones while somebody was awaited */
    uint64_t time_us; /* time of those that have come back */
    bool stopped;     /* submits nothing more */
    bool chained;     /* all in one lane, a chunk a job, each writing what the one before wrote */
};

static struct scheduler scheduler;
static struct stream streams[USERS];
static struct chunk *out[LIMIT_CHUNKS_IN_FLIGHT];
static unsigned out_count, depth;
static struct stream *awaited; /* who has started nothing yet */
static uint64_t state;

static uint64_t below(uint64_t bound)
{
    return random_next(&state) % bound;
}

static void begin(unsigned new_depth)
{
    static struct device device;
    const struct device_set devices = {{&device}, 1};
    device.info.slots = new_depth;
    depth = new_depth;
    out_count = 0;
    awaited = NULL;
    memset(streams, 0, sizeof streams);
    scheduler_init(&scheduler, &devices);
    for (int i = 0; i < USERS; i++) {
        streams[i].fair.weight = 1;
        for (int lane = 0; lane < LANES_MAX; lane++)
            streams[i].lanes[lane].user = &streams[i].fair;
    }
}

static struct stream *stream_of(const struct chunk *chunk)
{
    const struct job *job = chunk->owner;
    return (struct stream *)job->lane->user;
}

/* Rows of a KiB; chunks are of different sizes. */
static void submit(struct stream *stream, int number, uint64_t rows)
{
    struct job *job = &stream->jobs[number];
    int lane = stream->chained ? 0 : number;
    *job = (struct job){
        .rank = (int)below(SCAND_PRIORITY_COUNT),
        .rows = {.length = 256, .row_count = stream->chained ? 1 + rows % ROWS : rows},
        .operands = {[OPERAND_INPUT] = {.buffer = &stream->buffers[lane], .extent = {0, 1}, .access = ACCESS_READ},
                     [OPERAND_OUTPUT] = {.buffer = &stream->buffers[lane], .extent = {0, 1}, .access = ACCESS_WRITE}},
        .operand_count = OPERAND_FURTHER,
        .chunk_rows = stream->chained ? ROWS : 1 + below(ROWS),
        .sample_bytes = 4};
    scheduler_add(&scheduler, &stream->lanes[lane], job);
}

static void submit_all(struct stream *stream, int lanes)
{
    for (int lane = 0; lane < lanes; lane++)
        submit(stream, lane, 1 + below(100));
}

/* A chunk comes back and its time is known; a job that has ended is followed by the next. */
static void finish(unsigned index)
{
    struct chunk *chunk = out[index];
    struct stream *stream = stream_of(chunk);
    struct job *job = chunk->owner;
    chunk->kernel_us = chunk->count * (SHORTEST + below(LONGEST - SHORTEST + 1)) / ROWS;
    chunk->upload_us = below(chunk->kernel_us);
    stream->time_us += chunk->kernel_us;
    bool ended = job_return(job, chunk);
    scheduler_return(&scheduler, chunk);
    out[index] = out[--out_count];
    if (!ended)
        return;
    scheduler_remove(&scheduler, job);
    if (!stream->stopped)
        submit(stream, (int)(job - stream->jobs), 1 + below(100));
}

static void note_start(struct stream *stream)
{
    stream->started++;
    if (stream == awaited)
        awaited = NULL;
    if (awaited)
        stream->ahead++;
}

/* A chunk ends when no more fit; those that do start. */
static void step(void)
{
    if (out_count == depth || (out_count > 0 && !scheduler.turn))
        finish((unsigned)below(out_count));
    while (out_count < depth && (out[out_count] = scheduler_next(&scheduler, 1)))
        note_start(stream_of(out[out_count++]));
}

static void run(int steps)
{
    for (int i = 0; i < steps; i++)
        step();
}

/* |Ti/wi - Tj/wj| <= 2 D (Ci/wi + Cj/wj), for the times since `before`. */
static void check_shares(const uint64_t *before, int count)
{
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++) {
            double wi = (double)streams[i].fair.weight, wj = (double)streams[j].fair.weight;
            double ti = (double)(streams[i].time_us - before[i]) / wi;
            double tj = (double)(streams[j].time_us - before[j]) / wj;
            double bound = 2.0 * depth * LONGEST * (1 / wi + 1 / wj);
            CHECK((ti > tj ? ti - tj : tj - ti) <= bound);
        }
}

/*
 * The bounds.
 */

/* A new user's first chunk is started after those in flight and at most one of each other user, among users who stream
 * without pause for any time. */
static void newcomers_wait_a_chunk_of_each(void)
{
    state = random_seed();
    for (int round = 0; round < 300; round++) {
        begin(1 + (unsigned)below(LIMIT_CHUNKS_IN_FLIGHT));
        int others = 1 + (int)below(USERS - 1);
        for (int i = 0; i < others; i++) {
            streams[i].fair.weight = 1 + below(10);
            submit_all(&streams[i], 1 + (int)below(LANES_MAX));
        }
        run((int)below(500));
        struct stream *newcomer = &streams[USERS - 1];
        submit(newcomer, 0, 50);
        awaited = newcomer;
        run(others + 1); /* in each of which a chunk of those in flight ends */
        CHECK(newcomer->started > 0);
        for (int i = 0; i < others; i++)
            CHECK(streams[i].ahead <= 1);
    }
}

/* Times are by weight at any moment, whatever chunks cost, how many lanes a user has, and how long its jobs are. */
static void times_are_by_weight(void)
{
    state = random_seed();
    for (int round = 0; round < 50; round++) {
        uint64_t before[USERS] = {0}, all = 0, weights = 0;
        begin(1 + (unsigned)below(LIMIT_CHUNKS_IN_FLIGHT));
        for (int i = 0; i < USERS; i++) {
            streams[i].fair.weight = 1 + below(8);
            submit_all(&streams[i], (int)depth + 1 + (int)below(LANES_MAX - depth));
        }
        for (int i = 0; i < 20 && !check_failures; i++) {
            run(500);
            check_shares(before, USERS);
        }
        for (int i = 0; i < USERS; i++) {
            all += streams[i].time_us;
            weights += streams[i].fair.weight;
        }
        for (int i = 0; i < USERS; i++) { /* so that after 10,000 chunks they are within 5 % */
            double due = (double)all * (double)streams[i].fair.weight / (double)weights;
            CHECK((double)streams[i].time_us > 0.95 * due && (double)streams[i].time_us < 1.05 * due);
        }
    }
}

/* Ten connections get no more than one. */
static void connections_do_not_count(void)
{
    state = random_seed();
    begin(2);
    submit_all(&streams[0], LANES_MAX);
    submit_all(&streams[1], 3);
    run(10000);
    check_shares((uint64_t[USERS]){0}, 2);
    CHECK(streams[0].time_us < streams[1].time_us * 102 / 100);
    CHECK(streams[1].time_us < streams[0].time_us * 102 / 100);
}

/* Time that an idle user did not take is gone: after a pause it gets its portion, not what it missed. */
static void idleness_earns_nothing(void)
{
    state = random_seed();
    begin(2);
    submit_all(&streams[0], 4);
    submit_all(&streams[1], 4);
    run(1000);
    streams[1].stopped = true;
    run(5000);
    CHECK(!streams[1].fair.turn);
    uint64_t before[USERS] = {streams[0].time_us, streams[1].time_us};
    streams[1].stopped = false;
    submit_all(&streams[1], 4);
    run(200);
    check_shares(before, 2);
    CHECK(streams[0].started > 4000);
}

/* A user with much queued, where each job waits for the one before, does not earn either: what it could not take is
 * gone, too. */
static void waiting_earns_nothing(void)
{
    state = random_seed();
    begin(4);
    streams[1].chained = true;
    submit_all(&streams[0], LANES_MAX);
    submit_all(&streams[1], LANES_MAX);
    run(3000);
    CHECK(streams[1].time_us * 3 < streams[0].time_us * 2);
    uint64_t before[USERS] = {streams[0].time_us, streams[1].time_us};
    streams[1].chained = false;
    run(300);
    check_shares(before, 2);
}

/* An hour alone is not held against a user once nobody else was there to want it. */
static void time_alone_costs_nothing(void)
{
    state = random_seed();
    begin(2);
    submit_all(&streams[0], 4);
    run(5000);
    streams[0].stopped = true;
    while (out_count > 0 || scheduler.turn)
        step();
    CHECK(scheduler.stations[0].level_ns >= streams[0].fair.account_ns[0]);
    streams[0].stopped = false;
    uint64_t before[USERS] = {streams[0].time_us};
    submit_all(&streams[1], 4);
    submit_all(&streams[0], 4);
    run(200);
    check_shares(before, 2);
}

/*
 * Costs.
 */

static struct chunk *next(void)
{
    struct chunk *chunk = scheduler_next(&scheduler, 1);
    CHECK(chunk);
    return chunk;
}

static void end_chunk(struct chunk *chunk, int status, uint64_t upload_us, uint64_t kernel_us, uint64_t download_us)
{
    struct job *job = chunk->owner;
    chunk->status = status;
    chunk->upload_us = upload_us;
    chunk->kernel_us = kernel_us;
    chunk->download_us = download_us;
    bool ended = job_return(job, chunk);
    if (status)
        scheduler_stop(&scheduler, job);
    scheduler_return(&scheduler, chunk);
    if (ended)
        scheduler_remove(&scheduler, job);
}

/* The longest step is what a chunk costs; before it is known, what the latest ones cost per byte. */
static void costs_are_estimated_then_known(void)
{
    begin(1);
    struct fair_user *share = &streams[0].fair;
    submit(&streams[0], 0, 100);
    streams[0].jobs[0].chunk_rows = 10;
    struct chunk *chunk = next();
    CHECK_EQ(chunk->charge_ns, 10 * 1000); /* at the rate that is guessed */
    end_chunk(chunk, 0, 50, 30, 512);
    CHECK_EQ(share->account_ns[0], 512 * 1000);
    chunk = next();
    CHECK_EQ(chunk->charge_ns, 512 * 1000);
    end_chunk(chunk, 0, 0, 700, 0);
    CHECK_EQ(share->account_ns[0], 1212 * 1000);
    share->weight = 4;
    chunk = next();
    CHECK(chunk->charge_ns > 512 * 250 && chunk->charge_ns < 700 * 250);
    end_chunk(chunk, 0, 0, 0, 0);
    CHECK_EQ(share->account_ns[0], 1212 * 1000 + 250); /* never nothing */
}

/* A new user's chunks are taken to cost what others' do, within bounds. A failed one costs what was estimated, or what
 * it took. */
static void costs_of_new_users_and_failures(void)
{
    begin(1);
    submit(&streams[0], 0, 100);
    submit(&streams[1], 0, 100);
    streams[0].jobs[0].chunk_rows = streams[1].jobs[0].chunk_rows = 50;
    end_chunk(next(), 0, 0, 10000, 0);
    struct chunk *chunk = next();
    CHECK(stream_of(chunk) == &streams[1]);
    uint64_t charge_ns = chunk->charge_ns;
    CHECK(charge_ns > 9000000 && charge_ns < 10000001);
    end_chunk(chunk, -EIO, 0, 0, 0);
    CHECK_EQ(streams[1].fair.account_ns[0], charge_ns);
    chunk = next();
    CHECK(stream_of(chunk) == &streams[0]);
    end_chunk(chunk, -EIO, 0, 5000000, 0);
    CHECK_EQ(streams[0].fair.account_ns[0], 5010000000);
}

/* However slow a user's chunks are taken to be, and however wrong that is, a newcomer soon has its share. */
static void wrong_estimates_win_nothing(void)
{
    begin(2);
    unsigned had[2] = {0};
    submit(&streams[0], 0, 1);
    end_chunk(next(), 0, 0, 1000000, 0);
    submit(&streams[0], 0, 1000000);
    streams[0].jobs[0].chunk_rows = 1000;
    struct chunk *chunks[2] = {next(), next()};
    submit(&streams[1], 0, 1000);
    streams[1].jobs[0].chunk_rows = 1;
    for (int i = 0; i < 300; i++) {
        end_chunk(chunks[i % 2], 0, 0, 1000, 0);
        chunks[i % 2] = next();
        had[stream_of(chunks[i % 2]) - streams]++;
    }
    CHECK(had[0] >= 100 && had[1] >= 100);
    end_chunk(chunks[0], 0, 0, 1000, 0);
    end_chunk(chunks[1], 0, 0, 1000, 0);
}

static void backlogs(void)
{
    begin(1);
    CHECK_EQ(scheduler_backlog_us(&scheduler), 0);
    CHECK_EQ(scheduler_user_backlog_us(&scheduler, &streams[0].fair), 0);
    submit(&streams[0], 0, 1000);
    submit(&streams[1], 0, 3000);
    CHECK_EQ(scheduler_backlog_us(&scheduler), 4096); /* a GB/s is guessed */
    CHECK_EQ(scheduler_user_backlog_us(&scheduler, &streams[0].fair), 2048);
    CHECK_EQ(scheduler_user_backlog_us(&scheduler, &streams[1].fair), 4096); /* and no more than all */
    streams[1].fair.weight = 3;
    CHECK_EQ(scheduler_user_backlog_us(&scheduler, &streams[0].fair), 4096);
    streams[0].jobs[0].chunk_rows = 1000;
    struct chunk *chunk = next();
    CHECK_EQ(scheduler_backlog_us(&scheduler), 3072);
    end_chunk(chunk, 0, 0, 102400000, 0);
    CHECK(scheduler_backlog_us(&scheduler) > 300000000);
    submit(&streams[2], 0, UINT64_C(1) << 52); /* more microseconds than 64 bits have */
    CHECK(scheduler_backlog_us(&scheduler) > UINT64_C(1) << 40);
    CHECK(scheduler_user_backlog_us(&scheduler, &streams[2].fair) > UINT64_C(1) << 40);
}

static const struct test tests[] = {
    TEST(newcomers_wait_a_chunk_of_each),
    TEST(times_are_by_weight),
    TEST(connections_do_not_count),
    TEST(idleness_earns_nothing),
    TEST(waiting_earns_nothing),
    TEST(time_alone_costs_nothing),
    TEST(costs_are_estimated_then_known),
    TEST(costs_of_new_users_and_failures),
    TEST(wrong_estimates_win_nothing),
    TEST(backlogs),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

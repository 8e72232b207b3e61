/*
 * Scans of the CPU path in turns: how many turns a row takes, and that tasks of one pool which take turns with each
 * other return the bits that they return alone. Bits of one task at a time are test_kernels' (turns_1, turns_3).
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/order1/dtypes.h"
#include "kernels/order1/order.h"
#include "kernels/order1/reduce.h"
#include "kernels/scan.h"
#include "tests/check.h"

/* The blocks of the longest row: more than a group of the level above blocks, except where the thread sanitizer would
 * take a minute for them. */
#ifdef __SANITIZE_THREAD__
#define BLOCKS 8
#else
#define BLOCKS 38
#endif
#define SAMPLES ((BLOCKS - 1) * (uint64_t)ORDER_BLOCK + 5)

static uint64_t seed;

/* A scan with memory of its own, and the bits that it is to return. */
struct work {
    struct scan_rows rows;
    float *input;
    double *output, *wanted;
    uint64_t samples;
    struct cpu_task *task;
    bool done;
};

static struct scan_rule rule_random(uint64_t *random)
{
    struct scan_rule rule = {.pass_count = 1 + (uint32_t)random_next(random) % 2,
                             .op = (enum scand_operator)(random_next(random) % SCAND_OPERATOR_COUNT),
                             .accumulator = (enum scand_accumulator)(SCAND_ACCUMULATOR_F32 + random_next(random) % 3),
                             .intermediate = random_next(random) % 2 ? SCAND_DTYPE_F64 : SCAND_DTYPE_F32,
                             .output = random_next(random) % 2 ? SCAND_DTYPE_F64 : SCAND_DTYPE_F32,
                             .demean = random_next(random) % 4 == 0,
                             .coefficient = 0.75};
    for (uint32_t pass = 0; pass < rule.pass_count; pass++)
        rule.passes[pass] = random_next(random) % 2 ? SCAND_PASS_FORWARD : SCAND_PASS_BACKWARD;
    rule.kind = random_next(random) % 2 ? SCAND_KIND_INCLUSIVE : SCAND_KIND_EXCLUSIVE;
    if (random_next(random) % 4 == 0)
        rule = reduce_rule(SCAND_REDUCTION_NORM, SCAND_DTYPE_F32, SCAND_DTYPE_F64);
    return rule;
}

/* One row or a few, contiguous or with a gap behind each sample. */
static void work_begin(struct work *work, const struct scan_rule *rule, uint64_t rows, uint64_t length, uint64_t gap,
                       uint64_t *random)
{
    const int64_t input_bytes = (int64_t)((1 + gap) * sizeof(float)),
                  output_bytes = (int64_t)(1 + gap) * codec_bytes(rule->output);
    *work = (struct work){.samples = rows * length * (1 + gap)};
    work->input = malloc(work->samples * sizeof *work->input);
    work->output = calloc(work->samples, sizeof *work->output);
    work->wanted = calloc(work->samples, sizeof *work->wanted);
    CHECK(work->input && work->output && work->wanted);
    for (uint64_t i = 0; i < work->samples; i++)
        work->input[i] = (float)(random_next(random) % 1000) / 500 - 1;
    work->rows = (struct scan_rows){.rule = *rule,
                                    .length = length,
                                    .row_count = rows,
                                    .outer_rank = 1,
                                    .outer_shape = {rows},
                                    .input_outer_strides = {(int64_t)length * input_bytes},
                                    .output_outer_strides = {(int64_t)length * output_bytes},
                                    .input_stride = input_bytes,
                                    .output_stride = output_bytes,
                                    .input = work->input,
                                    .output = work->wanted};
    CHECK_EQ(scan_reference(&work->rows, 0, rows), 0);
    work->rows.output = work->output;
}

static void work_end(struct work *work)
{
    cpu_task_destroy(work->task);
    free(work->input);
    free(work->output);
    free(work->wanted);
}

static bool always(void *context)
{
    (void)context;
    return true;
}

/* True after some more parts. */
static bool sometimes(void *context)
{
    atomic_uint *left = context;
    return atomic_load(left) == 0 || atomic_fetch_sub(left, 1) == 1;
}

static unsigned turns_of(struct cpu_pool *pool, const struct scan_rule *rule, uint64_t rows, uint64_t length)
{
    struct work work;
    uint64_t random = seed;
    unsigned turns = 1;
    work_begin(&work, rule, rows, length, 0, &random);
    work.task = cpu_task_create(pool, &work.rows, 0, rows);
    while (cpu_task_run(work.task, always, NULL) == 1)
        turns++;
    CHECK(memcmp(work.output, work.wanted, work.samples * sizeof *work.output) == 0);
    work_end(&work);
    return turns;
}

/* A row alone can be left off behind each of its blocks, in each pass; rows of a chunk behind each. */
static void turns_are_short(void)
{
    struct cpu_pool *pool = cpu_pool_create(1);
    struct scan_rule rule = {.passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD},
                             .pass_count = 2,
                             .accumulator = SCAND_ACCUMULATOR_F2,
                             .intermediate = SCAND_DTYPE_F64};
    CHECK_EQ(turns_of(pool, &rule, 1, SAMPLES), 3 * BLOCKS); /* f32 holds no f64: visits */
    rule.intermediate = SCAND_DTYPE_F32;
    CHECK_EQ(turns_of(pool, &rule, 1, SAMPLES), 2 * BLOCKS); /* streamed */
    CHECK_EQ(turns_of(pool, &rule, 5, ORDER_BLOCK * 5), 5);
    CHECK_EQ(turns_of(pool, &rule, 1, ORDER_BLOCK), 1);
    rule = reduce_rule(SCAND_REDUCTION_SUM, SCAND_DTYPE_F32, SCAND_DTYPE_F64);
    CHECK_EQ(turns_of(pool, &rule, 1, SAMPLES), BLOCKS);
    cpu_pool_destroy(pool);
}

/* Ragged rows of a sample each can be left off behind a few hundred: beginning them takes most of their time. */
static void turns_of_ragged_rows_are_short(void)
{
    struct cpu_pool *pool = cpu_pool_create(1);
    struct scan_rule rule = {.pass_count = 1, .passes = {SCAND_PASS_FORWARD}, .accumulator = SCAND_ACCUMULATOR_F64};
    static uint64_t offsets[SAMPLES + 1];
    struct work work;
    uint64_t random = seed;
    unsigned turns = 1;
    work_begin(&work, &rule, 1, SAMPLES, 0, &random);
    for (uint64_t i = 0; i <= SAMPLES; i++)
        offsets[i] = i;
    work.rows.offsets = offsets;
    work.rows.length = 1;
    work.rows.row_count = SAMPLES;
    work.rows.output = work.wanted;
    CHECK_EQ(scan_reference(&work.rows, 0, SAMPLES), 0);
    work.rows.output = work.output;
    work.task = cpu_task_create(pool, &work.rows, 0, SAMPLES);
    while (cpu_task_run(work.task, always, NULL) == 1)
        turns++;
    CHECK(turns >= SAMPLES / 256);
    CHECK(memcmp(work.output, work.wanted, work.samples * sizeof *work.output) == 0);
    work_end(&work);
    cpu_pool_destroy(pool);
}

/* One turn of one of them after the other, each as long as it happens to be. */
static void take_turns(struct work *works, unsigned count, uint64_t *random)
{
    for (unsigned left = count; left > 0;) {
        struct work *work = &works[random_next(random) % count];
        atomic_uint parts = (unsigned)random_next(random) % 12;
        if (work->done)
            continue;
        int r = cpu_task_run(work->task, sometimes, &parts);
        CHECK(r == 0 || r == 1);
        work->done = r == 0;
        left -= work->done;
    }
}

static void tasks_take_turns(void)
{
    uint64_t random = seed;
    for (unsigned threads = 1; threads <= 3; threads++) {
        struct cpu_pool *pool = cpu_pool_create(threads);
        for (unsigned i = 0; i < 12; i++) {
            struct work works[3];
            for (unsigned k = 0; k < 3; k++) {
                struct scan_rule rule = rule_random(&random);
                uint64_t rows = 1 + random_next(&random) % 2 * random_next(&random) % 3;
                uint64_t length = 1 + random_next(&random) % (SAMPLES / rows);
                work_begin(&works[k], &rule, rows, length, random_next(&random) % 2, &random);
                works[k].task = cpu_task_create(pool, &works[k].rows, 0, rows);
            }
            take_turns(works, 3, &random);
            for (unsigned k = 0; k < 3; k++) {
                CHECK(memcmp(works[k].output, works[k].wanted, works[k].samples * sizeof(double)) == 0);
                work_end(&works[k]);
            }
        }
        cpu_pool_destroy(pool);
    }
}

/* A task that was left off can be dropped, and the pool goes on with others. */
static void a_task_is_dropped(void)
{
    struct cpu_pool *pool = cpu_pool_create(2);
    struct scan_rule rule = {.pass_count = 1, .accumulator = SCAND_ACCUMULATOR_F64, .demean = true};
    struct work work;
    uint64_t random = seed;
    work_begin(&work, &rule, 1, SAMPLES, 0, &random);
    work.task = cpu_task_create(pool, &work.rows, 0, 1);
    CHECK_EQ(cpu_task_run(work.task, always, NULL), 1);
    work_end(&work);
    turns_of(pool, &rule, 1, SAMPLES);
    cpu_pool_destroy(pool);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(turns_are_short), TEST(turns_of_ragged_rows_are_short),
                                        TEST(tasks_take_turns), TEST(a_task_is_dropped), TEST_END};
    seed = random_seed();
    return test_main(argc, argv, tests);
}

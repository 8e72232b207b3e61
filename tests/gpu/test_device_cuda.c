/*
 * The CUDA device through the seam of daemon/device/device.h: every way that rows travel (rows, columns, mapped,
 * resident), host memory pinned in small pieces so that copies cross them, several chunks in flight, against the
 * reference by memcmp of the whole output memory.
 */
#include <errno.h>
#include <sys/mman.h>

#include "daemon/device/devices.h"
#include "kernels/cuda/scan_cuda.h"
#include "kernels/order1/reduce.h"
#include "tests/check.h"

#define MEMORY_BYTES   ((uint64_t)192 << 20)
#define PIN_UNIT_BYTES ((uint64_t)256 << 10)
#define DEVICE_LIMIT   ((uint64_t)1 << 30)

static struct device *device;
static unsigned char *input_memory, *output_memory, *expected_memory;

static void *map_memory(void)
{
    void *memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static bool attach_memory(unsigned char *memory)
{
    for (uint64_t at = 0; at < MEMORY_BYTES; at += PIN_UNIT_BYTES)
        if (device->ops->memory_pin(device, memory + at, PIN_UNIT_BYTES))
            return false;
    return true;
}

/* The rig is made once for all tests. */
static const char *set_up(void)
{
    struct error error;
    if (device)
        return NULL;
    if (device_cuda_open(0, DEVICE_LIMIT, &device, &error))
        return "no CUDA device";
    input_memory = map_memory();
    output_memory = map_memory();
    expected_memory = map_memory();
    if (!input_memory || !output_memory || !expected_memory || !attach_memory(input_memory) ||
        !attach_memory(output_memory)) {
        CHECK(!"memory for the test");
        return "no memory";
    }
    uint64_t state = 7;
    for (uint64_t i = 0; i < MEMORY_BYTES / sizeof(float); i++)
        ((float *)input_memory)[i] = (float)(int32_t)random_next(&state) * 0x1p-31f;
    return NULL;
}

/* A layout of both sides in units of samples; row strides outermost first. */
struct layout {
    const char *name;
    uint64_t length;
    uint32_t outer_rank;
    uint64_t outer_shape[SCAN_OUTER_MAX];
    int64_t input_outer[SCAN_OUTER_MAX], output_outer[SCAN_OUTER_MAX];
    int64_t input_stride, output_stride;
    int64_t offset; /* samples before sample 0 of row 0, on both sides */
};

static const struct layout layouts[] = {
    {"dense rows", 10000, 1, {1500}, {10000}, {10000}, 1, 1, 0},
    {"odd rows", 10007, 1, {999}, {10007}, {10007}, 1, 1, 3},
    {"rows between headers", 1001, 1, {3000}, {1061}, {1061}, 1, 1, 60},
    {"rows, input reversed", 1000, 1, {500}, {-1000}, {1000}, 1, 1, 499000},
    {"one row repeated", 1000, 1, {500}, {0}, {1000}, 1, 1, 0},
    {"columns", 2000, 1, {3001}, {1}, {1}, 3001, 3001, 0},
    {"columns of a cube", 300, 2, {7, 500}, {150000, 1}, {150000, 1}, 500, 500, 0},
    {"rows of a cube", 700, 2, {11, 100}, {100000, 800}, {100000, 700}, 1, 1, 0},
    {"columns in, rows out", 512, 1, {1024}, {1}, {512}, 1024, 1, 0},
    {"every third sample", 1000, 1, {900}, {3000}, {3000}, 3, 3, 1},
    {"a row larger than a slot", 6000000, 1, {2}, {6000000}, {6000000}, 1, 1, 0},
    {"short rows", 5, 1, {100000}, {5}, {5}, 1, 1, 0},
};

static struct scan_rows make_rows(const struct layout *layout, struct scan_rule rule, const void *input, void *output)
{
    int64_t in = sizeof(float), out = rule.output == SCAND_DTYPE_F64 ? sizeof(double) : sizeof(float);
    struct scan_rows rows = {
        .rule = rule,
        .length = layout->length,
        .row_count = 1,
        .outer_rank = layout->outer_rank,
        .input_stride = layout->input_stride * in,
        .output_stride = layout->output_stride * out,
        .input = (const unsigned char *)input + layout->offset * in,
        .output = (unsigned char *)output + layout->offset * out,
    };
    for (uint32_t k = 0; k < layout->outer_rank; k++) {
        rows.outer_shape[k] = layout->outer_shape[k];
        rows.row_count *= layout->outer_shape[k];
        rows.input_outer_strides[k] = layout->input_outer[k] * in;
        rows.output_outer_strides[k] = layout->output_outer[k] * out;
    }
    return rows;
}

static struct span host_span(void *memory)
{
    return (struct span){SCAND_PLACE_HOST, memory, MEMORY_BYTES, PIN_UNIT_BYTES, false, false};
}

/* A chunk of one step, whose rule is that of the rows, from one buffer to another. */
#define FROM_TO(FROM, TO) .step_count = 1, .spans = {[OPERAND_INPUT] = FROM, [OPERAND_OUTPUT] = TO}

/* Runs all rows of a job in chunks, as many out at a time as the device holds. They come back in any order. */
static bool run_job(struct chunk job)
{
    const struct scan_rows *rows = job.rows;
    struct chunk chunks[LIMIT_CHUNKS_IN_FLIGHT], *free[LIMIT_CHUNKS_IN_FLIGHT];
    uint64_t row_bytes = rows->length * (rows->rule.output == SCAND_DTYPE_F64 ? 12 : 4), next = 0;
    uint64_t step = row_bytes < device->info.chunk_bytes ? device->info.chunk_bytes / row_bytes : 1;
    unsigned free_count = device->info.slots;
    bool good = true;
    for (unsigned i = 0; i < free_count; i++)
        free[i] = &chunks[i];
    while (good && (next < rows->row_count || free_count < device->info.slots)) {
        if (next < rows->row_count && free_count > 0) {
            struct chunk *chunk = free[--free_count];
            uint64_t left = rows->row_count - next;
            *chunk = job;
            chunk->first = next;
            chunk->count = left < step ? left : step;
            next += chunk->count;
            good = device->ops->start(device, chunk) == 0;
        } else {
            struct chunk *done = device->ops->finish(device, 1000);
            good = !done || done->status == 0;
            if (done)
                free[free_count++] = done;
        }
    }
    return good;
}

static bool run_chunks(const struct scan_rows *rows, struct span input, struct span output)
{
    return run_job((struct chunk){.rows = rows, FROM_TO(input, output)});
}

/* Runs all rows of a job in small chunks of `step` of them, as many out at a time as the device holds of those. */
static bool run_small_chunks(struct chunk job, uint64_t step)
{
    const struct scan_rows *rows = job.rows;
    static struct chunk chunks[LIMIT_SMALL_CHUNKS];
    struct chunk *free[LIMIT_SMALL_CHUNKS];
    unsigned free_count = device->info.small_slots;
    for (unsigned i = 0; i < free_count; i++)
        free[i] = &chunks[i];
    uint64_t next = 0;
    bool good = true;
    while (next < rows->row_count || free_count < device->info.small_slots) {
        while (next < rows->row_count && free_count > 0 && good) {
            struct chunk *chunk = free[--free_count];
            uint64_t left = rows->row_count - next;
            *chunk = job;
            chunk->first = next;
            chunk->count = left < step ? left : step;
            chunk->small = true;
            next += chunk->count;
            good = device->ops->start(device, chunk) == 0;
        }
        struct chunk *done = device->ops->finish(device, 1000);
        if (done)
            free[free_count++] = done;
        good = good && (!done || done->status == 0);
        if (!good)
            return false;
    }
    return true;
}

static struct scan_rule make_rule(enum scand_accumulator accumulator, enum scand_dtype output)
{
    return (struct scan_rule){.passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD},
                              .pass_count = 2,
                              .accumulator = accumulator,
                              .output = output};
}

static void check_layout(const struct layout *layout, struct scan_rule rule)
{
    memset(output_memory, 0xa5, MEMORY_BYTES);
    memset(expected_memory, 0xa5, MEMORY_BYTES);
    struct scan_rows rows = make_rows(layout, rule, input_memory, output_memory);
    struct scan_rows expected = make_rows(layout, rule, input_memory, expected_memory);
    scan_reference(&expected, 0, expected.row_count);
    bool ran = run_chunks(&rows, host_span(input_memory), host_span(output_memory));
    bool same = ran && memcmp(output_memory, expected_memory, MEMORY_BYTES) == 0;
    if (!same)
        fprintf(stderr, "layout \"%s\", accumulator %d, output %d: %s\n", layout->name, (int)rule.accumulator,
                (int)rule.output, ran ? "wrong bits" : "did not run");
    CHECK(same);
}

static void host_layouts(void)
{
    const char *missing = set_up();
    if (missing)
        SKIP(missing);
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        check_layout(&layouts[i], make_rule(SCAND_ACCUMULATOR_F64, SCAND_DTYPE_F32));
        check_layout(&layouts[i], make_rule(SCAND_ACCUMULATOR_F2, SCAND_DTYPE_F64));
    }
}

static struct span staged_span(void *memory)
{
    return (struct span){SCAND_PLACE_HOST, memory, MEMORY_BYTES, MEMORY_BYTES, true, false};
}

/* Kernels work on such rows where they lie: no rectangles, or too large for a slot. */
static bool is_mapped(const struct layout *layout)
{
    return layout->input_stride == 3 || layout->length * sizeof(float) > MIB(16);
}

/* Memory that nobody has pinned, on either side or on both; what cannot be staged is refused. */
static void staged_layouts(void)
{
    const char *missing = set_up();
    if (missing)
        SKIP(missing);
    unsigned char *input = map_memory(), *output = map_memory();
    REQUIRE(input && output);
    memcpy(input, input_memory, MEMORY_BYTES);
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        const struct layout *layout = &layouts[i];
        const struct scan_rule rule = make_rule(SCAND_ACCUMULATOR_F64, i % 2 ? SCAND_DTYPE_F64 : SCAND_DTYPE_F32);
        struct span from = i % 3 == 1 ? host_span(input_memory) : staged_span(input),
                    to = i % 3 == 2 ? host_span(output_memory) : staged_span(output);
        struct scan_rows rows = make_rows(layout, rule, from.base, to.base),
                         expected = make_rows(layout, rule, input_memory, expected_memory);
        struct chunk chunk = {.rows = &rows, .count = 1, FROM_TO(from, to)};
        if (is_mapped(layout)) {
            CHECK_EQ(device->ops->start(device, &chunk), -EFAULT);
            continue;
        }
        memset(to.base, 0xa5, MEMORY_BYTES);
        memset(expected_memory, 0xa5, MEMORY_BYTES);
        scan_reference(&expected, 0, expected.row_count);
        bool same = run_chunks(&rows, from, to) && memcmp(to.base, expected_memory, MEMORY_BYTES) == 0;
        if (!same)
            fprintf(stderr, "staged, layout \"%s\"\n", layout->name);
        CHECK(same);
    }
    munmap(input, MEMORY_BYTES);
    munmap(output, MEMORY_BYTES);
}

/* Staged chunks in place, in turns with chunks that are not staged: each gets its own rows. */
static void staged_between_others(void)
{
    const char *missing = set_up();
    unsigned char *memory = map_memory();
    struct chunk chunks[2 * LIMIT_CHUNKS_IN_FLIGHT];
    if (missing)
        SKIP(missing);
    REQUIRE(memory != NULL);
    const unsigned slots = device->info.slots;
    const struct scan_rule rule = make_rule(SCAND_ACCUMULATOR_F64, SCAND_DTYPE_F32);
    memcpy(memory, input_memory, MEMORY_BYTES);
    memcpy(output_memory, input_memory, MEMORY_BYTES);
    memcpy(expected_memory, input_memory, MEMORY_BYTES);
    struct scan_rows staged = make_rows(&layouts[0], rule, memory, memory),
                     pinned = make_rows(&layouts[0], rule, output_memory, output_memory),
                     expected = make_rows(&layouts[0], rule, expected_memory, expected_memory);
    for (unsigned started = 0, done = 0; done < 2 * slots;) {
        if (started < 2 * slots && started < done + slots) {
            struct chunk *chunk = &chunks[started];
            bool even = started % 2 == 0;
            struct span span = even ? staged_span(memory) : host_span(output_memory);
            *chunk = (struct chunk){
                .rows = even ? &staged : &pinned, .first = started / 2 * 50, .count = 50, FROM_TO(span, span)};
            CHECK_EQ(device->ops->start(device, chunk), 0);
            started++;
        } else {
            struct chunk *chunk = device->ops->finish(device, 1000);
            CHECK(!chunk || chunk->status == 0);
            done += chunk != NULL;
        }
    }
    scan_reference(&expected, 0, 50 * slots);
    CHECK(memcmp(memory, expected_memory, MEMORY_BYTES) == 0);
    CHECK(memcmp(output_memory, expected_memory, MEMORY_BYTES) == 0);
    munmap(memory, MEMORY_BYTES);
}

/* Steps of every kind of kernel behind a first one, whose rule is that of the rows: one that needs no workspace, one
 * that does, a recurrence and a maximum. */
static const struct step *make_steps(enum scand_dtype dtype, uint32_t *count)
{
    static struct step steps[5];
    const struct scan_rule like = {.passes = {SCAND_PASS_BACKWARD, SCAND_PASS_FORWARD},
                                   .pass_count = 2,
                                   .accumulator = SCAND_ACCUMULATOR_F64,
                                   .input = dtype,
                                   .output = dtype};
    for (int i = 0; i < 5; i++)
        steps[i] = (struct step){.operation = OPERATION_scan, .rule = like};
    steps[2].rule.demean = true;
    steps[2].rule.accumulator = SCAND_ACCUMULATOR_F2;
    steps[3].rule.op = SCAND_OPERATOR_AFFINE;
    steps[3].rule.coefficient = -0.5;
    steps[4].rule.op = SCAND_OPERATOR_MAX;
    steps[4].rule.pass_count = 1;
    *count = 5;
    return steps;
}

static void chain_reference(const struct scan_rows *rows, const struct step *steps, uint32_t count)
{
    scan_reference(rows, 0, rows->row_count);
    for (uint32_t i = 1; i < count; i++) {
        struct scan_rows step = rows_then(rows, &steps[i].rule);
        scan_reference(&step, 0, step.row_count);
    }
}

static void check_chain(const struct layout *layout, enum scand_dtype output)
{
    struct scan_rule rule = make_rule(SCAND_ACCUMULATOR_F64, output);
    struct chunk job = {FROM_TO(host_span(input_memory), host_span(output_memory))};
    job.steps = make_steps(output, &job.step_count);
    memset(output_memory, 0xa5, MEMORY_BYTES);
    memset(expected_memory, 0xa5, MEMORY_BYTES);
    struct scan_rows rows = make_rows(layout, rule, input_memory, output_memory);
    struct scan_rows expected = make_rows(layout, rule, input_memory, expected_memory);
    job.rows = &rows;
    chain_reference(&expected, job.steps, job.step_count);
    bool same = run_job(job) && memcmp(output_memory, expected_memory, MEMORY_BYTES) == 0;
    if (!same)
        fprintf(stderr, "chain, layout \"%s\", output %d\n", layout->name, (int)output);
    CHECK(same);
}

static void chains(void)
{
    const char *missing = set_up();
    if (missing)
        SKIP(missing);
    for (size_t i = 2; i < sizeof layouts / sizeof layouts[0]; i++) /* the reference takes its time */
        check_chain(&layouts[i], i % 2 ? SCAND_DTYPE_F64 : SCAND_DTYPE_F32);
    check_chain(&layouts[9], SCAND_DTYPE_F32);
}

static void small_chunks(void)
{
    static const struct layout smalls[] = {
        {"dense rows", 1000, 1, {700}, {1000}, {1000}, 1, 1, 0},
        {"short rows", 37, 1, {5000}, {37}, {37}, 1, 1, 3},
        {"columns", 100, 1, {3001}, {1}, {1}, 3001, 3001, 0},
    };
    const char *missing = set_up();
    if (missing)
        SKIP(missing);
    for (size_t i = 0; i < sizeof smalls / sizeof smalls[0]; i++)
        for (int way = 0; way < 3; way++) {
            struct scan_rule rule = make_rule(SCAND_ACCUMULATOR_F64, SCAND_DTYPE_F32);
            struct chunk job = {FROM_TO(host_span(output_memory), host_span(output_memory))};
            rule.demean = way == 1; /* which takes a workspace */
            if (way == 2)
                job.steps = make_steps(SCAND_DTYPE_F32, &job.step_count);
            memcpy(output_memory, input_memory, MEMORY_BYTES);
            memcpy(expected_memory, input_memory, MEMORY_BYTES);
            struct scan_rows rows = make_rows(&smalls[i], rule, output_memory, output_memory);
            struct scan_rows expected = make_rows(&smalls[i], rule, expected_memory, expected_memory);
            job.rows = &rows;
            chain_reference(&expected, job.steps, job.step_count);
            CHECK(run_small_chunks(job, 1 + i));
            CHECK(memcmp(output_memory, expected_memory, MEMORY_BYTES) == 0);
        }
}

/* The n-th of small jobs that have little in common: most share launches, of a few kernels. */
static struct scan_rows mixed_rows(unsigned n, const void *input, void *output)
{
    static const uint64_t lengths[] = {1, 37, 512, 1000, 5000, 16384};
    static const enum scand_accumulator accumulators[] = {SCAND_ACCUMULATOR_F32, SCAND_ACCUMULATOR_F64,
                                                          SCAND_ACCUMULATOR_F2};
    const int64_t length = (int64_t)lengths[n % 6], gap = n % 4 == 1 ? 60 : 0, step = n % 5 == 2 ? 3 : 1;
    struct scan_rule rule = make_rule(accumulators[n / 2 % 3], n % 7 == 3 ? SCAND_DTYPE_F64 : SCAND_DTYPE_F32);
    rule.kind = n % 3 == 1     ? SCAND_KIND_EXCLUSIVE
                : n % 16 == 6  ? SCAND_KIND_HALF
                : n % 16 == 14 ? SCAND_KIND_TRAPEZOID
                               : SCAND_KIND_INCLUSIVE;
    rule.pass_count = 1 + n % 2;
    rule.intermediate = n % 11 == 4 ? SCAND_DTYPE_F64 : SCAND_DTYPE_F32;
    rule.op = n % 8 == 7 ? SCAND_OPERATOR_MAX : SCAND_OPERATOR_SUM;
    rule.demean = n % 8 == 5;
    if (n % 8 == 2)
        rule = reduce_rule(n % 16 == 2 ? SCAND_REDUCTION_RMS : SCAND_REDUCTION_MIN, SCAND_DTYPE_F32, SCAND_DTYPE_F32);
    if (n % 8 == 4) {
        rule.op = SCAND_OPERATOR_AFFINE;
        rule.coefficient = 0.9;
    }
    if (n % 8 == 3)
        rule.input = rule.output = SCAND_DTYPE_I32;
    const int64_t row = step * length + gap;
    const struct layout layout = {"mixed", (uint64_t)length,  1, {1 + n % 3}, {row}, {row}, step,
                                  step,    n % 4 == 2 ? 1 : 0};
    return make_rows(&layout, rule, input, output);
}

#define MIXED_JOBS  48
#define MIXED_BYTES ((uint64_t)2 << 20)

typedef struct scan_rows small_job(unsigned n, const void *input, void *output);

/* All at once; what is done has its bits by then. */
static void check_small_jobs(small_job *make, unsigned count)
{
    static struct scan_rows rows[MIXED_JOBS];
    static struct chunk chunks[MIXED_JOBS];
    memset(output_memory, 0xa5, count * MIXED_BYTES);
    memset(expected_memory, 0xa5, count * MIXED_BYTES);
    for (unsigned i = 0; i < count; i++) {
        const uint64_t at = i * MIXED_BYTES;
        struct scan_rows expected = make(i, input_memory + at, expected_memory + at);
        scan_reference(&expected, 0, expected.row_count);
        rows[i] = make(i, input_memory + at, output_memory + at);
        chunks[i] = (struct chunk){.rows = &rows[i],
                                   .count = rows[i].row_count,
                                   FROM_TO(host_span(input_memory), host_span(output_memory)),
                                   .small = true};
    }
    for (unsigned i = 0; i < count; i++)
        REQUIRE(device->ops->start(device, &chunks[i]) == 0);
    for (unsigned left = count; left > 0;) {
        const struct chunk *done = device->ops->finish(device, 1000);
        if (!done)
            continue;
        const uint64_t at = (uint64_t)(done - chunks) * MIXED_BYTES;
        CHECK_EQ(done->status, 0);
        CHECK(memcmp(output_memory + at, expected_memory + at, MIXED_BYTES) == 0);
        left--;
    }
}

static void small_chunks_of_many_rules(void)
{
    const char *missing = set_up();
    if (missing)
        SKIP(missing);
    check_small_jobs(mixed_rows, MIXED_JOBS);
}

/* Two jobs that share no launch: a large one that takes the workspace, and one that is done long before. */
static struct scan_rows unlike_rows(unsigned n, const void *input, void *output)
{
    static const struct layout sizes[] = {{"large", 16384, 1, {4}, {16384}, {16384}, 1, 1, 0},
                                          {"little", 10, 1, {1}, {10}, {10}, 1, 1, 0}};
    struct scan_rule rule = make_rule(SCAND_ACCUMULATOR_F2, SCAND_DTYPE_F32);
    rule.demean = n == 0;
    return make_rows(&sizes[n], rule, input, output);
}

static void small_chunks_with_a_workspace(void)
{
    const char *missing = set_up();
    if (missing)
        SKIP(missing);
    for (int times = 0; times < 20; times++)
        check_small_jobs(unlike_rows, 2);
}

/* Launches of a kernel whose warps share out the work: as many as can be on their way at once. */
static void small_chains_at_once(void)
{
    static const struct layout layout = {"dense rows", 1000, 1, {60 * LIMIT_SMALL_CHUNKS}, {1000}, {1000}, 1, 1, 0};
    const char *missing = set_up();
    if (missing)
        SKIP(missing);
    struct step steps[LIMIT_STEPS];
    struct scan_rule rule = make_rule(SCAND_ACCUMULATOR_F64, SCAND_DTYPE_F32);
    rule.pass_count = 1; /* nine sums of 1,000 samples stay below infinity */
    for (int i = 0; i < LIMIT_STEPS; i++)
        steps[i] = (struct step){.operation = OPERATION_scan, .rule = rule};
    struct chunk job = {FROM_TO(host_span(output_memory), host_span(output_memory))};
    job.steps = steps;
    job.step_count = LIMIT_STEPS;
    memcpy(output_memory, input_memory, MEMORY_BYTES);
    memcpy(expected_memory, input_memory, MEMORY_BYTES);
    struct scan_rows rows = make_rows(&layout, rule, output_memory, output_memory);
    struct scan_rows expected = make_rows(&layout, rule, expected_memory, expected_memory);
    job.rows = &rows;
    chain_reference(&expected, steps, LIMIT_STEPS);
    CHECK(run_small_chunks(job, 60));
    CHECK(memcmp(output_memory, expected_memory, MEMORY_BYTES) == 0);
}

static void in_place(void)
{
    const char *missing = set_up();
    if (missing)
        SKIP(missing);
    for (size_t i = 0; i < 3; i++) {
        struct scan_rule rule = make_rule(SCAND_ACCUMULATOR_F32, SCAND_DTYPE_F32);
        memcpy(output_memory, input_memory, MEMORY_BYTES);
        memcpy(expected_memory, input_memory, MEMORY_BYTES);
        struct scan_rows rows = make_rows(&layouts[i], rule, output_memory, output_memory);
        struct scan_rows expected = make_rows(&layouts[i], rule, expected_memory, expected_memory);
        scan_reference(&expected, 0, expected.row_count);
        CHECK(run_chunks(&rows, host_span(output_memory), host_span(output_memory)));
        CHECK(memcmp(output_memory, expected_memory, MEMORY_BYTES) == 0);
    }
}

/* Host to device memory with one pass, device to host with the other: the same as both at once. */
static void resident(void)
{
    const struct layout *layout = &layouts[1];
    const char *missing = set_up();
    void *memory = NULL;
    if (missing)
        SKIP(missing);
    REQUIRE(device->ops->allocate(device, MEMORY_BYTES, &memory) == 0);
    struct span middle = {SCAND_PLACE_DEVICE, memory, MEMORY_BYTES, MEMORY_BYTES, false, false};
    struct scan_rule both = make_rule(SCAND_ACCUMULATOR_F64, SCAND_DTYPE_F32), first = both, second = both;
    first.pass_count = second.pass_count = 1;
    second.passes[0] = SCAND_PASS_BACKWARD;
    memset(output_memory, 0xa5, MEMORY_BYTES);
    memset(expected_memory, 0xa5, MEMORY_BYTES);
    struct scan_rows up = make_rows(layout, first, input_memory, memory),
                     down = make_rows(layout, second, memory, output_memory);
    struct scan_rows expected = make_rows(layout, both, input_memory, expected_memory);
    scan_reference(&expected, 0, expected.row_count);
    CHECK(run_chunks(&up, host_span(input_memory), middle));
    CHECK(run_chunks(&down, middle, host_span(output_memory)));
    CHECK(memcmp(output_memory, expected_memory, MEMORY_BYTES) == 0);
    device->ops->free(device, memory, MEMORY_BYTES);
}

/* Rows that take longer than launches may, of samples far apart or side by side. */
static const struct layout long_strided = {"a long row, every third sample", 16000000, 1, {1}, {0}, {0}, 3, 3, 0},
                           long_dense = {"a long row", 30000000, 1, {1}, {0}, {0}, 1, 1, 0},
                           between_samples = {"a row between its samples", 40000, 1, {1}, {0}, {0}, 3, 3, 1};

/* Runs a long row a slice at a time, each over after a launch, and another row after each. Returns how many there were;
 * 0: something failed. */
static uint64_t run_slices(struct chunk chunk, const struct scan_rows *other)
{
    uint64_t slices = 0;
    do {
        struct chunk *done = NULL;
        chunk.slice_us = 1;
        if (device->ops->start(device, &chunk))
            return 0;
        while (!done)
            done = device->ops->finish(device, 1000);
        if (done != &chunk || chunk.status ||
            (other && !run_chunks(other, chunk.spans[OPERAND_INPUT], chunk.spans[OPERAND_OUTPUT])))
            return 0;
        slices++;
    } while (chunk.rest);
    return slices;
}

/* A long row's only row as a ragged one, a few samples in. */
static void make_ragged(struct scan_rows *rows)
{
    static uint64_t offsets[2] = {7};
    offsets[1] = rows->length - 5;
    rows->offsets = offsets;
    rows->outer_rank = 0;
}

/* A slice is a launch, and what others do between two of them changes nothing. */
static void long_rows_are_left_off(void)
{
    const char *missing = set_up();
    if (missing)
        SKIP(missing);
    struct scan_rule rule = make_rule(SCAND_ACCUMULATOR_F2, SCAND_DTYPE_F32);
    for (int i = 0; i < 4; i++) {
        rule.demean = i == 1;
        rule.op = i == 2 ? SCAND_OPERATOR_MAX : SCAND_OPERATOR_SUM;
        memset(output_memory, 0xa5, MEMORY_BYTES);
        memset(expected_memory, 0xa5, MEMORY_BYTES);
        const struct scan_rows other = make_rows(&between_samples, rule, input_memory, output_memory),
                               expected_other = make_rows(&between_samples, rule, input_memory, expected_memory);
        struct scan_rows rows = make_rows(&long_strided, rule, input_memory, output_memory),
                         expected = make_rows(&long_strided, rule, input_memory, expected_memory);
        if (i == 3) {
            make_ragged(&rows);
            make_ragged(&expected);
        }
        const struct chunk chunk = {
            .rows = &rows, .count = 1, FROM_TO(host_span(input_memory), host_span(output_memory))};
        const uint64_t blocks = scan_cuda_range_blocks(&rows, 0, true);
        scan_reference(&expected, 0, 1);
        scan_reference(&expected_other, 0, 1);
        CHECK(blocks < rows.length >> 15);
        CHECK_EQ(run_slices(chunk, &other), scan_cuda_range_count(&rows, 0, blocks));
        CHECK(memcmp(output_memory, expected_memory, MEMORY_BYTES) == 0);
    }
}

/* A long row's values between steps have memory of their own, since other chunks use the slot while the row is left
 * off. */
static void long_chains_are_left_off(void)
{
    const char *missing = set_up();
    if (missing)
        SKIP(missing);
    const struct scan_rule rule = make_rule(SCAND_ACCUMULATOR_F64, SCAND_DTYPE_F32);
    const uint64_t used = device->ops->memory_used_bytes(device);
    memcpy(output_memory, input_memory, MEMORY_BYTES);
    memcpy(expected_memory, input_memory, MEMORY_BYTES);
    const struct scan_rows rows = make_rows(&long_dense, rule, output_memory, output_memory),
                           expected = make_rows(&long_dense, rule, expected_memory, expected_memory);
    struct chunk chunk = {.rows = &rows, .count = 1, FROM_TO(host_span(output_memory), host_span(output_memory))};
    chunk.steps = make_steps(SCAND_DTYPE_F32, &chunk.step_count);
    chain_reference(&expected, chunk.steps, chunk.step_count);
    CHECK(run_slices(chunk, NULL) >= chunk.step_count);
    CHECK(memcmp(output_memory, expected_memory, MEMORY_BYTES) == 0);
    CHECK(device->ops->memory_used_bytes(device) < used + MIB(4)); /* a workspace may be kept */
}

static void long_reductions_are_left_off(void)
{
    const char *missing = set_up();
    if (missing)
        SKIP(missing);
    double result[2] = {0};
    const struct scan_rule rule = reduce_rule(SCAND_REDUCTION_SUM, SCAND_DTYPE_F32, SCAND_DTYPE_F64);
    struct scan_rows rows = {.rule = rule,
                             .length = UINT64_C(1) << 28,
                             .row_count = 1,
                             .outer_rank = 1,
                             .outer_shape = {1},
                             .input = input_memory,
                             .output = &result[0]};
    scan_reference(&rows, 0, 1);
    rows.output = output_memory;
    const struct chunk chunk = {.rows = &rows, .count = 1, FROM_TO(host_span(input_memory), host_span(output_memory))};
    CHECK_EQ(run_slices(chunk, NULL), scan_cuda_range_count(&rows, 0, scan_cuda_range_blocks(&rows, 0, true)));
    memcpy(&result[1], output_memory, sizeof(double));
    CHECK(memcmp(&result[0], &result[1], sizeof(double)) == 0);
}

/* A dropped row is over after one launch, and the first launches of a long row write nothing. */
static void dropped_long_rows_end(void)
{
    const char *missing = set_up();
    struct chunk *done = NULL;
    if (missing)
        SKIP(missing);
    const uint64_t used = device->ops->memory_used_bytes(device);
    memset(output_memory, 0xa5, MEMORY_BYTES);
    memset(expected_memory, 0xa5, MEMORY_BYTES);
    const struct scan_rows rows =
        make_rows(&long_strided, make_rule(SCAND_ACCUMULATOR_F64, SCAND_DTYPE_F32), input_memory, output_memory);
    struct chunk chunk = {.rows = &rows, .count = 1, FROM_TO(host_span(input_memory), host_span(output_memory))};
    REQUIRE(device->ops->start(device, &chunk) == 0);
    chunk_drop(&chunk);
    while (!done)
        done = device->ops->finish(device, 1000);
    CHECK(done == &chunk);
    CHECK_EQ(chunk.status, -ECANCELED);
    CHECK(!chunk.rest);
    CHECK(memcmp(output_memory, expected_memory, MEMORY_BYTES) == 0);
    CHECK(device->ops->memory_used_bytes(device) < used + MIB(4)); /* a workspace may be kept */
}

/* The state of a row that was left off is discarded by another thread than the device's, and freed before more memory
 * is taken. */
static void left_off_rows_are_discarded(void)
{
    const char *missing = set_up();
    struct chunk *done = NULL;
    void *memory = NULL;
    if (missing)
        SKIP(missing);
    const struct scan_rows rows =
        make_rows(&long_strided, make_rule(SCAND_ACCUMULATOR_F64, SCAND_DTYPE_F32), input_memory, output_memory);
    struct chunk chunk = {
        .rows = &rows, .count = 1, FROM_TO(host_span(input_memory), host_span(output_memory)), .slice_us = 1};
    REQUIRE(device->ops->start(device, &chunk) == 0);
    while (!done)
        done = device->ops->finish(device, 1000);
    REQUIRE(chunk.status == 0 && chunk.rest);
    const uint64_t before = device->ops->memory_used_bytes(device);
    device->ops->discard(device, chunk.rest);
    const uint64_t used = device->ops->memory_used_bytes(device);
    CHECK(used < before);
    REQUIRE(device->ops->allocate(device, DEVICE_LIMIT - used, &memory) == 0);
    device->ops->free(device, memory, DEVICE_LIMIT - used);
    check_layout(&layouts[0], make_rule(SCAND_ACCUMULATOR_F64, SCAND_DTYPE_F32));
}

/* Chunks come back when they are done, not in the order in which they were started. */
static void long_rows_are_passed(void)
{
    const char *missing = set_up();
    struct chunk *first = NULL, *second = NULL;
    if (missing)
        SKIP(missing);
    const struct scan_rule rule = make_rule(SCAND_ACCUMULATOR_F64, SCAND_DTYPE_F32);
    memset(output_memory, 0xa5, MEMORY_BYTES);
    memset(expected_memory, 0xa5, MEMORY_BYTES);
    const struct scan_rows rows = make_rows(&long_strided, rule, input_memory, output_memory),
                           other = make_rows(&between_samples, rule, input_memory, output_memory),
                           expected = make_rows(&long_strided, rule, input_memory, expected_memory),
                           expected_other = make_rows(&between_samples, rule, input_memory, expected_memory);
    struct chunk chunk = {.rows = &rows, .count = 1, FROM_TO(host_span(input_memory), host_span(output_memory))};
    struct chunk after = chunk;
    after.rows = &other;
    REQUIRE(device->ops->start(device, &chunk) == 0);
    REQUIRE(device->ops->start(device, &after) == 0);
    while (!first)
        first = device->ops->finish(device, 1000);
    while (!second)
        second = device->ops->finish(device, 1000);
    CHECK(first == &after && second == &chunk);
    CHECK(chunk.status == 0 && after.status == 0);
    scan_reference(&expected, 0, 1);
    scan_reference(&expected_other, 0, 1);
    CHECK(memcmp(output_memory, expected_memory, MEMORY_BYTES) == 0);
}

static void memory_is_bounded(void)
{
    const char *missing = set_up();
    void *memory = NULL;
    if (missing)
        SKIP(missing);
    uint64_t used = device->ops->memory_used_bytes(device);
    CHECK_EQ(device->ops->allocate(device, DEVICE_LIMIT, &memory), -EDQUOT);
    CHECK_EQ(device->ops->memory_used_bytes(device), used);
    REQUIRE(device->ops->allocate(device, DEVICE_LIMIT - used, &memory) == 0);
    CHECK_EQ(device->ops->memory_used_bytes(device), DEVICE_LIMIT);
    device->ops->free(device, memory, DEVICE_LIMIT - used);
    CHECK_EQ(device->ops->memory_used_bytes(device), used);
}

/* A device of the least memory has everything it cannot do without, and says how much that is. */
static void least_memory(void)
{
    const char *missing = set_up();
    struct device *other;
    struct error error;
    if (missing)
        SKIP(missing);
    CHECK_EQ(device_cuda_open(0, MIB(70), &other, &error), -EINVAL);
    CHECK_CONTAINS(error.message, "--device-memory is 70 MiB; a CUDA device needs 71, and more for device buffers");
    REQUIRE(device_cuda_open(0, MIB(71), &other, &error) == 0);
    CHECK(other->ops->memory_used_bytes(other) > MIB(70));
    other->ops->close(other);
}

static void bad_attach_leaves_the_device_usable(void)
{
    const char *missing = set_up();
    if (missing)
        SKIP(missing);
    CHECK(device->ops->memory_pin(device, NULL, PIN_UNIT_BYTES) < 0);
    check_layout(&layouts[0], make_rule(SCAND_ACCUMULATOR_F64, SCAND_DTYPE_F32));
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(host_layouts),
                                        TEST(in_place),
                                        TEST(staged_layouts),
                                        TEST(staged_between_others),
                                        TEST(small_chunks),
                                        TEST(chains),
                                        TEST(small_chains_at_once),
                                        TEST(small_chunks_of_many_rules),
                                        TEST(small_chunks_with_a_workspace),
                                        TEST(resident),
                                        TEST(long_rows_are_left_off),
                                        TEST(long_chains_are_left_off),
                                        TEST(long_reductions_are_left_off),
                                        TEST(dropped_long_rows_end),
                                        TEST(left_off_rows_are_discarded),
                                        TEST(long_rows_are_passed),
                                        TEST(memory_is_bounded),
                                        TEST(least_memory),
                                        TEST(bad_attach_leaves_the_device_usable),
                                        TEST_END};
    return test_main(argc, argv, tests);
}

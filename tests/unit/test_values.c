/* Values of indices that a job has looked at before it writes anything: which chunks read them, what these read, and
 * what is said of a value that is out of range. */
#include "daemon/core/jobs/values.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/core/jobs/job.h"
#include "kernels/steps/map/map.h"
#include "kernels/steps/stack/stack.h"
#include "tests/check.h"

#define BASE   ((unsigned char *)0x1000)
#define BINS   17
#define CHUNK  (UINT64_C(1) << 18) /* values of a chunk */
#define INDEX  OPERAND_FURTHER
#define PLACES 4096

static uint64_t state;
static struct error error;
static struct buffer buffer = {.span = {.place = SCAND_PLACE_HOST, .base = BASE}};

/* A stack of rows, each with an index of its own. */
static struct job stack_of(uint64_t rows, uint64_t length)
{
    const struct stack stack = {.bins = BINS, .power = 1, .alpha = 1};
    struct job job = {.step_count = 1,
                      .operand_count = INDEX + 1,
                      .rows = {.length = length, .row_count = rows, .outer_rank = 1, .outer_shape = {rows}}};
    job.steps[0] = (struct step){.operation = OPERATION_stack, .kernel = &stack_kernel, .further = {INDEX}};
    memcpy(job.steps[0].parameters, &stack, sizeof stack);
    job.operands[INDEX] = (struct operand){.buffer = &buffer,
                                           .follows = FOLLOWS_VECTORS,
                                           .dtype = SCAND_DTYPE_I32,
                                           .item_bytes = 4,
                                           .length = length,
                                           .origin = BASE,
                                           .stride = 4,
                                           .outer_strides = {(int64_t)length * 4}};
    return job;
}

/* Begins a job with operands as devices see them. */
static void begin(struct job *job)
{
    for (uint32_t i = OPERAND_FURTHER; i < job->operand_count; i++) {
        const struct operand *operand = &job->operands[i];
        job->layouts[i] = (struct step_operand){.origin = (char *)operand->origin,
                                                .length = operand->length,
                                                .stride = operand->stride,
                                                .outer_strides = {operand->outer_strides[0]},
                                                .dtype = operand->dtype};
    }
    values_begin(job);
}

/* Has a chunk of the next values come back: the error's code. The chunk keeps what it read, which the job does not. */
static int done(struct job *job, struct chunk *chunk, struct index_fault fault)
{
    static struct step_operand looked_at;
    values_next_chunk(job, chunk);
    looked_at = *chunk->operands;
    CHECK(job->values.out && chunk->owner == job && chunk->operand_count == 1 && chunk->below == BINS);
    chunk->fault = fault;
    error.message[0] = '\0';
    const int code = values_return(job, chunk, &error);
    CHECK(!job->values.out);
    chunk->operands = &looked_at;
    return code;
}

static void count_seen(unsigned char *seen, const struct job *job, const struct chunk *chunk)
{
    const uint64_t length = job->operands[INDEX].length;
    const uint64_t element = (uint64_t)(chunk->operands->origin - (char *)BASE) / 4;
    REQUIRE(chunk->operands->length > 0 && element + chunk->operands->length <= length);
    for (uint64_t r = chunk->first; r < chunk->first + chunk->count; r++)
        for (uint64_t i = element; i < element + chunk->operands->length; i++)
            seen[r * length + i]++;
}

/* All chunks together read each value once, each at most as many as a device looks at in a turn. */
static void check_once(uint64_t rows, uint64_t length)
{
    struct job job = stack_of(rows, length);
    unsigned char *seen = calloc(rows, length);
    REQUIRE(seen);
    begin(&job);
    while (values_are_left(&job)) {
        struct chunk chunk;
        const struct extent extent = values_footprint(&job);
        CHECK(values_are_ready(&job));
        CHECK_EQ(done(&job, &chunk, (struct index_fault){.found = false}), 0);
        const uint64_t values = chunk.count * chunk.operands->length;
        CHECK(values <= CHUNK && values_chunk_bytes(&chunk) == 4 * values);
        CHECK_EQ(extent.begin, chunk.first * length * 4 + (uint64_t)(chunk.operands->origin - (char *)BASE));
        CHECK_EQ(extent.end - extent.begin, 4 * values);
        count_seen(seen, &job, &chunk);
    }
    for (uint64_t i = 0; i < rows * length; i++)
        REQUIRE(seen[i] == 1);
    free(seen);
}

static void each_value_once(void)
{
    check_once(1, 1);
    check_once(1, CHUNK);
    check_once(3, CHUNK + 1);
    check_once(2, 3 * CHUNK - 5);
    check_once(CHUNK + 7, 1);
    for (int i = 0; i < 20; i++)
        check_once(1 + random_next(&state) % 500, 1 + random_next(&state) % 2000);
}

/* Rows that share one have it looked at once, and so has one that is the job's. */
static void shared_ones_are_read_once(void)
{
    struct chunk chunk;
    struct job job = stack_of(1000, 50);
    job.operands[INDEX].outer_strides[0] = 0;
    begin(&job);
    CHECK_EQ(done(&job, &chunk, (struct index_fault){.found = false}), 0);
    CHECK(chunk.first == 0 && chunk.count == 1 && !values_are_left(&job));
    job = stack_of(1000, 50);
    job.operands[INDEX].follows = FOLLOWS_JOB;
    job.operands[INDEX].extent = (struct extent){0, 200};
    begin(&job);
    CHECK_EQ(done(&job, &chunk, (struct index_fault){.found = false}), 0);
    CHECK(chunk.count == 1 && chunk.operands->length == 50 && !values_are_left(&job));
}

/* Nothing is checked of an operand that is no index, has no elements, or belongs to a plain job. */
static void what_needs_no_look(void)
{
    struct job job = stack_of(4, 50);
    job.operands[INDEX].origin = NULL;
    begin(&job);
    CHECK(!values_are_left(&job));
    job = stack_of(4, 50);
    job.plain = true;
    begin(&job);
    CHECK(!values_are_left(&job));
    job = stack_of(4, 50);
    job.steps[0].kernel = &map_kernel;
    begin(&job);
    CHECK(!values_are_left(&job));
    job = stack_of(4, 50);
    memset(job.steps[0].further, 0, sizeof job.steps[0].further);
    job.steps[0].further[STACK_ONTO] = INDEX;
    begin(&job);
    CHECK(!values_are_left(&job));
}

/* Of values that lie on a page each a chunk has fewer, along a row and across rows; rows that lie side by side count as
 * one place. */
static void few_that_lie_apart(void)
{
    struct chunk chunk;
    struct job job = stack_of(1, CHUNK);
    job.operands[INDEX].stride = -4096;
    begin(&job);
    values_next_chunk(&job, &chunk);
    CHECK_EQ(chunk.operands->length, PLACES);
    job = stack_of(CHUNK, 1);
    job.operands[INDEX].outer_strides[0] = 4096;
    begin(&job);
    values_next_chunk(&job, &chunk);
    CHECK(chunk.count == PLACES && chunk.operands->length == 1);
    job = stack_of(CHUNK, 1);
    job.rows.outer_rank = 2;
    job.rows.outer_shape[0] = CHUNK / 8, job.rows.outer_shape[1] = 8;
    job.operands[INDEX].outer_strides[0] = 4096, job.operands[INDEX].outer_strides[1] = 4;
    begin(&job);
    values_next_chunk(&job, &chunk);
    CHECK_EQ(chunk.count, 8 * PLACES);
}

/* Two steps have an index each: one is checked after the other, each named as its step's. */
static void one_operand_after_another(void)
{
    struct chunk chunk;
    struct job job = stack_of(4, 50);
    job.step_count = 2;
    job.operand_count = INDEX + 2;
    job.steps[1] = job.steps[0];
    job.steps[1].further[STACK_INDEX] = INDEX + 1;
    job.operands[INDEX + 1] = job.operands[INDEX];
    job.operands[INDEX + 1].length = 9;
    begin(&job);
    CHECK_EQ(done(&job, &chunk, (struct index_fault){.found = false}), 0);
    CHECK(chunk.operands->length == 50 && values_are_left(&job) && job.values.operand == INDEX + 1);
    CHECK_EQ(done(&job, &chunk, (struct index_fault){.found = true, .row = 3, .element = 8, .value = -1}), -EINVAL);
    CHECK_CONTAINS(error.message,
                   "element 8 of \"steps[1].index\" for row 3 is -1; allowed: 0 to 16; nothing has been");
}

/* The element is counted from the beginning of the row, not of the chunk. */
static void values_out_of_range(void)
{
    struct chunk chunk;
    struct job job = stack_of(2, CHUNK + 10);
    begin(&job);
    CHECK_EQ(done(&job, &chunk, (struct index_fault){.found = false}), 0);
    CHECK_EQ(done(&job, &chunk, (struct index_fault){.found = true, .row = 0, .element = 4, .value = 17}), -EINVAL);
    CHECK_CONTAINS(error.message, "element 262148 of \"steps[0].index\" for row 0 is 17; allowed: 0 to 16");
    job = stack_of(1, 50);
    job.operands[INDEX].follows = FOLLOWS_JOB;
    begin(&job);
    CHECK_EQ(done(&job, &chunk, (struct index_fault){.found = true, .row = 0, .element = 4, .value = INT64_MIN}),
             -EINVAL);
    CHECK_CONTAINS(error.message, "\"steps[0].index\"[4] is -9223372036854775808; allowed: 0 to 16; nothing has been");
}

/* Values that a device could not check are checked again, or fail the job. */
static void chunks_that_failed(void)
{
    struct chunk chunk;
    struct job job = stack_of(1, 2 * CHUNK);
    begin(&job);
    values_next_chunk(&job, &chunk);
    chunk.status = -EFAULT;
    CHECK_EQ(values_return(&job, &chunk, &error), 0);
    CHECK(values_are_left(&job) && job.values.element == 0 && !job.values.out);
    values_next_chunk(&job, &chunk);
    chunk.status = -EIO;
    CHECK_EQ(values_return(&job, &chunk, &error), -EIO);
    CHECK_CONTAINS(error.message, "the device failed while it looked at \"steps[0].index\"; nothing has been written");
}

/* Memory of which a part is pinned is ready where the next values lie: here four rows are a unit. */
static void memory_that_is_pinned_in_part(void)
{
    struct chunk chunk;
    struct job job = stack_of(8, CHUNK);
    struct buffer partial = buffer;
    CHECK_EQ(pin_units_init(&partial.pin_units, 8 * CHUNK * 4), 0);
    job.operands[INDEX].buffer = &partial;
    begin(&job);
    CHECK(!values_are_ready(&job));
    pin_units_note(&partial.pin_units, 0);
    for (int row = 0; row < 4; row++) {
        CHECK(values_are_ready(&job));
        CHECK_EQ(done(&job, &chunk, (struct index_fault){.found = false}), 0);
        CHECK_EQ(chunk.first, row);
    }
    CHECK(!values_are_ready(&job));
    pin_units_note(&partial.pin_units, 1);
    CHECK(values_are_ready(&job));
    pin_units_finish(&partial.pin_units);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(each_value_once),    TEST(shared_ones_are_read_once),     TEST(what_needs_no_look),
        TEST(few_that_lie_apart), TEST(one_operand_after_another),     TEST(values_out_of_range),
        TEST(chunks_that_failed), TEST(memory_that_is_pinned_in_part), TEST_END,
    };
    state = random_seed();
    return test_main(argc, argv, tests);
}

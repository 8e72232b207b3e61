/* Tests of job.run through the service: a job as steps, which refusals name, and the bounds of what a client may ask
 * for. */
#include "tests/unit/service_rig.h"

#include "kernels/tutorial/steps/steps.h"

#define ANNA ((uid_t)1000)

/* Returns the results' tensor, one element for each row. */
static struct msg_tensor results_of(uint64_t buffer, uint64_t first, uint64_t rows)
{
    struct msg_tensor tensor = rig_rows(buffer, first, rows);
    tensor.shape[1] = 1;
    return tensor;
}

static union msg_step scan_step(void)
{
    return (union msg_step){.scan = {.operation = OPERATION_scan, .passes_count = 1}};
}

static union msg_step reduce_step(uint32_t reduction)
{
    return (union msg_step){.reduce = {.operation = OPERATION_reduce, .reduction = reduction}};
}

/* Returns a job of `steps` scans. */
static struct msg_job_run_params scans(struct msg_tensor input, struct msg_tensor output, uint32_t steps)
{
    struct msg_job_run_params params = {.input = input, .output = output, .axis = 1, .steps_count = steps};
    for (uint32_t i = 0; i < steps; i++)
        params.steps[i] = scan_step();
    return params;
}

static struct caller *begin_with_buffer(uint64_t *buffer)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    *buffer = user_create(user, 100 * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    return user;
}

static const char *run_refused(struct caller *user, const struct msg_job_run_params *params, enum scand_status status)
{
    return refused(user, METHOD_job_run, params, status);
}

static void steps_reach_the_device(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    struct msg_job_run_params params = scans(rig_rows(buffer, 0, 2), rig_rows(buffer, 4, 2), LIMIT_STEPS);
    params.steps[1].scan.passes[0] = SCAND_PASS_BACKWARD;
    params.steps[8].scan.op = SCAND_OPERATOR_MAX;
    uint32_t msgid = ask(user, METHOD_job_run, &params);
    REQUIRE(rig.manual.out_count == 1);
    const struct chunk *chunk = rig.manual.out[0];
    CHECK_EQ(chunk->step_count, LIMIT_STEPS);
    CHECK(chunk->steps[1].rule.passes[0] == SCAND_PASS_BACKWARD && chunk->steps[8].rule.op == SCAND_OPERATOR_MAX);
    CHECK(chunk->rows->rule.operation == SCAND_OPERATION_SCAN && chunk->steps[0].operation == OPERATION_scan);
    rig_complete_all();
    CHECK(answered(user, msgid, METHOD_job_run, NULL));
    params = scans(rig_rows(buffer, 0, 2), results_of(buffer, 4, 2), 1);
    params.steps[0] = reduce_step(2);
    msgid = ask(user, METHOD_job_run, &params);
    REQUIRE(rig.manual.out_count == 1);
    CHECK_EQ(rig.manual.out[0]->rows->rule.reduction, SCAND_REDUCTION_MAX);
    rig_complete_all();
    CHECK(answered(user, msgid, METHOD_job_run, NULL));
    rig_end();
}

static struct msg_job_run_params named(const char *algorithm, uint64_t buffer)
{
    struct msg_job_run_params params = scans(rig_rows(buffer, 0, 2), rig_rows(buffer, 4, 2), 1);
    params.steps[0] = (union msg_step){.map = {.operation = OPERATION_map, .op = MAP_MUL, .by = 2}};
    snprintf(params.algorithm, sizeof params.algorithm, "%s", algorithm);
    return params;
}

/* A variant of the tutorials reaches the device, which may not have it. */
static void steps_by_name(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    struct msg_job_run_params params = named("map-packs", buffer);
    uint32_t msgid = ask(user, METHOD_job_run, &params);
    REQUIRE(rig.manual.out_count == 1);
    CHECK_EQ(rig.manual.out[0]->steps[0].algorithm, (uint32_t)step_variant_find("map-packs") + 1);
    rig_complete(0, -EOPNOTSUPP);
    CHECK_CONTAINS(refusal(user, msgid, SCAND_UNSUPPORTED),
                   "\"algorithm\" is \"map-packs\", which this daemon's device cannot run; a daemon started with "
                   "--device cuda can, if built with SCAND_TUTORIAL");
    params = named("", buffer);
    msgid = ask(user, METHOD_job_run, &params);
    REQUIRE(rig.manual.out_count == 1);
    CHECK_EQ(rig.manual.out[0]->steps[0].algorithm, 0);
    rig_complete_all();
    CHECK(answered(user, msgid, METHOD_job_run, NULL));
    rig_end();
}

static void names_of_steps_are_checked(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    struct msg_job_run_params bad = named("dot-atomic", buffer);
    CHECK_CONTAINS(run_refused(user, &bad, SCAND_INVALID),
                   "job.run: \"algorithm\" is \"dot-atomic\"; there are: map-naive, map-packs, map-pairs");
    bad = named("map-packs", buffer);
    bad.steps[0] = (union msg_step){.diff = {.operation = OPERATION_diff, .kind = DIFF_FIRST}};
    CHECK_CONTAINS(run_refused(user, &bad, SCAND_INVALID), "\"algorithm\" is given, and \"diff\" has none; leave it");
    bad = named("map-pairs", buffer);
    CHECK_CONTAINS(run_refused(user, &bad, SCAND_INVALID),
                   "\"input.dtype\" is \"f32\"; allowed with \"algorithm\" \"map-pairs\": f16");
    bad = named("map-packs", buffer);
    bad.steps[0].map.by = 0;
    bad.steps[0].map.other = rig_rows(buffer, 8, 2);
    bad.steps[0].map.other.dtype = SCAND_DTYPE_F16;
    bad.steps[0].map.other.strides[1] = 2;
    CHECK_CONTAINS(run_refused(user, &bad, SCAND_INVALID),
                   "\"steps[0].other.dtype\" is \"f16\"; allowed with \"algorithm\" \"map-packs\": f32");
    bad = named("map-packs", buffer), bad.output.offset += 2;
    CHECK_CONTAINS(run_refused(user, &bad, SCAND_INVALID), "allowed with \"algorithm\" \"map-packs\": multiples of 4");
    bad = named("map-packs", buffer), bad.steps_count = 2, bad.steps[1] = scan_step();
    CHECK_CONTAINS(run_refused(user, &bad, SCAND_INVALID),
                   "\"algorithm\" is given, and the steps are not scans alone, or a single one; allowed then: none");
    CHECK_EQ(rig.manual.started, 0);
    rig_end();
}

static void messages_name_the_step(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    struct msg_job_run_params good = scans(rig_rows(buffer, 0, 2), rig_rows(buffer, 4, 2), 3), bad = good;
    bad.steps[2].scan.coefficient = 2;
    CHECK_CONTAINS(run_refused(user, &bad, SCAND_INVALID),
                   "job.run: \"steps[2].coefficient\" is for \"op\" \"affine\", but \"op\" is \"sum\"");
    bad = good, bad.steps[0].scan.accumulator = SCAND_ACCUMULATOR_EXACT;
    CHECK_CONTAINS(run_refused(user, &bad, SCAND_INVALID),
                   "job.run: \"steps[0].accumulator\" is \"exact\"; allowed with \"input.dtype\" \"f32\": auto, f32");
    bad = good, bad.steps[1].scan.op = SCAND_OPERATOR_AFFINE;
    bad.steps[1].scan.coefficients = rig_rows(buffer, 8, 2);
    bad.steps[1].scan.coefficients.dtype = SCAND_DTYPE_I32;
    CHECK_CONTAINS(
        run_refused(user, &bad, SCAND_INVALID),
        "job.run: \"steps[1].coefficients.dtype\" is \"i32\"; allowed with \"output.dtype\" \"f32\": f32, f16");
    bad = good, bad.steps[0].scan.op = SCAND_OPERATOR_AFFINE;
    bad.steps[0].scan.coefficients = rig_rows(buffer, 5, 2);
    CHECK_CONTAINS(run_refused(user, &bad, SCAND_INVALID),
                   "job.run: \"steps[0].coefficients\" (bytes 2000 to 2800) and \"output\" (bytes 1600 to 2400)");
    bad.steps[0].scan.coefficients.buffer = 77;
    CHECK_CONTAINS(run_refused(user, &bad, SCAND_NOT_FOUND),
                   "job.run: \"steps[0].coefficients.buffer\" is 77; this connection has no such buffer");
    bad = good, bad.steps[0] = reduce_step(0);
    CHECK_CONTAINS(
        run_refused(user, &bad, SCAND_INVALID),
        "job.run: \"steps[1].operation\" is \"scan\", which takes rows of samples, but \"reduce\" before it");
    bad = good, bad.axis = 2;
    CHECK_CONTAINS(run_refused(user, &bad, SCAND_INVALID), "job.run: \"axis\" is 2; a tensor of 2 dimensions");
    bad = good, strcpy(bad.algorithm, "no-such");
    CHECK_CONTAINS(run_refused(user, &bad, SCAND_INVALID), "job.run: \"algorithm\" is \"no-such\"; there are: ");
    CHECK_EQ(rig.manual.started, 0);
    rig_end();
}

/* Operands are bounded: more tensors than a job may have, in as many steps as there may be. */
static void operands_are_bounded(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    struct msg_job_run_params params = scans(rig_rows(buffer, 0, 2), rig_rows(buffer, 4, 2), LIMIT_STEPS);
    for (int i = 0; i < LIMIT_STEPS; i++)
        params.steps[i].scan.coefficients = rig_rows(buffer, 8, 2);
    CHECK_CONTAINS(run_refused(user, &params, SCAND_INVALID),
                   "job.run: \"steps[5].coefficients\" is one operand too many; allowed: 5 tensors of all steps");
    CHECK(is_silent(user) && rig.manual.started == 0);
    rig_end();
}

/* Tensors of any size and place, of a step as of the job itself, are refused before anything is touched. */
static void operands_outside_the_buffer(void)
{
    static const uint64_t edges[] = {UINT64_C(1) << 63, INT64_MAX, UINT64_MAX, UINT64_C(1) << 33};
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    struct msg_job_run_params good = scans(rig_rows(buffer, 0, 2), rig_rows(buffer, 4, 2), 1), bad;
    good.steps[0].scan.op = SCAND_OPERATOR_AFFINE;
    good.steps[0].scan.coefficients = rig_rows(buffer, 8, 2);
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
        bad = good, bad.steps[0].scan.coefficients.offset = edges[i];
        CHECK_CONTAINS(run_refused(user, &bad, SCAND_INVALID), "job.run: \"steps[0].coefficients\"");
        bad = good, bad.steps[0].scan.coefficients.strides[0] = (int64_t)edges[i];
        if (edges[i] != UINT64_MAX) /* a step of a byte backwards */
            CHECK_CONTAINS(run_refused(user, &bad, SCAND_INVALID), "job.run: \"steps[0].coefficients\"");
        bad = good, bad.steps[0].scan.coefficients.shape[1] = edges[i];
        CHECK_CONTAINS(run_refused(user, &bad, SCAND_INVALID), "and of \"steps[0].coefficients\"");
    }
    CHECK_EQ(rig.manual.started, 0);
    rig_end();
}

/* Jobs of both methods on the same memory keep their order, whichever operand it is. */
static void operands_order_jobs(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    struct msg_job_run_params writer = scans(rig_rows(buffer, 0, 2), rig_rows(buffer, 4, 2), 1);
    struct msg_job_run_params reader = scans(rig_rows(buffer, 10, 2), rig_rows(buffer, 20, 2), 2);
    reader.steps[0].scan.op = SCAND_OPERATOR_AFFINE;
    reader.steps[0].scan.coefficients = rig_rows(buffer, 4, 2);
    const struct msg_job_submit_params last = {
        .input = rig_rows(buffer, 20, 2), .output = rig_rows(buffer, 30, 2), .axis = 1, .passes_count = 1};
    uint32_t first = ask(user, METHOD_job_run, &writer), second = ask(user, METHOD_job_run, &reader),
             third = ask(user, METHOD_job_submit, &last);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(rig.manual.out_count, 1);
        rig_complete(0, 0);
        CHECK(answered(user, i == 0 ? first : i == 1 ? second : third, METHOD_job_run, NULL));
    }
    rig_end();
}

/* A job that reads the output of a failed job is stale, also where a step's operand reads it; each error names the
 * method of its job. */
static void operands_are_stale(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    struct msg_job_run_params writer = scans(rig_rows(buffer, 0, 2), rig_rows(buffer, 4, 2), 1);
    struct msg_job_run_params reader = scans(rig_rows(buffer, 10, 2), rig_rows(buffer, 20, 2), 1);
    reader.steps[0].scan.op = SCAND_OPERATOR_AFFINE;
    reader.steps[0].scan.coefficients = rig_rows(buffer, 5, 2);
    uint32_t first = ask(user, METHOD_job_run, &writer), second = ask(user, METHOD_job_run, &reader);
    rig_complete(0, -EIO);
    CHECK_CONTAINS(refusal(user, first, SCAND_DEVICE), "job.run: the device failed on rows 0 to 1");
    CHECK_CONTAINS(refusal(user, second, SCAND_STALE), "job.run: the job reads bytes of 1600 to 2400 of buffer 1");
    CHECK_EQ(rig.manual.out_count, 0);
    rig_end();
}

/* An index is looked at first, in a chunk of its own: when the device fails there, nothing has been written. */
static void values_that_cannot_be_looked_at(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    struct msg_tensor index = {
        .buffer = buffer, .offset = 50 * RIG_ROW_BYTES, .dtype = SCAND_DTYPE_I32, .shape = {100}, .shape_count = 1};
    index.strides[0] = 4;
    index.strides_count = 1;
    struct msg_tensor bins = rig_rows(buffer, 20, 4);
    bins.shape[1] = 7;
    struct msg_job_run_params params = {.input = rig_rows(buffer, 0, 4), .output = bins, .axis = 1, .steps_count = 1};
    params.steps[0] = (union msg_step){.stack = {.operation = OPERATION_stack, .bins = 7, .index = index}};
    for (unsigned i = 0; i < 2; i++) {
        const uint32_t msgid = ask(user, METHOD_job_run, &params);
        REQUIRE(rig.manual.out_count == 1 && rig.manual.out[0]->below == 7);
        rig_complete(0, i == 0 ? -EIO : 0);
        if (i == 0)
            CHECK_CONTAINS(refusal(user, msgid, SCAND_DEVICE),
                           "the device failed while it looked at \"steps[0].index\"; nothing has been written");
        else
            REQUIRE(rig.manual.out_count > 0 && rig.manual.out[0]->below == 0);
    }
    rig_complete_all();
    rig_end();
}

static void queues_are_bounded(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    struct msg_job_run_params params = scans(rig_rows(buffer, 0, 2), rig_rows(buffer, 0, 2), 1);
    for (int i = 0; i < LIMIT_CLIENT_JOBS; i++)
        ask(user, METHOD_job_run, &params);
    CHECK_CONTAINS(refused(user, METHOD_job_run, &params, SCAND_BUSY), "job.run: 256 jobs of this connection");
    rig_end();
}

/* Values between steps have a place where the output has none for them. */
static void reductions_behind_other_steps(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    struct msg_job_run_params params = scans(rig_rows(buffer, 0, 10), results_of(buffer, 50, 10), 2);
    params.steps[1] = reduce_step(0);
    uint32_t msgid = ask(user, METHOD_job_run, &params);
    REQUIRE(rig.manual.out_count > 0);
    const struct chunk *chunk = rig.manual.out[0];
    CHECK_EQ(chunk->between_bytes, chunk->count * 400);
    CHECK_EQ(chunk->count, 1); /* of the four rows that a chunk holds: these have values between steps, and results */
    rig_complete_all();
    CHECK(answered(user, msgid, METHOD_job_run, NULL));
    params.steps_count = 1;
    params.steps[0] = reduce_step(0);
    msgid = ask(user, METHOD_job_run, &params);
    CHECK_EQ(rig.manual.out[0]->between_bytes, 0);
    rig_complete_all();
    CHECK(answered(user, msgid, METHOD_job_run, NULL));
    rig_end();
}

static const struct test tests[] = {
    TEST(steps_reach_the_device),
    TEST(steps_by_name),
    TEST(names_of_steps_are_checked),
    TEST(messages_name_the_step),
    TEST(operands_are_bounded),
    TEST(operands_outside_the_buffer),
    TEST(operands_order_jobs),
    TEST(operands_are_stale),
    TEST(values_that_cannot_be_looked_at),
    TEST(queues_are_bounded),
    TEST(reductions_behind_other_steps),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

/*
 * Tasks of libscand with the real daemon: the same bits as the same jobs by scand_submit, what the daemon refuses, and
 * a killed worker. $SCAND names the daemon's program;
 * without it those tests that need no worker to kill have the service of this process.
 */
#include <signal.h>

#include <scand/scand.h>

#include "tests/check.h"
#include "tests/integration/session.h"
#include "tests/server.h"

#define ROWS    3000 /* several chunks */
#define SAMPLES 1999
#define COUNT   (ROWS * SAMPLES)
#define BYTES   (COUNT * sizeof(float))

static struct server server;
static struct scand *session;
static struct scand_buffer *input, *factors, *expected, *output;

static void begin(void)
{
    static const char *const arguments[] = {"--device", "cpu:2", "--pool", "160M", NULL};
    session = session_begin(&server, arguments);
    uint64_t random = random_seed();
    input = session_buffer(session, BYTES);
    factors = session_buffer(session, BYTES);
    expected = session_buffer(session, BYTES);
    output = session_buffer(session, BYTES);
    float *x = scand_buffer_data(input), *a = scand_buffer_data(factors);
    for (size_t i = 0; i < COUNT; i++) {
        x[i] = (float)((double)(random_next(&random) >> 40) / (1 << 24)) - 0.25f;
        a[i] = 0.5f;
    }
}

static void end(void)
{
    session_end(session, &server);
}

static struct scand_tensor tensor_of(struct scand_buffer *buffer)
{
    struct scand_tensor tensor = {.buffer = buffer, .dtype = SCAND_DTYPE_F32, .rank = 2, .shape = {ROWS, SAMPLES}};
    scand_tensor_pack(&tensor);
    return tensor;
}

/* Of all rows, with what `words` say: an operation, then names and values in turn, then NULL; a further one, or NULL.
 */
static struct scand_task *task_of(const char *const *words)
{
    struct scand_task *task = NULL;
    const struct scand_tensor from = tensor_of(input), to = tensor_of(output);
    CHECK_EQ(scand_task_create(&task), SCAND_OK);
    scand_task_input(task, &from);
    scand_task_output(task, &to);
    scand_task_axis(task, 1);
    while (*words) {
        scand_task_step(task, *words++);
        for (; *words; words += 2)
            scand_task_set(task, words[0], words[1]);
        words++;
    }
    CHECK(strcmp(scand_task_message(task), "") == 0);
    return task;
}

static int task_run(struct scand_task *task)
{
    struct scand_job *job = NULL;
    int status = scand_task_submit(session, task, NULL, NULL, &job);
    if (status == SCAND_OK) {
        status = scand_wait(job, 60000, NULL);
        scand_job_release(job);
    }
    return status;
}

static void scan_run(const struct scand_scan *scan)
{
    struct scand_job *job = NULL;
    CHECK_EQ(scand_submit(session, scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, 60000, NULL), SCAND_OK);
    scand_job_release(job);
}

static bool same_bits(size_t size_bytes)
{
    return memcmp(scand_buffer_data(expected), scand_buffer_data(output), size_bytes) == 0;
}

/* A chain with operands and numbers, dense rows. */
static void test_chain(void)
{
    begin();
    const struct scand_step then[] = {
        {.pass_count = 1, .passes = {SCAND_PASS_BACKWARD}, .op = SCAND_OPERATOR_MAX, .kind = SCAND_KIND_EXCLUSIVE},
        {.pass_count = 2, .passes = {SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD}, .accumulator = SCAND_ACCUMULATOR_F2},
        {.pass_count = 1, .op = SCAND_OPERATOR_AFFINE, .coefficient = -0.75, .demean = 1},
    };
    struct scand_scan scan = {.input = tensor_of(input), .output = tensor_of(expected), .axis = 1};
    scan.passes[scan.pass_count++] = SCAND_PASS_FORWARD;
    scan.op = SCAND_OPERATOR_AFFINE;
    scan.coefficients = tensor_of(factors);
    scan.then = then;
    scan.then_count = sizeof then / sizeof then[0];
    scan_run(&scan);
    struct scand_task *task = task_of((const char *const[]){"scan", "passes", "forward", "op", "affine", NULL, NULL});
    CHECK_EQ(scand_task_operand(task, "coefficients", &scan.coefficients), SCAND_OK);
    CHECK_EQ(scand_task_step(task, "scan"), SCAND_OK);
    CHECK_EQ(scand_task_set(task, "passes", "backward"), SCAND_OK);
    CHECK_EQ(scand_task_set(task, "op", "max"), SCAND_OK);
    CHECK_EQ(scand_task_set(task, "kind", "exclusive"), SCAND_OK);
    CHECK_EQ(scand_task_step(task, "scan"), SCAND_OK);
    CHECK_EQ(scand_task_set(task, "passes", "forward,backward"), SCAND_OK);
    CHECK_EQ(scand_task_set(task, "accumulator", "f2"), SCAND_OK);
    CHECK_EQ(scand_task_step(task, "scan"), SCAND_OK);
    CHECK_EQ(scand_task_set(task, "passes", "forward"), SCAND_OK);
    CHECK_EQ(scand_task_set(task, "op", "affine"), SCAND_OK);
    CHECK_EQ(scand_task_set_number(task, "coefficient", -0.75), SCAND_OK);
    CHECK_EQ(scand_task_set_number(task, "demean", 1), SCAND_OK);
    CHECK_EQ(task_run(task), SCAND_OK);
    CHECK(same_bits(BYTES));
    memset(scand_buffer_data(output), 0, BYTES);
    CHECK_EQ(task_run(task), SCAND_OK); /* again */
    CHECK(same_bits(BYTES));
    scand_task_destroy(task);
    end();
}

static void test_ragged(void)
{
    begin();
    struct scand_buffer *places = session_buffer(session, 4096);
    memcpy(scand_buffer_data(places), (const uint64_t[]){5, 900, 900, COUNT - 7}, 4 * sizeof(uint64_t));
    struct scand_tensor offsets = {.buffer = places, .dtype = SCAND_DTYPE_U64, .rank = 1, .shape = {4}};
    struct scand_tensor line = {.buffer = input, .dtype = SCAND_DTYPE_F32, .rank = 1, .shape = {COUNT}};
    scand_tensor_pack(&offsets);
    scand_tensor_pack(&line);
    struct scand_scan scan = {.input = line, .output = line, .offsets = offsets, .pass_count = 1};
    scan.output.buffer = expected;
    scan_run(&scan);
    struct scand_task *task = task_of((const char *const[]){"scan", "passes", "forward", NULL, NULL});
    CHECK_EQ(scand_task_offsets(task, &offsets), SCAND_OK);
    CHECK_EQ(scand_task_input(task, &line), SCAND_OK);
    line.buffer = output;
    CHECK_EQ(scand_task_output(task, &line), SCAND_OK);
    CHECK_EQ(scand_task_axis(task, 0), SCAND_OK);
    CHECK_EQ(task_run(task), SCAND_OK);
    CHECK(same_bits(BYTES));
    scand_task_destroy(task);
    end();
}

static void test_reduced(void)
{
    begin();
    struct scand_reduce reduce = {.input = tensor_of(input), .axis = 1, .reduction = SCAND_REDUCTION_RMS};
    reduce.output = (struct scand_tensor){.buffer = expected, .dtype = SCAND_DTYPE_F64, .rank = 2, .shape = {ROWS, 1}};
    scand_tensor_pack(&reduce.output);
    struct scand_job *job = NULL;
    CHECK_EQ(scand_submit_reduce(session, &reduce, NULL, NULL, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, 60000, NULL), SCAND_OK);
    struct scand_task *task = task_of((const char *const[]){"reduce", "reduction", "rms", NULL, NULL});
    reduce.output.buffer = output;
    CHECK_EQ(scand_task_output(task, &reduce.output), SCAND_OK);
    CHECK_EQ(scand_task_option(task, "priority", "high"), SCAND_OK);
    CHECK_EQ(scand_task_option(task, "deadline-ms", "60000"), SCAND_OK);
    CHECK_EQ(task_run(task), SCAND_OK);
    CHECK(same_bits(ROWS * sizeof(double)));
    scand_task_destroy(task);
    end();
}

/* The sum of all is that of one row of as many samples. */
static void test_all_axes(void)
{
    begin();
    struct scand_reduce reduce = {.input = tensor_of(input), .axis = 0, .reduction = SCAND_REDUCTION_SUM};
    reduce.input.rank = 1;
    reduce.input.shape[0] = COUNT;
    reduce.output = (struct scand_tensor){.buffer = expected, .dtype = SCAND_DTYPE_F64, .rank = 1, .shape = {1}};
    scand_tensor_pack(&reduce.input);
    scand_tensor_pack(&reduce.output);
    struct scand_job *job = NULL;
    CHECK_EQ(scand_submit_reduce(session, &reduce, NULL, NULL, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, 60000, NULL), SCAND_OK);
    struct scand_task *task = task_of((const char *const[]){"reduce", "reduction", "sum", NULL, NULL});
    struct scand_tensor one = {.buffer = output, .dtype = SCAND_DTYPE_F64, .rank = 2, .shape = {1, 1}};
    scand_tensor_pack(&one);
    CHECK_EQ(scand_task_output(task, &one), SCAND_OK);
    CHECK_EQ(scand_task_axes(task, (const uint32_t[]){1, 0}, 2), SCAND_OK);
    CHECK_EQ(task_run(task), SCAND_OK);
    CHECK(same_bits(sizeof(double)));
    scand_task_destroy(task);
    end();
}

/* Errors that only the daemon can find name the step and the field. */
static void test_refused(void)
{
    begin();
    struct scand_task *task = task_of((const char *const[]){"scan", "passes", "forward", NULL, "scan", "passes",
                                                            "forward", "accumulator", "exact", NULL, NULL});
    CHECK_EQ(task_run(task), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "\"steps[1].accumulator\" is \"exact\"");
    scand_task_destroy(task);
    task = task_of((const char *const[]){"scan", "passes", "forward", "op", "affine", NULL, NULL});
    CHECK_EQ(task_run(task), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "coefficient");
    scand_task_destroy(task);
    task = task_of((const char *const[]){"scan", "passes", "forward", NULL, NULL});
    CHECK_EQ(scand_task_option(task, "algorithm", "nobody"), SCAND_OK);
    CHECK_EQ(task_run(task), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "nobody");
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    scand_task_destroy(task);
    end();
}

static void kill_once(void *context, uint64_t rows_done, uint64_t rows)
{
    int *calls = context;
    CHECK(rows_done <= rows && rows == ROWS);
    if (++*calls == 1)
        CHECK(kill(server_worker(&server), SIGKILL) == 0);
}

static void test_worker_killed_mid_job(void)
{
    begin();
    struct scand_scan scan = {.input = tensor_of(input), .output = tensor_of(expected), .axis = 1, .pass_count = 1};
    struct scand_task *task = task_of((const char *const[]){"scan", "passes", "forward", NULL, NULL});
    struct scand_job *job = NULL;
    int calls = 0;
    scan_run(&scan);
    CHECK_EQ(scand_task_submit(session, task, kill_once, &calls, &job), SCAND_OK);
    scand_task_destroy(task);
    CHECK_EQ(scand_wait(job, 60000, NULL), SCAND_OK);
    CHECK(calls > 0 && same_bits(BYTES));
    end();
}

/* Of what is added onto the output some may have been added: the job, which takes seconds, is not repeated. */
static void test_worker_killed_while_adding(void)
{
    begin();
    struct scand_task *task = task_of((const char *const[]){"triangle", "half_width", "500", "repeat", "8", NULL,
                                                            "index-add", "alpha", "0.5", NULL, NULL});
    struct scand_tensor onto = tensor_of(output), index = {.buffer = factors, .dtype = SCAND_DTYPE_I32, .rank = 1};
    struct scand_job *job = NULL;
    int calls = 0;
    index.shape[0] = SAMPLES;
    scand_tensor_pack(&index);
    memset(scand_buffer_data(factors), 0, SAMPLES * sizeof(int32_t));
    CHECK_EQ(scand_task_operand(task, "index", &index), SCAND_OK);
    CHECK_EQ(scand_task_operand(task, "onto", &onto), SCAND_OK);
    CHECK_EQ(scand_task_submit(session, task, kill_once, &calls, &job), SCAND_OK);
    scand_task_destroy(task);
    CHECK_EQ(scand_wait(job, 60000, NULL), SCAND_LOST);
    CHECK_CONTAINS(scand_message(session), "it works in place on its onto, which may be half overwritten");
    end();
}

/* The daemon's own list is the one that the library was built with. */
static void test_operations(void)
{
    begin();
    struct scand_operation_info theirs[16], ours[16];
    struct scand_parameter_info their_rows[16], our_rows[16];
    size_t their_count = 0, our_count = 0;
    CHECK_EQ(scand_operations(session, theirs, sizeof *theirs, 16, &their_count), SCAND_OK);
    CHECK_EQ(scand_operations(NULL, ours, sizeof *ours, 16, &our_count), SCAND_OK);
    CHECK(our_count >= 2 && their_count == our_count && memcmp(theirs, ours, our_count * sizeof *ours) == 0);
    for (size_t i = 0; i < our_count; i++) {
        size_t rows = 0;
        CHECK_EQ(scand_parameters(session, ours[i].name, their_rows, sizeof *their_rows, 16, &their_count), SCAND_OK);
        CHECK_EQ(scand_parameters(NULL, ours[i].name, our_rows, sizeof *our_rows, 16, &rows), SCAND_OK);
        CHECK(rows == their_count && memcmp(their_rows, our_rows, rows * sizeof *our_rows) == 0);
    }
    end();
}

static const struct test tests[] = {TEST(test_chain),
                                    TEST(test_ragged),
                                    TEST(test_reduced),
                                    TEST(test_all_axes),
                                    TEST(test_refused),
                                    TEST(test_worker_killed_mid_job),
                                    TEST(test_worker_killed_while_adding),
                                    TEST(test_operations),
                                    TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

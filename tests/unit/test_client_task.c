/* Tasks of libscand: what setters refuse without a daemon, what a submitted task says on the wire, and repeating it. */
#include <inttypes.h>
#include <locale.h>
#include <math.h>

#include "client/lib/internal.h"
#include "tests/unit/client_rig.h"

static struct scand_task *task_of_nothing(void)
{
    struct scand_task *task = NULL;
    CHECK_EQ(scand_task_create(&task), SCAND_OK);
    return task;
}

/* A forward scan of one row of SAMPLES. */
static struct scand_task *task_of(struct scand_buffer *from, struct scand_buffer *to)
{
    const struct scand_scan scan = scan_of(from, to);
    struct scand_task *task = task_of_nothing();
    CHECK_EQ(scand_task_input(task, &scan.input), SCAND_OK);
    CHECK_EQ(scand_task_output(task, &scan.output), SCAND_OK);
    CHECK_EQ(scand_task_axis(task, 0), SCAND_OK);
    CHECK_EQ(scand_task_step(task, "scan"), SCAND_OK);
    CHECK_EQ(scand_task_set(task, "passes", "forward"), SCAND_OK);
    return task;
}

static struct scand_job *task_submit(const struct scand_task *task)
{
    struct scand_job *job = NULL;
    int status = scand_task_submit(session, task, NULL, NULL, &job);
    if (status)
        fprintf(stderr, "%s\n", scand_message(session));
    CHECK_EQ(status, SCAND_OK);
    return job;
}

static void test_what_is_sent(void)
{
    rig_begin();
    struct scand_buffer *input = buffer_of(BYTES), *output = buffer_of(BYTES), *coefficients = buffer_of(BYTES);
    struct scand_task *task = task_of_nothing();
    struct scand_scan scan = scan_of(input, output);
    struct scand_tensor offsets = {.buffer = coefficients, .dtype = SCAND_DTYPE_I64, .rank = 1, .shape = {3}};
    struct scand_times times = {0};
    scand_tensor_pack(&offsets);
    scan.input.offset = 8;
    scan.input.shape[0] = scan.output.shape[0] = 100;
    CHECK_EQ(scand_task_option(task, "algorithm", "kogge-stone"), SCAND_OK);
    CHECK_EQ(scand_task_option(task, "priority", "high"), SCAND_OK);
    CHECK_EQ(scand_task_option(task, "deadline-ms", "50000"), SCAND_OK);
    CHECK_EQ(scand_task_option(task, "after_failure", "1"), SCAND_OK);
    CHECK_EQ(scand_task_step(task, "scan"), SCAND_OK);
    CHECK_EQ(scand_task_set(task, "passes", "forward,backward"), SCAND_OK);
    CHECK_EQ(scand_task_set(task, "op", "affine"), SCAND_OK);
    CHECK_EQ(scand_task_set(task, "demean", "1"), SCAND_OK);
    struct scand_tensor ones = scan.input;
    ones.buffer = coefficients;
    ones.offset = 0;
    CHECK_EQ(scand_task_operand(task, "coefficients", &ones), SCAND_OK);
    CHECK_EQ(scand_task_step(task, "scan"), SCAND_OK);
    CHECK_EQ(scand_task_set(task, "passes", "backward"), SCAND_OK);
    CHECK_EQ(scand_task_set_number(task, "coefficient", -0.25), SCAND_OK);
    CHECK_EQ(scand_task_set_number(task, "demean", 1), SCAND_OK);
    CHECK_EQ(scand_task_step(task, "reduce"), SCAND_OK);
    CHECK_EQ(scand_task_set(task, "reduction", "rms"), SCAND_OK);
    CHECK_EQ(scand_task_input(task, &scan.input), SCAND_OK);
    CHECK_EQ(scand_task_output(task, &scan.output), SCAND_OK);
    CHECK_EQ(scand_task_offsets(task, &offsets), SCAND_OK);
    CHECK_EQ(scand_task_axis(task, 0), SCAND_OK);
    CHECK(strcmp(scand_task_message(task), "") == 0);
    ((float *)scand_buffer_data(input))[2] = 4;
    struct scand_job *job = task_submit(task);
    scand_task_destroy(task); /* the job needs it no more */
    CHECK_EQ(scand_wait(job, -1, &times), SCAND_OK);
    CHECK_EQ(times.total_us, 5);
    CHECK(((float *)scand_buffer_data(output))[0] == 5);

    const struct msg_job_run_params *run = &fake.run;
    CHECK(strcmp(run->algorithm, "kogge-stone") == 0);
    CHECK(run->priority == SCAND_PRIORITY_HIGH && run->deadline_ms == 50000 && run->after_failure == 1);
    CHECK(run->progress == 0 && run->ending == 0 && run->axis == 0);
    CHECK(run->input.buffer == input->id && run->output.buffer == output->id);
    CHECK(run->input.offset == 8 && run->input.shape_count == 1 && run->input.shape[0] == 100);
    CHECK(run->offsets.buffer == coefficients->id && run->offsets.dtype == SCAND_DTYPE_I64);
    CHECK_EQ(run->steps_count, 3);
    const struct msg_scan *first = &run->steps[0].scan, *second = &run->steps[1].scan;
    CHECK(first->operation == OPERATION_scan && first->passes_count == 2 && first->passes[1] == SCAND_PASS_BACKWARD);
    CHECK(first->op == SCAND_OPERATOR_AFFINE && first->demean == 1);
    CHECK(first->coefficients.buffer == coefficients->id && first->coefficients.shape[0] == 100);
    CHECK(second->passes_count == 1 && second->passes[0] == SCAND_PASS_BACKWARD && second->op == SCAND_OPERATOR_SUM);
    CHECK(second->coefficient == -0.25 && second->demean == 1 && second->coefficients.buffer == 0);
    CHECK_EQ(run->steps[2].operation, OPERATION_reduce);
    CHECK(strcmp(row_reduction_words.words[run->steps[2].reduce.reduction], "rms") == 0);
    rig_end();
}

/* A task is submitted as often as wanted, also for other parts of an array; the latest call counts. */
static void test_submitted_again(void)
{
    rig_begin();
    struct scand_buffer *input = buffer_of(BYTES), *output = buffer_of(BYTES);
    struct scand_task *task = task_of(input, output);
    float *x = scand_buffer_data(input), *y = scand_buffer_data(output);
    struct scand_scan scan = scan_of(input, output);
    x[0] = 1;
    x[10] = 10;
    struct scand_job *first = task_submit(task), *again = task_submit(task);
    scan.input.offset = 40;
    scan.input.shape[0] = scan.output.shape[0] = 1;
    CHECK_EQ(scand_task_input(task, &scan.input), SCAND_OK);
    CHECK_EQ(scand_task_output(task, &scan.output), SCAND_OK);
    CHECK_EQ(scand_wait(first, -1, NULL), SCAND_OK);
    CHECK_EQ(scand_wait(again, -1, NULL), SCAND_OK);
    CHECK(y[0] == 2);
    CHECK_EQ(scand_wait(task_submit(task), -1, NULL), SCAND_OK);
    CHECK(y[0] == 11);
    CHECK_EQ(fake.seen[METHOD_job_run], 3);
    scand_task_destroy(task);
    scand_task_destroy(NULL);
    rig_end();
}

static void count_progress(void *context, uint64_t rows_done, uint64_t rows)
{
    (void)rows_done, (void)rows;
    ++*(int *)context;
}

static void test_progress_and_cancel(void)
{
    rig_begin();
    struct scand_buffer *input = buffer_of(BYTES), *output = buffer_of(BYTES);
    struct scand_task *task = task_of(input, output);
    struct scand_job *job = NULL;
    int calls = 0;
    fake.progress = 3;
    CHECK_EQ(scand_task_submit(session, task, count_progress, &calls, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    CHECK_EQ(calls, 3);
    fake.hold = 1;
    job = task_submit(task);
    CHECK_EQ(scand_cancel(job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_CANCELLED);
    scand_task_destroy(task);
    rig_end();
}

/* The jobs of a worker that ended are repeated, in place they are lost. */
static void test_repeated(void)
{
    rig_begin();
    struct scand_buffer *input = buffer_of(BYTES), *output = buffer_of(BYTES);
    struct scand_task *task = task_of(input, output);
    ((float *)scand_buffer_data(input))[SAMPLES - 1] = 6;
    fake.die_on = METHOD_job_run;
    fake.die_count = 1;
    CHECK_EQ(scand_wait(task_submit(task), -1, NULL), SCAND_OK);
    CHECK(((float *)scand_buffer_data(output))[SAMPLES - 1] == 7);
    CHECK_EQ(fake.seen[METHOD_job_run], 2);
    const struct scand_scan in_place = scan_of(input, input);
    CHECK_EQ(scand_task_output(task, &in_place.output), SCAND_OK);
    fake.die_count = 1;
    CHECK_EQ(scand_wait(task_submit(task), -1, NULL), SCAND_LOST);
    CHECK_CONTAINS(scand_message(session), "in place");
    scand_task_destroy(task);
    rig_end();
}

/* Jobs are not repeated either whose results are added onto what is in the output: half of that may have been done. */
static void test_added_onto_the_output(void)
{
    rig_begin();
    struct scand_buffer *input = buffer_of(BYTES), *output = buffer_of(BYTES), *apart = buffer_of(BYTES);
    const struct scand_scan scan = scan_of(input, output), other = scan_of(input, apart);
    struct scand_task *task = task_of_nothing();
    CHECK_EQ(scand_task_input(task, &scan.input), SCAND_OK);
    CHECK_EQ(scand_task_output(task, &scan.output), SCAND_OK);
    CHECK_EQ(scand_task_axis(task, 0), SCAND_OK);
    CHECK_EQ(scand_task_step(task, "index-add"), SCAND_OK);
    CHECK_EQ(scand_task_operand(task, "index", &scan.input), SCAND_OK);
    CHECK_EQ(scand_task_operand(task, "onto", &other.output), SCAND_OK);
    fake.die_on = METHOD_job_run;
    fake.die_count = 1;
    CHECK_EQ(scand_wait(task_submit(task), -1, NULL), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_job_run], 2);
    CHECK_EQ(scand_task_operand(task, "onto", &scan.output), SCAND_OK);
    fake.die_count = 1;
    CHECK_EQ(scand_wait(task_submit(task), -1, NULL), SCAND_LOST);
    CHECK_CONTAINS(scand_message(session), "it works in place on its onto, which may be half overwritten");
    CHECK_EQ(fake.seen[METHOD_job_run], 3);
    scand_task_destroy(task);
    rig_end();
}

/* An operand's bytes that another job overwrote are not read again. */
static void test_overwritten_operand(void)
{
    rig_begin();
    struct scand_buffer *input = buffer_of(BYTES), *output = buffer_of(BYTES), *third = buffer_of(BYTES);
    struct scand_task *task = task_of(input, output);
    const struct scand_scan coefficients = scan_of(third, third);
    CHECK_EQ(scand_task_set(task, "op", "affine"), SCAND_OK);
    CHECK_EQ(scand_task_operand(task, "coefficients", &coefficients.input), SCAND_OK);
    fake.hold = 1;
    struct scand_job *job = task_submit(task), *writer = submit(input, third);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    fake.hold = 0;
    fake.die_on = METHOD_server_ping;
    fake.die_count = 1;
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(scand_wait(writer, -1, NULL), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_LOST);
    CHECK_CONTAINS(scand_message(session), "another job wrote to its coefficients");
    scand_task_destroy(task);
    rig_end();
}

/* Submits a task and expects it to be refused, with these words. */
static void check_refused(const struct scand_task *task, int status, const char *words)
{
    struct scand_job *job = NULL;
    CHECK_EQ(scand_task_submit(session, task, NULL, NULL, &job), status);
    CHECK_CONTAINS(scand_message(session), words);
    CHECK(job == NULL);
}

static void test_what_is_missing(void)
{
    rig_begin();
    struct scand_buffer *input = buffer_of(BYTES);
    struct scand_task *task = task_of_nothing();
    const struct scand_scan scan = scan_of(input, input);
    const struct scand_tensor nowhere = {.rank = 1};
    check_refused(task, SCAND_INVALID, "input is missing: give it with scand_task_input");
    CHECK_EQ(scand_task_input(task, &scan.input), SCAND_OK);
    check_refused(task, SCAND_INVALID, "output is missing: give it with scand_task_output");
    CHECK_EQ(scand_task_output(task, &scan.input), SCAND_OK);
    check_refused(task, SCAND_INVALID, "axis is missing: give it with scand_task_axis");
    CHECK_EQ(scand_task_axis(task, 0), SCAND_OK);
    check_refused(task, SCAND_INVALID, "steps has no items: begin one with scand_task_step");
    CHECK_EQ(scand_task_step(task, "scan"), SCAND_OK);
    check_refused(task, SCAND_INVALID, "steps[0].passes is missing: give it with scand_task_set");
    CHECK_EQ(scand_task_set(task, "passes", "backward"), SCAND_OK);
    CHECK_EQ(scand_task_step(task, "reduce"), SCAND_OK); /* its first word would be a sum */
    check_refused(task, SCAND_INVALID, "steps[1].reduction is missing: give it with scand_task_set");
    CHECK_EQ(scand_task_set(task, "reduction", "sum"), SCAND_OK);
    CHECK_EQ(scand_task_output(task, &nowhere), SCAND_OK);
    check_refused(task, SCAND_INVALID, "output.buffer is NULL: give one of scand_buffer_create");
    CHECK_EQ(fake.seen[METHOD_job_run], 0);
    scand_task_destroy(task);
    rig_end();
}

static void test_buffers_of_others(void)
{
    rig_begin();
    struct scand *other = NULL;
    struct scand_buffer *input = buffer_of(BYTES), *device = NULL;
    struct scand_task *task = task_of(input, input);
    struct scand_job *job = NULL;
    CHECK_EQ(scand_connect(fake.path, "other", &other), SCAND_OK);
    CHECK_EQ(scand_task_submit(other, task, NULL, NULL, &job), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(other), "input.buffer belongs to another connection");
    scand_disconnect(other);
    CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_DEVICE, BYTES, &device), SCAND_OK);
    const struct scand_scan on_device = scan_of(device, device);
    CHECK_EQ(scand_task_operand(task, "coefficients", &on_device.input), SCAND_OK);
    fake.die_on = METHOD_server_ping;
    fake.die_count = 1;
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    check_refused(task, SCAND_LOST, "steps[0].coefficients.buffer is lost");
    scand_task_destroy(task);
    rig_end();
}

static void test_an_older_daemon(void)
{
    rig_start();
    fake.older = 1;
    CHECK_EQ(scand_connect(fake.path, "test", &session), SCAND_OK);
    struct scand_buffer *input = buffer_of(BYTES);
    struct scand_task *task = task_of(input, input);
    struct scand_operation_info operations[2];
    size_t count = 9;
    check_refused(task, SCAND_UNSUPPORTED, "this daemon (fake 1) takes no tasks");
    CHECK_EQ(scand_operations(session, operations, sizeof *operations, 2, &count), SCAND_OK);
    CHECK_EQ(count, 0);
    scand_disconnect(session);
    fake.older = 0;
    fake.job_steps = 1;
    CHECK_EQ(scand_connect(fake.path, "test", &session), SCAND_OK);
    struct scand_buffer *next = buffer_of(BYTES);
    const struct scand_scan scan = scan_of(next, next);
    CHECK_EQ(scand_task_input(task, &scan.input), SCAND_OK);
    CHECK_EQ(scand_task_output(task, &scan.input), SCAND_OK);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(scand_task_step(task, "scan"), SCAND_OK);
        CHECK_EQ(scand_task_set(task, "passes", "forward"), SCAND_OK);
    }
    check_refused(task, SCAND_UNSUPPORTED, "is 2: this daemon (fake 1) takes 1 further steps");
    scand_task_destroy(task);
    rig_end();
}

/* A setter by the names of its arguments. */
enum setter { STEP, SET, NUMBER, OPERAND, OPTION };

static int apply(struct scand_task *task, enum setter setter, const char *name, const char *value)
{
    static char anything; /* is not looked at before it is submitted */
    struct scand_tensor tensor = {.buffer = (struct scand_buffer *)&anything, .rank = 1};
    switch (setter) {
    case STEP:
        return scand_task_step(task, name);
    case SET:
        return scand_task_set(task, name, value);
    case NUMBER:
        return scand_task_set_number(task, name, strtod(value, NULL));
    case OPERAND:
        return scand_task_operand(task, name, &tensor);
    default:
        return scand_task_option(task, name, value);
    }
}

/* Each is refused at once, without a daemon, and says what there is. */
static void test_names_and_values(void)
{
    static const struct {
        const char *operation; /* operation of the latest step, the second; NULL: there is no step */
        enum setter setter;
        const char *name, *value, *message;
    } cases[] = {
        {NULL, SET, "passes", "forward", "\"passes\" is of a step, and there is none: begin one with scand_task_step"},
        {NULL, OPERAND, "coefficients", "", "begin one with scand_task_step"},
        {NULL, STEP, "scam", "", "steps[0].operation is \"scam\"; there are: scan, reduce"},
        {"scan", STEP, "", "", "steps[2].operation is \"\"; there are: scan, reduce"},
        {"scan", SET, "demaen", "1",
         "steps[1].demaen is \"1\", but operation \"scan\" has no such parameter; it takes: passes, kind, op, "
         "accumulator, intermediate, demean, coefficient, scale, coefficients"},
        {"reduce", SET, "passes", "forward",
         "steps[1].passes is \"forward\", but operation \"reduce\" has no such parameter; it takes: reduction"},
        {"scan", SET, "operation", "reduce", "has no such parameter"},
        {"scan", SET, "", "", "has no such parameter"},
        {"scan", SET, "kind", "both", "steps[1].kind is \"both\"; allowed: inclusive, exclusive, half"},
        {"scan", SET, "kind", "", "steps[1].kind is \"\"; allowed: inclusive"},
        {"scan", SET, "accumulator", "f64,f32", "steps[1].accumulator is \"f64,f32\"; allowed: auto, f32"},
        {"scan", SET, "passes", "", "steps[1].passes is \"\"; allowed: forward, backward"},
        {"scan", SET, "passes", "forward,", "steps[1].passes is \"\"; allowed: forward, backward"},
        {"scan", SET, "passes", "forward,upward", "steps[1].passes is \"upward\"; allowed: forward, backward"},
        {"scan", SET, "passes", "forward,backward,forward", "allowed: at most 2 words"},
        {"scan", SET, "demean", "2", "steps[1].demean is \"2\"; allowed: whole numbers from 0 to 1"},
        {"scan", SET, "demean", "-1", "steps[1].demean is \"-1\"; allowed: whole numbers from 0 to 1"},
        {"scan", SET, "demean", "+1", "steps[1].demean is \"+1\"; allowed"},
        {"scan", SET, "demean", " 1", "steps[1].demean is \" 1\"; allowed"},
        {"scan", SET, "demean", "99999999999999999999", "allowed: whole numbers"},
        {"scan", SET, "demean", "", "steps[1].demean is \"\"; allowed"},
        {"scan", SET, "coefficient", "0,5", "steps[1].coefficient is \"0,5\"; allowed: a number, such as 0.9"},
        {"scan", SET, "coefficient", "", "allowed: a number"},
        {"scan", SET, "coefficients", "a.npy", "is \"a.npy\"; allowed: a tensor, given with scand_task_operand"},
        {"scan", NUMBER, "coefficients", "1", "steps[1].coefficients is 1; allowed: a tensor"},
        {"scan", NUMBER, "kind", "1", "steps[1].kind is 1; allowed: words, given as text: inclusive"},
        {"scan", NUMBER, "passes", "1", "steps[1].passes is 1; allowed: words, given as text: forward"},
        {"scan", NUMBER, "demean", "0.5", "steps[1].demean is 0.5; allowed: whole numbers from 0 to 1"},
        {"scan", NUMBER, "demean", "-1", "steps[1].demean is -1; allowed"},
        {"scan", NUMBER, "demean", "1e300", "allowed: whole numbers"},
        {"scan", NUMBER, "demean", "nan", "allowed: whole numbers"},
        {"scan", NUMBER, "demaen", "1", "steps[1].demaen is 1, but operation \"scan\" has no such parameter"},
        {"scan", OPERAND, "kind", "", "steps[1].kind is a tensor; allowed: a parameter, given with scand_task_set"},
        {"reduce", OPERAND, "coefficients", "", "is a tensor, but operation \"reduce\" has no such parameter"},
        {"scan", OPTION, "prioritee", "high",
         "there is no option \"prioritee\"; there are: algorithm, priority, deadline_ms, after_failure"},
        {"scan", OPTION, "axis", "1", "there is no option \"axis\""},
        {"scan", OPTION, "priority", "urgent", "priority is \"urgent\"; allowed: normal, low, high"},
        {"scan", OPTION, "deadline_ms", "86400001", "deadline_ms is \"86400001\"; allowed: whole numbers from 0 to"},
        {"scan", OPTION, "after_failure", "yes", "after_failure is \"yes\"; allowed: whole numbers from 0 to 1"},
        {"scan", OPTION, "algorithm", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         "algorithm has 64 bytes; allowed: 0 to 63"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scand_task *task = task_of_nothing();
        if (cases[i].operation) {
            CHECK_EQ(scand_task_step(task, "reduce"), SCAND_OK);
            CHECK_EQ(scand_task_step(task, cases[i].operation), SCAND_OK);
        }
        CHECK_EQ(apply(task, cases[i].setter, cases[i].name, cases[i].value), SCAND_INVALID);
        CHECK_CONTAINS(scand_task_message(task), cases[i].message);
        scand_task_destroy(task);
    }
}

static void test_tensors(void)
{
    static char anything;
    struct scand_tensor tensor = {.buffer = (struct scand_buffer *)&anything, .rank = 5};
    struct scand_task *task = task_of_nothing();
    CHECK_EQ(scand_task_offsets(task, &tensor), SCAND_INVALID);
    CHECK_CONTAINS(scand_task_message(task), "offsets.rank is 5: 1 to 4 dimensions are allowed");
    scand_task_destroy(task);
    task = task_of_nothing();
    tensor.rank = 1;
    tensor.dtype = SCAND_DTYPE_COUNT;
    CHECK_EQ(scand_task_step(task, "scan"), SCAND_OK);
    CHECK_EQ(scand_task_operand(task, "coefficients", &tensor), SCAND_INVALID);
    CHECK_CONTAINS(scand_task_message(task), "steps[0].coefficients.dtype is ");
    CHECK_CONTAINS(scand_task_message(task), ", which is no dtype: there are f32, f64");
    scand_task_destroy(task);
    task = task_of_nothing();
    CHECK_EQ(scand_task_axis(task, SCAND_RANK_MAX), SCAND_INVALID);
    CHECK_CONTAINS(scand_task_message(task), "axis is 4; allowed: whole numbers from 0 to 3");
    scand_task_destroy(task);
}

/* The shape behind so many steps as text, or why there is none. */
static void check_shape(struct scand_task *task, uint32_t steps, const char *expected)
{
    char text[LIMIT_ERROR_BYTES] = "";
    struct scand_tensor out = {.rank = 0};
    const int status = scand_task_shape(task, steps, &out);
    for (uint32_t i = 0; i < out.rank; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%" PRIu64, i ? " " : "", out.shape[i]);
    if (status)
        snprintf(text, sizeof text, "%s", scand_task_message(task));
    if (strcmp(text, expected) != 0)
        fprintf(stderr, "got \"%s\", not \"%s\"\n", text, expected);
    CHECK(strcmp(text, expected) == 0);
}

/* Shapes need no daemon, and no memory. */
static void test_shapes(void)
{
    const struct scand_tensor input = {.rank = 3, .shape = {2, 5, 4}}, line = {.rank = 1, .shape = {100}},
                              offsets = {.dtype = SCAND_DTYPE_I64, .rank = 1, .shape = {8}};
    struct scand_task *task = task_of_nothing();
    CHECK_EQ(scand_task_input(task, &input), SCAND_OK);
    CHECK_EQ(scand_task_axis(task, 1), SCAND_OK);
    CHECK_EQ(scand_task_leaves_rows(task), 0);
    CHECK_EQ(scand_task_step(task, "upsample"), SCAND_OK);
    CHECK_EQ(scand_task_set(task, "factor", "3"), SCAND_OK);
    CHECK_EQ(scand_task_step(task, "scan"), SCAND_OK);
    CHECK_EQ(scand_task_set(task, "passes", "forward"), SCAND_OK);
    CHECK_EQ(scand_task_leaves_rows(task), 0);
    CHECK_EQ(scand_task_step(task, "reduce"), SCAND_OK);
    CHECK_EQ(scand_task_set(task, "reduction", "sum"), SCAND_OK);
    CHECK_EQ(scand_task_leaves_rows(task), 1);
    check_shape(task, 0, "2 5 4");
    check_shape(task, 2, "2 15 4");
    check_shape(task, 3, "2 1 4");
    CHECK_EQ(scand_task_input(task, &line), SCAND_OK);
    CHECK_EQ(scand_task_axis(task, 0), SCAND_OK);
    CHECK_EQ(scand_task_offsets(task, &offsets), SCAND_OK);
    check_shape(task, 3, "7");
    check_shape(task, 4, "there are 3 steps, not 4");
    scand_task_destroy(task);
}

/* Rows along several dimensions leave a number each, in the shape that has 1 along all of them. */
static void test_shapes_of_several_axes(void)
{
    const struct scand_tensor input = {.rank = 3, .shape = {2, 5, 4}};
    struct scand_task *task = task_of_nothing();
    CHECK_EQ(scand_task_input(task, &input), SCAND_OK);
    CHECK_EQ(scand_task_axes(task, (const uint32_t[]){2, 0}, 2), SCAND_OK);
    CHECK_EQ(scand_task_step(task, "demean"), SCAND_OK);
    CHECK_EQ(scand_task_step(task, "reduce"), SCAND_OK);
    CHECK_EQ(scand_task_set(task, "reduction", "sum"), SCAND_OK);
    check_shape(task, 0, "2 5 4");
    check_shape(task, 1, "2 5 4");
    check_shape(task, 2, "1 5 1");
    CHECK_EQ(scand_task_axes(task, (const uint32_t[]){0, 1, 2}, 3), SCAND_OK);
    check_shape(task, 2, "1 1 1");
    CHECK_EQ(scand_task_axes(task, (const uint32_t[]){1}, 1), SCAND_OK);
    check_shape(task, 2, "2 1 4");
    CHECK_EQ(scand_task_axes(task, (const uint32_t[]){0, 3}, 2), SCAND_OK);
    check_shape(task, 2, "axis is 3; a tensor of 3 dimensions has 0 to 2");
    scand_task_destroy(task);
    task = task_of_nothing();
    CHECK_EQ(scand_task_input(task, &input), SCAND_OK);
    CHECK_EQ(scand_task_axes(task, (const uint32_t[]){0, 1}, 2), SCAND_OK);
    CHECK_EQ(scand_task_step(task, "upsample"), SCAND_OK);
    CHECK_EQ(scand_task_set(task, "factor", "3"), SCAND_OK);
    check_shape(task, 1,
                "axes has 2 items, and the steps make rows of 10 samples as long as 30; allowed then: steps that leave "
                "rows as long as they are or, last, a number of each");
    scand_task_destroy(task);
}

static void refuse_axes(const uint32_t *axes, uint32_t count, const char *words)
{
    struct scand_task *task = task_of_nothing();
    CHECK_EQ(scand_task_axes(task, axes, count), SCAND_INVALID);
    check_refused(task, SCAND_INVALID, words);
    scand_task_destroy(task);
}

static void test_wrong_axes(void)
{
    rig_begin();
    refuse_axes((const uint32_t[]){0}, 0, "axes has 0 items; allowed: 1 to 4");
    refuse_axes((const uint32_t[]){0, 1, 2, 3, 0}, 5, "axes has 5 items; allowed: 1 to 4");
    refuse_axes((const uint32_t[]){0, 4}, 2, "axes[1] is 4; allowed: 0 to 3");
    refuse_axes((const uint32_t[]){1, 0, 1}, 3, "axes has 1 twice; give each dimension once");
    rig_end();
}

static void test_shapes_of_too_little(void)
{
    const struct scand_tensor input = {.rank = 2, .shape = {2, 5}};
    struct scand_task *task = task_of_nothing();
    check_shape(task, 0, "input is missing: give it with scand_task_input");
    scand_task_destroy(task);
    task = task_of_nothing();
    CHECK_EQ(scand_task_input(task, &input), SCAND_OK);
    check_shape(task, 0, "axis is missing: give it with scand_task_axis");
    scand_task_destroy(task);
    task = task_of_nothing();
    CHECK_EQ(scand_task_input(task, &input), SCAND_OK);
    CHECK_EQ(scand_task_axis(task, 2), SCAND_OK);
    check_shape(task, 0, "axis is 2; a tensor of 2 dimensions has 0 to 1");
    scand_task_destroy(task);
    task = task_of_nothing();
    CHECK_EQ(scand_task_input(task, &input), SCAND_OK);
    CHECK_EQ(scand_task_axis(task, 1), SCAND_OK);
    CHECK_EQ(scand_task_step(task, "upsample"), SCAND_OK);
    check_shape(task, 1, "steps[0].factor is missing: give it with scand_task_set");
    scand_task_destroy(task);
}

/* Nothing is done to a task after a failure, and it is never submitted. */
static void test_a_failure_stays(void)
{
    rig_begin();
    struct scand_buffer *input = buffer_of(BYTES);
    const struct scand_scan scan = scan_of(input, input);
    struct scand_task *task = task_of(input, input);
    CHECK_EQ(scand_task_set(task, "demaen", "1"), SCAND_INVALID);
    CHECK_EQ(scand_task_set(task, "demean", "1"), SCAND_INVALID);
    CHECK_EQ(scand_task_set_number(task, "demean", 1), SCAND_INVALID);
    CHECK_EQ(scand_task_operand(task, "coefficients", &scan.input), SCAND_INVALID);
    CHECK_EQ(scand_task_step(task, "scan"), SCAND_INVALID);
    CHECK_EQ(scand_task_option(task, "priority", "high"), SCAND_INVALID);
    CHECK_EQ(scand_task_input(task, &scan.input), SCAND_INVALID);
    CHECK_EQ(scand_task_axis(task, 0), SCAND_INVALID);
    CHECK_CONTAINS(scand_task_message(task), "demaen");
    check_refused(task, SCAND_INVALID, "steps[0].demaen is \"1\"");
    scand_task_destroy(task);
    rig_end();
}

static void test_too_many_steps(void)
{
    struct scand_task *task = task_of_nothing();
    for (int i = 0; i < 1 + SCAND_STEPS_MAX; i++)
        CHECK_EQ(scand_task_step(task, "scan"), SCAND_OK);
    CHECK_EQ(scand_task_step(task, "reduce"), SCAND_INVALID);
    CHECK_CONTAINS(scand_task_message(task), "steps has 9 items, and \"reduce\" is one more; allowed: 1 to 9");
    scand_task_destroy(task);
}

/* A decimal comma of the program's locale is none here. */
static void test_numbers_in_any_locale(void)
{
    rig_begin();
    struct scand_buffer *input = buffer_of(BYTES), *output = buffer_of(BYTES);
    struct scand_task *task = task_of(input, output);
    const bool set = setlocale(LC_ALL, "de_DE.UTF-8") || setlocale(LC_ALL, "de_DE.utf8");
    CHECK_EQ(scand_task_set(task, "coefficient", "0.5"), SCAND_OK);
    if (set)
        CHECK(strtod("0,5", NULL) == 0.5);
    setlocale(LC_ALL, "C");
    CHECK_EQ(scand_wait(task_submit(task), -1, NULL), SCAND_OK);
    CHECK(fake.run.steps[0].scan.coefficient == 0.5);
    CHECK_EQ(scand_task_set(task, "coefficient", "-inf"), SCAND_OK);
    CHECK_EQ(scand_wait(task_submit(task), -1, NULL), SCAND_OK);
    CHECK(isinf(fake.run.steps[0].scan.coefficient));
    scand_task_destroy(task);
    rig_end();
}

static void check_scan_rows(struct scand *daemon)
{
    struct scand_operation_info operations[OPERATION_COUNT + 1];
    struct scand_parameter_info rows[16];
    size_t count = 99;
    CHECK_EQ(scand_operations(daemon, operations, sizeof *operations, OPERATION_COUNT + 1, &count), SCAND_OK);
    CHECK_EQ(count, OPERATION_COUNT);
    CHECK(strcmp(operations[0].name, "scan") == 0 && strcmp(operations[1].name, "reduce") == 0);
    CHECK_CONTAINS(operations[0].line, "running sums");
    CHECK_EQ(scand_parameters(daemon, "scan", rows, sizeof *rows, 16, &count), SCAND_OK);
    CHECK_EQ(count, 9);
    CHECK(strcmp(rows[0].name, "passes") == 0 && strcmp(rows[0].kind, "words") == 0);
    CHECK(strcmp(rows[0].words, "forward,backward") == 0 && rows[0].most == 2 && rows[0].required == 1);
    CHECK(strcmp(rows[5].kind, "flag") == 0 && strcmp(rows[6].kind, "number") == 0 && rows[6].required == 0);
    CHECK(strcmp(rows[8].name, "coefficients") == 0 && strcmp(rows[8].kind, "tensor") == 0);
    CHECK(strcmp(rows[8].access, "read") == 0 && strcmp(rows[8].follows, "samples") == 0);
    CHECK(strcmp(rows[8].dtypes, "input") == 0 && rows[8].words[0] == '\0');
    CHECK_EQ(scand_parameters(daemon, "scan", rows, sizeof *rows, 3, &count), SCAND_OK);
    CHECK_EQ(count, 3);
    count = 99;
    CHECK_EQ(scand_parameters(daemon, "scam", rows, sizeof *rows, 16, &count), SCAND_NOT_FOUND);
    CHECK_EQ(scand_operations(daemon, operations, 0, 1, &count), SCAND_INVALID);
    CHECK_EQ(count, 99);
}

static void test_operations(void)
{
    rig_begin();
    check_scan_rows(NULL);
    check_scan_rows(session);
    CHECK_CONTAINS(scand_message(session), "row_bytes is 0");
    struct scand_operation_info small[2] = {{.name = ""}};
    size_t count;
    CHECK_EQ(scand_operations(session, small, 2, 2, &count), SCAND_OK); /* of a program with a smaller row */
    CHECK(count == 2 && memcmp(small, "scre", 5) == 0);
    fake.die_on = METHOD_server_ping; /* the next daemon's are read again */
    fake.die_count = 1;
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    check_scan_rows(session);
    rig_end();
}

static const struct test tests[] = {TEST(test_what_is_sent),
                                    TEST(test_submitted_again),
                                    TEST(test_progress_and_cancel),
                                    TEST(test_repeated),
                                    TEST(test_added_onto_the_output),
                                    TEST(test_overwritten_operand),
                                    TEST(test_what_is_missing),
                                    TEST(test_buffers_of_others),
                                    TEST(test_an_older_daemon),
                                    TEST(test_names_and_values),
                                    TEST(test_tensors),
                                    TEST(test_shapes_of_several_axes),
                                    TEST(test_wrong_axes),
                                    TEST(test_shapes),
                                    TEST(test_shapes_of_too_little),
                                    TEST(test_a_failure_stays),
                                    TEST(test_too_many_steps),
                                    TEST(test_numbers_in_any_locale),
                                    TEST(test_operations),
                                    TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

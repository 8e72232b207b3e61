/*
 * libscand with a daemon, whose small jobs this process computes: which those are, and that bits, order, errors,
 * threads, forks, loops and a lost worker are as without that. $SCAND names the daemon's program.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/integration/session.h"

#define SAMPLES 1000
#define BYTES   (SAMPLES * sizeof(float))

static const char *const arguments[] = {"--device", "cpu", "--pool", "160M", NULL};
static struct server server;
static struct scand *session; /* computes small jobs here */

static struct scand *open_with(enum scand_small_jobs small_jobs)
{
    struct scand_options *options = NULL;
    struct scand *opened = NULL;
    CHECK_EQ(scand_options_create(&options), SCAND_OK);
    CHECK_EQ(scand_options_set(options, "small_jobs", small_jobs), SCAND_OK);
    (void)scand_connect_with(options, server.socket, "test", &opened);
    scand_options_destroy(options);
    if (opened)
        return opened;
    fprintf(stderr, "%s\n", scand_connect_message());
    abort();
}

static void begin(void)
{
    if (server_start(&server, session_daemon(), arguments))
        abort();
    session = open_with(SCAND_SMALL_JOBS_HERE);
}

static void end(void)
{
    scand_disconnect(session);
    server_stop(&server);
}

/* Returns how many jobs the daemon has done. */
static uint64_t daemon_jobs(struct scand *asked)
{
    struct scand_counter counters[64];
    size_t count = 0;
    CHECK_EQ(scand_stats(asked, counters, sizeof counters[0], 64, &count), SCAND_OK);
    for (size_t i = 0; i < count && i < 64; i++)
        if (strcmp(counters[i].name, "jobs_done") == 0)
            return counters[i].value;
    CHECK(!"jobs_done");
    return 0;
}

/* Sums of a row, in place. */
static struct scand_scan scan_of(struct scand_buffer *buffer, uint64_t samples)
{
    struct scand_tensor tensor = {.buffer = buffer, .dtype = SCAND_DTYPE_F32, .rank = 1, .shape = {samples}};
    scand_tensor_pack(&tensor);
    return (struct scand_scan){.input = tensor, .output = tensor, .passes = {SCAND_PASS_FORWARD}, .pass_count = 1};
}

static struct scand_job *submit(struct scand *owner, const struct scand_scan *scan)
{
    struct scand_job *job = NULL;
    if (scand_submit(owner, scan, &job)) {
        fprintf(stderr, "%s\n", scand_message(owner));
        abort();
    }
    return job;
}

static int wait_for(struct scand_job *job)
{
    int status = scand_wait(job, 60000, NULL);
    scand_job_release(job);
    return status;
}

static void set_all(struct scand_buffer *buffer, float value)
{
    float *x = scand_buffer_data(buffer);
    for (size_t i = 0; i < scand_buffer_size(buffer) / sizeof *x; i++)
        x[i] = value;
}

/* Counts values that are not `step` times their places, from 1 on. */
static int wrong_sums(const struct scand_buffer *buffer, size_t count, float step)
{
    const float *x = scand_buffer_data(buffer);
    int wrong = 0;
    for (size_t i = 0; i < count; i++)
        wrong += x[i] != step * (float)(i + 1);
    return wrong;
}

/*
 * Which jobs.
 */

/* Submits a job, and returns true when this process has computed it: it has ended, and the daemon knows nothing of it.
 */
static bool is_here(const struct scand_scan *scan)
{
    const uint64_t before = daemon_jobs(session);
    struct scand_job *job = submit(session, scan);
    const bool done = scand_job_done(job);
    CHECK_EQ(wait_for(job), SCAND_OK);
    const bool here = daemon_jobs(session) == before;
    CHECK(!here || done);
    return here;
}

static void report(void *context, uint64_t rows_done, uint64_t rows)
{
    (void)context, (void)rows_done, (void)rows;
}

static void test_which_jobs(void)
{
    begin();
    struct scand_buffer *buffer = session_buffer(session, 16 * BYTES), *offsets = session_buffer(session, 16);
    struct scand_scan scan = scan_of(buffer, SAMPLES);
    CHECK(is_here(&scan));
    scan.deadline_ms = 60000;
    scan.priority = SCAND_PRIORITY_HIGH;
    CHECK(is_here(&scan));
    scan = scan_of(buffer, 2048);
    CHECK(is_here(&scan));
    scan = scan_of(buffer, 2049);
    CHECK(!is_here(&scan));
    scan = scan_of(buffer, SAMPLES);
    scan.deadline_ms = SCAND_DEADLINE_MS_MAX + 1;
    CHECK_EQ(wait_for(submit(session, &scan)), SCAND_INVALID);
    scan = scan_of(buffer, SAMPLES);
    scan.input.strides[0] = scan.output.strides[0] = 64; /* a line of the cache for each */
    CHECK(!is_here(&scan));
    scan = scan_of(buffer, SAMPLES);
    scan.algorithm = "serial-cpu";
    CHECK(!is_here(&scan));
    scan.algorithm = NULL;
    scan.then = &(struct scand_step){.pass_count = 1, .passes = {SCAND_PASS_BACKWARD}};
    scan.then_count = 1;
    CHECK(!is_here(&scan));
    scan.then_count = 0;
    memcpy(scand_buffer_data(offsets), (const uint64_t[]){0, SAMPLES}, 16);
    scan.offsets = (struct scand_tensor){.buffer = offsets, .dtype = SCAND_DTYPE_U64, .rank = 1, .shape = {2}};
    scand_tensor_pack(&scan.offsets);
    CHECK(!is_here(&scan));
    scan.offsets.rank = 0;
    CHECK_EQ(scand_group_begin(session, "a group", 0, &scan.group), SCAND_OK);
    CHECK(!is_here(&scan));
    CHECK_EQ(scand_group_end(session, scan.group), SCAND_OK);
    scan.group = 0;
    struct scand_job *job = NULL;
    const uint64_t before = daemon_jobs(session);
    CHECK_EQ(scand_submit_progress(session, &scan, report, NULL, &job), SCAND_OK);
    CHECK_EQ(wait_for(job), SCAND_OK);
    CHECK_EQ(daemon_jobs(session), before + 1);
    CHECK(is_here(&scan));
    end();
}

/* The first step of a scan, with what a task can say of it. */
static struct scand_task *task_of(const struct scand_scan *scan)
{
    struct scand_task *task = NULL;
    char passes[64];
    CHECK_EQ(scand_task_create(&task), SCAND_OK);
    scand_task_input(task, &scan->input);
    scand_task_output(task, &scan->output);
    scand_task_axis(task, scan->axis);
    scand_task_step(task, "scan");
    snprintf(passes, sizeof passes, "%s%s%s", scand_word(SCAND_LIST_PASS, scan->passes[0]),
             scan->pass_count > 1 ? "," : "", scan->pass_count > 1 ? scand_word(SCAND_LIST_PASS, scan->passes[1]) : "");
    scand_task_set(task, "passes", passes);
    scand_task_set(task, "kind", scand_word(SCAND_LIST_KIND, scan->kind));
    scand_task_set(task, "op", scand_word(SCAND_LIST_OPERATOR, scan->op));
    scand_task_set(task, "accumulator", scand_word(SCAND_LIST_ACCUMULATOR, scan->accumulator));
    scand_task_set(task, "intermediate", scand_word(SCAND_LIST_INTERMEDIATE, scan->intermediate));
    if (scan->coefficients.rank)
        scand_task_operand(task, "coefficients", &scan->coefficients);
    else if (scan->op == SCAND_OPERATOR_AFFINE)
        scand_task_set_number(task, "coefficient", scan->coefficient);
    return task;
}

/* Submits the task and destroys it. Returns the job's status. */
static int run_task(struct scand *owner, struct scand_task *task)
{
    struct scand_job *job = NULL;
    const int status = scand_task_submit(owner, task, NULL, NULL, &job);
    scand_task_destroy(task);
    return status ? status : wait_for(job);
}

static bool task_is_here(struct scand_task *task)
{
    const uint64_t before = daemon_jobs(session);
    CHECK_EQ(run_task(session, task), SCAND_OK);
    return daemon_jobs(session) == before;
}

static void test_tasks(void)
{
    begin();
    struct scand_buffer *buffer = session_buffer(session, 2 * BYTES);
    set_all(buffer, 1);
    const struct scand_scan scan = scan_of(buffer, SAMPLES);
    CHECK(task_is_here(task_of(&scan)));
    CHECK_EQ(wrong_sums(buffer, SAMPLES, 1), 0);
    struct scand_task *task = task_of(&scan);
    scand_task_set_number(task, "scale", 2);
    CHECK(!task_is_here(task));
    task = task_of(&scan);
    scand_task_step(task, "scan");
    scand_task_set(task, "passes", "forward");
    CHECK(!task_is_here(task));
    task = task_of(&scan);
    scand_task_option(task, "algorithm", "serial-cpu");
    CHECK(!task_is_here(task));
    CHECK_EQ(scand_task_create(&task), SCAND_OK);
    scand_task_input(task, &scan.input);
    scand_task_output(task, &scan.output);
    scand_task_axis(task, 0);
    scand_task_step(task, "map");
    scand_task_set(task, "op", "mul");
    scand_task_set_number(task, "by", 2);
    CHECK(!task_is_here(task));
    end();
}

/* Connects with SCAND_SMALL_JOBS set to this, and returns the status. */
static int connect_with_variable(const char *value, struct scand **out)
{
    setenv("SCAND_SMALL_JOBS", value, 1);
    int status = scand_connect(server.socket, "test", out);
    unsetenv("SCAND_SMALL_JOBS");
    return status;
}

static void test_variable(void)
{
    begin();
    struct scand *first = session, *other = NULL;
    struct scand_options *options = NULL;
    REQUIRE(connect_with_variable("here", &session) == SCAND_OK);
    struct scand_scan scan = scan_of(session_buffer(session, BYTES), SAMPLES);
    CHECK(is_here(&scan));
    CHECK(!scand_is_local(session));
    scand_disconnect(session);
    REQUIRE(connect_with_variable("", &session) == SCAND_OK);
    scan = scan_of(session_buffer(session, BYTES), SAMPLES);
    CHECK(!is_here(&scan));
    scand_disconnect(session);
    CHECK_EQ(connect_with_variable("no", &other), SCAND_INVALID);
    CHECK_CONTAINS(scand_connect_message(), "SCAND_SMALL_JOBS is \"no\": allowed is \"here\"");
    setenv("SCAND_SMALL_JOBS", "here", 1);
    session = open_with(SCAND_SMALL_JOBS_DAEMON);
    unsetenv("SCAND_SMALL_JOBS");
    scan = scan_of(session_buffer(session, BYTES), SAMPLES);
    CHECK(!is_here(&scan));
    scand_disconnect(session);
    CHECK_EQ(scand_options_create(&options), SCAND_OK);
    CHECK_EQ(scand_options_set(options, "small_jobs", SCAND_SMALL_JOBS_HERE + 1), SCAND_INVALID);
    CHECK_CONTAINS(scand_connect_message(), "small_jobs is 3: 0 to 2 are allowed");
    scand_options_destroy(options);
    session = first;
    end();
}

/*
 * The same bits and messages as the daemon's.
 */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TRIALS 600 /* each takes ten times as long */
#else
#define TRIALS 3000
#endif
#define ROOM_BYTES   65536
#define ROOM_SAMPLES (ROOM_BYTES / sizeof(uint32_t))
#define ROOMS        3

/* Floats, and any bits, of which a room gets so many from anywhere: making them anew would take longer than all else.
 */
static uint32_t noise[2][2 * ROOM_SAMPLES];

/* A session and the memory of its jobs' input, output and coefficients. */
struct side {
    struct scand *session;
    struct scand_buffer *rooms[ROOMS];
    char message[512];
};

static uint64_t below(uint64_t *random, uint64_t count)
{
    return random_next(random) % count;
}

static void noise_make(uint64_t random)
{
    for (size_t i = 0; i < 2 * ROOM_SAMPLES; i++) {
        const float value = (float)below(&random, 2000) / 256 - 3;
        memcpy(&noise[0][i], &value, sizeof value);
        noise[1][i] = (uint32_t)random_next(&random);
    }
}

static struct scand_tensor random_tensor(uint64_t *random, const uint64_t shape[2])
{
    struct scand_tensor tensor = {.dtype = (enum scand_dtype)below(random, SCAND_DTYPE_COUNT),
                                  .rank = 2,
                                  .shape = {shape[0], shape[1]},
                                  .offset = below(random, 3) * 8};
    scand_tensor_pack(&tensor);
    if (below(random, 8) == 0) { /* rows apart */
        tensor.strides[1] *= 2;
        tensor.strides[0] *= 2;
    }
    return tensor;
}

static struct scand_scan random_scan(uint64_t *random)
{
    const uint64_t shape[2] = {below(random, 4) ? 1 : below(random, 9), below(random, below(random, 4) ? 700 : 3000)};
    struct scand_scan scan = {.input = random_tensor(random, shape),
                              .output = random_tensor(random, shape),
                              .axis = below(random, 5) ? 1 : 0,
                              .pass_count = 1 + (uint32_t)below(random, 2),
                              .kind = (enum scand_kind)below(random, SCAND_KIND_COUNT),
                              .op = (enum scand_operator)below(random, SCAND_OPERATOR_COUNT),
                              .accumulator = (enum scand_accumulator)below(random, SCAND_ACCUMULATOR_COUNT),
                              .intermediate = (enum scand_intermediate)below(random, SCAND_INTERMEDIATE_COUNT),
                              .demean = below(random, 4) == 0};
    scan.passes[0] = (enum scand_pass)below(random, 2);
    scan.passes[1] = (enum scand_pass)below(random, 2);
    if (below(random, 3)) /* else nearly all dtypes are refused */
        scan.output.dtype = scan.input.dtype;
    if (scan.op == SCAND_OPERATOR_AFFINE && below(random, 2))
        scan.coefficients = random_tensor(random, shape);
    else if (scan.op == SCAND_OPERATOR_AFFINE)
        scan.coefficient = (double)below(random, 3) - 1;
    return scan;
}

/* `first`: the input's room. */
static int run_scan(struct side *side, struct scand_scan scan, uint64_t first, bool in_place, bool as_task)
{
    struct scand_job *job = NULL;
    int status;
    scan.input.buffer = side->rooms[first];
    scan.output.buffer = side->rooms[in_place ? first : (first + 1) % ROOMS];
    if (scan.coefficients.rank)
        scan.coefficients.buffer = side->rooms[(first + 2) % ROOMS];
    if (as_task)
        status = run_task(side->session, task_of(&scan));
    else
        status = scand_submit(side->session, &scan, &job);
    if (job)
        status = wait_for(job);
    snprintf(side->message, sizeof side->message, "%s", status ? scand_message(side->session) : "");
    return status;
}

/* Reduces what the scan would have scanned; results are of the output's dtype. */
static int run_reduce(struct side *side, const struct scand_scan *scan, uint64_t number)
{
    struct scand_job *job = NULL;
    struct scand_reduce reduce = {.input = scan->input,
                                  .output = scan->output,
                                  .axis = scan->axis,
                                  .reduction = (enum scand_reduction)(1 + number % (SCAND_REDUCTION_COUNT - 1))};
    reduce.input.buffer = side->rooms[0];
    reduce.output.buffer = side->rooms[1];
    reduce.output.rank = 1;
    reduce.output.shape[0] = scan->input.shape[1 - scan->axis];
    scand_tensor_pack(&reduce.output);
    int status = scand_submit_reduce(side->session, &reduce, NULL, NULL, &job);
    status = status ? status : wait_for(job);
    snprintf(side->message, sizeof side->message, "%s", status ? scand_message(side->session) : "");
    return status;
}

static int run_trial(struct side *side, uint64_t random)
{
    const bool bits = below(&random, 2);
    for (unsigned room = 0; room < ROOMS; room++)
        memcpy(scand_buffer_data(side->rooms[room]), noise[bits] + below(&random, ROOM_SAMPLES), ROOM_BYTES);
    const struct scand_scan scan = random_scan(&random);
    return below(&random, 4)
               ? run_scan(side, scan, below(&random, ROOMS), below(&random, 4) == 0, below(&random, 3) == 0)
               : run_reduce(side, &scan, random_next(&random));
}

static bool trial_differs(struct side sides[2], uint64_t random, int *status)
{
    *status = run_trial(&sides[0], random);
    bool differs = run_trial(&sides[1], random) != *status || strcmp(sides[0].message, sides[1].message) != 0;
    for (unsigned room = 0; room < ROOMS; room++)
        differs |=
            memcmp(scand_buffer_data(sides[0].rooms[room]), scand_buffer_data(sides[1].rooms[room]), ROOM_BYTES) != 0;
    if (differs)
        fprintf(stderr, "trial %llu: status %d: \"%s\" and \"%s\"\n", (unsigned long long)random, *status,
                sides[0].message, sides[1].message);
    return differs;
}

static void test_bits_and_messages(void)
{
    begin();
    struct side sides[2] = {{.session = open_with(SCAND_SMALL_JOBS_DAEMON)}, {.session = session}};
    for (unsigned i = 0; i < 2 * ROOMS; i++)
        sides[i / ROOMS].rooms[i % ROOMS] = session_buffer(sides[i / ROOMS].session, ROOM_BYTES);
    const uint64_t seed = random_seed(), before = daemon_jobs(session);
    unsigned done = 0, wrong = 0;
    noise_make(seed);
    for (uint64_t i = 0; i < TRIALS && wrong < 5; i++) {
        int status;
        wrong += trial_differs(sides, seed + i, &status);
        done += status == SCAND_OK;
    }
    CHECK_EQ(wrong, 0);
    CHECK(done > TRIALS / 20 && done < TRIALS); /* some are refused */
    const uint64_t theirs = daemon_jobs(session) - before - done;
    CHECK(theirs > 0 && theirs < done / 2); /* of the other side's, the larger ones */
    scand_disconnect(sides[0].session);
    end();
}

/*
 * Order, and failures.
 */

#define LARGE (UINT64_C(8) << 20) /* samples of a job that takes some 10 ms */

/* Small jobs before, beside and behind a large one on the same memory. */
static void test_order(void)
{
    begin();
    struct scand_buffer *large = session_buffer(session, LARGE * sizeof(float)),
                        *other = session_buffer(session, BYTES);
    const uint64_t before = daemon_jobs(session);
    set_all(large, 0);
    set_all(other, 2);
    ((float *)scand_buffer_data(large))[0] = 1;
    const struct scand_scan all = scan_of(large, LARGE), begin_of_it = scan_of(large, SAMPLES),
                            beside = scan_of(other, SAMPLES);
    struct scand_scan reads = scan_of(other, SAMPLES);
    reads.input = begin_of_it.input;
    struct scand_job *jobs[] = {submit(session, &begin_of_it), submit(session, &all), submit(session, &beside),
                                submit(session, &begin_of_it), submit(session, &reads)};
    CHECK(scand_job_done(jobs[0]) && scand_job_done(jobs[2]));
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++)
        CHECK_EQ(wait_for(jobs[i]), SCAND_OK);
    CHECK_EQ(daemon_jobs(session), before + 3);
    /* 1, 0, 0, ... by three sums, and by a fourth. */
    const float *x = scand_buffer_data(large), *y = scand_buffer_data(other);
    CHECK(x[2] == 6 && x[999] == 500500 && x[LARGE - 1] == SAMPLES);
    CHECK(y[2] == 10 && y[3] == 20);
    struct scand_scan copies = all; /* reads what a small job is to write */
    copies.output.buffer = session_buffer(session, LARGE * sizeof(float));
    jobs[0] = submit(session, &copies);
    CHECK_EQ(wait_for(submit(session, &begin_of_it)), SCAND_OK);
    CHECK_EQ(wait_for(jobs[0]), SCAND_OK);
    CHECK_EQ(daemon_jobs(session), before + 5);
    end();
}

/* More jobs than are looked at have ended behind an open one: the next ones go to the daemon, behind any of theirs. */
static void test_order_among_many(void)
{
    enum { MANY = 150 };
    begin();
    struct scand_buffer *large = session_buffer(session, LARGE * sizeof(float)),
                        *other = session_buffer(session, BYTES), *late = session_buffer(session, LARGE * sizeof(float)),
                        *results = session_buffer(session, BYTES);
    struct scand_job *jobs[MANY];
    set_all(large, 1);
    set_all(late, 1);
    set_all(other, 0);
    ((float *)scand_buffer_data(other))[0] = 1;
    const struct scand_scan all = scan_of(large, LARGE), beside = scan_of(other, SAMPLES), last = scan_of(late, LARGE);
    struct scand_scan reads = scan_of(late, SAMPLES);
    reads.output = scan_of(results, SAMPLES).output;
    reads.input.offset = (LARGE - SAMPLES) * sizeof(float);
    struct scand_job *first = submit(session, &all);
    for (int i = 0; i < MANY; i++)
        jobs[i] = submit(session, &beside);
    struct scand_job *second = submit(session, &last), *third = submit(session, &reads);
    for (int i = MANY; i-- > 0;)
        CHECK_EQ(wait_for(jobs[i]), SCAND_OK);
    CHECK_EQ(wait_for(first), SCAND_OK);
    CHECK_EQ(wait_for(second), SCAND_OK);
    CHECK_EQ(wait_for(third), SCAND_OK);
    CHECK(((float *)scand_buffer_data(other))[1] == MANY);
    CHECK(((float *)scand_buffer_data(results))[0] == LARGE - SAMPLES + 1);
    CHECK(is_here(&beside));
    end();
}

/* A job that reads what a failed one was to write fails, unless that was known before. */
static void test_stale(void)
{
    begin();
    struct scand_buffer *buffer = session_buffer(session, 2 * BYTES), *output = session_buffer(session, BYTES);
    set_all(buffer, 1);
    struct scand_scan wrong = scan_of(buffer, SAMPLES), reads = scan_of(output, SAMPLES);
    wrong.output.offset = 4;
    reads.input = scan_of(buffer, SAMPLES).input;
    struct scand_job *failed = submit(session, &wrong), *stale = submit(session, &reads);
    CHECK_EQ(wait_for(stale), SCAND_STALE);
    CHECK_CONTAINS(scand_message(session), "an earlier job");
    CHECK_EQ(wait_for(failed), SCAND_INVALID);
    CHECK(is_here(&reads));
    CHECK_EQ(wrong_sums(output, SAMPLES, 1), 0);
    failed = submit(session, &wrong);
    reads.after_failure = 1;
    CHECK_EQ(wait_for(submit(session, &reads)), SCAND_OK);
    CHECK_EQ(wait_for(failed), SCAND_INVALID);
    end();
}

/* A batch is computed here up to the first job that is not. */
static void test_batch(void)
{
    enum { COUNT = 6 };
    begin();
    struct scand_buffer *buffer = session_buffer(session, 4 * BYTES);
    struct scand_scan scans[COUNT];
    struct scand_job *jobs[COUNT];
    const uint64_t before = daemon_jobs(session);
    set_all(buffer, 0);
    ((float *)scand_buffer_data(buffer))[0] = 1;
    for (int i = 0; i < COUNT; i++)
        scans[i] = scan_of(buffer, i == 3 ? 4 * SAMPLES : SAMPLES);
    CHECK_EQ(scand_submit_many(session, scans, COUNT, jobs), SCAND_OK);
    CHECK(scand_job_done(jobs[0]) && scand_job_done(jobs[2]));
    CHECK_EQ(scand_cancel(jobs[0]), SCAND_OK);
    for (int i = 0; i < COUNT; i++)
        CHECK_EQ(wait_for(jobs[i]), SCAND_OK);
    CHECK(((float *)scand_buffer_data(buffer))[1] == COUNT);
    CHECK_EQ(daemon_jobs(session), before + 3);
    CHECK_EQ(scand_submit_many(session, scans, 3, jobs), SCAND_OK);
    CHECK_EQ(daemon_jobs(session), before + 3);
    end(); /* which frees the jobs */
}

/*
 * Memory.
 */

/* Memory of the program's own; a second import of it, which the daemon tells apart; a file; and memory that is used
 * again. */
static void test_memory(void)
{
    begin();
    struct scand_buffer *own = NULL, *again = NULL, *file = NULL;
    int fd = -1;
    CHECK_EQ(scand_buffer_create_own(session, 2 * BYTES, &own), SCAND_OK);
    CHECK_EQ(scand_buffer_fd(own, &fd), SCAND_OK);
    CHECK_EQ(scand_buffer_import(session, fd, 2 * BYTES, &again), SCAND_OK);
    set_all(own, 1);
    struct scand_scan scan = scan_of(own, SAMPLES);
    scan.output.buffer = again;
    scan.output.offset = BYTES;
    CHECK(!is_here(&scan));
    CHECK(((float *)scand_buffer_data(own))[2 * SAMPLES - 1] == SAMPLES);
    scan.output.offset = 4;
    CHECK_EQ(wait_for(submit(session, &scan)), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "both buffers are the same memory");
    scan.output.buffer = own;
    scan.output.offset = BYTES;
    scan.output.offset = BYTES + 4; /* ends behind the memory */
    CHECK_EQ(wait_for(submit(session, &scan)), SCAND_INVALID);
    scan.output.offset = BYTES;
    set_all(own, 2);
    CHECK(is_here(&scan));
    CHECK(((float *)scand_buffer_data(again))[2 * SAMPLES - 1] == 2 * SAMPLES);
    CHECK_EQ(scand_buffer_import_file(session, fd, 0, &file), SCAND_OK);
    close(fd);
    scan.output.buffer = session_buffer(session, 2 * BYTES);
    CHECK(is_here(&scan));
    scan.input.buffer = file; /* the same job, for which there is no memory here now */
    CHECK(!is_here(&scan));
    for (int i = 0; i < 100; i++) {
        struct scand_buffer *buffer = session_buffer(session, BYTES);
        set_all(buffer, (float)i);
        scan = scan_of(buffer, SAMPLES);
        struct scand_job *job = submit(session, &scan);
        CHECK_EQ(wrong_sums(buffer, SAMPLES, (float)i), 0);
        CHECK_EQ(scand_buffer_release(buffer), SCAND_OK);
        CHECK_EQ(wait_for(job), SCAND_OK);
    }
    end();
}

/* Two operands in one memory, and a third that has its own. */
static void test_operands(void)
{
    begin();
    struct scand_buffer *rows = session_buffer(session, BYTES), *results = session_buffer(session, BYTES),
                        *ones = session_buffer(session, BYTES), *twos = session_buffer(session, BYTES);
    struct scand_scan scan = scan_of(rows, SAMPLES);
    set_all(rows, 1);
    set_all(ones, 1);
    set_all(twos, 2);
    scan.op = SCAND_OPERATOR_AFFINE;
    scan.coefficients = scan_of(ones, SAMPLES).input;
    scan.output.buffer = results;
    CHECK(is_here(&scan));
    CHECK_EQ(wrong_sums(results, SAMPLES, 1), 0);
    scan.coefficients.buffer = twos;
    scan.output.buffer = rows;
    CHECK(is_here(&scan));
    const float *x = scand_buffer_data(rows);
    CHECK(x[0] == 1 && x[1] == 3 && x[2] == 7);
    end();
}

/*
 * Threads, forks, loops and a lost worker.
 */

static void *thread_run(void *context)
{
    const unsigned *number = context;
    struct scand_buffer *buffer = session_buffer(session, 4 * BYTES);
    uintptr_t wrong = 0;
    for (int i = 0; i < 300; i++) {
        const uint64_t samples = i % 16 ? SAMPLES : 4 * SAMPLES;
        const struct scand_scan scan = scan_of(buffer, samples);
        set_all(buffer, (float)*number);
        wrong += wait_for(submit(session, &scan)) != SCAND_OK || wrong_sums(buffer, samples, (float)*number) > 0;
    }
    return (void *)wrong;
}

static void test_threads(void)
{
    begin();
    unsigned numbers[] = {1, 2, 3, 4};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        REQUIRE(pthread_create(&threads[i], NULL, thread_run, &numbers[i]) == 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        CHECK_EQ((intptr_t)wrong, 0);
    }
    end();
}

static int child_finds(struct scand_buffer *buffer)
{
    const struct scand_scan scan = scan_of(buffer, SAMPLES);
    struct scand_job *job = NULL;
    const int wrong = scand_submit(session, &scan, &job) != SCAND_FORKED;
    scand_forget();
    session = open_with(SCAND_SMALL_JOBS_HERE);
    const struct scand_scan own = scan_of(session_buffer(session, BYTES), SAMPLES);
    const bool here = is_here(&own);
    scand_disconnect(session);
    return wrong + !here;
}

static void test_fork(void)
{
    begin();
    struct scand_buffer *buffer = session_buffer(session, BYTES);
    const struct scand_scan scan = scan_of(buffer, SAMPLES);
    CHECK(is_here(&scan));
    fflush(stderr);
    pid_t child = fork();
    if (child == 0)
        _exit(child_finds(buffer));
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
    CHECK(is_here(&scan));
    end();
}

/* A loop is told of jobs that have ended at once. */
static void test_loop(void)
{
    begin();
    struct pollfd poller = {.fd = scand_fd(session), .events = POLLIN};
    const struct scand_scan scan = scan_of(session_buffer(session, BYTES), SAMPLES);
    for (int i = 0; i < 10; i++) {
        struct scand_job *job = submit(session, &scan);
        REQUIRE(poll(&poller, 1, 60000) == 1);
        CHECK_EQ(scand_dispatch(session), SCAND_OK);
        CHECK(scand_job_done(job));
        CHECK_EQ(wait_for(job), SCAND_OK);
        CHECK_EQ(poll(&poller, 1, 0), 0);
    }
    end();
}

/* Memory stays when the worker goes; a job that is repeated is waited for. */
static void test_lost_worker(void)
{
    begin();
    struct scand_buffer *large = session_buffer(session, LARGE * sizeof(float)), *sums = session_buffer(session, BYTES),
                        *results = session_buffer(session, LARGE * sizeof(float));
    set_all(large, 1);
    set_all(sums, 1);
    struct scand_scan all = scan_of(large, LARGE), small = scan_of(sums, SAMPLES), reads = small;
    all.output.buffer = results;
    reads.input = scan_of(results, SAMPLES).input;
    struct scand_job *job = submit(session, &all), *first = submit(session, &small);
    CHECK(scand_job_done(first));
    pid_t worker = server_worker(&server);
    CHECK(worker > 0 && kill(worker, SIGKILL) == 0);
    struct scand_job *behind = submit(session, &reads);
    CHECK_EQ(wait_for(first), SCAND_OK);
    CHECK_EQ(wait_for(job), SCAND_OK);
    CHECK_EQ(wait_for(behind), SCAND_OK);
    CHECK(((float *)scand_buffer_data(sums))[2] == 6); /* 1, 2, 3 of the results, summed again */
    set_all(sums, 3);
    CHECK(is_here(&small));
    CHECK_EQ(wrong_sums(sums, SAMPLES, 3), 0);
    end();
}

/* Returns once the daemon refuses jobs: then it begins no groups either. */
static void await_drain(void)
{
    uint32_t group = 0;
    uint64_t number = 1;
    while (number > 0) {
        CHECK_EQ(scand_group_begin(session, NULL, 0, &group), SCAND_OK);
        CHECK_EQ(scand_group_number(session, group, &number), SCAND_OK);
        CHECK_EQ(scand_group_end(session, group), SCAND_OK);
    }
}

#ifdef __SANITIZE_ADDRESS__
#define LONG 4 /* each takes several times as long */
#else
#define LONG 16
#endif

/* A small job does not overtake one that waits for the next daemon, if they share memory; others are not held up. */
static void test_drained(void)
{
    enum { WIDE = 5 * SAMPLES };
    begin();
    struct scand_buffer *buffer = session_buffer(session, 128 << 20), *wide = session_buffer(session, WIDE * 4),
                        *apart = session_buffer(session, BYTES);
    struct scand_scan scan = scan_of(buffer, 32 << 20), all = scan_of(wide, WIDE), part = scan_of(wide, SAMPLES),
                      other = scan_of(apart, SAMPLES);
    struct scand_job *jobs[LONG];
    set_all(wide, 1);
    set_all(apart, 1);
    for (int i = 0; i < LONG; i++)
        jobs[i] = submit(session, &scan);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK); /* the daemon has them all */
    server_drain(&server);
    await_drain();
    struct scand_job *refused = submit(session, &all), *behind = submit(session, &part);
    struct scand_job *here = submit(session, &other);
    CHECK(scand_job_done(here));
    CHECK_EQ(wait_for(here), SCAND_OK);
    CHECK_EQ(scand_wait(behind, 0, NULL), SCAND_TIMED_OUT);
    for (int i = 0; i < LONG; i++)
        CHECK_EQ(wait_for(jobs[i]), SCAND_OK);
    CHECK_EQ(server_start_again(&server, session_daemon(), arguments), 0);
    CHECK_EQ(wait_for(behind), SCAND_OK);
    CHECK_EQ(wait_for(refused), SCAND_OK);
    CHECK_EQ(wrong_sums(apart, SAMPLES, 1), 0);
    const float *x = scand_buffer_data(wide);
    CHECK(x[2] == 6 && x[SAMPLES] == SAMPLES + 1 && x[WIDE - 1] == WIDE);
    end();
}

static const struct test tests[] = {TEST(test_which_jobs), TEST(test_tasks),
                                    TEST(test_variable),   TEST(test_bits_and_messages),
                                    TEST(test_order),      TEST(test_order_among_many),
                                    TEST(test_stale),      TEST(test_batch),
                                    TEST(test_memory),     TEST(test_operands),
                                    TEST(test_threads),    TEST(test_fork),
                                    TEST(test_loop),       TEST(test_lost_worker),
                                    TEST(test_drained),    TEST_END};

int main(int argc, char **argv)
{
    unsetenv("SCAND_FALLBACK");
    unsetenv("SCAND_SMALL_JOBS");
    return test_main(argc, argv, tests);
}

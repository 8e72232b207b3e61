/* The jobs that libscand submits again when a worker has ended with several of them, which share memory. */
#include "client/lib/internal.h"
#include "tests/unit/client_rig.h"

static struct scand_buffer *first, *second, *third;

/* The first one has 0, 1, 2, ...; jobs wait from now on. */
static void begin(void)
{
    rig_begin();
    first = buffer_of(BYTES);
    second = buffer_of(BYTES);
    third = buffer_of(BYTES);
    for (int i = 0; i < SAMPLES; i++)
        ((float *)scand_buffer_data(first))[i] = (float)i;
    fake.hold = 1;
}

/* The worker ends with all jobs that have no answer, whose outputs hold anything then. The next one holds none up. */
static void worker_ends(void)
{
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK); /* they have arrived */
    fake.hold = 0;
    fake.die_on = METHOD_server_ping;
    fake.die_count = 1;
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
}

/* Each job adds one. */
static void check_added(struct scand_buffer *buffer, int added)
{
    int wrong = 0;
    for (int i = 0; i < SAMPLES; i++)
        wrong += ((float *)scand_buffer_data(buffer))[i] != (float)(i + added);
    CHECK_EQ(wrong, 0);
}

static void check_lost(struct scand_job *job, const char *why)
{
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_LOST);
    CHECK_CONTAINS(scand_message(session), why);
}

/* The intermediate, which the first job writes and another one works on in place, is written anew. */
static void test_pipeline(void)
{
    begin();
    struct scand_job *jobs[] = {submit(first, second), submit(second, second), submit(second, third)};
    worker_ends();
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++)
        CHECK_EQ(scand_wait(jobs[i], -1, NULL), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_job_submit], 6);
    check_added(second, 2);
    check_added(third, 3);
    rig_end();
}

/* Two pipelines by the same intermediate, one after the other. */
static void test_intermediate_that_is_used_again(void)
{
    begin();
    struct scand_buffer *fourth = buffer_of(BYTES);
    struct scand_job *jobs[] = {submit(first, second), submit(second, third), submit(first, second),
                                submit(second, fourth)};
    worker_ends();
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++)
        CHECK_EQ(scand_wait(jobs[i], -1, NULL), SCAND_OK);
    check_added(third, 2);
    check_added(fourth, 2);
    rig_end();
}

/* The first job's input is overwritten by the last: nothing can be repeated, and everything that reads is lost. */
static void test_circle(void)
{
    begin();
    struct scand_job *there = submit(first, second), *on = submit(second, third), *back = submit(third, first);
    worker_ends();
    check_lost(there, "another job wrote to its input");
    check_lost(on, "another job wrote to its input");
    check_lost(back, "another job wrote to its input");
    CHECK_EQ(fake.seen[METHOD_job_submit], 3);
    rig_end();
}

/* A job that is cancelled writes nothing when the others are repeated. */
static void test_writer_is_cancelled(void)
{
    begin();
    struct scand_job *writer = submit(first, second), *reader = submit(second, third);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    writer->cancelled = true; /* its request is on the way */
    worker_ends();
    CHECK_EQ(scand_wait(writer, -1, NULL), SCAND_CANCELLED);
    check_lost(reader, "another job wrote to its input");
    rig_end();
}

static struct scand_job *submit_part(struct scand_buffer *from, struct scand_buffer *to, uint64_t begin, uint64_t count,
                                     int64_t stride)
{
    struct scand_scan scan = scan_of(from, to);
    struct scand_job *job = NULL;
    scan.input.shape[0] = scan.output.shape[0] = count;
    scan.input.offset = scan.output.offset = begin * sizeof(float);
    scan.input.strides[0] = scan.output.strides[0] = stride * (int64_t)sizeof(float);
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    return job;
}

/* A job's input may be written by several jobs; one sample that none of them writes again is enough to lose the job. */
static void test_parts(void)
{
    const uint64_t half = SAMPLES / 2;
    begin();
    struct scand_buffer *fourth = buffer_of(BYTES);
    submit_part(first, second, half, half, 1);
    submit_part(first, second, 0, half, 1);
    struct scand_job *whole = submit(second, third);
    worker_ends();
    CHECK_EQ(scand_wait(whole, -1, NULL), SCAND_OK);
    check_added(third, 2);

    fake.hold = 1;
    submit_part(first, second, half + 1, half - 1, 1);
    submit_part(first, second, 0, half, 1);
    submit_part(second, second, half, 1, 1); /* in place: lost, and not written by anybody else */
    whole = submit(second, third);
    struct scand_job *apart = submit_part(second, fourth, 0, half, 1);
    worker_ends();
    check_lost(whole, "another job wrote to its input");
    CHECK_EQ(scand_wait(apart, -1, NULL), SCAND_OK);
    rig_end();
}

/* The memory has more gaps than are kept track of. */
static void test_many_parts(void)
{
    begin();
    for (uint64_t i = 0; i < 20; i++)
        submit_part(first, second, 2 * i, 1, 1);
    struct scand_job *reader = submit_part(second, third, 0, 40, 1);
    worker_ends();
    check_lost(reader, "another job wrote to its input");
    rig_end();
}

/* Every other sample, as traces between headers: what is between them is nobody's. */
static void test_gaps(void)
{
    begin();
    struct scand_job *writer = submit_part(first, second, 0, SAMPLES / 2, 2),
                     *reader = submit_part(second, third, 0, SAMPLES / 2, 2),
                     *between = submit_part(second, third, 0, SAMPLES / 2, 1);
    worker_ends();
    CHECK_EQ(scand_wait(writer, -1, NULL), SCAND_OK);
    CHECK_EQ(scand_wait(reader, -1, NULL), SCAND_OK);
    check_lost(between, "another job wrote to its input");
    rig_end();
}

/* The offsets of ragged rows, which the program may change, say what is written. */
static void test_ragged_writer(void)
{
    begin();
    struct scand_scan scan = scan_of(first, second);
    struct scand_job *writer = NULL;
    scan.offsets = (struct scand_tensor){.buffer = buffer_of(BYTES), .dtype = SCAND_DTYPE_I64, .rank = 1, .shape = {2}};
    scand_tensor_pack(&scan.offsets);
    CHECK_EQ(scand_submit(session, &scan, &writer), SCAND_OK);
    struct scand_job *reader = submit(second, third);
    worker_ends();
    CHECK_EQ(scand_wait(writer, -1, NULL), SCAND_OK);
    check_lost(reader, "another job wrote to its input");
    rig_end();
}

/* A batch's answer comes after its last job, so a later job may have been answered, and what it wrote or read be used.
 */
static void test_batch_that_was_overtaken(void)
{
    begin();
    struct scand_buffer *fourth = buffer_of(BYTES), *fifth = buffer_of(BYTES);
    struct scand_scan scans[] = {scan_of(first, second), scan_of(third, fourth), scan_of(first, fifth)};
    struct scand_job *jobs[3];
    fake.hold = 0;
    fake.silent_on = METHOD_job_batch;
    CHECK_EQ(scand_submit_many(session, scans, 3, jobs), SCAND_OK);
    CHECK_EQ(scand_wait(submit(first, second), -1, NULL), SCAND_OK); /* writes what the first one writes */
    CHECK_EQ(scand_wait(submit(first, third), -1, NULL), SCAND_OK);  /* and what the second one reads */
    worker_ends();
    check_lost(jobs[0], "a later job has used its memory");
    check_lost(jobs[1], "a later job has used its memory");
    CHECK_EQ(scand_wait(jobs[2], -1, NULL), SCAND_OK);
    check_added(second, 1);
    rig_end();
}

/* A job that is there each time a worker ends need not be why: it is asked for again, later. */
static void test_many_ends_by_chance(void)
{
    begin();
    fake.hold = 0;
    fake.die_on = METHOD_job_submit;
    fake.die_count = ATTEMPTS_MAX - 1;
    const int64_t begin_ms = clock_ms();
    CHECK_EQ(scand_wait(submit(first, second), -1, NULL), SCAND_OK);
    CHECK(clock_ms() - begin_ms >= (ATTEMPTS_MAX - ATTEMPTS_AT_ONCE) * SUSPECT_MS);
    CHECK_EQ(fake.seen[METHOD_job_submit], ATTEMPTS_MAX);
    check_added(second, 1);
    fake.die_on = METHOD_server_stats;
    fake.die_count = ATTEMPTS_MAX - 1;
    size_t count;
    CHECK_EQ(scand_stats(session, NULL, sizeof(struct scand_counter), 0, &count), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_server_stats], ATTEMPTS_MAX);
    rig_end();
}

static const struct test tests[] = {TEST(test_pipeline),
                                    TEST(test_intermediate_that_is_used_again),
                                    TEST(test_circle),
                                    TEST(test_writer_is_cancelled),
                                    TEST(test_parts),
                                    TEST(test_many_parts),
                                    TEST(test_gaps),
                                    TEST(test_ragged_writer),
                                    TEST(test_batch_that_was_overtaken),
                                    TEST(test_many_ends_by_chance),
                                    TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

/* Jobs whose offsets helpers copy: nobody is held up by that but whoever asks for it, the order of jobs stays, and
 * whatever ends a job ends it then, too. */
#include "tests/unit/service_rig.h"

#define ANNA ((uid_t)1000)
#define BERT ((uid_t)1001)

#define SAMPLES 10000
#define MOST    (LIMIT_RAGGED_ROWS + 1)
#define UNITS   (MOST / LIMIT_UNIT_OFFSETS + 1) /* units of a job with as many offsets as are allowed */

static struct caller *anna;
static uint64_t samples, others, counts;
static int64_t *offsets; /* offsets in the beginning of `counts` */

static struct msg_tensor line_of(uint64_t buffer, uint64_t length)
{
    return (struct msg_tensor){
        .buffer = buffer, .shape = {length}, .shape_count = 1, .strides = {4}, .strides_count = 1};
}

/* Rows of `samples` in place, by `count` offsets that all are the first one. */
static struct msg_job_submit_params ragged_of(uint64_t buffer, uint64_t count)
{
    struct msg_tensor line = line_of(buffer, SAMPLES), where = line_of(counts, count);
    where.dtype = SCAND_DTYPE_I64;
    where.strides[0] = 0;
    return (struct msg_job_submit_params){.input = line, .output = line, .offsets = where, .passes_count = 1};
}

static uint32_t submit(struct caller *user, struct msg_job_submit_params params)
{
    return ask(user, METHOD_job_submit, &params);
}

static uint32_t submit_ragged(uint64_t buffer, uint64_t count)
{
    return submit(anna, ragged_of(buffer, count));
}

static uint32_t submit_plain(uint64_t buffer)
{
    struct msg_tensor line = line_of(buffer, 100);
    return submit(anna, (struct msg_job_submit_params){.input = line, .output = line, .passes_count = 1});
}

static bool done(uint32_t msgid)
{
    return answered(anna, msgid, METHOD_job_submit, NULL);
}

/* A helper does a unit of the oldest work. */
static void help(void)
{
    CHECK(rig.work_count > 0);
    if (rig.work_count > 0)
        rig_help(rig_pop_work(0));
}

static void begin(void)
{
    rig_begin_with(2, 2, 1000);
    anna = user_greet(ANNA);
    samples = user_create(anna, SAMPLES * 4, SCAND_PLACE_HOST);
    others = user_create(anna, SAMPLES * 4, SCAND_PLACE_HOST);
    counts = user_create(anna, 16 * LIMIT_LOOP_OFFSETS_BYTES, SCAND_PLACE_HOST);
    const struct buffer *buffer = anna->client->buffers;
    CHECK_EQ(buffer->id, counts);
    offsets = buffer->span.base;
    memset(offsets, 0, 16 * LIMIT_LOOP_OFFSETS_BYTES);
}

static void end(void)
{
    rig_run_work();
    rig_complete_all();
    rig_run_work();
    while (!is_silent(anna))
        ;
    CHECK_EQ(anna->client->offsets_bytes, 0);
    CHECK_EQ(anna->client->user->offsets_bytes, 0);
    CHECK_EQ(rig.service.offsets_bytes, 0);
    CHECK(!anna->client->readings && !anna->client->last_reading);
    rig_end();
}

/* The loop reads few, and of those only what lies close together. */
static void few_are_read_at_once(void)
{
    begin();
    offsets[0] = 3;
    CHECK(done(submit_ragged(samples, LIMIT_LOOP_OFFSETS)));
    struct msg_job_submit_params apart = ragged_of(samples, LIMIT_LOOP_OFFSETS);
    apart.offsets.strides[0] = 16;
    offsets[0] = 0;
    CHECK(done(submit(anna, apart)));
    CHECK_EQ(rig.work_count, 0);
    apart.offsets.strides[0] = 17;
    uint32_t far = submit(anna, apart);
    CHECK_EQ(rig.work_count, 1);
    uint32_t many = submit_ragged(samples, LIMIT_LOOP_OFFSETS + 1);
    CHECK(is_silent(anna));
    help();
    CHECK(done(far));
    help();
    CHECK(done(many));
    rig_run_work();
    anna->client->buffers->span.large = true;
    uint32_t slow = submit_ragged(samples, 2);
    CHECK(is_silent(anna));
    help();
    CHECK(done(slow));
    CHECK_EQ(rig.manual.started, 0);
    end();
}

/* A device has room for the offsets of so many rows, however short they are. */
static void a_chunk_has_so_many_rows(void)
{
    const uint64_t rows = LIMIT_CHUNK_ROWS + 1;
    begin();
    counts = user_create(anna, 8 * (rows + 1), SCAND_PLACE_HOST);
    offsets = anna->client->buffers->span.base;
    memset(offsets, 0, 8 * (rows + 1));
    offsets[rows] = SAMPLES;
    struct msg_job_submit_params params = ragged_of(samples, rows + 1);
    params.offsets.strides[0] = 8;
    uint32_t msgid = submit(anna, params);
    rig_run_work();
    REQUIRE(rig.manual.out_count == 2);
    CHECK_EQ(rig.manual.out[0]->count, LIMIT_CHUNK_ROWS);
    CHECK_EQ(rig.manual.out[1]->count, 1);
    rig_complete_all();
    CHECK(done(msgid));
    end();
}

/* Offsets that have yet to be read may be wrong also where there are no samples; until then the job waits like others.
 */
static void rows_of_nothing(void)
{
    begin();
    struct msg_job_submit_params many = ragged_of(samples, LIMIT_LOOP_OFFSETS + 1), few = ragged_of(samples, 5);
    many.input.shape[0] = many.output.shape[0] = few.input.shape[0] = few.output.shape[0] = 0;
    struct msg_tensor line = line_of(counts, 5);
    line.dtype = SCAND_DTYPE_I64;
    line.strides[0] = 8;
    uint32_t right = submit(anna, many);
    CHECK(is_silent(anna));
    rig_run_work();
    CHECK(done(right));
    uint32_t sums = submit(anna, (struct msg_job_submit_params){.input = line, .output = line, .passes_count = 1});
    uint32_t wrong = submit(anna, few); /* waits for the sums */
    offsets[0] = 1;
    rig_complete(0, 0);
    CHECK(done(sums));
    help();
    CHECK_CONTAINS(refusal(anna, wrong, SCAND_INVALID), "\"offsets\"[0] is 1; allowed: 0 to 0");
    end();
}

/* The jobs of a connection are one piece of work at a time, and each of its units is bounded. */
static void units_and_connections(void)
{
    begin();
    uint32_t first = submit_ragged(samples, MOST), second = submit_ragged(others, MOST);
    CHECK_EQ(anna->client->offsets_bytes, 2 * MOST * sizeof(uint64_t));
    CHECK_EQ(anna->client->user->used[QUOTA_JOBS], 2);
    for (unsigned i = 0; i < UNITS; i++) {
        CHECK_EQ(rig.work_count, 1);
        CHECK(is_silent(anna));
        help();
    }
    CHECK(done(first));
    for (unsigned i = 0; i < UNITS + 1; i++) /* one of them frees the first's */
        help();
    CHECK(done(second));
    end();
}

/* Many offsets are freed by helpers, in turns, and count until then; few are freed in the loop. */
static void many_are_freed_by_helpers(void)
{
    begin();
    CHECK(done(submit_ragged(samples, LIMIT_LOOP_OFFSETS)));
    CHECK_EQ(rig.work_count, 0);
    CHECK_EQ(anna->client->offsets_bytes, 0);
    rig.service.helpers.most = 1; /* the second waits for the first */
    uint32_t first = submit_ragged(samples, MOST);
    submit_ragged(others, MOST);
    for (unsigned i = 0; i < UNITS; i++)
        help();
    CHECK(done(first));
    CHECK_EQ(rig.work_count, 1);
    CHECK_EQ(anna->client->offsets_bytes, 2 * MOST * sizeof(uint64_t));
    help();
    CHECK_EQ(anna->client->offsets_bytes, MOST * sizeof(uint64_t));
    CHECK_EQ(anna->client->user->offsets_bytes, MOST * sizeof(uint64_t));
    user_close(anna); /* with the second's half read */
    rig_run_work();
    CHECK_EQ(rig.service.offsets_bytes, 0);
    rig_end();
}

/* Refused offsets have counted, and have cost their user as many turns of helpers as accepted ones. */
static void wrong_ones_count(void)
{
    begin();
    offsets[0] = SAMPLES + 1;
    uint32_t wrong = submit_ragged(samples, MOST), reader = submit_plain(samples);
    CHECK_EQ(rig.service.stats.jobs_open, 2);
    help();
    CHECK_CONTAINS(refusal(anna, wrong, SCAND_INVALID), "\"offsets\"[0] is 10001; allowed: 0 to 10000");
    CHECK_CONTAINS(refusal(anna, reader, SCAND_STALE), "reads bytes of 0 to 40000");
    CHECK_EQ(rig.service.stats.jobs_failed, 2);
    end();
}

/* Order stays: no job of its class passes it, nor a job that needs one that does not. Rows are then what the offsets
 * say. */
static void order_stays(void)
{
    begin();
    struct msg_tensor line = line_of(others, 100);
    struct msg_job_submit_params urgent = {.input = line, .output = line, .passes_count = 1}, ragged;
    urgent.priority = SCAND_PRIORITY_HIGH;
    struct msg_tensor all = line_of(counts, 2000);
    all.dtype = SCAND_DTYPE_I64;
    all.strides[0] = 8;
    for (int i = 0; i < 2000; i++)
        offsets[i] = i < 1000 ? 0 : SAMPLES;
    ragged = ragged_of(samples, 2000);
    ragged.offsets = all;
    submit(anna, ragged);
    submit_plain(others);
    submit(anna, urgent); /* needs the second, which is behind the first */
    struct msg_job_submit_params apart = urgent;
    apart.input.offset = apart.output.offset = 400;
    submit(anna, apart); /* is behind the third */
    CHECK_EQ(rig.manual.out_count, 0);
    help();
    CHECK_EQ(rig.manual.out_count, 2);
    CHECK_EQ(rig.manual.out[0]->count, 1999); /* of the first */
    rig_complete_all();
    for (uint32_t i = 0; i < 4; i++)
        CHECK(!next_answer(anna, NULL, NULL).failed);
    CHECK_EQ(rig.service.stats.jobs_done, 4);
    CHECK_EQ(rig.service.stats.rows_scanned, 1999 + 3);
    CHECK_EQ(rig.service.stats.samples_scanned, SAMPLES + 300);
    end();
}

static void other_connections_go_on(void)
{
    begin();
    struct caller *bert = user_greet(BERT);
    uint64_t berts = user_create(bert, 400, SCAND_PLACE_HOST);
    struct msg_tensor line = line_of(berts, 100);
    uint32_t ragged = submit_ragged(samples, MOST);
    uint32_t msgid = submit(bert, (struct msg_job_submit_params){.input = line, .output = line, .passes_count = 1});
    rig_complete(0, 0);
    CHECK(answered(bert, msgid, METHOD_job_submit, NULL));
    CHECK(is_silent(anna));
    rig_run_work();
    CHECK(done(ragged));
    end();
}

/* Offsets may be the result of a job before, however few they are; a job behind may write there once they are read. */
static void offsets_that_jobs_write(void)
{
    begin();
    struct msg_tensor line = line_of(counts, 5);
    line.dtype = SCAND_DTYPE_I64;
    line.strides[0] = 8;
    struct msg_job_submit_params sums = {.input = line, .output = line, .passes_count = 1};
    struct msg_job_submit_params ragged = ragged_of(samples, 5);
    ragged.offsets.strides[0] = 8;
    uint32_t first = submit(anna, sums), second = submit(anna, ragged), third = submit(anna, sums);
    CHECK_EQ(rig.work_count, 0);
    CHECK_EQ(rig.manual.out_count, 1);
    for (int i = 0; i < 5; i++)
        offsets[i] = 20 * i;
    rig_complete(0, 0);
    CHECK(done(first));
    CHECK_EQ(rig.work_count, 1);
    CHECK_EQ(rig.manual.out_count, 0);
    help();
    CHECK_EQ(rig.manual.out_count, 2);
    rig_complete_all();
    CHECK(done(second) && done(third));
    CHECK_EQ(rig.service.stats.samples_scanned, 5 + 80 + 5);
    submit(anna, sums);
    second = submit(anna, ragged);
    rig_complete(0, -EIO);
    CHECK(next_answer(anna, NULL, NULL).failed);
    CHECK_CONTAINS(refusal(anna, second, SCAND_STALE), "reads bytes of 0 to 40");
    CHECK_EQ(rig.work_count, 0);
    end();
}

/* A job is a small one once few offsets are read, in the loop or after the job that writes them. */
static void few_rows_are_small(void)
{
    begin();
    rig.service.scheduler.small_bytes = MIB(1);
    rig.service.scheduler.small_ragged = true;
    struct msg_tensor line = line_of(counts, 5);
    line.dtype = SCAND_DTYPE_I64;
    line.strides[0] = 8;
    struct msg_job_submit_params ragged = ragged_of(samples, 5);
    ragged.offsets.strides[0] = 8;
    offsets[4] = 20;
    submit(anna, ragged);
    CHECK(anna->client->jobs->small);
    rig_complete_all();
    CHECK(!next_answer(anna, NULL, NULL).failed);
    offsets[4] = 0;
    submit(anna, (struct msg_job_submit_params){.input = line, .output = line, .passes_count = 1});
    submit(anna, ragged);
    CHECK(!anna->client->jobs->small);
    offsets[4] = 20;
    rig_complete(0, 0);
    help();
    CHECK(anna->client->jobs->small);
    rig_complete_all();
    CHECK(!next_answer(anna, NULL, NULL).failed && !next_answer(anna, NULL, NULL).failed);
    CHECK_EQ(rig.service.scheduler.small_count, 0);
    end();
}

/* A job ends meanwhile, cancelled, late, or left by its client: before a helper has its offsets, while one has, and
 * between two units. */
static void ended_meanwhile(void)
{
    for (int when = 0; when < 3; when++) {
        begin();
        struct msg_job_submit_params hurried = ragged_of(others, MOST);
        hurried.deadline_ms = 5;
        uint32_t first = submit_ragged(samples, MOST), second = submit(anna, hurried);
        if (when == 2)
            help();
        struct work *work = rig_pop_work(0);
        if (when == 1)
            work_run(work);
        uint32_t request = ask(anna, METHOD_job_cancel, &(struct msg_job_id){.job = first});
        CHECK_CONTAINS(refusal(anna, first, SCAND_CANCELLED), "cancelled");
        CHECK(answered(anna, request, METHOD_job_cancel, NULL));
        rig_pass(5000);
        CHECK_CONTAINS(refusal(anna, second, SCAND_DEADLINE), "could not start");
        CHECK_EQ(anna->client->offsets_bytes, 2 * MOST * sizeof(uint64_t)); /* to some a helper may be writing */
        uint32_t third = submit_ragged(samples, MOST);
        if (when != 1)
            work_run(work);
        service_work_done(&rig.service, work);
        rig_run_work();
        CHECK(done(third));
        end();
    }
}

static void the_client_goes(void)
{
    for (int when = 0; when < 3; when++) {
        begin();
        submit_ragged(samples, MOST);
        submit_ragged(others, MOST);
        rig_go_meanwhile(anna, (enum rig_moment)when);
        CHECK_EQ(rig.service.offsets_bytes, 0);
        rig_end();
    }
}

static void the_daemon_drains(void)
{
    begin();
    uint32_t ragged = submit_ragged(samples, MOST);
    service_drain(&rig.service);
    CHECK_EQ(rig.drained, 0);
    rig_run_work();
    CHECK(done(ragged));
    CHECK_EQ(rig.drained, 1);
    end();
}

/* The memory of offsets is bounded for a connection, for a user, and for all. A refusal says when to come back. */
static void memory_is_bounded(void)
{
    const uint64_t each = MOST * sizeof(uint64_t), client_jobs = LIMIT_CLIENT_OFFSETS_BYTES / each,
                   user_jobs = LIMIT_USER_OFFSETS_BYTES / each;
    uint64_t taken = 0, buffers[6];
    begin();
    for (int i = 0; i < 6; i++) /* of samples and of offsets: their work is done at once */
        buffers[i] = i ? user_create(user_greet(ANNA), SAMPLES * 4, SCAND_PLACE_HOST) : samples;
    for (int i = 0; i < 6; i++) {
        struct caller *user = &rig.users[i];
        struct msg_job_submit_params params = ragged_of(buffers[i], MOST);
        params.offsets.buffer = buffers[i];
        uint64_t jobs = 0;
        for (; jobs <= client_jobs; jobs++) {
            uint64_t before = rig.service.stats.jobs_open;
            submit(user, params);
            if (rig.service.stats.jobs_open == before)
                break;
        }
        struct answer answer = next_answer(user, NULL, NULL);
        CHECK(answer.failed && answer.failure.code == SCAND_BUSY && answer.failure.retry_ms >= LIMIT_RETRY_MIN_MS);
        CHECK_CONTAINS(answer.failure.message, "67108864, 268435456 and 1073741824 are allowed; try again in");
        CHECK(jobs == client_jobs || taken + jobs == user_jobs);
        taken += jobs;
    }
    CHECK_EQ(taken, user_jobs);
    for (int i = 0; i < 6; i++)
        user_close(&rig.users[i]);
    rig_run_work();
    CHECK_EQ(rig.service.offsets_bytes, 0);
    rig_end();
}

/* server.jobs shows such a job as one that is queued, with the rows that it will have. */
static void lists(void)
{
    struct msg_jobs_result result;
    begin();
    uint32_t ragged = submit_ragged(samples, MOST);
    CHECK(granted(anna, METHOD_server_jobs, &(struct msg_page_params){0}, &result));
    CHECK_EQ(result.jobs_count, 1);
    CHECK_EQ(result.jobs[0].state, SCAND_JOB_STATE_QUEUED);
    CHECK_EQ(result.jobs[0].rows, MOST - 1);
    rig_run_work();
    CHECK(done(ragged));
    end();
}

static const struct test tests[] = {
    TEST(few_are_read_at_once),
    TEST(a_chunk_has_so_many_rows),
    TEST(rows_of_nothing),
    TEST(units_and_connections),
    TEST(many_are_freed_by_helpers),
    TEST(wrong_ones_count),
    TEST(order_stays),
    TEST(other_connections_go_on),
    TEST(offsets_that_jobs_write),
    TEST(few_rows_are_small),
    TEST(ended_meanwhile),
    TEST(the_client_goes),
    TEST(the_daemon_drains),
    TEST(memory_is_bounded),
    TEST(lists),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

/* Jobs through the service: submitted, refused, cancelled, failing, taking turns, and outliving their client and
 * buffers. */
#include "tests/unit/service_rig.h"

#include "daemon/core/clients.h"

#define ANNA ((uid_t)1000)
#define BERT ((uid_t)1001)

#define CANCELLED "job.submit: cancelled by its client"

/* Submits rows of `buffer` from a first row on, to be scanned in place. Four rows are a chunk. */
static uint32_t submit(struct caller *user, uint64_t buffer, uint64_t first, uint64_t rows)
{
    const struct msg_job_submit_params params = rig_scan_in_place(rig_rows(buffer, first, rows));
    return ask(user, METHOD_job_submit, &params);
}

static bool done(struct caller *user, uint32_t msgid)
{
    return answered(user, msgid, METHOD_job_submit, NULL);
}

static const char *cancel_refused(struct caller *user, uint64_t job)
{
    return refused(user, METHOD_job_cancel, &(struct msg_job_id){.job = job}, SCAND_NOT_FOUND);
}

static uint32_t cancel(struct caller *user, uint64_t job)
{
    return ask(user, METHOD_job_cancel, &(struct msg_job_id){.job = job});
}

/* A service with a user who has a buffer of 100 rows. */
static struct caller *begin_with_buffer(uint64_t *buffer)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    *buffer = user_create(user, 100 * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    return user;
}

static const struct chunk *out(size_t index)
{
    static const struct chunk none;
    CHECK(index < rig.manual.out_count);
    return index < rig.manual.out_count ? rig.manual.out[index] : &none;
}

/*
 * A job's life.
 */

static void jobs_run_in_chunks(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    uint32_t msgid = submit(user, buffer, 3, 10);
    CHECK_EQ(rig.manual.out_count, 2);
    CHECK_EQ(out(0)->first, 0);
    CHECK_EQ(out(1)->first, 4);
    CHECK(out(0)->rows->input == (char *)out(0)->spans[OPERAND_INPUT].base + 3 * RIG_ROW_BYTES);
    CHECK_EQ(out(0)->spans[OPERAND_INPUT].size_bytes, 100 * RIG_ROW_BYTES);
    CHECK_EQ(out(0)->spans[OPERAND_INPUT].pin_unit_bytes, KIB(64));
    rig_complete(0, 0);
    CHECK_EQ(rig.manual.out_count, 2);
    CHECK_EQ(out(1)->first, 8);
    CHECK_EQ(out(1)->count, 2);
    rig_complete(1, 0); /* in any order */
    CHECK(is_silent(user));
    rig_complete(0, 0);
    CHECK(done(user, msgid));
    CHECK_EQ(rig.manual.started, 3);
    rig_end();
}

static void results_carry_times(void)
{
    uint64_t buffer;
    struct msg_job_submit_result result;
    struct caller *user = begin_with_buffer(&buffer);
    submit(user, buffer, 0, 8);
    uint32_t msgid = submit(user, buffer, 8, 4); /* nothing is free for it yet */
    rig.now_us += 30;
    rig_complete(0, 0);
    rig.now_us += 400;
    rig_complete(1, 0);
    CHECK(answered(user, msgid, METHOD_job_submit, &result));
    CHECK_EQ(result.queued_us, 30);
    CHECK_EQ(result.total_us, 430);
    CHECK_EQ(result.upload_us, 1);
    CHECK_EQ(result.kernel_us, 10);
    CHECK_EQ(result.download_us, 100);
    rig_end();
}

static void jobs_are_counted(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    submit(user, buffer, 0, 10);
    CHECK_EQ(rig.service.stats.jobs_open, 1);
    rig_complete_all();
    submit(user, buffer, 0, 10);
    rig_complete(0, -EIO);
    rig_complete_all();
    while (!is_silent(user)) /* what comes next is not for want of that one's answer */
        ;
    cancel(user, submit(user, buffer, 0, 10));
    rig_complete_all();
    CHECK_EQ(rig.service.stats.jobs_submitted, 3);
    CHECK_EQ(rig.service.stats.jobs_done, 1);
    CHECK_EQ(rig.service.stats.jobs_failed, 1);
    CHECK_EQ(rig.service.stats.jobs_cancelled, 1);
    CHECK_EQ(rig.service.stats.rows_scanned, 10 + 4 + 8);
    CHECK_EQ(rig.service.stats.samples_scanned, 2200);
    rig_end();
}

/* Jobs of nothing have nothing to do, and nothing goes to the device, whatever else they say. */
static void jobs_of_nothing(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    CHECK(done(user, submit(user, buffer, 0, 0)));
    CHECK(done(user, submit(user, buffer, UINT64_MAX / RIG_ROW_BYTES, 0)));
    struct msg_tensor tensor = rig_rows(buffer, 0, 10);
    tensor.shape[1] = 0;
    struct msg_job_submit_params params = rig_scan_in_place(tensor);
    CHECK(granted(user, METHOD_job_submit, &params, NULL));
    CHECK_EQ(rig.manual.started, 0);
    CHECK_EQ(rig.service.stats.jobs_done, 3);
    rig_end();
}

static void jobs_on_the_device(void)
{
    uint64_t host;
    struct caller *user = begin_with_buffer(&host);
    uint64_t device = user_create(user, 10 * RIG_ROW_BYTES, SCAND_PLACE_DEVICE);
    struct msg_job_submit_params params = rig_scan(rig_rows(host, 0, 2), rig_rows(device, 0, 2));
    uint32_t msgid = ask(user, METHOD_job_submit, &params);
    CHECK_EQ(out(0)->spans[OPERAND_INPUT].place, SCAND_PLACE_HOST);
    CHECK_EQ(out(0)->spans[OPERAND_OUTPUT].place, SCAND_PLACE_DEVICE);
    rig_complete_all();
    CHECK(done(user, msgid));
    rig_end();
}

/*
 * Refusals.
 */

static const char *submit_refused(struct caller *user, const struct msg_job_submit_params *params,
                                  enum scand_status status)
{
    return refused(user, METHOD_job_submit, params, status);
}

static void wrong_shapes(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    struct msg_job_submit_params good = rig_scan_in_place(rig_rows(buffer, 0, 10)), bad = good;
    bad.axis = 3;
    CHECK_CONTAINS(submit_refused(user, &bad, SCAND_INVALID), "\"axis\" is 3; a tensor of 2 dimensions has 0 to 1");
    bad = good, bad.input.strides_count = 1;
    CHECK_CONTAINS(submit_refused(user, &bad, SCAND_INVALID), "\"input\" has 2 dimensions but 1 strides");
    bad = good, bad.output.strides_count = 4;
    CHECK_CONTAINS(submit_refused(user, &bad, SCAND_INVALID), "\"output\" has 2 dimensions but 4 strides");
    bad = good, bad.output.shape_count = bad.output.strides_count = 1;
    CHECK_CONTAINS(submit_refused(user, &bad, SCAND_INVALID), "\"input\" has 2 dimensions and \"output\" 1");
    bad = good, bad.output.shape[0] = 9;
    CHECK_CONTAINS(submit_refused(user, &bad, SCAND_INVALID), "dimension 0 of \"input\" is 10 and of \"output\" 9");
    bad = good, bad.input.dtype = SCAND_DTYPE_I64;
    CHECK_CONTAINS(submit_refused(user, &bad, SCAND_INVALID), "\"output.dtype\" is \"f32\"; allowed with");
    bad = good, bad.output.strides[0] = RIG_ROW_BYTES - 4;
    CHECK_CONTAINS(submit_refused(user, &bad, SCAND_INVALID), "elements of \"output\" overlap: a stride of 396");
    bad = good, bad.output.offset = 4;
    CHECK_CONTAINS(submit_refused(user, &bad, SCAND_INVALID), "of buffer 1 overlap");
    CHECK_EQ(rig.service.stats.jobs_submitted, 0);
    rig_end();
}

static void outside_the_buffer(void)
{
    const uint64_t edge = UINT64_C(1) << 63, edges[] = {edge - 1, edge, edge + 1, UINT64_MAX};
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    struct msg_job_submit_params good = rig_scan_in_place(rig_rows(buffer, 0, 10)), bad = good;
    bad.input.offset = 90 * RIG_ROW_BYTES + 1;
    CHECK_CONTAINS(submit_refused(user, &bad, SCAND_INVALID), "\"input\" ends at byte 40001, but its buffer has 40000");
    bad = good, bad.output.strides[0] = -RIG_ROW_BYTES;
    CHECK_CONTAINS(submit_refused(user, &bad, SCAND_INVALID), "\"output\" begins 3600 bytes before its buffer");
    for (int i = 0; i < 4; i++) {
        bad = good, bad.input.offset = edges[i];
        CHECK_CONTAINS(submit_refused(user, &bad, SCAND_INVALID), "job.submit: \"input\"");
        bad = good, bad.input.strides[0] = bad.output.strides[0] = (int64_t)edges[i];
        if (i < 3)
            CHECK_CONTAINS(submit_refused(user, &bad, SCAND_INVALID), "job.submit: \"input\"");
        bad = good, bad.input.shape[0] = bad.output.shape[0] = edges[i];
        CHECK_CONTAINS(submit_refused(user, &bad, SCAND_INVALID), "more than 1099511627776 rows");
        bad = good, bad.input.shape[1] = bad.output.shape[1] = edges[i];
        CHECK_CONTAINS(submit_refused(user, &bad, SCAND_INVALID), "at most 8589934592 are allowed");
    }
    bad = good, bad.input.offset = edge, bad.input.shape[0] = bad.output.shape[0] = 2, bad.input.strides[0] = INT64_MIN;
    CHECK_CONTAINS(submit_refused(user, &bad, SCAND_INVALID), "\"input\" ends at byte");
    CHECK_EQ(rig.manual.started, 0);
    rig_end();
}

static void unknown_buffers(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer), *other = user_greet(ANNA);
    struct msg_job_submit_params params = rig_scan(rig_rows(buffer, 0, 1), rig_rows(7, 0, 1));
    CHECK_CONTAINS(submit_refused(user, &params, SCAND_NOT_FOUND),
                   "\"output.buffer\" is 7; this connection has no such buffer");
    params = rig_scan(rig_rows(0, 0, 1), rig_rows(buffer, 0, 1));
    CHECK_CONTAINS(submit_refused(user, &params, SCAND_NOT_FOUND), "\"input.buffer\" is 0");
    params = rig_scan_in_place(rig_rows(buffer, 0, 1));
    CHECK_CONTAINS(submit_refused(other, &params, SCAND_NOT_FOUND), "\"input.buffer\" is 1"); /* another connection's */
    rig_end();
}

/* A buffer that is still being made has no id yet. */
static void buffers_that_are_not_ready(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    uint32_t msgid =
        ask(user, METHOD_buffer_create, &(struct msg_buffer_create_params){.size = 4000, .place = SCAND_PLACE_DEVICE});
    struct msg_job_submit_params params = rig_scan_in_place(rig_rows(1, 0, 1));
    CHECK_CONTAINS(submit_refused(user, &params, SCAND_NOT_FOUND), "no such buffer");
    rig_run_work();
    CHECK(answered(user, msgid, METHOD_buffer_create, NULL));
    rig_end();
}

static void msgids_of_open_jobs(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    uint32_t first = submit(user, buffer, 0, 10);
    user->last_msgid = first - 1;
    submit(user, buffer, 50, 10);
    CHECK_CONTAINS(refusal(user, first, SCAND_INVALID), "msgid 3 is that of a job that still runs; use another");
    rig_complete_all();
    CHECK(done(user, first));
    user->last_msgid = first - 1;
    CHECK_EQ(submit(user, buffer, 0, 10), first);
    rig_complete_all();
    CHECK(done(user, first));
    rig_end();
}

static void full_queues_are_busy(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer), *other = user_greet(BERT);
    uint64_t others = user_create(other, 4000, SCAND_PLACE_HOST);
    uint32_t first = submit(user, buffer, 0, 1);
    for (int i = 1; i < LIMIT_CLIENT_JOBS; i++)
        submit(user, buffer, 0, 1);
    uint32_t msgid = submit(user, buffer, 0, 1);
    struct answer answer = next_answer(user, NULL, NULL);
    CHECK(answer.failed && answer.msgid == msgid && answer.failure.code == SCAND_BUSY);
    CHECK_CONTAINS(answer.failure.message,
                   "256 jobs of this connection, 256 of user 1000 and 256 in all are waiting; at most 256, 2048 and "
                   "4096 may; try again in ");
    CHECK(answer.failure.retry_ms > 0);
    submit(other, others, 0, 1);
    rig.service.stats.jobs_open += LIMIT_JOBS - LIMIT_CLIENT_JOBS - 1;
    CHECK_CONTAINS(refusal(other, submit(other, others, 0, 1), SCAND_BUSY),
                   "1 jobs of this connection, 1 of user 1001 and 4096 in all are waiting; at most 256, 0 and 4096");
    rig.service.stats.jobs_open -= LIMIT_JOBS - LIMIT_CLIENT_JOBS - 1;
    rig_complete(0, 0);
    CHECK(done(user, first));
    submit(user, buffer, 0, 1);
    rig_complete_all();
    CHECK_EQ(rig.service.stats.jobs_done, LIMIT_CLIENT_JOBS + 2);
    rig_end();
}

/* However many jobs others have, a user may have half of what they leave, and who comes then half of the rest. */
static void queues_have_room_for_the_next(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer), *other = user_greet(BERT);
    uint64_t others = user_create(other, 4000, SCAND_PLACE_HOST);
    rig.service.stats.jobs_open += LIMIT_JOBS - 100;
    for (int i = 0; i < 50; i++)
        submit(user, buffer, 0, 1);
    CHECK_CONTAINS(refusal(user, submit(user, buffer, 0, 1), SCAND_BUSY),
                   "50 jobs of this connection, 50 of user 1000 and 4046 in all are waiting; at most 256, 50 and 4096");
    for (int i = 0; i < 25; i++)
        submit(other, others, 0, 1);
    CHECK_CONTAINS(refusal(other, submit(other, others, 0, 1), SCAND_BUSY), "at most 256, 25 and 4096 may");
    rig.service.stats.jobs_open -= LIMIT_JOBS - 100;
    rig_complete_all();
    CHECK_EQ(rig.service.stats.jobs_done, 75);
    rig_end();
}

/*
 * Cancelling.
 */

/* Offsets of jobs that are not done have a bound of memory, beyond which a client is told "busy". */
static void full_of_offsets_is_busy(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    uint64_t counts = user_create(user, (LIMIT_RAGGED_ROWS + 1) * 8, SCAND_PLACE_HOST);
    uint64_t *offsets = client_find_buffer(user->client, counts)->span.base;
    offsets[LIMIT_RAGGED_ROWS] = 100;
    struct msg_tensor line = {.buffer = buffer, .shape = {100}, .shape_count = 1, .strides = {4}, .strides_count = 1};
    struct msg_job_submit_params params = rig_scan(line, line);
    params.axis = 0;
    params.offsets = (struct msg_tensor){.buffer = counts, .dtype = SCAND_DTYPE_U64, .shape_count = 1};
    params.offsets.shape[0] = LIMIT_RAGGED_ROWS + 1;
    params.offsets.strides_count = 1;
    params.offsets.strides[0] = 8;
    rig.service.offsets_bytes +=
        LIMIT_OFFSETS_BYTES - MIB(20); /* of others, who leave as much as two of the jobs have */
    ask(user, METHOD_job_submit, &params);
    CHECK_CONTAINS(refused(user, METHOD_job_submit, &params, SCAND_BUSY), "at most 67108864, 10485760 and 1073741824");
    rig.service.offsets_bytes -= LIMIT_OFFSETS_BYTES - MIB(20);
    for (int i = 1; i < 7; i++)
        ask(user, METHOD_job_submit, &params);
    CHECK(is_silent(user));
    CHECK_CONTAINS(refused(user, METHOD_job_submit, &params, SCAND_BUSY),
                   "have 58720312 bytes of offsets, those of user 1000 58720312 and all 58720312, and 8388616 more "
                   "are too many");
    rig_run_work();
    rig_complete_all();
    for (uint32_t i = 0; i < 7; i++)
        CHECK(next_answer(user, NULL, NULL).arrived);
    rig_run_work();
    CHECK_EQ(rig.service.offsets_bytes, 0);
    rig_end();
}

static void cancel_queued(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    uint32_t running = submit(user, buffer, 0, 8), queued = submit(user, buffer, 50, 10);
    uint32_t request = cancel(user, queued);
    CHECK_CONTAINS(refusal(user, queued, SCAND_CANCELLED), CANCELLED);
    CHECK(answered(user, request, METHOD_job_cancel, NULL));
    rig_complete_all();
    CHECK(done(user, running));
    CHECK_EQ(rig.manual.started, 2);
    rig_end();
}

static void cancel_running(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    uint32_t job = submit(user, buffer, 0, 50), request = cancel(user, job);
    CHECK(answered(user, request, METHOD_job_cancel, NULL));
    CHECK(is_silent(user)); /* its chunks still write */
    CHECK(answered(user, cancel(user, job), METHOD_job_cancel, NULL));
    rig_complete(1, 0);
    CHECK(is_silent(user));
    rig_complete(0, 0);
    CHECK_CONTAINS(refusal(user, job, SCAND_CANCELLED), CANCELLED);
    CHECK_EQ(rig.manual.started, 2);
    CHECK_CONTAINS(cancel_refused(user, job), "no such job");
    rig_end();
}

/* The device's failure after that is no news. */
static void cancel_then_failure(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    uint32_t job = submit(user, buffer, 0, 8), request = cancel(user, job);
    CHECK(answered(user, request, METHOD_job_cancel, NULL));
    rig_complete(0, -EIO);
    rig_complete(0, -EIO);
    CHECK_CONTAINS(refusal(user, job, SCAND_CANCELLED), CANCELLED);
    rig_end();
}

static void cancel_unknown(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer), *other = user_greet(ANNA);
    CHECK_CONTAINS(cancel_refused(user, 77), "job.cancel: \"job\" is 77; no such job of this connection");
    uint32_t job = submit(user, buffer, 0, 1);
    CHECK_CONTAINS(cancel_refused(other, job), "no such job"); /* another connection's */
    rig_complete_all();
    CHECK(done(user, job));
    CHECK_CONTAINS(cancel_refused(user, job), "no such job");
    rig_end();
}

/*
 * Progress.
 */

static void progress_is_told_when_asked_for(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    struct msg_job_submit_params params = rig_scan_in_place(rig_rows(buffer, 0, 10));
    params.progress = 1;
    uint32_t msgid = ask(user, METHOD_job_submit, &params);
    for (uint64_t rows = 4; rows <= 8; rows += 4) {
        rig_complete(0, 0);
        struct answer answer = next_answer(user, NULL, NULL);
        CHECK(answer.arrived && answer.kind == MESSAGE_NOTIFICATION && answer.method == METHOD_job_progress);
        CHECK_EQ(answer.progress.job, msgid);
        CHECK_EQ(answer.progress.rows_done, rows);
        CHECK_EQ(answer.progress.rows, 10);
    }
    rig_complete(0, 0);
    CHECK(done(user, msgid));
    CHECK(is_silent(user));
    rig_end();
}

/* A client that does not read gets fewer notifications, not more of them waiting; and it gets the answer. */
static void progress_does_not_pile_up(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    struct msg_job_submit_params params = rig_scan_in_place(rig_rows(buffer, 0, 100));
    params.progress = 1;
    uint32_t msgid = ask(user, METHOD_job_submit, &params);
    rig_complete_all();
    struct answer answer = next_answer(user, NULL, NULL);
    CHECK(answer.arrived && answer.kind == MESSAGE_NOTIFICATION);
    CHECK(done(user, msgid));
    CHECK(is_silent(user));
    rig_end();
}

static bool is_ending(struct caller *user, uint32_t msgid)
{
    struct answer answer = next_answer(user, NULL, NULL);
    return answer.arrived && answer.method == METHOD_job_ending && answer.ending.job == msgid;
}

/* The ending is told once, when only the last chunk is out: when the chunk before it is done, or when it is handed out.
 */
static void ending_is_told_when_asked_for(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    struct msg_job_submit_params params = rig_scan_in_place(rig_rows(buffer, 0, 12));
    params.ending = 1;
    rig.manual.device.info.spin_us = 1;
    uint32_t msgid = ask(user, METHOD_job_submit, &params);
    rig_complete(0, 0);
    CHECK(is_silent(user));
    rig_complete(0, 0);
    CHECK(is_ending(user, msgid));
    rig_complete(0, 0);
    CHECK(done(user, msgid));
    params.input = params.output = rig_rows(buffer, 0, 4);
    msgid = ask(user, METHOD_job_submit, &params);
    CHECK(is_ending(user, msgid));
    rig_complete(0, 0);
    CHECK(done(user, msgid));
    /* A device that nobody waits for without blocking takes its time. */
    rig.manual.device.info.spin_us = 0;
    msgid = ask(user, METHOD_job_submit, &params);
    rig_complete(0, 0);
    CHECK(done(user, msgid));
    CHECK(is_silent(user));
    rig_end();
}

/*
 * Turns and order.
 */

static void clients_take_turns(void)
{
    uint64_t buffer;
    struct caller *anna = begin_with_buffer(&buffer), *bert = user_greet(BERT);
    uint64_t berts = user_create(bert, 100 * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    submit(anna, buffer, 0, 100);
    submit(anna, buffer, 0, 100);
    uint32_t msgid = submit(bert, berts, 0, 16);
    CHECK(rig_owner(0) == anna->client && rig_owner(1) == anna->client);
    rig_complete(0, 0);
    CHECK(rig_owner(1) == bert->client); /* before all that is left of Anna's */
    for (int i = 0; i < 9; i++)
        rig_complete(0, 0); /* six chunks in all are Anna's */
    CHECK(done(bert, msgid));
    CHECK(is_silent(anna));
    rig_end();
}

static void jobs_apart_overlap(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    uint32_t first = submit(user, buffer, 0, 4), second = submit(user, buffer, 4, 4);
    CHECK_EQ(rig.manual.out_count, 2);
    rig_complete(1, 0);
    CHECK(done(user, second));
    rig_complete(0, 0);
    CHECK(done(user, first));
    rig_end();
}

static void jobs_that_touch_wait(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    uint32_t first = submit(user, buffer, 0, 4), second = submit(user, buffer, 3, 4),
             third = submit(user, buffer, 50, 4);
    CHECK_EQ(rig.manual.out_count, 1);
    rig_complete(0, 0);
    CHECK(done(user, first));
    CHECK_EQ(rig.manual.out_count, 2); /* the third only now: it came after the second */
    rig_complete_all();
    CHECK(done(user, second));
    CHECK(done(user, third));
    rig_end();
}

static void readers_of_the_same_overlap(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    struct msg_job_submit_params params = rig_scan(rig_rows(buffer, 0, 4), rig_rows(buffer, 10, 4));
    uint32_t first = ask(user, METHOD_job_submit, &params);
    params.output.offset = 20 * RIG_ROW_BYTES;
    uint32_t second = ask(user, METHOD_job_submit, &params);
    CHECK_EQ(rig.manual.out_count, 2);
    rig_complete_all();
    CHECK(done(user, first));
    CHECK(done(user, second));
    rig_end();
}

/* Memory that a cancelled job's last chunk may still write is not given to the next job. */
static void jobs_wait_for_cancelled_ones(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    struct msg_tensor tensor = rig_rows(buffer, 0, 4);
    struct msg_job_submit_params params = rig_scan_in_place(tensor);
    params.after_failure = 1;
    uint32_t first = submit(user, buffer, 0, 20), second = ask(user, METHOD_job_submit, &params),
             request = cancel(user, first);
    CHECK(answered(user, request, METHOD_job_cancel, NULL));
    rig_complete(0, 0);
    CHECK_EQ(rig.manual.out_count, 1);
    rig_complete(0, 0);
    CHECK_CONTAINS(refusal(user, first, SCAND_CANCELLED), CANCELLED);
    CHECK_EQ(rig.manual.out_count, 1);
    rig_complete(0, 0);
    CHECK(done(user, second));
    rig_end();
}

/*
 * Failing devices.
 */

static void device_failures(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    uint32_t msgid = submit(user, buffer, 0, 50), next = submit(user, buffer, 60, 4);
    rig_complete(1, -EIO);
    rig_complete(0, 0); /* the rest of the job is not started */
    CHECK_CONTAINS(refusal(user, msgid, SCAND_DEVICE),
                   "job.submit: the device failed on rows 4 to 7; the output is incomplete");
    CHECK_EQ(rig.manual.out_count, 1);
    rig_complete(0, 0);
    CHECK(done(user, next));
    msgid = submit(user, buffer, 0, 4);
    rig_complete(0, -EOWNERDEAD);
    CHECK_CONTAINS(refusal(user, msgid, SCAND_LOST), "the device failed on rows 0 to 3");
    rig_end();
}

static void chunks_that_cannot_start(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    manual_fail(&rig.manual, MANUAL_START, 1, -ENOMEM);
    uint32_t msgid = submit(user, buffer, 0, 50);
    rig_collect();
    rig_complete_all();
    CHECK_CONTAINS(refusal(user, msgid, SCAND_NO_MEMORY), "the device failed on rows 0 to 3");
    msgid = submit(user, buffer, 0, 4);
    rig_complete_all();
    CHECK(done(user, msgid));
    rig_end();
}

/*
 * Clients and buffers that go.
 */

static void gone_with_queued_and_running_jobs(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer), *other = user_greet(ANNA);
    submit(user, buffer, 0, 50);
    submit(user, buffer, 0, 50);
    user_close(user);
    CHECK_EQ(rig.service.stats.jobs_open, 1);
    CHECK_EQ(rig.service.stats.buffers_open, 1);
    CHECK_EQ(rig.service.stats.messages_refused, 0);
    rig_complete(1, 0);
    CHECK_EQ(rig.service.stats.buffers_open, 1);
    rig_complete(0, -EIO);
    CHECK_EQ(rig.service.stats.buffers_open, 0);
    CHECK_EQ(rig.service.stats.jobs_cancelled, 2);
    CHECK_EQ(rig.manual.started, 2);
    CHECK(granted(other, METHOD_server_ping, &(struct msg_nothing){}, NULL));
    rig_end();
}

/* The jobs of others go on when a client goes whose turn it was. */
static void gone_in_the_midst_of_turns(void)
{
    for (int who = 0; who < 3; who++) {
        struct caller *users[3];
        uint32_t msgids[3];
        rig_begin();
        for (int i = 0; i < 3; i++) {
            users[i] = user_greet(ANNA + (uid_t)i);
            uint64_t buffer = user_create(users[i], 40 * RIG_ROW_BYTES, SCAND_PLACE_HOST);
            msgids[i] = submit(users[i], buffer, 40, 0);
        }
        user_close(users[who]);
        rig_complete_all();
        for (int i = 0; i < 3; i++)
            CHECK(i == who || done(users[i], msgids[i]));
        rig_end();
    }
}

static void gone_with_everything_under_way(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    uint64_t device = user_create(user, 100 * RIG_ROW_BYTES, SCAND_PLACE_DEVICE);
    submit(user, device, 0, 50);
    submit(user, buffer, 0, 50);
    ask(user, METHOD_buffer_create, &(struct msg_buffer_create_params){.size = 4000, .place = SCAND_PLACE_DEVICE});
    CHECK_EQ(rig.work_count, 1);
    user_close(user);
    rig_run_work();
    CHECK_EQ(rig.manual.allocated_bytes, 100 * RIG_ROW_BYTES); /* which is with the device */
    rig_complete_all();
    rig_run_work();
    CHECK_EQ(rig.manual.allocated_bytes, 0);
    rig_end();
}

/* Released memory serves its jobs to their end and nobody else meanwhile. */
static void released_while_in_use(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    uint64_t device = user_create(user, 100 * RIG_ROW_BYTES, SCAND_PLACE_DEVICE);
    uint64_t host = user_create(user, LIMIT_LARGE_SEGMENT_BYTES, SCAND_PLACE_HOST);
    struct msg_job_submit_params params = rig_scan(rig_rows(host, 0, 20), rig_rows(device, 0, 20));
    uint32_t msgid = ask(user, METHOD_job_submit, &params), queued = ask(user, METHOD_job_submit, &params);
    CHECK(granted(user, METHOD_buffer_release, &(struct msg_buffer_id){device}, NULL));
    CHECK(granted(user, METHOD_buffer_release, &(struct msg_buffer_id){host}, NULL));
    CHECK_CONTAINS(submit_refused(user, &params, SCAND_NOT_FOUND), "no such buffer");
    struct msg_buffer_create_params again = {.size = LIMIT_LARGE_SEGMENT_BYTES, .place = SCAND_PLACE_HOST};
    CHECK_CONTAINS(refused(user, METHOD_buffer_create, &again, SCAND_BUSY), "release buffers");
    CHECK_EQ(rig.work_count, 0);
    rig_complete_all();
    CHECK(done(user, msgid));
    CHECK(done(user, queued));
    CHECK_EQ(rig.work_count, 1);
    rig_run_work();
    CHECK_EQ(rig.manual.allocated_bytes, 0);
    CHECK(granted(user, METHOD_buffer_create, &again, NULL));
    rig_end();
}

/*
 * Draining.
 */

static void draining_waits_for_jobs(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    uint32_t running = submit(user, buffer, 0, 8), queued = submit(user, buffer, 0, 8);
    service_drain(&rig.service);
    CHECK_EQ(rig.drained, 0);
    CHECK_CONTAINS(refusal(user, submit(user, buffer, 0, 1), SCAND_DRAINING),
                   "takes no more jobs, it is about to stop");
    rig_complete(0, 0);
    rig_complete(0, 0);
    CHECK(done(user, running));
    CHECK_EQ(rig.drained, 0);
    rig_complete_all();
    CHECK(done(user, queued));
    CHECK_EQ(rig.drained, 1);
    rig_end();
}

static void draining_ends_with_a_client(void)
{
    uint64_t buffer;
    struct caller *user = begin_with_buffer(&buffer);
    submit(user, buffer, 0, 50);
    submit(user, buffer, 0, 50);
    service_drain(&rig.service);
    user_close(user);
    CHECK_EQ(rig.drained, 0);
    rig_complete_all();
    CHECK_EQ(rig.drained, 1);
    rig_end();
}

static const struct test tests[] = {
    TEST(jobs_run_in_chunks),
    TEST(results_carry_times),
    TEST(jobs_are_counted),
    TEST(jobs_of_nothing),
    TEST(jobs_on_the_device),
    TEST(wrong_shapes),
    TEST(outside_the_buffer),
    TEST(unknown_buffers),
    TEST(buffers_that_are_not_ready),
    TEST(msgids_of_open_jobs),
    TEST(full_queues_are_busy),
    TEST(queues_have_room_for_the_next),
    TEST(full_of_offsets_is_busy),
    TEST(cancel_queued),
    TEST(cancel_running),
    TEST(cancel_then_failure),
    TEST(cancel_unknown),
    TEST(progress_is_told_when_asked_for),
    TEST(progress_does_not_pile_up),
    TEST(ending_is_told_when_asked_for),
    TEST(clients_take_turns),
    TEST(jobs_apart_overlap),
    TEST(jobs_that_touch_wait),
    TEST(readers_of_the_same_overlap),
    TEST(jobs_wait_for_cancelled_ones),
    TEST(device_failures),
    TEST(chunks_that_cannot_start),
    TEST(gone_with_queued_and_running_jobs),
    TEST(gone_in_the_midst_of_turns),
    TEST(gone_with_everything_under_way),
    TEST(released_while_in_use),
    TEST(draining_waits_for_jobs),
    TEST(draining_ends_with_a_client),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

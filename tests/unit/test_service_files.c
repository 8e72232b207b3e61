/* Jobs that read files: what they are given, in which order it is read, and what a file that fails or hangs does. */
#include "tests/unit/files_rig.h"

#include <fcntl.h>

#include "daemon/core/jobs/loads.h"

/*
 * Chunks of jobs that read files.
 */

static void chunks_have_the_rows_of_the_file(void)
{
    begin();
    uint32_t msgid = submit(3, 50);
    uint64_t next = 0;
    CHECK_EQ(rig.manual.out_count, 0); /* nothing has been read */
    while (next < 50) {
        rig_run_work();
        REQUIRE(rig.manual.out_count > 0);
        const struct chunk *chunk = rig.manual.out[0];
        CHECK_EQ(chunk->first, next);
        CHECK(has_rows(chunk, 3));
        CHECK(chunk->spans[OPERAND_INPUT].place == SCAND_PLACE_HOST && !chunk->spans[OPERAND_INPUT].staged);
        CHECK(chunk->spans[OPERAND_OUTPUT].base == anna->client->buffers->span.base);
        next += chunk->count;
        rig_complete(0, 0);
    }
    CHECK(done(msgid));
    CHECK_EQ(rig.service.stats.file_read_bytes, 50 * RIG_ROW_BYTES);
    CHECK_EQ(rig.service.stats.file_bytes, FILE_SIZE);
    end();
}

/* Reads that bring a few bytes, or are interrupted, are read on. */
static void short_reads_go_on(void)
{
    begin();
    read_most = 333;
    fail_reads = EINTR;
    uint32_t msgid = submit(1, CHUNK_ROWS);
    rig_run_work();
    REQUIRE(rig.manual.out_count == 1);
    CHECK(has_rows(rig.manual.out[0], 1));
    rig_complete(0, 0);
    CHECK(done(msgid));
    end();
}

static uint64_t plenty(const char **limit)
{
    *limit = "for this test";
    return UINT64_MAX;
}

/* A row may be as large as what is read for a chunk, and no larger. */
static void the_largest_row(void)
{
    struct msg_tensor result = {.shape = {1, 1}, .shape_count = 2, .strides = {4, 4}, .strides_count = 2};
    begin();
    int large = memfd_create("large", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK_EQ(ftruncate(large, LIMIT_LOAD_BYTES + 4), 0);
    result.buffer = there;
    for (uint64_t more = 0; more < 2; more++) {
        const uint64_t samples = LIMIT_LOAD_BYTES / 4 + more;
        struct msg_job_submit_params params = {.operation = SCAND_OPERATION_REDUCE,
                                               .reduction = SCAND_REDUCTION_SUM,
                                               .axis = 1,
                                               .output = result,
                                               .input = {.buffer = import(anna, large, LIMIT_LOAD_BYTES + 4),
                                                         .shape = {1, samples},
                                                         .shape_count = 2,
                                                         .strides = {4 * (int64_t)samples, 4},
                                                         .strides_count = 2}};
        uint32_t msgid = ask(anna, METHOD_job_submit, &params);
        CHECK_EQ(rig.work_count, 1 - more); /* a reader has it */
        if (more)
            CHECK_CONTAINS(refusal(anna, msgid, SCAND_INVALID), "268435456");
        else
            ask(anna, METHOD_job_cancel, &(struct msg_job_id){.job = msgid});
        rig_run_work();
        while (!is_silent(anna))
            ;
    }
    close(large);
    end();
}

/* What is kept for the next jobs is bounded; what is more is freed by helpers. */
static void only_so_much_is_kept(void)
{
    struct block *blocks[3];
    begin();
    rig.pool.page_budget.available = plenty;
    for (int i = 0; i < 3; i++) {
        blocks[i] = blocks_pop(&rig.service.blocks, LIMIT_KEPT_LOAD_BYTES / 2);
        REQUIRE(blocks[i] != NULL);
        while (block_make(blocks[i], &rig.devices, &rig.pool.page_budget, &(struct error){0}) > 0)
            ;
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(rig.work_count, 0);
        blocks_push(&rig.service, anna->client->user, blocks[i]);
    }
    CHECK_EQ(rig.service.blocks.kept_bytes, LIMIT_KEPT_LOAD_BYTES);
    CHECK_EQ(rig.work_count, 1);
    rig_run_work();
    end();
}

/* Memory that cannot be pinned is staged, as imported memory is. */
static void what_cannot_be_pinned_is_staged(void)
{
    begin();
    manual_fail(&rig.manual, MANUAL_ATTACH, 1, -ENOMEM);
    uint32_t msgid = submit(0, CHUNK_ROWS);
    rig_run_work();
    REQUIRE(rig.manual.out_count == 1);
    CHECK(rig.manual.out[0]->spans[OPERAND_INPUT].staged && has_rows(rig.manual.out[0], 0));
    rig_complete(0, 0);
    CHECK(done(msgid));
    end();
}

static uint64_t no_memory(const char **limit)
{
    *limit = "a test";
    return 0;
}

static void without_memory_the_job_fails(void)
{
    begin();
    rig.pool.page_budget.available = no_memory;
    uint32_t msgid = submit(0, CHUNK_ROWS);
    rig_run_work();
    CHECK_CONTAINS(refusal(anna, msgid, SCAND_NO_MEMORY), "files: 65536 bytes of the memory have no pages yet");
    end();
}

/* Memory is kept for the next job: nothing is pinned anew. */
static void memory_is_used_again(void)
{
    begin();
    const size_t before = rig.manual.attached_count;
    for (int i = 0; i < 3; i++) {
        uint32_t msgid = submit(0, CHUNK_ROWS);
        rig_run_work();
        rig_complete_all();
        CHECK(done(msgid));
        CHECK_EQ(rig.manual.attached_count, before + 1);
        CHECK(rig.service.load_bytes.used == 0 && rig.service.blocks.kept_bytes == KIB(64));
    }
    end();
}

/* Rows of a scan with one coefficient for each sample, of another file. */
static void coefficients_lie_in_files_too(void)
{
    begin();
    int other = make_file(FILE_SIZE);
    struct msg_job_submit_params params = rig_scan(rig_rows(source, 0, 8), rig_rows(there, 0, 8));
    params.op = SCAND_OPERATOR_AFFINE;
    params.coefficients = rig_rows(import(anna, other, FILE_SIZE), 20, 8);
    close(other);
    uint32_t msgid = ask(anna, METHOD_job_submit, &params);
    rig_run_work();
    while (rig.manual.out_count > 0) {
        const struct scan_rows *rows = rig.manual.out[0]->rows;
        const uint64_t first = rig.manual.out[0]->first;
        const unsigned char *bytes = (const unsigned char *)rows->coefficients + first * RIG_ROW_BYTES;
        CHECK(has_rows(rig.manual.out[0], 0));
        CHECK(bytes[5] == byte_at((20 + first) * RIG_ROW_BYTES + 5));
        rig_complete(0, 0);
        rig_run_work();
    }
    CHECK(done(msgid));
    end();
}

static bool has_operand(const struct chunk *chunk, uint32_t number, uint64_t offset)
{
    const struct step_operand *operand = &chunk->operands[number];
    const char *at = operand->origin + (number == OPERAND_INPUT ? chunk->first * RIG_ROW_BYTES : 0);
    return (unsigned char)at[9] == byte_at(offset + 9);
}

/* The index of a stack, whose values are looked at first, and then read again with the rows. */
static void an_index_lies_in_a_file_too(void)
{
    begin();
    struct msg_tensor output = rig_rows(there, 0, 8);
    output.shape[1] = 7;
    struct msg_job_run_params params = {.input = rig_rows(source, 0, 8), .output = output, .axis = 1, .steps_count = 1};
    const struct msg_tensor index = {.buffer = source,
                                     .offset = 4000,
                                     .dtype = SCAND_DTYPE_I32,
                                     .shape = {100},
                                     .shape_count = 1,
                                     .strides = {4},
                                     .strides_count = 1};
    params.steps[0] = (union msg_step){.stack = {.operation = OPERATION_stack, .bins = 7, .index = index}};
    uint32_t msgid = ask(anna, METHOD_job_run, &params);
    CHECK_EQ(rig.manual.out_count, 0);
    rig_run_work();
    REQUIRE(rig.manual.out_count == 1 && rig.manual.out[0]->below == 7);
    CHECK((unsigned char)rig.manual.out[0]->operands[0].origin[9] == byte_at(4009));
    rig_complete(0, 0);
    rig_run_work();
    while (rig.manual.out_count > 0) {
        const struct chunk *chunk = rig.manual.out[0];
        CHECK(chunk->below == 0 && has_operand(chunk, OPERAND_FURTHER, 4000) &&
              has_operand(chunk, OPERAND_INPUT, chunk->first * RIG_ROW_BYTES));
        rig_complete(0, 0);
        rig_run_work();
    }
    CHECK(answered(anna, msgid, METHOD_job_run, NULL));
    end();
}

/* A row that is left off keeps what was read for it. */
static void a_long_row_keeps_its_bytes(void)
{
    begin();
    rig.manual.device.info.slice_us = 1000;
    struct msg_tensor row = {
        .buffer = source, .shape = {2, 3000}, .shape_count = 2, .strides = {12000, 4}, .strides_count = 2};
    struct msg_tensor output = row;
    output.buffer = there;
    struct msg_job_submit_params params = rig_scan(row, output);
    uint32_t msgid = ask(anna, METHOD_job_submit, &params);
    for (uint64_t i = 0; i < 2; i++) {
        rig_run_work();
        REQUIRE(rig.manual.out_count == 1 && rig.manual.out[0]->slice_us == 1000);
        const void *base = rig.manual.out[0]->spans[OPERAND_INPUT].base;
        for (int slice = 0; slice < 3; slice++) {
            manual_leave_off(&rig.manual, 0);
            rig_collect();
            REQUIRE(rig.manual.out_count == 1);
            const unsigned char *bytes = rig.manual.out[0]->rows->input;
            CHECK(rig.manual.out[0]->spans[OPERAND_INPUT].base == base);
            CHECK(bytes[i * 12000 + 77] == byte_at(i * 12000 + 77));
        }
        rig_complete(0, 0);
    }
    CHECK(done(msgid));
    msgid = ask(anna, METHOD_job_submit, &params);
    rig_run_work();
    manual_leave_off(&rig.manual, 0);
    ask(anna, METHOD_job_cancel, &(struct msg_job_id){.job = msgid});
    end();
}

/*
 * Order.
 */

/* Some chunks are read before a device has room for them, but no more than may be. */
static void some_chunks_are_read_ahead(void)
{
    begin();
    submit(0, ROWS);
    CHECK_EQ(rig.work_count, LIMIT_JOB_LOADS);
    rig_run_work();
    CHECK_EQ(rig.manual.out_count, 2);
    CHECK_EQ(rig.service.loads.used, 2 + LIMIT_JOB_LOADS);
    CHECK_EQ(rig.work_count, 0);
    rig_complete(0, 0);
    CHECK_EQ(rig.manual.out_count, 2); /* it was there */
    CHECK_EQ(rig.work_count, 1);
    end();
}

/* Memory that a client writes by one buffer, and reads as a file by another, is read after it is written. */
static void what_an_earlier_job_writes_is_read_after_it(void)
{
    begin();
    struct msg_buffer_import_params params = {FILE_SIZE, 0, 1};
    struct msg_buffer_id id = {0};
    uint32_t msgid = ask_with(anna, METHOD_buffer_import, &params, &file, 1);
    rig_run_work();
    CHECK(answered(anna, msgid, METHOD_buffer_import, &id));
    struct msg_job_submit_params writes = rig_scan(rig_rows(there, 50, 4), rig_rows(id.buffer, 2, 4)),
                                 in_place = rig_scan(rig_rows(source, 2, 4), rig_rows(id.buffer, 2, 4));
    uint32_t first = ask(anna, METHOD_job_submit, &writes), second = submit(0, 4), other = submit(6, 4);
    CHECK_EQ(rig.work_count, 0); /* the other writes where the second is to */
    rig_complete(0, 0);
    CHECK(done(first));
    CHECK_EQ(rig.work_count, 1);
    rig_run_work();
    rig_complete_all();
    CHECK(done(second));
    rig_run_work();
    rig_complete_all();
    CHECK(done(other));
    CHECK_CONTAINS(refused(anna, METHOD_job_submit, &in_place, SCAND_INVALID), "both buffers are the same memory");
    end();
}

static void urgent_jobs_are_read_first(void)
{
    begin();
    submit(0, CHUNK_ROWS);
    struct msg_job_submit_params params = rig_scan(rig_rows(source, 0, 4), rig_rows(there, 40, 4));
    rig.service.loads.most = 2; /* one for a user */
    for (unsigned i = 0; i < 3; i++) {
        params.output.offset = (40 + 4 * i) * RIG_ROW_BYTES;
        params.priority = i == 2 ? SCAND_PRIORITY_HIGH : SCAND_PRIORITY_NORMAL;
        ask(anna, METHOD_job_submit, &params);
    }
    CHECK_EQ(rig.work_count, 1);
    read_one();
    rig_complete(0, 0);
    REQUIRE(rig.work_count == 1);
    CHECK_EQ(((struct load *)rig.work[0])->loads->job->priority, SCAND_PRIORITY_HIGH);
    rig.service.loads.most = LIMIT_LOADS;
    end();
}

/* A file that hangs holds up nobody else, and of its user only what needs the reader's room. */
static void a_read_that_hangs_holds_up_nobody(void)
{
    begin();
    struct caller *bert = user_greet(BERT);
    const uint64_t memory = user_create(bert, FILE_SIZE, SCAND_PLACE_HOST);
    submit(0, ROWS);
    const size_t hung = rig.work_count;
    int other = make_file(FILE_SIZE);
    const struct msg_buffer_import_file_params import_params = {FILE_SIZE, 1};
    uint32_t msgid = ask_with(bert, METHOD_buffer_import_file, &import_params, &other, 1);
    struct msg_buffer_id id = {0};
    close(other);
    REQUIRE(rig.work_count == hung + 1);
    rig_help(rig_pop_work(hung));
    CHECK(answered(bert, msgid, METHOD_buffer_import_file, &id));
    struct msg_job_submit_params params = rig_scan(rig_rows(id.buffer, 0, 4), rig_rows(memory, 0, 4));
    msgid = ask(bert, METHOD_job_submit, &params);
    REQUIRE(rig.work_count == hung + 1);
    while (rig.work_count > hung)
        rig_help(rig_pop_work(hung));
    REQUIRE(rig.manual.out_count == 1 && rig_owner(0) == bert->client);
    rig_complete(0, 0);
    CHECK(answered(bert, msgid, METHOD_job_submit, NULL));
    end();
}

/* Users' readers are bounded, so that others have some. */
static void readers_are_shared_out(void)
{
    begin();
    rig.service.readers.most = rig.readers.most;
    rig.service.readers.each = rig.readers.each;
    for (uint64_t i = 0; i < 8; i++) {
        struct msg_job_submit_params params = rig_scan(rig_rows(source, 0, 12), rig_rows(there, 12 * i, 12));
        ask(anna, METHOD_job_submit, &params);
    }
    CHECK_EQ(rig.work_count, LIMIT_USER_READERS);
    CHECK_EQ(rig.service.loads.used, 24);
    CHECK_EQ(rig.service.readers.out, LIMIT_USER_READERS);
    end();
}

/* Urgent jobs, for which is read before others, wait for their user's room like these. */
static void a_user_has_so_many_loads(void)
{
    begin();
    const uint64_t more = user_create(anna, FILE_SIZE, SCAND_PLACE_HOST);
    for (uint64_t i = 0; i < LIMIT_USER_FED + 2; i++) {
        const uint64_t rows = LIMIT_JOB_LOADS * CHUNK_ROWS;
        struct msg_job_submit_params params =
            rig_scan(rig_rows(source, 0, rows), rig_rows(i % 2 ? more : there, i / 2 * rows, rows));
        params.priority = i < LIMIT_USER_FED ? SCAND_PRIORITY_NORMAL : SCAND_PRIORITY_HIGH;
        ask(anna, METHOD_job_submit, &params);
    }
    CHECK_EQ(rig.service.loads.used, LIMIT_USER_LOADS);
    end();
}

/* Of rows that are so long that two of them are more than a user may have in memory, one is read at a time. */
static void a_user_has_so_much_memory_for_loads(void)
{
    enum { LONG = 3 };
    const uint64_t samples = LIMIT_USER_LOAD_BYTES / 4 / 2 + 1;
    begin();
    int large = memfd_create("large", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK_EQ(ftruncate(large, (off_t)(LONG * samples * 4)), 0);
    struct msg_job_submit_params params = {
        .operation = SCAND_OPERATION_REDUCE,
        .reduction = SCAND_REDUCTION_SUM,
        .axis = 1,
        .output = {.buffer = there, .shape = {LONG, 1}, .shape_count = 2, .strides = {4, 4}, .strides_count = 2},
        .input = {.buffer = import(anna, large, LONG * samples * 4),
                  .shape = {LONG, samples},
                  .shape_count = 2,
                  .strides = {4 * (int64_t)samples, 4},
                  .strides_count = 2}};
    uint32_t msgid = ask(anna, METHOD_job_submit, &params);
    CHECK_EQ(rig.service.loads.used, 1);
    ask(anna, METHOD_job_cancel, &(struct msg_job_id){.job = msgid});
    rig_run_work();
    while (!is_silent(anna))
        ;
    close(large);
    end();
}

static void loads_and_memory_are_shared_out(void)
{
    begin();
    for (uint64_t i = 0; i < 20; i++) {
        struct msg_job_submit_params params = rig_scan(rig_rows(source, 0, 4), rig_rows(there, 4 * i, 4));
        ask(anna, METHOD_job_submit, &params);
    }
    CHECK_EQ(rig.service.loads.used, LIMIT_USER_FED); /* a load for each */
    while (rig.service.stats.jobs_open > 0) {
        rig_run_work();
        rig_complete_all();
    }
    rig.service.loads.most = 6;
    submit(0, ROWS);
    CHECK_EQ(rig.service.loads.used, 3);
    user_close(anna);
    rig_run_work();
    rig.service.loads.most = LIMIT_LOADS;
    anna = user_greet(ANNA);
    source = import(anna, file, FILE_SIZE);
    there = user_create(anna, FILE_SIZE, SCAND_PLACE_HOST);
    rig.service.load_bytes.most = 3 * KIB(64); /* half of it is a block */
    submit(0, ROWS);
    CHECK_EQ(rig.service.loads.used, 1);
    rig.service.load_bytes.most = LIMIT_ALL_LOAD_BYTES;
    end();
}

/*
 * Files that are not what they were.
 */

static void a_file_that_ends_early_fails_its_job_alone(void)
{
    begin();
    struct msg_job_submit_params params = rig_scan(rig_rows(there, 50, 4), rig_rows(there, 50, 4));
    uint32_t other = ask(anna, METHOD_job_submit, &params), msgid = submit(0, 48);
    CHECK_EQ(ftruncate(file, 5 * RIG_ROW_BYTES + 12), 0);
    rig_run_work();
    CHECK_EQ(rig.manual.out_count, 2); /* the other one, and the rows that there are */
    rig_complete_all();
    CHECK(done(other));
    CHECK_CONTAINS(refusal(anna, msgid, SCAND_DESCRIPTOR),
                   "job.submit: the file of buffer 1 ended at byte 2012, and had 40000 bytes when it was imported; the "
                   "output is incomplete: import the file again");
    msgid = submit(0, 6);
    rig_run_work();
    rig_complete_all();
    CHECK_CONTAINS(refusal(anna, msgid, SCAND_DESCRIPTOR), "ended at byte 2012");
    msgid = submit(0, 4); /* which are there */
    rig_run_work();
    rig_complete_all();
    CHECK(done(msgid));
    end();
}

static void a_file_that_cannot_be_read_fails_its_job(void)
{
    begin();
    fail_reads = EIO;
    uint32_t msgid = submit(0, 4);
    rig_run_work();
    CHECK_CONTAINS(refusal(anna, msgid, SCAND_DESCRIPTOR),
                   "the file of buffer 1 cannot be read at byte 0: Input/output error");
    fail_reads = 0;
    msgid = submit(0, 4);
    rig_run_work();
    rig_complete_all();
    CHECK(done(msgid));
    end();
}

/* Each job reads the file anew, also bytes that an earlier job has read. */
static void each_job_reads_anew(void)
{
    begin();
    for (int i = 0; i < 2; i++) {
        uint32_t msgid = submit(0, 4);
        rig_run_work();
        REQUIRE(rig.manual.out_count == 1);
        const unsigned char *bytes = rig.manual.out[0]->rows->input;
        CHECK_EQ(bytes[17], i == 0 ? byte_at(17) : 99);
        rig_complete(0, 0);
        CHECK(done(msgid));
        CHECK_EQ(pwrite(file, "\143", 1, 17), 1);
    }
    end();
}

/*
 * Ends.
 */

static void a_job_is_cancelled_while_it_is_read(void)
{
    begin();
    uint32_t msgid = submit(0, ROWS);
    struct work *work = rig_pop_work(0);
    ask(anna, METHOD_job_cancel, &(struct msg_job_id){.job = msgid});
    CHECK_CONTAINS(refusal(anna, msgid, SCAND_CANCELLED), "cancelled"); /* at once, whatever the reader does */
    rig_help(work);
    rig_run_work();
    CHECK_EQ(rig.manual.started, 0);
    CHECK_EQ(rig.service.loads.used, 0);
    end();
}

static void a_buffer_is_released_while_it_is_read(void)
{
    begin();
    uint32_t msgid = submit(0, 4);
    CHECK(granted(anna, METHOD_buffer_release, &(struct msg_buffer_id){source}, NULL));
    rig_run_work();
    REQUIRE(rig.manual.out_count == 1 && has_rows(rig.manual.out[0], 0));
    rig_complete(0, 0);
    CHECK(done(msgid));
    rig_run_work();
    CHECK_EQ(rig.service.files.used, 0);
    end();
}

static void a_client_goes_meanwhile(void)
{
    for (enum rig_moment moment = RIG_BEFORE; moment <= RIG_AT_THE_END; moment++) {
        begin();
        submit(0, ROWS);
        rig_go_meanwhile(anna, moment);
        end();
        begin();
        import_request(anna, file, 4);
        rig_go_meanwhile(anna, moment);
        end();
    }
}

static void a_deadline_passes_while_it_is_read(void)
{
    begin();
    struct msg_job_submit_params params = rig_scan(rig_rows(source, 0, 4), rig_rows(there, 0, 4));
    params.deadline_ms = 10;
    uint32_t msgid = ask(anna, METHOD_job_submit, &params);
    rig_pass(20000);
    CHECK_CONTAINS(refusal(anna, msgid, SCAND_DEADLINE), "could not start by then");
    end();
}

/* A file system does not answer: the job ends, and memory that the reader has is freed when the read ends. */
static void a_read_that_never_ends_ends_its_job(void)
{
    begin();
    const uint64_t limit_us = (uint64_t)LIMIT_LOAD_MS * 1000;
    uint32_t first = submit(0, 4);
    struct work *hung = rig_pop_work(0);
    rig_pass(limit_us / 2);
    uint32_t second = submit(4, 4); /* which waits for the first, since it writes to the same place */
    rig_pass(limit_us / 2 - 1000);
    CHECK(is_silent(anna));
    rig_pass(1000);
    CHECK_CONTAINS(refusal(anna, first, SCAND_TIMED_OUT),
                   "job.submit: a file that it reads did not give a chunk in 300 s; the output is incomplete: see "
                   "whether its file system answers, and submit it again");
    rig_run_work();
    rig_complete_all();
    CHECK(done(second));
    CHECK_EQ(rig.service.loads.used, 1); /* the reader's */
    rig_help(hung);
    end();
}

/*
 * Descriptors of anything.
 */

/* Files of some program's own file system are closed when that likes: never by the loop or a helper. */
static void readers_close_what_is_no_memory(void)
{
    int ends[2];
    begin();
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    struct msg_buffer_import_params params = {100, 0, 1};
    uint32_t msgid = ask_with(anna, METHOD_buffer_import, &params, ends, 1);
    REQUIRE(rig.work_count == 1 && rig.service.readers.out == 1 && rig.service.helpers.out == 0);
    rig_help(rig_pop_work(0));
    CHECK_CONTAINS(refusal(anna, msgid, SCAND_DESCRIPTOR), "no memfd");
    CHECK(rig.work_count == 1 && rig.service.readers.out == 1 && rig.service.helpers.out == 0);
    rig_run_work();
    params.fds = 2; /* of which one comes, and nobody takes it */
    msgid = ask_with(anna, METHOD_buffer_import, &params, ends, 1);
    CHECK_CONTAINS(refusal(anna, msgid, SCAND_DESCRIPTOR), "announces 2 descriptors, but 1 came");
    CHECK(rig.work_count == 1 && rig.service.readers.out == 1);
    rig_run_work();
    msgid = ask_with(anna, METHOD_buffer_import, &params, &file, 1); /* memory: at once */
    CHECK_CONTAINS(refusal(anna, msgid, SCAND_DESCRIPTOR), "1 came");
    CHECK_EQ(rig.work_count, 0);
    close(ends[0]);
    close(ends[1]);
    end();
}

/* A client that sends more and more descriptors is not read from until they are closed. */
static void what_is_being_closed_is_bounded(void)
{
    int ends[2], many[100];
    begin();
    struct caller *bert = user_greet(BERT);
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    for (size_t i = 0; i < 100; i++)
        many[i] = ends[0];
    struct msg_buffer_import_params params = {100, 0, 101};
    for (int i = 0; i < 6; i++) {
        CHECK(!service_is_clogged(anna->client));
        ask_with(anna, METHOD_buffer_import, &params, many, 100);
    }
    CHECK(service_is_clogged(anna->client) && !anna->over);
    CHECK(service_is_full(&rig.service, ANNA) && !service_is_full(&rig.service, BERT));
    CHECK(granted(bert, METHOD_server_ping, &(struct msg_nothing){}, NULL));
    rig_run_work();
    CHECK(!service_is_clogged(anna->client) && !service_is_full(&rig.service, ANNA));
    close(ends[0]);
    close(ends[1]);
    end();
}

/* The bound on a client's descriptors also holds while helpers have descriptors that are yet to be imported. */
static void what_is_being_imported_is_bounded(void)
{
    int many[100];
    begin();
    for (size_t i = 0; i < 100; i++)
        many[i] = memfd_create("import", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct msg_buffer_import_params params = {100 * 4096, 4096, 100};
    const uint64_t before = anna->client->buffer_count;
    for (int i = 0; i < 6; i++) {
        CHECK(!service_is_clogged(anna->client));
        ask_with(anna, METHOD_buffer_import, &params, many, 100);
    }
    CHECK(service_is_clogged(anna->client) && !anna->over);
    CHECK_EQ(anna->client->buffer_count, before + 6);
    rig_run_work(); /* the files are empty: none is imported */
    CHECK_EQ(anna->client->buffer_count, before);
    CHECK(!service_is_clogged(anna->client) && rig.service.lent_fds.used == 0);
    for (size_t i = 0; i < 100; i++)
        close(many[i]);
    end();
}

/* A refused descriptor does not stay open, and one of memory is refused without waiting for a reader. */
static void refused_files_are_closed(void)
{
    int ends[2];
    begin();
    rig.service.files.most = 2; /* one for a user, which has it */
    const size_t before = descriptors_open();
    for (int i = 0; i < 100; i++)
        CHECK_CONTAINS(refusal(anna, import_request(anna, file, FILE_SIZE), SCAND_QUOTA), "1 files open in buffers");
    CHECK(rig.work_count == 0 && descriptors_open() == before);
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    CHECK_CONTAINS(refusal(anna, import_request(anna, ends[0], 1), SCAND_QUOTA), "1 files open in buffers");
    CHECK(rig.work_count == 1 && rig.service.readers.out == 1 && rig.service.lent_fds.used == 1);
    rig_run_work();
    CHECK_EQ(rig.service.lent_fds.used, 0);
    close(ends[0]);
    close(ends[1]);
    end();
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(chunks_have_the_rows_of_the_file),
        TEST(short_reads_go_on),
        TEST(the_largest_row),
        TEST(only_so_much_is_kept),
        TEST(what_cannot_be_pinned_is_staged),
        TEST(without_memory_the_job_fails),
        TEST(memory_is_used_again),
        TEST(coefficients_lie_in_files_too),
        TEST(an_index_lies_in_a_file_too),
        TEST(a_long_row_keeps_its_bytes),
        TEST(some_chunks_are_read_ahead),
        TEST(what_an_earlier_job_writes_is_read_after_it),
        TEST(urgent_jobs_are_read_first),
        TEST(a_read_that_hangs_holds_up_nobody),
        TEST(readers_are_shared_out),
        TEST(a_user_has_so_many_loads),
        TEST(a_user_has_so_much_memory_for_loads),
        TEST(loads_and_memory_are_shared_out),
        TEST(a_file_that_ends_early_fails_its_job_alone),
        TEST(a_file_that_cannot_be_read_fails_its_job),
        TEST(each_job_reads_anew),
        TEST(a_job_is_cancelled_while_it_is_read),
        TEST(a_buffer_is_released_while_it_is_read),
        TEST(a_client_goes_meanwhile),
        TEST(a_deadline_passes_while_it_is_read),
        TEST(a_read_that_never_ends_ends_its_job),
        TEST(readers_close_what_is_no_memory),
        TEST(what_is_being_closed_is_bounded),
        TEST(what_is_being_imported_is_bounded),
        TEST(refused_files_are_closed),
        TEST_END,
    };
    return test_main(argc, argv, tests);
}

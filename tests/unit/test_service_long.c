/* Long rows through the service: other users' jobs between their slices, cancelling, a client that goes, draining. */
#include "tests/unit/service_rig.h"

#define ANNA ((uid_t)1000)
#define BERT ((uid_t)1001)

/* A device that leaves long rows off: of more than twice the 400 bytes of a chunk, here of 1000 samples. */
static struct caller *begin(unsigned slots, uint64_t *buffer)
{
    rig_begin_with(1, slots, 1);
    rig.manual.device.info.slice_us = 1000;
    struct caller *user = user_greet(ANNA);
    *buffer = user_create(user, 40000, SCAND_PLACE_HOST);
    return user;
}

static uint32_t submit(struct caller *user, uint64_t buffer, uint64_t length)
{
    const struct msg_tensor row = {
        .buffer = buffer, .shape = {length}, .shape_count = 1, .strides = {4}, .strides_count = 1};
    const struct msg_job_submit_params params = {.input = row, .output = row, .passes_count = 1};
    return ask(user, METHOD_job_submit, &params);
}

static bool done(struct caller *user, uint32_t msgid)
{
    return answered(user, msgid, METHOD_job_submit, NULL);
}

static void leave_off(size_t index)
{
    manual_leave_off(&rig.manual, index);
    rig_collect();
}

/* A row of two chunks' bytes is none that is left off; a longer one is. */
static void rows_of_more_than_two_chunks(void)
{
    uint64_t buffer;
    struct caller *user = begin(2, &buffer);
    for (uint64_t length = 200; length <= 201; length++) {
        uint32_t msgid = submit(user, buffer, length);
        CHECK_EQ(rig.manual.out[0]->slice_us, length > 200 ? 1000 : 0);
        rig_complete(0, 0);
        CHECK(done(user, msgid));
    }
    rig_end();
}

/* All jobs of another user end between slices; rows and event log count the row once. */
static void others_run_between_slices(void)
{
    uint64_t buffer, small;
    struct caller *anna = begin(2, &buffer), *bert = user_greet(BERT);
    small = user_create(bert, 400, SCAND_PLACE_HOST);
    uint32_t msgid = submit(anna, buffer, 1000);
    for (int i = 0; i < 20; i++) {
        uint32_t other = submit(bert, small, 100);
        CHECK_EQ(rig.manual.out_count, 2);
        CHECK(rig_owner(0) == anna->client && rig.manual.out[0]->slice_us == 1000);
        CHECK(rig_owner(1) == bert->client && rig.manual.out[1]->slice_us == 0);
        rig_complete(1, 0);
        CHECK(done(bert, other));
        leave_off(0);
        CHECK_EQ(rig.manual.out_count, 1); /* it goes on at once, as nobody else wants the device */
        CHECK_EQ(rig.manual.rests, 0);
    }
    CHECK(is_silent(anna));
    CHECK_EQ(rig.service.stats.rows_scanned, 20);
    rig_complete(0, 0);
    CHECK_EQ(rig.service.stats.rows_scanned, 21);
    CHECK(done(anna, msgid));
    rig_end();
}

/* The device is told; what it has left off by then is let go of. */
static void a_long_row_is_cancelled(void)
{
    uint64_t buffer;
    struct caller *user = begin(2, &buffer);
    uint32_t msgid = submit(user, buffer, 1000);
    leave_off(0);
    CHECK(!chunk_is_dropped(rig.manual.out[0]));
    ask(user, METHOD_job_cancel, &(struct msg_job_id){.job = msgid});
    CHECK(chunk_is_dropped(rig.manual.out[0]));
    leave_off(0);
    CHECK_EQ(rig.manual.rests, 0);
    CHECK_EQ(rig.manual.out_count, 0);
    CHECK_EQ(rig.service.stats.jobs_cancelled, 1);
    rig_end();
}

/* A long row is cancelled at once between two slices, while others have the device. */
static void a_long_row_is_cancelled_at_rest(void)
{
    uint64_t buffer, other;
    struct caller *anna = begin(1, &buffer), *bert = user_greet(BERT);
    other = user_create(bert, 4000, SCAND_PLACE_HOST);
    uint32_t msgid = submit(anna, buffer, 1000);
    submit(bert, other, 100);
    leave_off(0);
    CHECK(rig.manual.rests == 1 && rig.manual.out_count == 1 && rig_owner(0) == bert->client);
    ask(anna, METHOD_job_cancel, &(struct msg_job_id){.job = msgid});
    CHECK_EQ(rig.manual.rests, 0);
    CHECK_EQ(rig.service.stats.jobs_cancelled, 1);
    rig_end();
}

/* The rows of a client that has gone stay with a device for a slice at most, and a drain waits for no more. */
static void a_client_goes(void)
{
    uint64_t buffer;
    struct caller *user = begin(2, &buffer);
    submit(user, buffer, 1000);
    submit(user, buffer, 1000);
    user_close(user);
    CHECK_EQ(rig.service.stats.jobs_open, 1);
    CHECK(chunk_is_dropped(rig.manual.out[0]));
    service_drain(&rig.service);
    CHECK_EQ(rig.drained, 0);
    rig_complete(0, -ECANCELED);
    CHECK_EQ(rig.service.stats.jobs_open, 0);
    CHECK_EQ(rig.drained, 1);
    rig_end();
}

/* A short chunk is told so, too. */
static void any_chunk_is_dropped(void)
{
    uint64_t buffer;
    struct caller *user = begin(2, &buffer);
    uint32_t msgid = submit(user, buffer, 100);
    ask(user, METHOD_job_cancel, &(struct msg_job_id){.job = msgid});
    CHECK(chunk_is_dropped(rig.manual.out[0]));
    rig_complete(0, -ECANCELED);
    CHECK_EQ(rig.service.stats.jobs_cancelled, 1);
    CHECK_EQ(rig.service.stats.jobs_failed, 0);
    rig_end();
}

static const struct test tests[] = {
    TEST(rows_of_more_than_two_chunks),
    TEST(others_run_between_slices),
    TEST(a_long_row_is_cancelled),
    TEST(a_long_row_is_cancelled_at_rest),
    TEST(a_client_goes),
    TEST(any_chunk_is_dropped),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

/* Memory that a client has as two buffers: the order of jobs and the check of overlaps go by memory, not by buffers. */
#include "tests/unit/service_rig.h"

#include "protocol/memory.h"

#define ANNA ((uid_t)1000)
#define SIZE 65536

static struct msg_tensor row_at(uint64_t buffer, uint64_t offset)
{
    struct msg_tensor row = rig_rows(buffer, 0, 1);
    row.offset = offset;
    return row;
}

static uint32_t import_asked(struct caller *user, uint64_t size_bytes, uint64_t segment, const int *fds, size_t count)
{
    struct msg_buffer_import_params params = {size_bytes, segment, count};
    uint32_t msgid = ask_with(user, METHOD_buffer_import, &params, fds, count);
    rig_run_work();
    return msgid;
}

static uint64_t import(struct caller *user, uint64_t size_bytes, uint64_t segment, const int *fds, size_t count)
{
    struct msg_buffer_id id = {0};
    CHECK(answered(user, import_asked(user, size_bytes, segment, fds, count), METHOD_buffer_import, &id));
    return id.buffer;
}

/* One memfd imported twice: a job on one of the buffers waits for the job on the other, be it more urgent. */
static void imported_twice(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    int fd = memory_create(SIZE);
    uint64_t one = import(user, SIZE, 0, &fd, 1), two = import(user, SIZE, 0, &fd, 1);
    struct msg_job_submit_params first = rig_scan(row_at(one, 0), row_at(one, 0)), second = first, apart = first;
    second.input = second.output = row_at(two, RIG_ROW_BYTES - 4);
    second.priority = SCAND_PRIORITY_HIGH;
    apart.input = apart.output = row_at(two, RIG_ROW_BYTES);
    ask(user, METHOD_job_submit, &first);
    CHECK_EQ(rig.manual.out_count, 1);
    uint32_t later = ask(user, METHOD_job_submit, &second);
    CHECK_EQ(rig.manual.out_count, 1);
    rig_complete(0, 0);
    CHECK(answered(user, later - 1, METHOD_job_submit, NULL));
    CHECK_EQ(rig.manual.out_count, 1);
    rig_complete(0, 0);
    CHECK(answered(user, later, METHOD_job_submit, NULL));
    ask(user, METHOD_job_submit, &first);
    ask(user, METHOD_job_submit, &apart);
    CHECK_EQ(rig.manual.out_count, 2);
    close(fd);
    rig_end();
}

static void input_and_output_are_one_memory(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    int fd = memory_create(SIZE);
    uint64_t one = import(user, SIZE, 0, &fd, 1), two = import(user, SIZE, 0, &fd, 1);
    struct msg_job_submit_params params = rig_scan(row_at(one, 0), row_at(two, 396));
    CHECK_CONTAINS(refused(user, METHOD_job_submit, &params, SCAND_INVALID),
                   "\"input\" (bytes 0 to 400 of buffer 1) and \"output\" (bytes 396 to 796 of buffer 2) overlap: both "
                   "buffers are the same memory");
    params.output = row_at(two, 0);
    CHECK_CONTAINS(refused(user, METHOD_job_submit, &params, SCAND_INVALID), "name one buffer in both");
    params.output = row_at(two, 400);
    ask(user, METHOD_job_submit, &params);
    CHECK_EQ(rig.manual.out_count, 1);
    close(fd);
    rig_end();
}

/* Descriptors in another order, and fewer of them: bytes are compared in their files. */
static void several_descriptors(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    int fds[3], turned[2];
    for (int i = 0; i < 3; i++)
        fds[i] = memory_create(8192);
    turned[0] = fds[2], turned[1] = fds[0];
    uint64_t one = import(user, 3 * 8192, 8192, fds, 3), two = import(user, 2 * 8192, 8192, turned, 2);
    struct msg_job_submit_params params = rig_scan(row_at(one, 0), row_at(two, 0));
    ask(user, METHOD_job_submit, &params); /* the first file, and the third */
    CHECK_EQ(rig.manual.out_count, 1);
    rig_complete_all();
    CHECK(answered(user, user->last_msgid, METHOD_job_submit, NULL));
    params.input = row_at(one, 2 * 8192);
    CHECK_CONTAINS(refused(user, METHOD_job_submit, &params, SCAND_INVALID), "the same memory");
    params = rig_scan(row_at(one, 300), row_at(two, 8192 + 500));
    CHECK_CONTAINS(refused(user, METHOD_job_submit, &params, SCAND_INVALID), "the same memory");
    params.input = row_at(one, 8192 + 500); /* a file that the other does not have */
    ask(user, METHOD_job_submit, &params);
    CHECK_EQ(rig.manual.out_count, 1);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    rig_end();
}

/* The order of jobs takes them for one memory: comparing many descriptors with many for each two jobs would take
 * others' time. */
static void several_descriptors_wait_as_one(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    int fds[2] = {memory_create(8192), memory_create(8192)}, turned[2] = {fds[1], fds[0]};
    uint64_t one = import(user, 2 * 8192, 8192, fds, 2), two = import(user, 2 * 8192, 8192, turned, 2);
    struct msg_job_submit_params first = rig_scan(row_at(one, 0), row_at(one, 0)), second = first;
    second.input = second.output = row_at(two, 0);
    ask(user, METHOD_job_submit, &first);
    uint32_t later = ask(user, METHOD_job_submit, &second);
    CHECK_EQ(rig.manual.out_count, 1);
    rig_complete(0, 0);
    CHECK(answered(user, later - 1, METHOD_job_submit, NULL));
    CHECK_EQ(rig.manual.out_count, 1);
    rig_complete(0, 0);
    CHECK(answered(user, later, METHOD_job_submit, NULL));
    close(fds[0]), close(fds[1]);
    rig_end();
}

/* Jobs go on with memory that their client has released. */
static void imported_again_after_its_release(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    int fd = memory_create(SIZE);
    uint64_t one = import(user, SIZE, 0, &fd, 1);
    struct msg_job_submit_params first = rig_scan(row_at(one, 0), row_at(one, 0)), second = first;
    uint32_t earlier = ask(user, METHOD_job_submit, &first);
    CHECK(granted(user, METHOD_buffer_release, &(struct msg_buffer_id){one}, NULL));
    second.input = second.output = row_at(import(user, SIZE, 0, &fd, 1), 0);
    uint32_t later = ask(user, METHOD_job_submit, &second);
    CHECK_EQ(rig.manual.out_count, 1);
    rig_complete(0, 0);
    CHECK(answered(user, earlier, METHOD_job_submit, NULL));
    CHECK_EQ(rig.manual.out_count, 1);
    rig_complete(0, 0);
    CHECK(answered(user, later, METHOD_job_submit, NULL));
    close(fd);
    rig_end();
}

static void the_same_descriptor_in_one_import(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    int fds[3] = {memory_create(8192), memory_create(8192), -1};
    fds[2] = fds[0];
    CHECK_CONTAINS(refusal(user, import_asked(user, 3 * 8192, 8192, fds, 3), SCAND_INVALID),
                   "the descriptors of places 0 and 2 are the same memfd; send each memfd once");
    CHECK_EQ(user->client->buffer_count, 0);
    close(fds[0]), close(fds[1]);
    rig_end();
}

/* Memory of the pool can be imported as well. */
static void a_pool_buffer_that_is_imported(void)
{
    for (int earlier = 0; earlier < 2; earlier++) {
        rig_begin();
        struct caller *user = user_greet(ANNA);
        struct msg_buffer_create_params create = {.size = 1000, .place = SCAND_PLACE_HOST};
        struct msg_buffer_create_result made = {0};
        ask(user, METHOD_buffer_create, &create);
        struct answer answer = next_answer(user, &msg_buffer_create_result_type, &made);
        REQUIRE(answer.fd_count == 1);
        uint64_t imported = import(user, 1000, 0, answer.fds, 1);
        close(answer.fds[0]);
        if (earlier) { /* of what the pool gives again */
            CHECK(granted(user, METHOD_buffer_release, &(struct msg_buffer_id){made.buffer}, NULL));
            made.buffer = user_create(user, 1000, SCAND_PLACE_HOST);
        }
        struct msg_job_submit_params params = rig_scan(row_at(made.buffer, 0), row_at(imported, 200));
        CHECK_CONTAINS(refused(user, METHOD_job_submit, &params, SCAND_INVALID), "the same memory");
        rig_end();
    }
}

static const struct test tests[] = {
    TEST(imported_twice),
    TEST(input_and_output_are_one_memory),
    TEST(several_descriptors),
    TEST(several_descriptors_wait_as_one),
    TEST(imported_again_after_its_release),
    TEST(the_same_descriptor_in_one_import),
    TEST(a_pool_buffer_that_is_imported),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

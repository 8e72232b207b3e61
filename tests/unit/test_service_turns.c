/* Helpers' time between users: what one of them imports, releases or leaves never holds up another's small buffer by
 * more than a unit. */
#include "tests/unit/service_rig.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "protocol/memory.h"

#define ANNA ((uid_t)1000)
#define BERT ((uid_t)1001)
#define CARL ((uid_t)1002)

#define LARGE MIB(32) /* eight units of pages */

static uint64_t available_bytes;

static uint64_t available(const char **limit)
{
    *limit = "for this test";
    return available_bytes;
}

static void begin(void)
{
    rig_begin();
    rig.service.helpers.most = LIMIT_HELPERS;
    rig.service.readers.each = LIMIT_USER_READERS;
    rig.pool.page_budget.available = available;
    available_bytes = UINT64_MAX;
}

static int sparse_memfd(uint64_t size_bytes)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(fd >= 0 && ftruncate(fd, (off_t)size_bytes) == 0);
    return fd;
}

static uint32_t import_asked(struct caller *user, uint64_t size_bytes)
{
    int fd = sparse_memfd(size_bytes);
    uint32_t msgid = ask_with(user, METHOD_buffer_import, &(struct msg_buffer_import_params){size_bytes, 0, 1}, &fd, 1);
    close(fd);
    return msgid;
}

/* A buffer that a helper has to make, as it was another user's. */
static uint32_t create_asked(struct caller *user)
{
    return ask(user, METHOD_buffer_create, &(struct msg_buffer_create_params){.size = 4096, .place = SCAND_PLACE_HOST});
}

/* Each of the small segments that were made is somebody's. */
static void use_what_is_ready(struct caller *user)
{
    for (uint64_t i = 0; i < RIG_READY; i++)
        user_create(user, 4096, SCAND_PLACE_HOST);
    for (uint64_t i = 1; i <= RIG_READY; i++)
        CHECK(granted(user, METHOD_buffer_release, &(struct msg_buffer_id){i}, NULL));
}

/* Units that end before that user's answer comes, oldest first; at most 1000. */
static unsigned units_until_answered(struct caller *user, uint32_t msgid)
{
    unsigned units = 0;
    struct answer answer = {0};
    for (; units < 1000 && rig.work_count > 0 && !answer.arrived; units++) {
        rig_help(rig_pop_work(0));
        answer = next_answer(user, NULL, NULL);
    }
    CHECK(answer.arrived && !answer.failed && answer.msgid == msgid);
    for (size_t i = 0; i < answer.fd_count; i++)
        close(answer.fds[i]);
    return units;
}

/* Readers give memory its pages, some of a user's at a time, since its client may hold that up for ever. */
static void large_imports_of_one_user(void)
{
    begin();
    struct caller *anna = user_greet(ANNA), *bert = user_greet(BERT);
    use_what_is_ready(anna);
    for (int i = 0; i < LIMIT_USER_READERS + 1; i++)
        import_asked(anna, LARGE);
    CHECK_EQ(rig.work_count, LIMIT_USER_READERS);
    CHECK(rig.service.readers.out == LIMIT_USER_READERS && rig.service.helpers.out == 0);
    uint32_t msgid = create_asked(bert);
    REQUIRE(rig.work_count == LIMIT_USER_READERS + 1); /* a thread has it at once */
    rig_help(rig_pop_work(LIMIT_USER_READERS));
    CHECK(answered(bert, msgid, METHOD_buffer_create, NULL));
    rig_end();
}

/* Helpers do the rest, and all of it where the memory is complete, whatever becomes of it meanwhile. */
static void complete_imports(void)
{
    begin();
    struct caller *anna = user_greet(ANNA);
    int fd = sparse_memfd(LIMIT_UNIT_BYTES / 2);
    struct msg_buffer_import_params params = {LIMIT_UNIT_BYTES / 2, 0, 1};
    uint32_t msgid = ask_with(anna, METHOD_buffer_import, &params, &fd, 1);
    CHECK(rig.work_count == 1 && rig.service.readers.out == 1);
    rig_help(rig_pop_work(0));
    REQUIRE(rig.work_count == 1 && rig.service.readers.out == 0 && rig.service.helpers.out == 1);
    rig_help(rig_pop_work(0));
    CHECK(answered(anna, msgid, METHOD_buffer_import, NULL));
    msgid = ask_with(anna, METHOD_buffer_import, &params, &fd, 1);
    CHECK(rig.work_count == 1 && rig.service.readers.out == 0 && rig.service.helpers.out == 1);
    CHECK_EQ(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
    rig_help(rig_pop_work(0));
    CHECK(answered(anna, msgid, METHOD_buffer_import, NULL));
    CHECK(!memory_is_complete(fd, 4096)); /* a helper has made no page */
    close(fd);
    rig_end();
}

static void large_imports_of_several_users(void)
{
    begin();
    struct caller *anna = user_greet(ANNA), *carl = user_greet(CARL), *bert = user_greet(BERT);
    use_what_is_ready(anna);
    for (int i = 0; i < 4; i++)
        import_asked(anna, LARGE);
    for (int i = 0; i < 4; i++)
        import_asked(carl, LARGE);
    CHECK_EQ(rig.service.readers.out, 8);
    CHECK(units_until_answered(bert, create_asked(bert)) <= 8 + 1);
    rig_run_work();
    CHECK_EQ(anna->client->buffer_count + carl->client->buffer_count, 8);
    rig_end();
}

/* No unit makes more than LIMIT_UNIT_BYTES of pages. */
static void a_large_import_is_cut(void)
{
    struct stat status;
    begin();
    struct caller *anna = user_greet(ANNA);
    int fd = sparse_memfd(LARGE);
    ask_with(anna, METHOD_buffer_import, &(struct msg_buffer_import_params){LARGE, 0, 1}, &fd, 1);
    uint64_t before = 0;
    unsigned units = 0;
    while (!anna->client->buffers) {
        REQUIRE(rig.work_count == 1);
        rig_help(rig_pop_work(0));
        CHECK_EQ(fstat(fd, &status), 0);
        CHECK((uint64_t)status.st_blocks * 512 - before <= LIMIT_UNIT_BYTES);
        before = (uint64_t)status.st_blocks * 512;
        units++;
    }
    CHECK_EQ(before, LARGE);
    CHECK_EQ(units, LARGE / LIMIT_UNIT_BYTES + 2); /* the last ones find that it is complete, and map it */
    close(fd);
    rig_end();
}

/* The release of a large import is cut into pieces. */
static void a_large_release_is_cut(void)
{
    begin();
    struct caller *anna = user_greet(ANNA), *bert = user_greet(BERT);
    use_what_is_ready(anna);
    import_asked(anna, 2 * PIN_UNIT_BYTES + 4096);
    rig_run_work();
    uint64_t pinned = rig.manual.attached_bytes;
    user_close(anna);
    REQUIRE(rig.work_count == 1);
    rig_help(rig_pop_work(0));
    CHECK_EQ(rig.manual.attached_bytes, pinned - PIN_UNIT_BYTES);
    uint32_t msgid = create_asked(bert);
    REQUIRE(rig.work_count == 2);
    rig_help(rig_pop_work(1));
    CHECK(answered(bert, msgid, METHOD_buffer_create, NULL));
    rig_end();
}

/* The import of a client that leaves is not finished. */
static void gone_while_pages_are_made(void)
{
    struct stat status;
    begin();
    struct caller *anna = user_greet(ANNA);
    int fd = sparse_memfd(LARGE);
    ask_with(anna, METHOD_buffer_import, &(struct msg_buffer_import_params){LARGE, 0, 1}, &fd, 1);
    rig_help(rig_pop_work(0));
    user_close(anna);
    rig_run_work();
    CHECK_EQ(fstat(fd, &status), 0);
    CHECK_EQ((uint64_t)status.st_blocks * 512, 2 * LIMIT_UNIT_BYTES);
    CHECK_EQ(rig.pool.page_budget.promised_bytes, 0);
    close(fd);
    rig_end();
}

static const char *import_refused(struct caller *user, uint64_t size_bytes)
{
    uint32_t msgid = import_asked(user, size_bytes);
    rig_run_work();
    return refusal(user, msgid, SCAND_NO_MEMORY);
}

/* Sparse memory is given no page when there is not enough for all of it. */
static void more_than_there_is(void)
{
    begin();
    struct caller *anna = user_greet(ANNA);
    available_bytes = LARGE - 1;
    CHECK_CONTAINS(import_refused(anna, LARGE),
                   "buffer.import: 33554432 bytes of the memory have no pages yet, and 33554431 can be made (for this "
                   "test), of which others were promised 0; import less");
    CHECK_CONTAINS(import_refused(anna, GIB(256)), "274877906944 bytes of the memory have no pages yet");
    CHECK_EQ(rig.pool.page_budget.promised_bytes, 0);
    CHECK_EQ(anna->client->buffer_count, 0);
    rig_end();
}

/* As much as is missing is enough, however little that is. */
static void as_much_as_there_is(void)
{
    begin();
    struct caller *anna = user_greet(ANNA);
    available_bytes = 4096;
    uint32_t msgid = import_asked(anna, 4096);
    rig_run_work();
    CHECK(answered(anna, msgid, METHOD_buffer_import, NULL));
    rig_end();
}

/* What a memfd has when it comes is what its user is charged for: it has not grown when it is sealed. */
static void a_memfd_that_grows_meanwhile(void)
{
    begin();
    struct caller *anna = user_greet(ANNA);
    int fd = sparse_memfd(4096);
    uint32_t msgid =
        ask_with(anna, METHOD_buffer_import, &(struct msg_buffer_import_params){.size = 4096, .fds = 1}, &fd, 1);
    CHECK_EQ(ftruncate(fd, 8192), 0);
    rig_run_work();
    CHECK_CONTAINS(refusal(anna, msgid, SCAND_DESCRIPTOR),
                   "buffer.import: the memfds have 8192 bytes, and had 4096 when they came; import them when they have "
                   "their size");
    CHECK_EQ(anna->client->buffer_count, 0);
    close(fd);
    rig_end();
}

/* Two imports that fit alone, but not together, cannot both begin. */
static void promised_to_another(void)
{
    begin();
    struct caller *anna = user_greet(ANNA), *bert = user_greet(BERT);
    available_bytes = LARGE + LARGE / 2;
    uint32_t msgid = import_asked(anna, LARGE);
    rig_help(rig_pop_work(0));
    available_bytes -= LIMIT_UNIT_BYTES;
    CHECK_EQ(rig.pool.page_budget.promised_bytes, LARGE - LIMIT_UNIT_BYTES);
    uint32_t other = import_asked(bert, LARGE);
    rig_help(rig_pop_work(1));
    CHECK_CONTAINS(refusal(bert, other, SCAND_NO_MEMORY), "of which others were promised 29360128");
    rig_run_work();
    CHECK(answered(anna, msgid, METHOD_buffer_import, NULL));
    CHECK_EQ(rig.pool.page_budget.promised_bytes, 0);
    rig_end();
}

/* Somebody else has taken the memory meanwhile. */
static void memory_that_goes_meanwhile(void)
{
    begin();
    struct caller *anna = user_greet(ANNA);
    available_bytes = LARGE;
    uint32_t msgid = import_asked(anna, LARGE);
    rig_help(rig_pop_work(0));
    available_bytes = LIMIT_UNIT_BYTES - 1;
    rig_run_work();
    CHECK_CONTAINS(refusal(anna, msgid, SCAND_NO_MEMORY), "4194303 can be made");
    CHECK_EQ(rig.pool.page_budget.promised_bytes, 0);
    rig_end();
}

/*
 * Memory maps and descriptors.
 */

static uint32_t import_many_asked(struct caller *user, uint64_t count)
{
    int fds[LIMIT_MESSAGE_FDS] = {0};
    for (uint64_t i = 0; i < count; i++)
        fds[i] = sparse_memfd(4096);
    uint32_t msgid =
        ask_with(user, METHOD_buffer_import, &(struct msg_buffer_import_params){count * 4096, 4096, count}, fds, count);
    for (uint64_t i = 0; i < count; i++)
        close(fds[i]);
    rig_run_work();
    return msgid;
}

/* However many small memfds a user imports, others have maps for theirs. */
static void imports_take_maps(void)
{
    begin();
    struct caller *anna = user_greet(ANNA), *same = user_greet(ANNA), *bert = user_greet(BERT);
    service_limit_maps(&rig.service, LIMIT_MAPS_RESERVE + pool_segments_most(&rig.pool) + 64);
    CHECK(answered(anna, import_many_asked(anna, 26), METHOD_buffer_import, NULL));
    CHECK_CONTAINS(
        refusal(same, import_many_asked(same, 7), SCAND_QUOTA),
        "buffer.import: its 7 descriptors take as many memory maps; user 1000 has 26 and may have 32 of the 64 "
        "for imports, half of what others leave; import fewer, larger descriptors");
    CHECK(answered(same, import_many_asked(same, 6), METHOD_buffer_import, NULL));
    CHECK(answered(bert, import_many_asked(bert, 16), METHOD_buffer_import, NULL));
    CHECK_CONTAINS(refusal(bert, import_many_asked(bert, 1), SCAND_QUOTA),
                   "user 1001 has 16 and may have 16 of the 64");
    CHECK(granted(anna, METHOD_buffer_release, &(struct msg_buffer_id){1}, NULL));
    CHECK_EQ(rig.service.maps.used, 48); /* until they are unmapped */
    rig_run_work();
    CHECK_EQ(rig.service.maps.used, 22);
    CHECK(answered(bert, import_many_asked(bert, 1), METHOD_buffer_import, NULL));
    service_limit_maps(&rig.service, LIMIT_MAPS_RESERVE); /* of a system that allows few */
    CHECK_EQ(rig.service.maps.most, 0);
    rig_end();
}

/* What waits in a socket may be descriptors whose end lasts: a thread closes the socket with them. */
static void unread_sockets_are_closed_by_threads(void)
{
    begin();
    struct caller *anna = user_greet(ANNA);
    const int fd = connection_fd(anna->client->connection);
    CHECK_EQ(send(connection_fd(anna->connection), "x", 1, 0), 1);
    user_close(anna);
    CHECK_EQ(rig.work_count, 1);
    CHECK(fcntl(fd, F_GETFD) >= 0);
    rig_run_work();
    CHECK(fcntl(fd, F_GETFD) < 0);
    rig_end();
}

/* The last descriptor of large memory takes its pages along, which the loop must not wait for. */
static void refused_memory_is_freed_by_helpers(void)
{
    begin();
    struct caller *anna = user_greet(ANNA);
    for (int large = 0; large < 2; large++) {
        int fd = sparse_memfd(LARGE);
        CHECK_EQ(posix_fallocate(fd, 0, large ? MIB(8) : 4096), 0);
        uint32_t msgid = ask_with(anna, METHOD_buffer_import, &(struct msg_buffer_import_params){0, 0, 1}, &fd, 1);
        close(fd);
        CHECK_CONTAINS(refusal(anna, msgid, SCAND_INVALID), "\"size\" is 0 bytes");
        CHECK_EQ(rig.work_count, (size_t)large);
    }
    rig_end();
}

static const struct test tests[] = {
    TEST(imports_take_maps),
    TEST(unread_sockets_are_closed_by_threads),
    TEST(refused_memory_is_freed_by_helpers),
    TEST(large_imports_of_one_user),
    TEST(complete_imports),
    TEST(large_imports_of_several_users),
    TEST(a_large_import_is_cut),
    TEST(a_large_release_is_cut),
    TEST(gone_while_pages_are_made),
    TEST(more_than_there_is),
    TEST(as_much_as_there_is),
    TEST(a_memfd_that_grows_meanwhile),
    TEST(promised_to_another),
    TEST(memory_that_goes_meanwhile),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

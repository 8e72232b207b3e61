/* Quotas through the service: of memory, jobs and connections; what is refused costs nothing, and what is given back,
 * by whatever way, counts no more. */
#include "tests/unit/service_rig.h"

#include <sys/mman.h>

#include "protocol/memory.h"

#define ANNA ((uid_t)1000)
#define BERT ((uid_t)1001)

#define SMALL KIB(256)

/* Grants everybody so much of one quota, and everything of the others. */
static void grant(enum quota quota, uint64_t most)
{
    struct grants grants = {.standard.weight = 1};
    for (size_t i = 0; i < QUOTA_COUNT; i++)
        grants.standard.most[i] = i == (size_t)quota ? most : UINT64_MAX;
    service_configure(&rig.service, &grants);
}

static uint64_t used(const struct caller *user, enum quota quota)
{
    return user->client->user->used[quota];
}

/* Creates a buffer, which is refused. */
static const char *refused_buffer(struct caller *user, uint64_t size_bytes, enum scand_place place)
{
    struct msg_buffer_create_params params = {.size = size_bytes, .place = place};
    return refused(user, METHOD_buffer_create, &params, SCAND_QUOTA);
}

static void release(struct caller *user, uint64_t buffer)
{
    CHECK(granted(user, METHOD_buffer_release, &(struct msg_buffer_id){buffer}, NULL));
    rig_run_work();
}

static uint32_t import_asked(struct caller *user, uint64_t size_bytes)
{
    int fd = memory_create(size_bytes);
    struct msg_buffer_import_params params = {size_bytes, 0, 1};
    uint32_t msgid = ask_with(user, METHOD_buffer_import, &params, &fd, 1);
    close(fd);
    rig_run_work();
    return msgid;
}

static uint32_t submit(struct caller *user, uint64_t buffer, uint64_t rows)
{
    const struct msg_job_submit_params params = rig_scan_in_place(rig_rows(buffer, 0, rows));
    return ask(user, METHOD_job_submit, &params);
}

static void host_memory(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA), *same = user_greet(ANNA), *other = user_greet(BERT);
    grant(QUOTA_HOST_MEMORY, 2 * SMALL + 4096);
    uint64_t first = user_create(user, SMALL - 9, SCAND_PLACE_HOST); /* counts as the segment that it takes */
    user_create(same, SMALL - 5, SCAND_PLACE_HOST);
    CHECK_EQ(used(user, QUOTA_HOST_MEMORY), 2 * SMALL);
    CHECK_CONTAINS(refused_buffer(same, SMALL - 1, SCAND_PLACE_HOST),
                   "buffer.create: user 1000 has 524288 bytes of host buffers and asks for 262144 more; its quota "
                   "\"host-memory\" is 528384; release a buffer");
    CHECK_CONTAINS(refusal(same, import_asked(same, 4097), SCAND_QUOTA),
                   "buffer.import: user 1000 has 524288 bytes of host buffers and asks for 4097 more");
    CHECK(answered(same, import_asked(same, 4096), METHOD_buffer_import, NULL));
    CHECK_EQ(used(user, QUOTA_HOST_MEMORY), 2 * SMALL + 4096);
    user_create(other, 2 * SMALL, SCAND_PLACE_DEVICE);
    user_create(other, 1, SCAND_PLACE_HOST);
    release(user, first);
    CHECK_EQ(used(same, QUOTA_HOST_MEMORY), SMALL + 4096);
    user_create(same, SMALL, SCAND_PLACE_HOST);
    rig_end();
}

/* Of a file of which little is imported all counts, as its client can free all of it at once, but for some of that. */
static void large_files(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    const struct msg_buffer_import_params params = {4096, 0, 1};
    int small = memory_create_sparse(4096 + LIMIT_TOUCHED_BYTES),
        large = memory_create_sparse(8192 + LIMIT_TOUCHED_BYTES);
    grant(QUOTA_HOST_MEMORY, 4096 + LIMIT_TOUCHED_BYTES);
    uint32_t first = ask_with(user, METHOD_buffer_import, &params, &small, 1);
    rig_run_work();
    CHECK(answered(user, first, METHOD_buffer_import, NULL));
    CHECK_EQ(used(user, QUOTA_HOST_MEMORY), 4096);
    uint32_t second = ask_with(user, METHOD_buffer_import, &params, &large, 1);
    rig_run_work();
    CHECK_CONTAINS(refusal(user, second, SCAND_QUOTA), "has 4096 bytes of host buffers and asks for 16785408 more");
    grant(QUOTA_HOST_MEMORY, UINT64_MAX);
    uint32_t third = ask_with(user, METHOD_buffer_import, &params, &large, 1);
    rig_run_work();
    CHECK(answered(user, third, METHOD_buffer_import, NULL));
    CHECK_EQ(used(user, QUOTA_HOST_MEMORY), 4096 + 8192 + LIMIT_TOUCHED_BYTES);
    close(small);
    close(large);
    rig_end();
}

/* A file that is not sealed yet may grow until it is. */
static void files_that_grow(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    const struct msg_buffer_import_params params = {4096, 0, 1};
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK_EQ(ftruncate(fd, 4096), 0);
    uint32_t msgid = ask_with(user, METHOD_buffer_import, &params, &fd, 1);
    CHECK_EQ(ftruncate(fd, 8192), 0);
    rig_run_work();
    CHECK_CONTAINS(refusal(user, msgid, SCAND_DESCRIPTOR), "the memfds have 8192 bytes, and had 4096 when they came");
    CHECK_EQ(used(user, QUOTA_HOST_MEMORY), 0);
    close(fd);
    rig_end();
}

/* Imports beyond the quota of pinned memory are staged, which is not refused; what is given back counts no more. */
static void pinned_memory(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA), *other = user_greet(BERT);
    grant(QUOTA_PINNED_MEMORY, 10000);
    CHECK(answered(user, import_asked(user, 8192), METHOD_buffer_import, NULL));
    const uint64_t first = user->client->buffers->id;
    CHECK(!user->client->buffers->span.staged);
    CHECK_EQ(used(user, QUOTA_PINNED_MEMORY), 8192);
    CHECK(answered(user, import_asked(user, 4096), METHOD_buffer_import, NULL));
    CHECK(user->client->buffers->span.staged);
    CHECK_EQ(used(user, QUOTA_PINNED_MEMORY), 8192);
    CHECK_EQ(used(user, QUOTA_HOST_MEMORY), 8192 + 4096);
    CHECK_EQ(rig.service.stats.staged_bytes, 4096);
    CHECK(answered(other, import_asked(other, 10000), METHOD_buffer_import, NULL));
    CHECK(!other->client->buffers->span.staged);
    release(user, first);
    CHECK_EQ(used(user, QUOTA_PINNED_MEMORY), 0);
    CHECK(answered(user, import_asked(user, 10000), METHOD_buffer_import, NULL));
    CHECK(!user->client->buffers->span.staged);
    rig_end();
}

/* A job on staged memory is not small, since small jobs work on memory as it is. */
static void staged_jobs_are_not_small(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    rig.service.scheduler.small_bytes = MIB(1);
    for (int pinned = 0; pinned < 2; pinned++) {
        grant(QUOTA_PINNED_MEMORY, pinned ? UINT64_MAX : 0);
        CHECK(answered(user, import_asked(user, RIG_ROW_BYTES), METHOD_buffer_import, NULL));
        submit(user, user->client->buffers->id, 1);
        REQUIRE(rig.manual.out_count == 1 || pinned);
        CHECK_EQ(((const struct job *)user->client->jobs)->small, pinned);
    }
    rig_end();
}

static void device_memory(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    grant(QUOTA_DEVICE_MEMORY, 1000);
    uint64_t first = user_create(user, 600, SCAND_PLACE_DEVICE);
    user_create(user, 400, SCAND_PLACE_DEVICE);
    CHECK_CONTAINS(refused_buffer(user, 1, SCAND_PLACE_DEVICE),
                   "buffer.create: user 1000 has 1000 bytes of device buffers and asks for 1 more");
    CHECK_EQ(rig.manual.allocated_bytes, 1000);
    release(user, first);
    CHECK_CONTAINS(refused_buffer(user, 601, SCAND_PLACE_DEVICE), "asks for 601 more; its quota \"device-memory\"");
    CHECK(user_create(user, 600, SCAND_PLACE_DEVICE));
    CHECK_CONTAINS(refused_buffer(user, LIMIT_IMPORT_BYTES, SCAND_PLACE_DEVICE), "asks for 549755813888 more");
    rig_end();
}

/* A buffer that is refused by the device does not stay counted. */
static void memory_that_is_not_there(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    manual_fail(&rig.manual, MANUAL_ALLOCATE, 1, -ENOMEM);
    struct msg_buffer_create_params params = {.size = 100, .place = SCAND_PLACE_DEVICE};
    uint32_t msgid = ask(user, METHOD_buffer_create, &params);
    CHECK_EQ(used(user, QUOTA_DEVICE_MEMORY), 100); /* while it is prepared */
    rig_run_work();
    CHECK_CONTAINS(refusal(user, msgid, SCAND_NO_MEMORY), "the device has no more to give");
    CHECK_EQ(used(user, QUOTA_DEVICE_MEMORY), 0);
    rig_end();
}

/* Memory that a job still works on counts, though its buffer was released and its client is gone. */
static void memory_that_jobs_hold(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA), *same = user_greet(ANNA);
    uint64_t buffer = user_create(user, 40 * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    submit(user, buffer, 40);
    release(user, buffer);
    CHECK_EQ(used(same, QUOTA_HOST_MEMORY), KIB(16));
    user_close(user);
    CHECK_EQ(used(same, QUOTA_HOST_MEMORY), KIB(16));
    CHECK_EQ(used(same, QUOTA_JOBS), 1);
    rig_complete_all();
    CHECK_EQ(used(same, QUOTA_HOST_MEMORY), 0);
    CHECK_EQ(used(same, QUOTA_JOBS), 0);
    rig_end();
}

static void jobs(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA), *same = user_greet(ANNA), *other = user_greet(BERT);
    uint64_t buffer = user_create(user, 100 * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    uint64_t second = user_create(same, 100 * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    uint64_t third = user_create(other, 100 * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    grant(QUOTA_JOBS, 2);
    uint32_t first = submit(user, buffer, 8), next = submit(same, second, 8);
    CHECK_CONTAINS(
        refusal(user, submit(user, buffer, 8), SCAND_QUOTA),
        "job.submit: user 1000 has 2 jobs that wait or run and asks for 1 more; its quota \"jobs\" is 2; wait");
    submit(user, buffer, 0);
    struct answer busy = next_answer(user, NULL, NULL);
    CHECK_CONTAINS(busy.failure.message, "\"jobs\" is 2");
    CHECK(busy.failure.retry_ms >= LIMIT_RETRY_MIN_MS && busy.failure.retry_ms <= LIMIT_RETRY_MAX_MS);
    uint32_t theirs = submit(other, third, 8);
    rig_complete_all();
    CHECK(answered(user, first, METHOD_job_submit, NULL));
    CHECK(answered(same, next, METHOD_job_submit, NULL));
    CHECK(answered(other, theirs, METHOD_job_submit, NULL));
    CHECK_EQ(used(user, QUOTA_JOBS), 0);
    for (int i = 0; i < 3; i++) /* jobs of no rows end at once */
        CHECK(answered(user, submit(user, buffer, 0), METHOD_job_submit, NULL));
    grant(QUOTA_JOBS, 0);
    submit(user, buffer, 8);
    struct answer never = next_answer(user, NULL, NULL);
    CHECK_CONTAINS(never.failure.message, "\"jobs\" is 0; wait until more is allowed");
    CHECK_EQ(never.failure.retry_ms, 0);
    rig_end();
}

static void connections(void)
{
    rig_begin();
    grant(QUOTA_CONNECTIONS, 2);
    struct caller *first = user_greet(ANNA);
    user_greet(ANNA);
    struct caller *third = user_open(ANNA), *late = user_open(ANNA);
    CHECK(!third->client->admitted && !late->client->admitted);
    CHECK_EQ(rig.service.stats.clients_open, 4);
    struct msg_hello_params params = {1, PROTOCOL_VERSION, "test", 0};
    CHECK_CONTAINS(
        refused(third, METHOD_hello, &params, SCAND_QUOTA),
        "connect: user 1000 has 2 connections and asks for 1 more; its quota \"connections\" is 2; close one");
    CHECK(third->over && !late->over);
    CHECK(user_greet(BERT)->client->admitted);
    user_close(first);
    CHECK_EQ(used(late, QUOTA_CONNECTIONS), 1);
    CHECK(granted(late, METHOD_hello, &params, NULL)); /* there is room when it speaks */
    CHECK(late->client->admitted);
    CHECK_EQ(used(late, QUOTA_CONNECTIONS), 2);
    CHECK_EQ(late->client->user->unadmitted, 1);
    rig_end();
}

/* Connections that are not admitted yet have a few places of their own. */
static void connections_that_say_nothing(void)
{
    int ends[2];
    struct client *clients[LIMIT_UNADMITTED];
    rig_begin();
    grant(QUOTA_CONNECTIONS, 0);
    for (size_t i = 0; i < LIMIT_UNADMITTED; i++) {
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        clients[i] = service_open(&rig.service, connection_create(ends[0]), ANNA);
        close(ends[1]);
        CHECK(clients[i] && !clients[i]->admitted);
    }
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    struct connection *connection = connection_create(ends[0]);
    CHECK(!service_open(&rig.service, connection, ANNA));
    service_close(clients[3]);
    clients[3] = service_open(&rig.service, connection, ANNA);
    CHECK(clients[3]);
    close(ends[1]);
    CHECK_EQ(rig.service.stats.clients_open, LIMIT_UNADMITTED);
    for (size_t i = 0; i < LIMIT_UNADMITTED; i++)
        service_close(clients[i]);
    rig_end();
}

/* No descriptor of a refused first message stays open. */
static void an_import_that_is_not_admitted(void)
{
    rig_begin();
    grant(QUOTA_CONNECTIONS, 0);
    struct caller *user = user_open(ANNA);
    CHECK_CONTAINS(refusal(user, import_asked(user, 4096), SCAND_QUOTA), "connect: user 1000 has 0 connections");
    CHECK(user->over);
    rig_end();
}

static void a_quota_changes(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    uint64_t buffer = user_create(user, 1000, SCAND_PLACE_DEVICE);
    grant(QUOTA_DEVICE_MEMORY, 500);
    CHECK_CONTAINS(refused_buffer(user, 1, SCAND_PLACE_DEVICE), "has 1000 bytes of device buffers");
    uint32_t job = submit(user, buffer, 2); /* it keeps what it has */
    rig_complete_all();
    CHECK(answered(user, job, METHOD_job_submit, NULL));
    grant(QUOTA_DEVICE_MEMORY, 1001);
    CHECK(user_create(user, 1, SCAND_PLACE_DEVICE));
    grant(QUOTA_CONNECTIONS, 0);
    CHECK(granted(user, METHOD_server_ping, &(struct msg_nothing){}, NULL)); /* who is there stays */
    rig_end();
}

/* Gives Anna that weight, and everybody else 1. */
static void weigh(unsigned weight)
{
    struct grants grants = {.own_count = 1, .standard.weight = 1};
    grants.own[0].uid = ANNA;
    grants.own[0].grant.weight = weight;
    for (size_t i = 0; i < QUOTA_COUNT; i++)
        grants.standard.most[i] = grants.own[0].grant.most[i] = UINT64_MAX;
    service_configure(&rig.service, &grants);
}

/* Returns how many of the next 80 chunks are Anna's. */
static unsigned annas_chunks(void)
{
    unsigned count = 0;
    for (int i = 0; i < 80; i++) {
        count += rig_owner(0)->user->uid == ANNA;
        rig_complete(0, 0);
    }
    return count;
}

/* Jobs that are under way, too, get the share that their user's weight says now. */
static void weights_change(void)
{
    rig_begin_with(1, 1, 1);
    struct caller *anna = user_greet(ANNA), *bert = user_greet(BERT);
    uint64_t first = user_create(anna, 600 * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    uint64_t second = user_create(bert, 600 * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    weigh(3);
    submit(anna, first, 600);
    submit(bert, second, 600);
    unsigned weighed = annas_chunks();
    CHECK(weighed >= 58 && weighed <= 62);
    weigh(1);
    unsigned even = annas_chunks();
    CHECK(even >= 38 && even <= 42);
    rig_end();
}

static const struct test tests[] = {
    TEST(host_memory),
    TEST(large_files),
    TEST(files_that_grow),
    TEST(pinned_memory),
    TEST(staged_jobs_are_not_small),
    TEST(device_memory),
    TEST(memory_that_is_not_there),
    TEST(memory_that_jobs_hold),
    TEST(jobs),
    TEST(connections),
    TEST(connections_that_say_nothing),
    TEST(an_import_that_is_not_admitted),
    TEST(a_quota_changes),
    TEST(weights_change),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

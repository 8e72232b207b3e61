/* The service as its clients see it: hello, the envelope, descriptors, hostile bytes, and the server's own methods. */
#include "tests/unit/service_rig.h"

#include "kernels/tutorial/reduce/reduce.h"
#include "kernels/tutorial/scan/variants.h"
#include "kernels/tutorial/steps/steps.h"
#include "protocol/memory.h"

#define ANNA                ((uid_t)1000)
#define SEND(USER, LITERAL) user_send(USER, LITERAL, sizeof(LITERAL) - 1, NULL, 0)

/*
 * Hello.
 */

static void hello_tells_the_limits(void)
{
    struct msg_hello_params params = {1, PROTOCOL_VERSION, "a program", 0};
    struct msg_hello_result result;
    rig_begin();
    struct caller *user = user_open(ANNA);
    CHECK(granted(user, METHOD_hello, &params, &result));
    CHECK_EQ(result.version, PROTOCOL_VERSION);
    CHECK_CONTAINS(result.server, "scand ");
    CHECK_EQ(result.limits.message_bytes, LIMIT_MESSAGE_BYTES);
    CHECK_EQ(result.limits.message_fds, LIMIT_MESSAGE_FDS);
    CHECK_EQ(result.limits.host_buffer_bytes, LIMIT_LARGE_SEGMENT_BYTES); /* of the pool that is there */
    CHECK_EQ(result.limits.client_buffers, LIMIT_CLIENT_BUFFERS);
    CHECK_EQ(result.limits.client_jobs, LIMIT_CLIENT_JOBS);
    CHECK_EQ(result.limits.row_samples, LIMIT_ROW_SAMPLES);
    CHECK_EQ(result.limits.job_steps, SCAND_STEPS_MAX);
    CHECK_EQ(result.devices_count, 1);
    CHECK_CONTAINS(result.devices[0].name, "manual device");
    CHECK_CONTAINS(user->client->name, "a program");
    rig_end();
}

static void hello_comes_first(void)
{
    const struct msg_nothing nothing;
    const struct msg_buffer_create_params create = {.size = 1, .place = SCAND_PLACE_HOST};
    rig_begin();
    struct caller *user = user_open(ANNA);
    CHECK_CONTAINS(refused(user, METHOD_server_ping, &nothing, SCAND_INVALID), "server.ping came before hello");
    CHECK_CONTAINS(refused(user, METHOD_buffer_create, &create, SCAND_INVALID), "buffer.create came before hello");
    struct msg_hello_params params = {1, 1, "", 0};
    CHECK(granted(user, METHOD_hello, &params, NULL));
    CHECK(granted(user, METHOD_server_ping, &nothing, NULL));
    CHECK(!user->over);
    rig_end();
}

static void hello_agrees_on_a_version(void)
{
    struct msg_hello_result result;
    rig_begin();
    struct caller *user = user_open(ANNA);
    struct msg_hello_params params = {PROTOCOL_VERSION + 1, PROTOCOL_VERSION + 2, "", 0};
    CHECK_CONTAINS(refused(user, METHOD_hello, &params, SCAND_VERSION),
                   "versions 2 to 3 are offered; this daemon speaks 1 to 1");
    params = (struct msg_hello_params){0, 0, "", 0};
    CHECK_CONTAINS(refused(user, METHOD_hello, &params, SCAND_VERSION), "versions 0 to 0");
    params = (struct msg_hello_params){1, 0, "", 0};
    CHECK_CONTAINS(refused(user, METHOD_hello, &params, SCAND_VERSION), "versions 1 to 0");
    CHECK(!user->client->greeted);
    params = (struct msg_hello_params){0, UINT32_MAX, "", 0};
    CHECK(granted(user, METHOD_hello, &params, &result));
    CHECK_EQ(result.version, PROTOCOL_VERSION);
    rig_end();
}

static void hello_comes_once(void)
{
    struct msg_hello_params params = {1, PROTOCOL_VERSION, "another name", 0};
    rig_begin();
    struct caller *user = user_greet(ANNA);
    CHECK_CONTAINS(refused(user, METHOD_hello, &params, SCAND_INVALID), "hello: this connection has said it already");
    CHECK(strcmp(user->client->name, "test") == 0);
    CHECK(granted(user, METHOD_server_ping, &(struct msg_nothing){}, NULL));
    rig_end();
}

/* Others' programs show it. */
static void names_are_cleaned(void)
{
    static const char *const names[][2] = {{"a\033[2Jb", "a?[2Jb"},
                                           {"\xff\xfe", "??"},
                                           {"Gr\xc3\xb6\xc3\x9f", "Gr\xc3\xb6\xc3\x9f"},
                                           {"half \xc3", "half ?"}};
    rig_begin();
    for (size_t i = 0; i < 4; i++) {
        struct msg_hello_params params = {.version_min = 1, .version_max = 1};
        struct caller *user = user_open(ANNA);
        strcpy(params.client, names[i][0]);
        CHECK(granted(user, METHOD_hello, &params, NULL));
        CHECK(strcmp(user->client->name, names[i][1]) == 0);
    }
    rig_end();
}

/* A slip is told to whoever asked for it. */
static void strict_clients(void)
{
    struct msg_hello_params params = {1, PROTOCOL_VERSION, "test", 1};
    rig_begin();
    struct caller *user = user_open(ANNA), *other = user_greet(ANNA);
    CHECK(granted(user, METHOD_hello, &params, NULL));
    SEND(user, "\x94\x00\x07\xabserver.ping\x91\x81\xa3new\xc0");
    CHECK_CONTAINS(refusal(user, 7, SCAND_INVALID), "server.ping: field \"new\" is not known");
    SEND(user, "\x94\x00\x08\xaajob.submit\x91\x81\xa5input\x81\xa6offzet\x01");
    CHECK_CONTAINS(refusal(user, 8, SCAND_INVALID), "job.submit: field \"input.offzet\" is not known");
    CHECK(granted(user, METHOD_server_ping, &(struct msg_nothing){}, NULL));
    SEND(other, "\x94\x00\x07\xabserver.ping\x91\x81\xa3new\xc0");
    CHECK(answered(other, 7, METHOD_server_ping, NULL));
    rig_end();
}

/*
 * The envelope.
 */

static void unknown_methods(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    SEND(user, "\x94\x00\x07\xa7no.such\x91\x80");
    CHECK_CONTAINS(refusal(user, 7, SCAND_UNKNOWN_METHOD), "no method \"no.such\"; this daemon speaks version 1");
    SEND(user, "\x94\x00\x08\xacjob.progress\x91\x80");
    CHECK_CONTAINS(refusal(user, 8, SCAND_UNKNOWN_METHOD), "no method \"job.progress\"");
    CHECK(!user->over);
    rig_end();
}

static void wrong_params(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    SEND(user, "\x94\x00\x07\xad"
               "buffer.create\x91\x80");
    CHECK_CONTAINS(refusal(user, 7, SCAND_INVALID), "buffer.create: field \"size\" is missing");
    SEND(user, "\x94\x00\x08\xad"
               "buffer.create\x91\x82\xa4size\x05\xa5place\xa3sky");
    CHECK_CONTAINS(refusal(user, 8, SCAND_INVALID), "field \"place\" is \"sky\"; allowed: host, device");
    CHECK(!user->over);
    CHECK_EQ(rig.service.stats.messages_refused, 2);
    CHECK_EQ(rig.service.stats.refused_invalid, 2);
    rig_end();
}

/* A ping with unknown fields, which are a later version's, is answered. */
static void ping(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    CHECK(granted(user, METHOD_server_ping, &(struct msg_nothing){}, NULL));
    SEND(user, "\x94\x00\x07\xabserver.ping\x90");
    CHECK(answered(user, 7, METHOD_server_ping, NULL));
    SEND(user, "\x94\x00\x08\xabserver.ping\x91\x81\xa3new\xc0");
    CHECK(answered(user, 8, METHOD_server_ping, NULL));
    CHECK(is_silent(user));
    rig_end();
}

static void answers_keep_the_order(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    SEND(user, "\x94\x00\x07\xabserver.ping\x90\x94\x00\x09\xa7no.such\x90\x94\x00\x08\xabserver.ping\x90");
    CHECK(answered(user, 7, METHOD_server_ping, NULL));
    CHECK_CONTAINS(refusal(user, 9, SCAND_UNKNOWN_METHOD), "no.such");
    CHECK(answered(user, 8, METHOD_server_ping, NULL));
    CHECK(is_silent(user));
    rig_end();
}

static void messages_may_trickle(void)
{
    static const char message[] = "\x94\x00\x07\xabserver.ping\x90";
    rig_begin();
    struct caller *user = user_greet(ANNA);
    for (size_t i = 0; i + 1 < sizeof message; i++) {
        CHECK(is_silent(user));
        user_send(user, &message[i], 1, NULL, 0);
    }
    CHECK(answered(user, 7, METHOD_server_ping, NULL));
    rig_end();
}

static void half_a_message_and_gone(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    SEND(user, "\x94\x00\x07\xabserv");
    CHECK(is_silent(user));
    CHECK(!user->over);
    rig_end();
}

/*
 * Hostile bytes: answered where the request can be told, then over.
 */

static void check_over(const char *bytes, size_t size, enum scand_status status, const char *words)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    user_send(user, bytes, size, NULL, 0);
    CHECK(user->over);
    if (words)
        CHECK_CONTAINS(refusal(user, 7, status), words);
    CHECK(is_silent(user));
    CHECK_EQ(service_input(user->client, UINT64_MAX), -EBADMSG);
    rig_end();
}

#define CHECK_OVER(LITERAL, STATUS, WORDS) check_over(LITERAL, sizeof(LITERAL) - 1, STATUS, WORDS)

static void malformed_messages(void)
{
    CHECK_OVER("\xc1", SCAND_OK, NULL);
    CHECK_OVER("\x05", SCAND_OK, NULL);
    CHECK_OVER("\x90", SCAND_OK, NULL);
    CHECK_OVER("\x80", SCAND_OK, NULL);
    CHECK_OVER("\x94\x09\x07\xa0\x90", SCAND_OK, NULL);
    CHECK_OVER("\x94\x00\xa1x\xa0\x90", SCAND_OK, NULL);
    CHECK_OVER("\x93\x00\x07\xa0", SCAND_MALFORMED, "a request has four elements");
    CHECK_OVER("\x94\x00\x07\x05\x90", SCAND_MALFORMED, "the method is not text");
    CHECK_OVER("\x94\x00\x07\xa0\x80", SCAND_MALFORMED, "params are not a list of one map");
    CHECK_OVER("\x94\x00\x07\xa0\x92\x80\x80", SCAND_MALFORMED, "params are not a list of one map");
}

static void refused_by_the_walk(void)
{
    CHECK_OVER("\x94\x00\x07\xd4\x01\x02\x90", SCAND_MALFORMED, "a message breaks the protocol; the connection ends");
    CHECK_OVER("\x94\x00\x07\xa0\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\xc0", SCAND_MALFORMED, "the connection ends");
    CHECK_OVER("\x94\x00\x07\xdb\x00\x02\x00\x00", SCAND_TOO_LARGE, "the connection ends");
    CHECK_OVER("\x94\x00\x07\xdd\xff\xff\xff\xff", SCAND_TOO_LARGE, "the connection ends");
    CHECK_OVER("\xdd\xff\xff\xff\xff", SCAND_OK, NULL);
}

static void clients_only_ask(void)
{
    CHECK_OVER("\x93\x02\xacjob.progress\x91\x80", SCAND_OK, NULL);
    CHECK_OVER("\x94\x01\x07\xc0\x80", SCAND_MALFORMED, "a client sends requests only");
}

/* Requests before a malformed message are answered; those after it are not even looked at. */
static void before_and_after_malformed(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    SEND(user, "\x94\x00\x05\xabserver.ping\x90\xc1\x94\x00\x06\xabserver.ping\x90");
    CHECK(user->over);
    CHECK(answered(user, 5, METHOD_server_ping, NULL));
    CHECK(is_silent(user));
    rig_end();
}

/* Requests of a client that leaves too many answers unread wait until it has read them. All answers come, in order. */
static void clients_that_read_late(void)
{
    enum { MANY = 6000 };
    rig_begin();
    struct caller *late = user_greet(ANNA), *other = user_greet(ANNA);
    uint32_t first = late->last_msgid + 1;
    for (int i = 0; i < MANY; i++)
        ask(late, METHOD_server_devices, &(struct msg_nothing){});
    CHECK(late->client->paused && !late->over);
    CHECK(granted(other, METHOD_server_ping, &(struct msg_nothing){}, NULL));
    int resumed = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        REQUIRE(answered(late, first + i, METHOD_server_devices, NULL));
        resumed += late->client->paused;
        CHECK(service_input(late->client, UINT64_MAX) >= 0);
    }
    CHECK(resumed > 0);
    CHECK(is_silent(late) && !late->client->paused);
    rig_end();
}

/*
 * Descriptors.
 */

#define PING "\x94\x00\x07\xabserver.ping\x90"
#define IMPORT                              \
    "\x94\x00\x08\xad"                      \
    "buffer.import\x91\x82\xa4size\x10\xa3" \
    "fds\x01"

static int memfd(void)
{
    int fd = memory_create(4096);
    CHECK(fd >= 0);
    return fd;
}

static void send_with(struct caller *user, const char *bytes, size_t size, size_t count)
{
    int fds[3];
    for (size_t i = 0; i < count; i++)
        fds[i] = memfd();
    user_send(user, bytes, size, fds, count);
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

static void more_descriptors_than_announced(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    send_with(user, PING, sizeof PING - 1, 1);
    CHECK(user->over);
    CHECK_CONTAINS(refusal(user, 7, SCAND_DESCRIPTOR),
                   "1 descriptors came with a message that announces 0; the connection ends");
    user = user_greet(ANNA);
    send_with(user, IMPORT, sizeof IMPORT - 1, 3);
    CHECK(user->over);
    CHECK_CONTAINS(refusal(user, 8, SCAND_DESCRIPTOR), "3 descriptors came with a message that announces 1");
    rig_end();
}

static void fewer_descriptors_than_announced(void)
{
    rig_begin();
    struct caller *user = user_greet(ANNA);
    send_with(user, IMPORT, sizeof IMPORT - 1, 0);
    CHECK_CONTAINS(refusal(user, 8, SCAND_DESCRIPTOR), "the message announces 1 descriptors, but 0 came with it");
    struct msg_buffer_import_params params = {.size = 8192, .segment = 4096, .fds = 2};
    int fd = memfd();
    uint32_t msgid = ask_with(user, METHOD_buffer_import, &params, &fd, 1);
    close(fd);
    CHECK_CONTAINS(refusal(user, msgid, SCAND_DESCRIPTOR), "the message announces 2 descriptors, but 1 came with it");
    CHECK(!user->over);
    send_with(user, IMPORT, sizeof IMPORT - 1, 1);
    rig_run_work();
    CHECK(answered(user, 8, METHOD_buffer_import, NULL));
    rig_end();
}

/* A ping, or a request that cannot be read, and an import arrive at once: the descriptor is the import's. */
static void descriptors_of_the_next_message(void)
{
    static const char good[] = PING IMPORT, bad[] = "\x94\x00\x07\xad"
                                                    "buffer.create\x90" IMPORT;
    rig_begin();
    struct caller *user = user_greet(ANNA);
    send_with(user, good, sizeof good - 1, 1);
    rig_run_work();
    CHECK(answered(user, 7, METHOD_server_ping, NULL));
    CHECK(answered(user, 8, METHOD_buffer_import, NULL));
    send_with(user, bad, sizeof bad - 1, 1);
    rig_run_work();
    CHECK_CONTAINS(refusal(user, 7, SCAND_INVALID), "field \"size\" is missing");
    CHECK(answered(user, 8, METHOD_buffer_import, NULL));
    CHECK(!user->over);
    rig_end();
}

static void descriptors_of_an_unreadable_import(void)
{
    static const char bad[] = "\x94\x00\x07\xad"
                              "buffer.import\x91\x81\xa3"
                              "fds\x01",
                      both[] = "\x94\x00\x07\xad"
                               "buffer.import\x91\x81\xa3"
                               "fds\x01" IMPORT;
    rig_begin();
    struct caller *user = user_greet(ANNA);
    send_with(user, bad, sizeof bad - 1, 2);
    CHECK_CONTAINS(refusal(user, 7, SCAND_INVALID), "field \"size\" is missing");
    CHECK(!user->over);
    CHECK_EQ(connection_fd_count(user->client->connection), 0);
    send_with(user, both, sizeof both - 1, 2); /* whose is which cannot be told */
    CHECK(user->over);
    CHECK_CONTAINS(refusal(user, 7, SCAND_INVALID), "field \"size\" is missing");
    CHECK(is_silent(user));
    rig_end();
}

static void descriptors_before_hello(void)
{
    rig_begin();
    struct caller *user = user_open(ANNA);
    send_with(user, IMPORT, sizeof IMPORT - 1, 1);
    CHECK_CONTAINS(refusal(user, 8, SCAND_INVALID), "buffer.import came before hello");
    CHECK(!user->over);
    CHECK_EQ(connection_fd_count(user->client->connection), 0);
    rig_end();
}

/*
 * The server's own methods.
 */

static void too_many_clients(void)
{
    int ends[2];
    rig_begin();
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    struct connection *connection = connection_create(ends[0]);
    rig.service.stats.clients_open = LIMIT_CLIENTS;
    CHECK(!service_open(&rig.service, connection, ANNA));
    rig.service.stats.clients_open = 0;
    connection_destroy(connection);
    close(ends[1]);
    rig_end();
}

static void stats_count(void)
{
    struct msg_stats_result stats;
    rig_begin();
    struct caller *user = user_greet(ANNA), *gone = user_greet(ANNA);
    user_close(gone);
    user_create(user, 100, SCAND_PLACE_HOST);
    user_create(user, 7, SCAND_PLACE_DEVICE);
    struct msg_buffer_id none = {99};
    refused(user, METHOD_buffer_release, &none, SCAND_NOT_FOUND);
    CHECK(granted(user, METHOD_server_stats, &(struct msg_nothing){}, &stats));
    CHECK_EQ(stats.clients_accepted, 2);
    CHECK_EQ(stats.clients_open, 1);
    CHECK_EQ(stats.messages_refused, 1);
    CHECK_EQ(stats.buffers_open, 2);
    CHECK_EQ(stats.host_bytes, 100);
    CHECK_EQ(stats.device_bytes, 7);
    CHECK_EQ(stats.pool_bytes, pool_size_bytes(&rig.pool));
    CHECK_EQ(stats.pool_used_bytes, LIMIT_SMALLEST_SEGMENT_BYTES);
    rig_end();
}

#define KERNELS ((int)VARIANT_COUNT + (int)REDUCTION_COUNT + (int)STEP_VARIANT_COUNT)

/* All pages, of which each goes on where the one before it ends. */
static void read_kernels(struct caller *user, struct msg_kernel kernels[KERNELS])
{
    struct msg_page_params params = {0};
    uint32_t count = 0;
    do {
        struct msg_kernels_result page;
        CHECK(granted(user, METHOD_server_kernels, &params, &page));
        REQUIRE(page.kernels_count > 0 && count + page.kernels_count <= KERNELS);
        CHECK(page.next == 0 || page.kernels_count == LIMIT_MAPS);
        memcpy(kernels + count, page.kernels, page.kernels_count * sizeof *kernels);
        count += page.kernels_count;
        CHECK(page.next == 0 || page.next == count);
        params.from = page.next;
    } while (params.from);
    CHECK_EQ(count, KERNELS);
}

static void check_scan(const struct msg_kernel *kernel, const struct variant *variant)
{
    CHECK(strcmp(kernel->name, variant->name) == 0 && strcmp(kernel->line, variant->teaches) == 0);
    CHECK(strcmp(kernel->backend, variant->on_cpu ? "cpu" : "cuda") == 0);
    CHECK_EQ(kernel->repeatable, variant->fixed_order);
    CHECK_EQ(kernel->accumulators[0], SCAND_ACCUMULATOR_F32);
    CHECK_EQ(kernel->accumulators_count, variant->accumulators == VARIANT_F32 ? 1 : 3);
    CHECK(*kernel->operation == '\0' && *kernel->dtype == '\0' && kernel->reductions_count == 0);
}

static void check_step(const struct msg_kernel *kernel, const struct step_variant *variant)
{
    CHECK(strcmp(kernel->name, variant->name) == 0 && strcmp(kernel->line, variant->teaches) == 0);
    CHECK(strcmp(kernel->backend, "cuda") == 0 && kernel->accumulators_count == 0 && kernel->reductions_count == 0);
    CHECK_EQ(kernel->repeatable, variant->fixed_order);
    CHECK(strncmp(kernel->name, kernel->operation, strlen(kernel->operation)) == 0); /* dot-atomic is a dot */
    CHECK(strcmp(kernel->dtype, dtype_words.words[variant->dtype]) == 0);
}

static void kernels_are_listed(void)
{
    struct msg_kernel kernels[KERNELS];
    struct msg_kernels_result none;
    rig_begin();
    struct caller *user = user_greet(ANNA);
    read_kernels(user, kernels);
    for (int i = 0; i < VARIANT_COUNT; i++)
        check_scan(&kernels[i], &variant_list[i]);
    for (int i = 0; i < REDUCTION_COUNT; i++) {
        const struct msg_kernel *kernel = &kernels[VARIANT_COUNT + i];
        CHECK(strcmp(kernel->name, reduction_list[i].name) == 0 && strcmp(kernel->backend, "cuda") == 0);
        CHECK(strcmp(kernel->operation, "reduce") == 0 && kernel->repeatable == reduction_list[i].fixed_order);
        CHECK_EQ(kernel->reductions_count, reduction_list[i].ops == REDUCE_ALL ? SCAND_REDUCTION_COUNT - 1 : 1);
    }
    for (int i = 0; i < STEP_VARIANT_COUNT; i++)
        check_step(&kernels[(int)VARIANT_COUNT + (int)REDUCTION_COUNT + i], &step_variant_list[i]);
    CHECK(granted(user, METHOD_server_kernels, &(struct msg_page_params){UINT64_MAX}, &none));
    CHECK(none.kernels_count == 0 && none.next == 0);
    rig_end();
}

static void devices_are_listed(void)
{
    struct msg_devices_result result;
    rig_begin();
    struct caller *user = user_greet(ANNA);
    user_create(user, 7, SCAND_PLACE_DEVICE);
    CHECK(granted(user, METHOD_server_devices, &(struct msg_nothing){}, &result));
    CHECK_EQ(result.devices_count, 1);
    CHECK_CONTAINS(result.devices[0].backend, "manual");
    CHECK_EQ(result.devices[0].memory_bytes, MIB(64));
    CHECK_EQ(result.devices[0].memory_limit_bytes, MIB(1));
    CHECK_EQ(result.devices[0].memory_used_bytes, 7);
    CHECK_EQ(result.devices[0].chunk_bytes, rig.manual.device.info.chunk_bytes);
    rig_end();
}

static void who_may_drain(void)
{
    const uid_t who[] = {0, RIG_OWNER};
    for (int i = 0; i < 2; i++) {
        rig_begin();
        struct caller *user = user_greet(ANNA), *allowed = user_greet(who[i]);
        CHECK_CONTAINS(refused(user, METHOD_server_drain, &(struct msg_nothing){}, SCAND_PERMISSION),
                       "server.drain: user 1000 may not; root and the daemon's own user 900 may");
        CHECK_EQ(rig.drained, 0);
        CHECK(granted(allowed, METHOD_server_drain, &(struct msg_nothing){}, NULL));
        CHECK_EQ(rig.drained, 1);
        CHECK(granted(user, METHOD_server_ping, &(struct msg_nothing){}, NULL));
        rig_end();
    }
}

static const struct test tests[] = {
    TEST(hello_tells_the_limits),
    TEST(hello_comes_first),
    TEST(hello_agrees_on_a_version),
    TEST(hello_comes_once),
    TEST(names_are_cleaned),
    TEST(strict_clients),
    TEST(unknown_methods),
    TEST(wrong_params),
    TEST(ping),
    TEST(answers_keep_the_order),
    TEST(messages_may_trickle),
    TEST(half_a_message_and_gone),
    TEST(malformed_messages),
    TEST(refused_by_the_walk),
    TEST(clients_only_ask),
    TEST(before_and_after_malformed),
    TEST(clients_that_read_late),
    TEST(more_descriptors_than_announced),
    TEST(fewer_descriptors_than_announced),
    TEST(descriptors_of_the_next_message),
    TEST(descriptors_of_an_unreadable_import),
    TEST(descriptors_before_hello),
    TEST(too_many_clients),
    TEST(stats_count),
    TEST(devices_are_listed),
    TEST(kernels_are_listed),
    TEST(who_may_drain),
    TEST_END,
};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

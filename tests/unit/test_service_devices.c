/* A service with two devices: where chunks and device buffers go, and what is told of them. */
#include "tests/unit/service_rig.h"

#define ANNA ((uid_t)1000)

/* Four rows are a chunk; each device has two. */
static struct caller *begin_two(void)
{
    rig_begin_devices(2, 1, 2, 4);
    return user_greet(ANNA);
}

static struct msg_job_submit_params scan_of(uint64_t input, uint64_t output, uint64_t rows)
{
    return rig_scan(rig_rows(input, 0, rows), rig_rows(output, 0, rows));
}

static uint32_t submit(struct caller *user, uint64_t input, uint64_t output, uint64_t rows)
{
    struct msg_job_submit_params params = scan_of(input, output, rows);
    return ask(user, METHOD_job_submit, &params);
}

static bool done(struct caller *user, uint32_t msgid)
{
    return answered(user, msgid, METHOD_job_submit, NULL);
}

/* A buffer of device memory, on one of them (from 0) or anywhere (-1); where it is. */
static unsigned create_on(struct caller *user, uint64_t size_bytes, int device, uint64_t *buffer)
{
    struct msg_buffer_create_params params = {
        .size = size_bytes, .place = SCAND_PLACE_DEVICE, .device = (uint64_t)(device + 1)};
    struct msg_buffer_create_result result = {0};
    uint32_t msgid = ask(user, METHOD_buffer_create, &params);
    rig_run_work();
    CHECK(answered(user, msgid, METHOD_buffer_create, &result));
    CHECK(result.device > 0 && result.fds == 0);
    *buffer = result.buffer;
    return (unsigned)result.device - 1;
}

static void a_job_runs_on_both(void)
{
    struct caller *user = begin_two();
    uint64_t buffer = user_create(user, 20 * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    uint32_t msgid = submit(user, buffer, buffer, 20);
    CHECK(rig.manual.out_count == 2 && rig.second.out_count == 2);
    rig_complete_on(&rig.second, 1, 0);
    CHECK_EQ(rig.second.started, 3); /* where there is room */
    struct msg_stats_result stats;
    CHECK(granted(user, METHOD_server_stats, &(struct msg_nothing){}, &stats));
    CHECK_EQ(stats.chunks_open, 4);
    while (rig.second.out_count > 0)
        rig_complete_on(&rig.second, 0, 0);
    CHECK(is_silent(user));
    rig_complete_all();
    CHECK(done(user, msgid));
    rig_end();
}

/* The other device's chunks are awaited before the failure is told. */
static void failures_of_one(void)
{
    struct caller *user = begin_two();
    uint64_t buffer = user_create(user, 100 * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    uint32_t msgid = submit(user, buffer, buffer, 100);
    rig_complete_on(&rig.second, 0, -EIO);
    CHECK(rig.manual.out_count == 2 && rig.second.out_count == 1);
    rig_complete_on(&rig.second, 0, 0);
    rig_complete(0, 0);
    CHECK(is_silent(user));
    rig_complete(0, 0);
    CHECK_CONTAINS(refusal(user, msgid, SCAND_DEVICE), "the device failed on rows");
    rig_end();
}

static void buffers_stay_together(void)
{
    uint64_t buffers[6];
    struct caller *anna = begin_two(), *bert = user_greet(ANNA);
    CHECK_EQ(create_on(anna, 1000, -1, &buffers[0]), 0);
    CHECK_EQ(create_on(anna, 1000, -1, &buffers[1]), 0);
    CHECK_EQ(create_on(bert, 1000, -1, &buffers[2]), 1); /* where more is free */
    CHECK_EQ(create_on(bert, 500, -1, &buffers[3]), 1);
    CHECK_EQ(create_on(anna, MIB(1) - 1500, -1, &buffers[4]), 1); /* there it fits */
    CHECK_EQ(create_on(anna, 1, 0, &buffers[5]), 0);
    CHECK(rig.manual.allocated_bytes == 2001 && rig.second.allocated_bytes == MIB(1));
    CHECK(granted(anna, METHOD_buffer_release, &(struct msg_buffer_id){buffers[4]}, NULL));
    rig_run_work();
    CHECK_EQ(rig.second.allocated_bytes, 1500);
    rig_end();
}

static void devices_that_are_not_there(void)
{
    struct caller *user = begin_two();
    struct msg_buffer_create_params params = {.size = 1000, .place = SCAND_PLACE_DEVICE, .device = 3};
    CHECK_CONTAINS(refused(user, METHOD_buffer_create, &params, SCAND_NOT_FOUND),
                   "\"device\" is 2; allowed: 0 to 1; server.devices lists");
    params.device = LIMIT_DEVICES + 1;
    CHECK_CONTAINS(refused(user, METHOD_buffer_create, &params, SCAND_INVALID), "\"device\" is 32; allowed: 0 to 31");
    params = (struct msg_buffer_create_params){.size = 1000, .place = SCAND_PLACE_HOST, .device = 1};
    CHECK_CONTAINS(refused(user, METHOD_buffer_create, &params, SCAND_INVALID),
                   "\"device\" is 0, but \"place\" is \"host\"");
    CHECK(user->client->buffer_count == 0 && !user->client->home);
    rig_end();
}

static void jobs_run_where_their_memory_is(void)
{
    uint64_t first, second, host;
    struct caller *user = begin_two();
    host = user_create(user, 20 * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    create_on(user, 20 * RIG_ROW_BYTES, 0, &first);
    create_on(user, 20 * RIG_ROW_BYTES, 1, &second);
    uint32_t msgid = submit(user, host, second, 20);
    CHECK(rig.manual.out_count == 0 && rig.second.out_count == 2);
    uint32_t passes = submit(user, first, first, 4); /* of the same connection */
    CHECK(rig.manual.out_count == 1 && rig.second.out_count == 2);
    rig_complete(0, 0);
    CHECK(done(user, passes));
    rig_complete_all();
    CHECK_EQ(rig.second.started, 5);
    CHECK(done(user, msgid));
    struct msg_job_submit_params apart = scan_of(first, second, 20);
    CHECK_CONTAINS(refused(user, METHOD_job_submit, &apart, SCAND_INVALID),
                   "\"input\" is in the memory of device 0 and \"output\" in that of device 1");
    rig_end();
}

static void both_are_listed(void)
{
    struct msg_devices_result result;
    uint64_t buffer;
    struct caller *user = begin_two();
    create_on(user, 1000, 1, &buffer);
    CHECK(granted(user, METHOD_server_devices, &(struct msg_nothing){}, &result));
    CHECK_EQ(result.devices_count, 2);
    CHECK(result.devices[0].memory_used_bytes == 0 && result.devices[1].memory_used_bytes == 1000);
    rig_end();
}

/* The first works for 100 us, the second for 300; whose job it is has both. */
static void times_of_each(void)
{
    struct msg_devices_result result;
    struct msg_clients_result clients;
    struct msg_stats_result stats;
    struct caller *user = begin_two();
    uint64_t buffer = user_create(user, 8 * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    uint32_t msgid = submit(user, buffer, buffer, 8);
    rig_pass(100);
    rig_complete(0, 0);
    CHECK(granted(user, METHOD_server_devices, &(struct msg_nothing){}, &result));
    CHECK(result.devices[0].chunks_open == 0 && result.devices[1].chunks_open == 1);
    rig_pass(200);
    rig_complete_all();
    CHECK(done(user, msgid));
    CHECK(granted(user, METHOD_server_devices, &(struct msg_nothing){}, &result));
    CHECK(result.devices[0].busy_us == 100 && result.devices[1].busy_us == 300);
    for (int i = 0; i < 2; i++)
        CHECK(result.devices[i].upload_bytes == 4 * RIG_ROW_BYTES &&
              result.devices[i].download_bytes == 4 * RIG_ROW_BYTES);
    CHECK(granted(user, METHOD_server_stats, &(struct msg_nothing){}, &stats));
    CHECK(stats.device_busy_us == 400 && stats.upload_bytes == 8 * RIG_ROW_BYTES);
    CHECK(granted(user, METHOD_server_clients, &(struct msg_page_params){0}, &clients));
    CHECK_EQ(clients.clients[0].device_busy_us, 400);
    struct msg_trace_result trace;
    CHECK(granted(user, METHOD_server_trace, &(struct msg_page_params){0}, &trace));
    CHECK(trace.events[0].device == 0 && trace.events[1].device == 1 && trace.events[1].slot < 2);
    rig_end();
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_job_runs_on_both),
        TEST(failures_of_one),
        TEST(buffers_stay_together),
        TEST(devices_that_are_not_there),
        TEST(jobs_run_where_their_memory_is),
        TEST(both_are_listed),
        TEST(times_of_each),
        TEST_END,
    };
    return test_main(argc, argv, tests);
}

/* libscand against a planned daemon: questions about a server, and that no terminal obeys the answers. */
#include <errno.h>
#include <stddef.h>

#include "client/lib/internal.h"
#include "tests/unit/client_rig.h"

static void test_server(void)
{
    rig_begin();
    uint64_t us = UINT64_MAX;
    size_t count = 99;
    struct scand_device devices[3];
    struct scand_kernel kernels[3];
    struct scand_counter counters[64];
    CHECK_EQ(scand_ping(session, &us), SCAND_OK);
    CHECK(us != UINT64_MAX);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(scand_devices(session, NULL, sizeof(struct scand_device), 0, &count), SCAND_OK);
    CHECK_EQ(count, 0);
    CHECK_EQ(scand_devices(session, devices, sizeof *devices, 3, &count), SCAND_OK);
    CHECK_EQ(count, 2);
    CHECK(strcmp(devices[1].name, "device 1") == 0);
    CHECK(strcmp(devices[1].backend, "a backend whose") == 0);
    CHECK_EQ(devices[1].memory_bytes, 101);
    CHECK_EQ(scand_kernels(session, kernels, sizeof *kernels, 3, &count), SCAND_OK);
    CHECK_EQ(count, 3);
    CHECK(strcmp(kernels[2].name, "kernel 2") == 0 && strcmp(kernels[2].backend, "cuda") == 0);
    CHECK_EQ(strlen(kernels[2].line), sizeof kernels[2].line - 1);
    CHECK_EQ(kernels[2].accumulators, 1u << SCAND_ACCUMULATOR_F32 | 1u << SCAND_ACCUMULATOR_F2);
    CHECK(kernels[1].repeatable == 1 && kernels[2].repeatable == 0);
    CHECK_EQ(scand_stats(session, counters, sizeof *counters, 64, &count), SCAND_OK);
    uint64_t submitted = 0;
    for (size_t i = 0; i < count; i++)
        if (strcmp(counters[i].name, "jobs_submitted") == 0)
            submitted = counters[i].value;
    CHECK_EQ(submitted, 42);
    CHECK_EQ(scand_stats(session, counters, sizeof *counters, 1, &count), SCAND_OK);
    CHECK_EQ(count, 1);
    CHECK_EQ(scand_drain(session), SCAND_OK);
    fake.fail_on = METHOD_server_drain;
    fake.fail_code = -EOPNOTSUPP;
    CHECK_EQ(scand_drain(session), SCAND_UNSUPPORTED);
    CHECK_CONTAINS(scand_message(session), "planned failure");
    rig_end();
}

static void test_kernels(void)
{
    rig_begin();
    struct scand_kernel kernels[FAKE_LISTED + 1];
    char old[(FAKE_LISTED + 1) * offsetof(struct scand_kernel, step)];
    size_t count = 99;
    CHECK_EQ(scand_kernels(session, kernels, sizeof *kernels, FAKE_LISTED + 1, &count), SCAND_OK);
    CHECK_EQ(count, FAKE_LISTED);
    CHECK_EQ(fake.seen[METHOD_server_kernels], 2);
    CHECK(strcmp(kernels[38].name, "kernel 38") == 0 && kernels[38].operation == SCAND_OPERATION_SCAN);
    CHECK(strcmp(kernels[38].step, "scan") == 0 && strcmp(kernels[38].dtype, "f32") == 0);
    CHECK(strcmp(kernels[39].step, "a later one") == 0 && kernels[39].operation == SCAND_OPERATION_COUNT);
    CHECK(strcmp(kernels[39].dtype, "f16") == 0);
    /* A program of before `step` would take the last for what it is not. */
    CHECK_EQ(scand_kernels(session, (struct scand_kernel *)old, offsetof(struct scand_kernel, step), FAKE_LISTED + 1,
                           &count),
             SCAND_OK);
    CHECK_EQ(count, FAKE_LISTED - 1);
    fake.loop = 1;
    CHECK_EQ(scand_kernels(session, kernels, sizeof *kernels, FAKE_LISTED + 1, &count), SCAND_OK);
    CHECK_EQ(count, FAKE_LISTED + 1);
    rig_end();
}

static void test_jobs(void)
{
    rig_begin();
    struct scand_job_info jobs[FAKE_LISTED + 1];
    size_t count = 99;
    uint64_t next = 99;
    CHECK_EQ(scand_jobs(session, 0, jobs, sizeof *jobs, FAKE_LISTED + 1, &count, &next), SCAND_OK);
    CHECK(count == FAKE_LISTED && next == 0);
    CHECK_EQ(fake.seen[METHOD_server_jobs], 2);
    for (size_t i = 0; i < count; i++)
        CHECK_EQ(jobs[i].job, 2 * i + 1);
    CHECK(jobs[39].client == 7 && jobs[39].user == 1000 && jobs[39].rows == 9);
    CHECK(jobs[39].state == SCAND_JOB_STATE_RUNNING && strcmp(jobs[39].name, "name") == 0);
    /* Ends inside a page, at its end, in the next one, and before any. */
    const size_t capacities[] = {5, LIMIT_MAPS, LIMIT_MAPS + 1, FAKE_LISTED, 0};
    for (size_t i = 0; i < 5; i++) {
        CHECK_EQ(scand_jobs(session, 0, jobs, sizeof *jobs, capacities[i], &count, &next), SCAND_OK);
        CHECK(count == capacities[i] && next == (count < FAKE_LISTED ? 2 * count + 1 : 0));
    }
    CHECK_EQ(scand_jobs(session, 78, jobs, sizeof *jobs, 5, &count, &next), SCAND_OK);
    CHECK(count == 1 && jobs[0].job == 79 && next == 0);
    fake.loop = 1;
    CHECK_EQ(scand_jobs(session, 3, jobs, sizeof *jobs, FAKE_LISTED, &count, &next), SCAND_OK);
    CHECK(count == LIMIT_MAPS && next == 0);
    fake.loop = 3;
    CHECK_EQ(scand_jobs(session, 30, jobs, sizeof *jobs, 5, &count, &next), SCAND_OK);
    CHECK(count == 5 && next == 0);
    fake.fail_on = METHOD_server_jobs;
    fake.fail_code = -EOPNOTSUPP;
    CHECK_EQ(scand_jobs(session, 0, jobs, sizeof *jobs, 1, &count, &next), SCAND_UNSUPPORTED);
    CHECK_EQ(count, 5);
    rig_end();
}

static void test_clients(void)
{
    rig_begin();
    struct scand_client_info clients[2 * LIMIT_MAPS];
    size_t count = 0;
    uint64_t next = 0;
    CHECK_EQ(scand_clients(session, 0, clients, sizeof *clients, 2 * LIMIT_MAPS, &count, &next), SCAND_OK);
    CHECK(count == 2 * LIMIT_MAPS && next == 2 * LIMIT_MAPS + 1);
    CHECK(clients[63].client == 64 && clients[63].user == 1001 && clients[63].pid == 17);
    CHECK(clients[63].user_jobs == 5 && clients[63].quota_jobs == 6);
    CHECK(clients[63].device_busy_us == 99 && strcmp(clients[63].name, "name") == 0);
    CHECK_EQ(scand_clients(session, 2, clients, sizeof *clients, 1, &count, &next), SCAND_OK);
    CHECK(count == 1 && clients[0].client == 2 && next == 3);
    fake.loop = 1;
    CHECK_EQ(scand_clients(session, 1, clients, sizeof *clients, 2 * LIMIT_MAPS, &count, &next), SCAND_OK);
    CHECK(count == LIMIT_MAPS && next == 0);
    rig_end();
}

static void test_users(void)
{
    rig_begin();
    struct scand_user_info users[3 * LIMIT_MAPS];
    size_t count = 0;
    char *text = NULL;
    CHECK_EQ(scand_users(session, users, sizeof *users, 3 * LIMIT_MAPS, &count), SCAND_OK);
    CHECK_EQ(count, 2 * LIMIT_MAPS);
    CHECK(users[63].user == 63 && users[63].jobs == 5 && users[63].jobs_quota == 6 && users[63].queued_us == 1500000);
    CHECK_EQ(scand_users(session, users, sizeof *users, LIMIT_MAPS + 1, &count), SCAND_OK);
    CHECK_EQ(count, LIMIT_MAPS + 1);
    CHECK_EQ(scand_metrics(session, &text), SCAND_OK);
    CHECK_CONTAINS(text, "# TYPE scand_user_queued_seconds_total counter\n");
    CHECK_CONTAINS(text, "# HELP scand_user_jobs_done_total Since the daemon's worker began: jobs done.\n");
    CHECK_CONTAINS(text, "\nscand_user_queued_seconds_total{user=\"63\"} 1.500000\n");
    CHECK_CONTAINS(text, "# TYPE scand_user_jobs_quota gauge\n");
    free(text);
    fake.loop = 1;
    CHECK_EQ(scand_users(session, users, sizeof *users, 3 * LIMIT_MAPS, &count), SCAND_OK);
    CHECK_EQ(count, LIMIT_MAPS);
    fake.loop = 2;
    CHECK_EQ(scand_users(session, users, sizeof *users, 3 * LIMIT_MAPS, &count), SCAND_MALFORMED);
    CHECK_CONTAINS(scand_message(session), "the daemon's list goes on after 4096 pages: make sure that it is scand");
    CHECK_EQ(count, LIMIT_MAPS);
    rig_end();
}

/* Metrics of a daemon that does not know users are all others. */
static void test_users_of_an_old_daemon(void)
{
    rig_begin();
    struct scand_user_info user;
    size_t count = 7;
    char *text = NULL;
    fake.fail_on = METHOD_server_users;
    fake.fail_code = -ENOSYS;
    CHECK_EQ(scand_users(session, &user, sizeof user, 1, &count), SCAND_UNKNOWN_METHOD);
    CHECK_EQ(count, 7);
    CHECK_EQ(scand_metrics(session, &text), SCAND_OK);
    CHECK_CONTAINS(text, "scand_jobs_submitted_total 42\n");
    CHECK(!strstr(text, "scand_user_"));
    free(text);
    rig_end();
}

static void test_histograms(void)
{
    rig_begin();
    struct scand_histogram all[9];
    size_t count = 0;
    CHECK_EQ(scand_histograms(session, all, sizeof *all, 9, &count), SCAND_OK);
    CHECK(count == 5 && strcmp(all[0].name, "job_queued") == 0 && all[0].text[0]);
    CHECK(all[0].bound_count == 2 && all[0].bounds_us[1] == 20 && all[0].counts[2] == 3 && all[0].sum_us == 50);
    CHECK(all[1].bound_count == 2 && all[1].counts[2] == 6); /* more buckets than bounds */
    CHECK(all[2].bound_count == 0 && all[2].counts[0] == 8); /* and fewer */
    CHECK(all[4].bound_count == 0 && all[4].counts[0] == 0); /* and none */
    CHECK_EQ(scand_histograms(session, all, sizeof *all, 1, &count), SCAND_OK);
    CHECK_EQ(count, 1);
    rig_end();
}

static void test_trace(void)
{
    rig_begin();
    struct scand_event events[9];
    size_t count = 0;
    uint64_t next = 0;
    CHECK_EQ(scand_trace(session, 0, events, sizeof *events, 9, &count, &next), SCAND_OK);
    CHECK(count == 6 && next == 0 && events[0].event == 5 && events[5].event == 10);
    CHECK(events[5].kind == SCAND_EVENT_CHUNK && events[5].user == 1000 && events[5].status == SCAND_DEVICE);
    CHECK(events[5].begin_us == 10 && events[5].end_us == 20 && events[5].slot == 3 && events[5].kernel_us == 4);
    CHECK_EQ(scand_trace(session, 0, events, sizeof *events, 3, &count, &next), SCAND_OK);
    CHECK(count == 3 && next == 8);
    rig_end();
}

static void test_cancel_job(void)
{
    rig_begin();
    CHECK_EQ(scand_cancel_job(session, 5), SCAND_OK);
    fake.fail_on = METHOD_server_cancel;
    fake.fail_code = -ENOENT;
    CHECK_EQ(scand_cancel_job(session, 5), SCAND_NOT_FOUND);
    CHECK_EQ(fake.seen[METHOD_server_cancel], 2);
    rig_end();
}

/* Control sequences of a terminal are not shown, wherever the daemon writes them. */
static void test_rude_texts(void)
{
    rig_begin();
    struct scand *other = NULL;
    struct scand_job *job = NULL;
    struct scand_device device;
    size_t count = 0;
    fake.rude = 1;
    CHECK_EQ(scand_connect(fake.path, "test", &other), SCAND_OK);
    CHECK(strcmp(scand_server_name(other), "fake 1" RUDE_SHOWN) == 0);
    scand_disconnect(other);
    CHECK_EQ(scand_devices(session, &device, sizeof device, 1, &count), SCAND_OK);
    CHECK(strcmp(device.name, "device 0" RUDE_SHOWN) == 0);
    struct scand_job_info info;
    struct scand_client_info client;
    CHECK_EQ(scand_jobs(session, 0, &info, sizeof info, 1, &count, &(uint64_t){0}), SCAND_OK);
    CHECK(strcmp(info.name, "name" RUDE_SHOWN) == 0 && strcmp(info.operation, "scan" RUDE_SHOWN) == 0);
    CHECK_EQ(scand_clients(session, 0, &client, sizeof client, 1, &count, &(uint64_t){0}), SCAND_OK);
    CHECK(strcmp(client.name, "name" RUDE_SHOWN) == 0);
    fake.fail_code = -EINVAL;
    fake.fail_on = METHOD_server_ping;
    CHECK_EQ(scand_ping(session, NULL), SCAND_INVALID);
    CHECK(strcmp(scand_message(session), "planned failure" RUDE_SHOWN) == 0);
    fake.fail_on = METHOD_job_submit;
    struct scand_buffer *buffer = buffer_of(BYTES);
    struct scand_scan scan = scan_of(buffer, buffer);
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_INVALID);
    CHECK(strcmp(scand_message(session), "planned failure" RUDE_SHOWN) == 0);
    fake.fail_on = METHOD_hello;
    CHECK_EQ(scand_connect(fake.path, "test", &other), SCAND_INVALID);
    CHECK(strcmp(scand_connect_message(), "planned failure" RUDE_SHOWN) == 0);
    rig_end();
}

static const struct test tests[] = {TEST(test_server),
                                    TEST(test_kernels),
                                    TEST(test_jobs),
                                    TEST(test_clients),
                                    TEST(test_histograms),
                                    TEST(test_users),
                                    TEST(test_users_of_an_old_daemon),
                                    TEST(test_trace),
                                    TEST(test_cancel_job),
                                    TEST(test_rude_texts),
                                    TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

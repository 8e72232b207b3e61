/* libscand against a planned daemon: every function, every local check, hostile answers. Built with short waits. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "client/lib/internal.h"
#include "tests/unit/client_rig.h"

static void test_connect(void)
{
    rig_begin();
    CHECK(strcmp(scand_server_name(session), "fake 1") == 0);
    struct scand *other = NULL;
    setenv("SCAND_SOCKET", fake.path, 1);
    CHECK_EQ(scand_connect(NULL, NULL, &other), SCAND_OK);
    unsetenv("SCAND_SOCKET");
    CHECK_EQ(fake.accepted, 2);
    scand_disconnect(other);
    setenv("XDG_RUNTIME_DIR", fake.folder, 1); /* where the socket is there */
    CHECK_EQ(scand_connect(NULL, NULL, &other), SCAND_OK);
    unsetenv("XDG_RUNTIME_DIR");
    CHECK_EQ(fake.accepted, 3);
    scand_disconnect(other);
    scand_disconnect(NULL);
    rig_end();
}

static void test_connect_names_places(void)
{
    char folder[] = "/tmp/scand-test-XXXXXX";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct scand *none = NULL;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(mkdtemp(folder) && fd >= 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/scand.sock", folder);
    CHECK_EQ(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    unsetenv("SCAND_SOCKET");
    setenv("XDG_RUNTIME_DIR", folder, 1);
    CHECK_EQ(scand_connect(NULL, NULL, &none), SCAND_UNAVAILABLE);
    CHECK_CONTAINS(scand_connect_message(), address.sun_path);
    CHECK_CONTAINS(scand_connect_message(), "nobody listens there; start scand (before that: SCAND_SOCKET is not set)");
    CHECK_EQ(scand_connect(address.sun_path, NULL, &none), SCAND_UNAVAILABLE);
    CHECK(!strstr(scand_connect_message(), "before that"));
    unsetenv("XDG_RUNTIME_DIR");
    CHECK(close(fd) == 0 && unlink(address.sun_path) == 0 && rmdir(folder) == 0);
}

static void test_connect_fails(void)
{
    rig_begin();
    struct scand *none = NULL;
    char path[200];
    CHECK_EQ(scand_connect("/nowhere/scand.sock", "test", &none), SCAND_UNAVAILABLE);
    CHECK_CONTAINS(scand_connect_message(), "/nowhere/scand.sock");
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = '\0';
    CHECK_EQ(scand_connect(path, "test", &none), SCAND_INVALID);
    fake.silent_on = METHOD_hello;
    CHECK_EQ(scand_connect(fake.path, "test", &none), SCAND_TIMED_OUT);
    CHECK_CONTAINS(scand_connect_message(), "did not answer");
    fake.silent_on = FAKE_NONE;
    fake.fail_on = METHOD_hello;
    fake.fail_code = -EPROTONOSUPPORT;
    CHECK_EQ(scand_connect(fake.path, "test", &none), SCAND_VERSION);
    CHECK_CONTAINS(scand_connect_message(), "planned failure");
    fake.fail_on = FAKE_NONE;
    fake.version = PROTOCOL_VERSION + 1;
    CHECK_EQ(scand_connect(fake.path, "test", &none), SCAND_VERSION);
    CHECK_CONTAINS(scand_connect_message(), "version 2");
    fake.die_on = METHOD_hello;
    fake.die_count = 1;
    CHECK_EQ(scand_connect(fake.path, "test", &none), SCAND_UNAVAILABLE);
    CHECK_CONTAINS(scand_connect_message(), "closed the connection");
    CHECK(none == NULL);
    rig_end();
}

/* A daemon that listens and still starts CUDA. */
static void test_connect_to_a_slow_daemon(void)
{
    rig_begin();
    struct scand *other = NULL;
    fake.late_ms = CALL_MS / 2;
    fake.late_on = METHOD_hello;
    CHECK_EQ(scand_connect(fake.path, "test", &other), SCAND_OK);
    scand_disconnect(other);
    rig_end();
}

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
    fake.fail_on = METHOD_server_jobs;
    fake.fail_code = -EOPNOTSUPP;
    CHECK_EQ(scand_jobs(session, 0, jobs, sizeof *jobs, 1, &count, &next), SCAND_UNSUPPORTED);
    CHECK_EQ(count, LIMIT_MAPS);
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

/* What a terminal would obey is not shown, wherever the daemon writes it. */
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

static void test_buffer_create(void)
{
    rig_begin();
    struct scand_buffer *buffer = buffer_of(3 * 8192 - 100), *device = NULL, *none = NULL;
    REQUIRE(buffer);
    CHECK_EQ(scand_buffer_size(buffer), 3 * 8192 - 100);
    uint8_t *data = scand_buffer_data(buffer);
    for (uint64_t i = 0; i < scand_buffer_size(buffer); i++)
        data[i] = (uint8_t)(data[i] + i);
    CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_DEVICE, 1, &device), SCAND_OK);
    CHECK(scand_buffer_data(device) == NULL);
    CHECK_EQ(scand_buffer_release(device), SCAND_OK);
    CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_HOST, 0, &none), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "size_bytes is 0");
    CHECK_EQ(scand_buffer_create(session, (enum scand_place)7, 1, &none), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "place is 7");
    CHECK_EQ(scand_buffer_create_wait(session, 1, SCAND_WAIT_MS_MAX + 1, &none), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), "wait_ms is 60001: at most 60000");
    CHECK_EQ(fake.wait_ms, 0);
    fake.fail_on = METHOD_buffer_create;
    fake.fail_code = -EAGAIN;
    CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_HOST, 1, &none), SCAND_BUSY);
    CHECK_EQ(scand_retry_ms(session), 70);
    CHECK(none == NULL);
    CHECK_EQ(scand_buffer_release(buffer), SCAND_OK);
    CHECK_EQ(scand_buffer_release(NULL), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_buffer_release], 2);
    rig_end();
}

static void test_buffer_import(void)
{
    rig_begin();
    struct scand_buffer *buffer = NULL;
    int memfd = memfd_of(10000), ends[2];
    REQUIRE(pipe(ends) == 0);
    CHECK_EQ(scand_buffer_import(session, ends[0], 100, &buffer), SCAND_DESCRIPTOR);
    CHECK_EQ(scand_buffer_import(session, -1, 100, &buffer), SCAND_DESCRIPTOR);
    CHECK_EQ(scand_buffer_import(session, memfd, 0, &buffer), SCAND_INVALID);
    CHECK_EQ(scand_buffer_import(session, memfd, 10001, &buffer), SCAND_DESCRIPTOR);
    CHECK_CONTAINS(scand_message(session), "10000");
    fake.fail_on = METHOD_buffer_import;
    fake.fail_code = -EDQUOT;
    CHECK_EQ(scand_buffer_import(session, memfd, 10000, &buffer), SCAND_QUOTA);
    CHECK(buffer == NULL);
    fake.fail_on = FAKE_NONE;
    CHECK_EQ(scand_buffer_import(session, memfd, 10000, &buffer), SCAND_OK);
    REQUIRE(buffer);
    CHECK_EQ(pwrite(memfd, "x", 1, 9999), 1);
    CHECK_EQ(((char *)scand_buffer_data(buffer))[9999], 'x');
    close(memfd);
    close(ends[0]);
    close(ends[1]);
    CHECK_EQ(scand_buffer_release(buffer), SCAND_OK);
    rig_end();
}

static void test_job(void)
{
    rig_begin();
    struct scand_buffer *input = buffer_of(BYTES), *output = buffer_of(BYTES);
    struct scand_scan scan = scan_of(input, output);
    struct scand_job *job = NULL;
    struct scand_times times = {0};
    float *x = scand_buffer_data(input), *y = scand_buffer_data(output);
    for (int i = 0; i < SAMPLES; i++)
        x[i] = (float)i;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, &times), SCAND_OK);
    CHECK_EQ(times.queued_us, 1);
    CHECK_EQ(times.total_us, 5);
    int wrong = 0;
    for (int i = 0; i < SAMPLES; i++)
        wrong += y[i] != (float)(i + 1);
    CHECK_EQ(wrong, 0);
    CHECK_EQ(scand_job_done(job), 1);
    CHECK_EQ(scand_wait(job, 0, NULL), SCAND_OK);
    CHECK_EQ(scand_cancel(job), SCAND_OK);
    scand_job_release(job);
    scand_job_release(NULL);
    fake.fail_on = METHOD_job_submit;
    fake.fail_code = -EAGAIN;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_BUSY);
    CHECK_EQ(scand_retry_ms(session), 70);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_BUSY);
    CHECK_CONTAINS(scand_message(session), "planned failure");
    rig_end();
}

static void test_many_jobs(void)
{
    enum { JOBS = 10 };
    rig_begin();
    struct scand_buffer *buffer = buffer_of(BYTES);
    struct scand_scan scan = scan_of(buffer, buffer);
    struct scand_job *jobs[JOBS];
    fake.hold = 1;
    for (int i = 0; i < JOBS; i++)
        CHECK_EQ(scand_submit(session, &scan, &jobs[i]), SCAND_OK);
    CHECK_EQ(scand_wait(jobs[3], 20, NULL), SCAND_TIMED_OUT);
    CHECK_CONTAINS(scand_message(session), "20 ms");
    CHECK_EQ(scand_wait(jobs[3], 0, NULL), SCAND_TIMED_OUT);
    scand_job_release(jobs[4]);
    CHECK_EQ(scand_job_done(jobs[0]), 0);
    fake.hold = 0;
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    for (int i = 0; i < JOBS; i++)
        if (i != 4) {
            CHECK_EQ(scand_job_done(jobs[i]), 1);
            CHECK_EQ(scand_wait(jobs[i], 0, NULL), SCAND_OK);
            scand_job_release(jobs[i]);
        }
    CHECK(session->jobs == NULL);
    CHECK(*(float *)scand_buffer_data(buffer) == JOBS);
    rig_end();
}

static void test_cancel(void)
{
    rig_begin();
    struct scand_buffer *buffer = buffer_of(BYTES);
    struct scand_scan scan = scan_of(buffer, buffer);
    struct scand_job *job = NULL;
    fake.hold = 1;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_cancel(job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_CANCELLED);
    scand_job_release(job);
    /* Done, though its answer was not read yet. */
    fake.hold = 0;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_cancel(job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    rig_end();
}

struct report {
    struct scand_job *job;
    int calls;
    bool cancels, releases, pings;
};

static void note_progress(void *context, uint64_t rows_done, uint64_t rows)
{
    struct report *report = context;
    report->calls++;
    CHECK_EQ(rows, 5);
    CHECK(rows_done >= 1 && rows_done <= rows);
    if (report->pings)
        CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    if (report->cancels && report->calls == 1)
        CHECK_EQ(scand_cancel(report->job), SCAND_OK);
    if (report->releases)
        scand_job_release(report->job);
}

static void test_progress(void)
{
    rig_begin();
    struct scand_buffer *buffer = buffer_of(BYTES);
    struct scand_scan scan = scan_of(buffer, buffer);
    struct report report = {0};
    fake.progress = 5;
    CHECK_EQ(scand_submit_progress(session, &scan, note_progress, &report, &report.job), SCAND_OK);
    CHECK_EQ(scand_wait(report.job, -1, NULL), SCAND_OK);
    CHECK_EQ(report.calls, 5);
    /* Calls from within are answered; progress that comes meanwhile is not told. */
    report = (struct report){.pings = true};
    CHECK_EQ(scand_submit_progress(session, &scan, note_progress, &report, &report.job), SCAND_OK);
    CHECK_EQ(scand_wait(report.job, -1, NULL), SCAND_OK);
    CHECK(report.calls >= 1 && report.calls <= 5);
    report = (struct report){.cancels = true};
    fake.hold = 1;
    CHECK_EQ(scand_submit_progress(session, &scan, note_progress, &report, &report.job), SCAND_OK);
    CHECK_EQ(scand_wait(report.job, -1, NULL), SCAND_CANCELLED);
    report = (struct report){.releases = true};
    CHECK_EQ(scand_submit_progress(session, &scan, note_progress, &report, &report.job), SCAND_OK);
    while (report.calls == 0)
        CHECK_EQ(scand_dispatch(session), SCAND_OK);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(report.calls, 1);
    /* The one that is waited for, too. */
    fake.hold = 0;
    report = (struct report){.releases = true};
    CHECK_EQ(scand_submit_progress(session, &scan, note_progress, &report, &report.job), SCAND_OK);
    CHECK_EQ(scand_wait(report.job, -1, NULL), SCAND_OK);
    rig_end();
}

/* Of a long job the end is announced. The wait for it then takes no longer than it may, whether the end comes or not.
 */
static void test_ending(void)
{
    rig_begin();
    struct scand_buffer *buffer = buffer_of(BYTES);
    struct scand_scan scan = scan_of(buffer, buffer);
    struct scand_job *job = NULL;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    CHECK_EQ(fake.ending, 1);
    scand_job_release(job);
    fake.hold = 1;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, 0, NULL), SCAND_TIMED_OUT);
    CHECK_EQ(scand_wait(job, 20, NULL), SCAND_TIMED_OUT);
    fake.hold = 0;
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    scand_job_release(job);
    scan.input.shape[0] = scan.output.shape[0] = SAMPLES - 1;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    CHECK_EQ(fake.ending, 0);
    scand_job_release(job);
    rig_end();
}

/* Submits a scan that must be refused before it is sent. */
static void check_refused(const struct scand_scan *scan, const char *words)
{
    struct scand_job *job = NULL;
    CHECK_EQ(scand_submit(session, scan, &job), SCAND_INVALID);
    CHECK_CONTAINS(scand_message(session), words);
    CHECK(job == NULL);
}

static void test_local_checks(void)
{
    rig_begin();
    struct scand *other = NULL;
    struct scand_buffer *buffer = buffer_of(BYTES), *foreign = NULL;
    CHECK_EQ(scand_connect(fake.path, "other", &other), SCAND_OK);
    CHECK_EQ(scand_buffer_create(other, SCAND_PLACE_HOST, 4, &foreign), SCAND_OK);
    const struct scand_scan good = scan_of(buffer, buffer);
    struct scand_scan scan = good;
#define REFUSED(MEMBER, VALUE, WORDS) \
    scan.MEMBER = VALUE;              \
    check_refused(&scan, WORDS);      \
    scan = good;
    REFUSED(input.buffer, NULL, "input.buffer is NULL")
    REFUSED(output.buffer, NULL, "output.buffer is NULL")
    REFUSED(output.buffer, foreign, "output.buffer belongs to another connection")
    REFUSED(input.rank, 0, "input.rank is 0")
    REFUSED(output.rank, 5, "output.rank is 5")
    REFUSED(input.dtype, (enum scand_dtype)99, "input.dtype is 99, not one of the dtypes: f32, f64, f16")
    REFUSED(axis, 1, "axis is 1")
    REFUSED(pass_count, 0, "pass_count is 0")
    REFUSED(pass_count, 3, "pass_count is 3")
    REFUSED(passes[0], (enum scand_pass)5, "passes[0] is 5")
    REFUSED(kind, (enum scand_kind)9, "kind is 9")
    REFUSED(op, (enum scand_operator) - 1, "op is")
    REFUSED(accumulator, (enum scand_accumulator)9, "accumulator is 9, not one of the accumulators: auto, f32, f64")
    REFUSED(intermediate, (enum scand_intermediate)99, "intermediate is 99")
    REFUSED(priority, (enum scand_priority)3, "priority is 3, not one of the priority words: normal, low, high")
    REFUSED(algorithm, "0123456789012345678901234567890123456789012345678901234567890123",
            "algorithm has 64 bytes: give a name of scand_kernels")
    CHECK_EQ(fake.seen[METHOD_job_submit], 0);
    scand_disconnect(other);
    rig_end();
}

static void test_steps(void)
{
    rig_begin();
    struct scand_buffer *buffer = buffer_of(BYTES);
    struct scand_step then[SCAND_STEPS_MAX];
    struct scand_scan scan = scan_of(buffer, buffer);
    struct scand_job *job = NULL;
    for (int i = 0; i < SCAND_STEPS_MAX; i++)
        then[i] = (struct scand_step){.pass_count = 1};
    scan.then_count = 1;
    check_refused(&scan, "then is NULL, but then_count is 1");
    scan.then = then;
    scan.then_count = SCAND_STEPS_MAX + 1;
    check_refused(&scan, "then_count is 9: at most 8 further steps");
    scan.then_count = SCAND_STEPS_MAX;
    then[7].pass_count = 3;
    check_refused(&scan, "then[7].pass_count is 3");
    then[7] = (struct scand_step){.pass_count = 2, .passes = {SCAND_PASS_FORWARD, (enum scand_pass)2}};
    check_refused(&scan, "then[7].passes[1] is 2");
    then[7] = (struct scand_step){.pass_count = 1, .op = SCAND_OPERATOR_MIN, .kind = (enum scand_kind)3};
    check_refused(&scan, "then[7].kind is 3");
    CHECK_EQ(fake.seen[METHOD_job_submit], 0);
    then[7].kind = SCAND_KIND_EXCLUSIVE;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    CHECK_EQ(fake.then_count, SCAND_STEPS_MAX);
    CHECK_EQ(fake.then_op, SCAND_OPERATOR_MIN);
    rig_end();
}

/* It would ignore the steps, and say that all is done. */
static void test_daemon_without_steps(void)
{
    rig_begin();
    struct scand *other = NULL;
    struct scand_buffer *buffer = NULL;
    struct scand_job *job = NULL;
    fake.job_steps = 0;
    CHECK_EQ(scand_connect(fake.path, "other", &other), SCAND_OK);
    CHECK_EQ(scand_buffer_create(other, SCAND_PLACE_HOST, BYTES, &buffer), SCAND_OK);
    struct scand_scan scan = scan_of(buffer, buffer);
    scan.then = &(struct scand_step){.pass_count = 1};
    scan.then_count = 1;
    CHECK_EQ(scand_submit(other, &scan, &job), SCAND_UNSUPPORTED);
    CHECK_CONTAINS(scand_message(other), "then_count is 1: this daemon (fake 1) takes 0 further steps: submit them as");
    CHECK_EQ(fake.seen[METHOD_job_submit], 0);
    scan.then_count = 0;
    CHECK_EQ(scand_submit(other, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    CHECK_EQ(fake.then_count, 0);
    scand_disconnect(other);
    rig_end();
}

static void test_tensor_pack(void)
{
    struct scand_tensor tensor = {.dtype = SCAND_DTYPE_F64, .rank = 3, .shape = {2, 3, 5}};
    scand_tensor_pack(&tensor);
    CHECK_EQ(tensor.strides[0], 120);
    CHECK_EQ(tensor.strides[1], 40);
    CHECK_EQ(tensor.strides[2], 8);
    tensor.dtype = (enum scand_dtype)77;
    scand_tensor_pack(&tensor);
    tensor = (struct scand_tensor){.rank = 9};
    scand_tensor_pack(&tensor);
}

static void test_foreign_loop(void)
{
    rig_begin();
    struct scand_buffer *buffer = buffer_of(BYTES);
    struct scand_scan scan = scan_of(buffer, buffer);
    struct scand_job *job = NULL;
    CHECK_EQ(scand_dispatch(session), SCAND_OK);
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    for (int i = 0; i < 100 && !scand_job_done(job); i++) {
        struct pollfd poller = {.fd = scand_fd(session), .events = POLLIN};
        CHECK_EQ(poll(&poller, 1, 5000), 1);
        CHECK_EQ(scand_dispatch(session), SCAND_OK);
    }
    CHECK_EQ(scand_wait(job, 0, NULL), SCAND_OK);
    rig_end();
}

static void test_status(void)
{
    CHECK(strcmp(scand_status_word(SCAND_BUSY), "busy") == 0);
    CHECK_CONTAINS(scand_status_text(SCAND_LOST), "lost");
    CHECK_EQ(scand_status_exit_code(SCAND_UNAVAILABLE), 69);
    CHECK_EQ(scand_status_exit_code(SCAND_OK), 0);
    CHECK_EQ(scand_status_exit_code(12345), 70);
    CHECK(scand_status_word(-1) != NULL);
}

static void test_no_answer(void)
{
    rig_begin();
    struct scand_buffer *buffer = NULL;
    fake.silent_on = METHOD_server_ping;
    CHECK_EQ(scand_ping(session, NULL), SCAND_TIMED_OUT);
    CHECK_CONTAINS(scand_message(session), "server.ping");
    fake.silent_on = FAKE_NONE;
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    /* A buffer that comes too late is given back. */
    fake.late_ms = CALL_MS * 3 / 2;
    fake.late_on = METHOD_buffer_create;
    CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_HOST, 20000, &buffer), SCAND_TIMED_OUT);
    fake.late_on = FAKE_NONE;
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_buffer_release], 1);
    /* But one that may wait for its memory has that much longer. */
    fake.late_on = METHOD_buffer_create;
    CHECK_EQ(scand_buffer_create_wait(session, 100, SCAND_WAIT_MS_MAX, &buffer), SCAND_OK);
    CHECK_EQ(fake.wait_ms, SCAND_WAIT_MS_MAX);
    fake.late_on = FAKE_NONE;
    CHECK_EQ(scand_buffer_release(buffer), SCAND_OK);
    buffer = buffer_of(100);
    CHECK_EQ(scand_buffer_release(buffer), SCAND_OK);
    rig_end();
}

static void test_garbage(void)
{
    rig_begin();
    struct scand_buffer *buffer = buffer_of(BYTES);
    struct scand_scan scan = scan_of(buffer, buffer);
    struct scand_job *job = NULL;
    for (int garbage = 0; garbage < FAKE_GARBAGE_MESSAGES; garbage++) {
        fake.garbage = garbage;
        fake.garbage_on = METHOD_server_stats;
        struct scand_counter counter;
        size_t count;
        CHECK_EQ(scand_stats(session, &counter, sizeof counter, 1, &count), SCAND_MALFORMED);
        CHECK_CONTAINS(scand_message(session), fake.path);
        fake.garbage_on = METHOD_job_submit;
        CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
        CHECK_EQ(scand_wait(job, -1, NULL), SCAND_MALFORMED);
        scand_job_release(job);
    }
    fake.garbage = FAKE_GARBAGE_MESSAGES;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_wait(job, -1, NULL), SCAND_OK);
    fake.garbage_on = METHOD_hello;
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK);
    rig_end();
}

/* As many jobs as the daemon takes of a connection: submitting says so, and not the job's wait. */
static void test_busy(void)
{
    rig_begin();
    fake.client_jobs = 2;
    struct scand *other = NULL;
    CHECK_EQ(scand_connect(fake.path, "busy", &other), SCAND_OK);
    scand_disconnect(session);
    session = other;
    struct scand_buffer *buffer = buffer_of(BYTES);
    struct scand_scan scan = scan_of(buffer, buffer);
    struct scand_job *none = NULL, *first, *second;
    fake.hold = 1;
    first = submit(buffer, buffer);
    CHECK_EQ(scand_wait_room(session, -1), SCAND_OK);
    second = submit(buffer, buffer);
    CHECK_EQ(scand_submit(session, &scan, &none), SCAND_BUSY);
    CHECK_CONTAINS(scand_message(session), "2 jobs of this connection have not ended, and the daemon takes 2");
    CHECK(scand_retry_ms(session) > 0);
    CHECK_EQ(scand_submit_many(session, &scan, 1, &none), SCAND_BUSY);
    CHECK_EQ(scand_wait_room(session, 1), SCAND_TIMED_OUT);
    CHECK_EQ(scand_cancel(second), SCAND_OK);
    CHECK_EQ(scand_wait_room(session, -1), SCAND_OK);
    CHECK_EQ(fake.seen[METHOD_job_submit], 2);
    fake.hold = 0;
    struct scand_job *third = submit(buffer, buffer);
    CHECK_EQ(scand_wait(third, -1, NULL), SCAND_OK);
    CHECK_EQ(scand_ping(session, NULL), SCAND_OK); /* upon which held jobs end */
    CHECK_EQ(scand_wait(first, -1, NULL), SCAND_OK);
    CHECK(none == NULL);
    rig_end();
}

/* The daemon's own word: its time is waited for, or the end of another job. */
static void test_room_after_busy(void)
{
    rig_begin();
    struct scand_buffer *buffer = buffer_of(BYTES);
    fake.fail_on = METHOD_job_submit;
    fake.fail_code = -EAGAIN;
    CHECK_EQ(scand_wait(submit(buffer, buffer), -1, NULL), SCAND_BUSY);
    CHECK_EQ(scand_wait_room(session, 0), SCAND_TIMED_OUT);
    CHECK_EQ(scand_wait_room(session, -1), SCAND_OK);
    CHECK_EQ(scand_wait(submit(buffer, buffer), -1, NULL), SCAND_BUSY);
    fake.fail_on = FAKE_NONE;
    CHECK_EQ(scand_wait(submit(buffer, buffer), -1, NULL), SCAND_OK);
    CHECK_EQ(scand_wait_room(session, 0), SCAND_OK);
    rig_end();
}

static void test_random_bytes(void)
{
    rig_begin();
    fake.random = random_seed();
    fake.garbage = FAKE_GARBAGE_RANDOM;
    fake.garbage_on = METHOD_server_devices;
    for (int i = 0; i < 200; i++) {
        struct msg_devices_result result;
        struct call call = {.method = METHOD_server_devices, .params = &i, .result = &result, .timeout_ms = 5};
        SESSION_GUARD(session);
        int code = call_run(session, &call);
        /* Bytes that promise more leave the call waiting. */
        CHECK(code == -EBADMSG || code == -ETIMEDOUT);
    }
    fake.garbage_on = FAKE_NONE;
    (void)scand_ping(session, NULL);
    rig_end();
}

/* What a daemon may claim of a buffer that it made. */
static void test_lies_about_buffers(void)
{
    rig_begin();
    struct scand_buffer *buffer = NULL;
    fake.lie = 1;
    CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_HOST, 20000, &buffer), SCAND_MALFORMED);
    CHECK_CONTAINS(scand_message(session), "descriptors");
    fake.lie = 2;
    CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_HOST, 20000, &buffer), SCAND_DESCRIPTOR);
    fake.lie = 3;
    CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_HOST, 20000, &buffer), SCAND_DESCRIPTOR);
    fake.lie = 4;
    CHECK_EQ(scand_buffer_create(session, SCAND_PLACE_HOST, 20000, &buffer), SCAND_MALFORMED);
    CHECK(buffer == NULL);
    fake.lie = 0;
    buffer = buffer_of(20000);
    rig_end();
}

/* Disconnecting frees what is still there, jobs that run included. */
static void test_disconnect(void)
{
    rig_begin();
    struct scand_buffer *buffer = buffer_of(BYTES);
    struct scand_scan scan = scan_of(buffer, buffer);
    struct scand_job *job = NULL;
    fake.hold = 1;
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    CHECK_EQ(scand_submit(session, &scan, &job), SCAND_OK);
    scand_job_release(job);
    rig_end();
}

static const struct test tests[] = {TEST(test_connect),
                                    TEST(test_connect_fails),
                                    TEST(test_connect_names_places),
                                    TEST(test_connect_to_a_slow_daemon),
                                    TEST(test_server),
                                    TEST(test_jobs),
                                    TEST(test_clients),
                                    TEST(test_histograms),
                                    TEST(test_cancel_job),
                                    TEST(test_trace),
                                    TEST(test_rude_texts),
                                    TEST(test_buffer_create),
                                    TEST(test_buffer_import),
                                    TEST(test_job),
                                    TEST(test_many_jobs),
                                    TEST(test_cancel),
                                    TEST(test_progress),
                                    TEST(test_ending),
                                    TEST(test_local_checks),
                                    TEST(test_steps),
                                    TEST(test_daemon_without_steps),
                                    TEST(test_tensor_pack),
                                    TEST(test_foreign_loop),
                                    TEST(test_status),
                                    TEST(test_no_answer),
                                    TEST(test_busy),
                                    TEST(test_room_after_busy),
                                    TEST(test_garbage),
                                    TEST(test_random_bytes),
                                    TEST(test_lies_about_buffers),
                                    TEST(test_disconnect),
                                    TEST_END};

int main(int argc, char **argv)
{
    return test_main(argc, argv, tests);
}

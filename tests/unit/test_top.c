/* The forms that scanctl gives to the daemon's numbers: the screen of top, and metrics for Prometheus. */
#include "client/scanctl/commands/top_view.h"
#include "client/scanctl/ui/chrome_trace.h"
#include "kernels/tutorial/reduce/reduce.h"
#include "kernels/tutorial/scan/variants.h"
#include "kernels/tutorial/steps/steps.h"
#include "protocol/metrics.h"
#include "tests/check.h"

#define KERNELS ((int)VARIANT_COUNT + (int)REDUCTION_COUNT + (int)STEP_VARIANT_COUNT)

_Static_assert(DEVICES_MAX >= LIMIT_MAPS && KERNELS_MAX >= KERNELS && COUNTERS_MAX >= METRICS_COUNTERS,
               "scanctl has room for what a daemon lists");
_Static_assert(JOBS_MAX >= LIMIT_JOBS && CLIENTS_MAX >= LIMIT_CLIENTS && EVENTS_MAX >= LIMIT_TRACE,
               "the same, where lists are read page by page");
_Static_assert(CHROME_TRACE_SLOTS >= LIMIT_CHUNKS_IN_FLIGHT + LIMIT_SMALL_CHUNKS, "chunks of a device have a row each");

static char *text;
static size_t text_size;

static FILE *text_begin(void)
{
    free(text);
    text = NULL;
    return open_memstream(&text, &text_size);
}

static struct snapshot snapshot_of(uint64_t uptime_us, uint64_t busy_us, struct scand_client_info *clients,
                                   size_t count)
{
    return (struct snapshot){
        .counters = {{"uptime_us", uptime_us, "", 0},
                     {"device_busy_us", busy_us, "", 1},
                     {"upload_bytes", 3 * busy_us, "", 1},
                     {"jobs_done", busy_us / 1000, "", 1}},
        .counter_count = 4,
        .devices = {{.name = "a device",
                     .backend = "cpu",
                     .memory_limit_bytes = 1 << 30,
                     .busy_us = busy_us,
                     .upload_bytes = 3 * busy_us}},
        .device_count = 1,
        .clients = clients,
        .client_count = count,
    };
}

static unsigned columns = TOP_WIDE;
static enum top_sort sort;
static bool colours;

static const char *top_of(const struct snapshot *before, const struct snapshot *now, size_t lines)
{
    FILE *file = text_begin();
    const struct top_view view = {.columns = columns, .lines = lines, .sort = sort, .colours = colours};
    top_text(file, "scand 1", before, now, &view);
    fclose(file);
    return text;
}

static void rates_are_between_two_looks(void)
{
    struct scand_client_info old[] = {{.client = 1, .device_busy_us = 100}, {.client = 3, .device_busy_us = 500}};
    struct scand_client_info new[] = {{.client = 2, .name = "newcomer", .device_busy_us = 400000},
                                      {.client = 3, .name = "known", .device_busy_us = 500500, .samples_scanned = 10}};
    struct snapshot before = snapshot_of(7000000, 1000000, old, 2), now = snapshot_of(9000000, 2000000, new, 2);
    top_of(&before, &now, 10);
    CHECK_CONTAINS(text, "busy  50.0 %");
    CHECK_CONTAINS(text, "upload 1.4 MiB/s");
    CHECK_CONTAINS(text, "500.0 jobs/s");
    CHECK(strstr(text, " 25.0 %") && strstr(text, " 20.0 %") && strstr(text, "known") < strstr(text, "newcomer"));
    /* No time has passed. */
    CHECK_CONTAINS(top_of(&now, &now, 10), "busy   0.0 %");
}

/* Times are of all devices together, so that the whole is 100 %. */
static void devices_are_told_apart(void)
{
    struct scand_client_info old = {.client = 1}, new = {.client = 1, .device_busy_us = 1600000};
    struct snapshot before = snapshot_of(7000000, 1000000, &old, 1), now = snapshot_of(9000000, 3000000, &new, 1);
    before.device_count = now.device_count = 2;
    before.devices[1] = (struct scand_device){.name = "another", .backend = "cpu", .busy_us = 500000};
    now.devices[1] = (struct scand_device){.name = "another", .backend = "cpu", .busy_us = 700000, .chunks_open = 3};
    top_of(&before, &now, 10);
    CHECK_CONTAINS(text, "a device  memory 0 B of 1.0 GiB\nbusy 100.0 %  chunks 0  upload 2.9 MiB/s");
    CHECK_CONTAINS(text, "another  memory 0 B of 0 B\nbusy  10.0 %  chunks 3  upload 0 B/s");
    CHECK_CONTAINS(text, " 40.0 %");
    FILE *file = text_begin();
    metrics_devices(file, now.devices, 2);
    fclose(file);
    CHECK_CONTAINS(text, "# TYPE scand_device_busy_seconds_total counter\n"
                         "scand_device_busy_seconds_total{device=\"0\",backend=\"cpu\",name=\"a device\"} 3.000000\n"
                         "scand_device_busy_seconds_total{device=\"1\",backend=\"cpu\",name=\"another\"} 0.700000\n");
    CHECK_CONTAINS(text, "scand_device_chunks_open{device=\"1\",backend=\"cpu\",name=\"another\"} 3\n");
}

/* The earlier snapshot was at another worker. */
static void rates_after_a_restart(void)
{
    struct scand_client_info old = {.client = 1, .device_busy_us = 900000};
    struct scand_client_info new = {.client = 1, .device_busy_us = 100000, .name = "again"};
    struct snapshot before = snapshot_of(9000000, 8000000, &old, 1), now = snapshot_of(1000000, 250000, &new, 1);
    top_of(&before, &now, 10);
    CHECK_CONTAINS(text, "busy  25.0 %");
    CHECK_CONTAINS(text, " 10.0 %");
}

static void long_lists_are_cut(void)
{
    struct scand_client_info clients[5] = {{.client = 1}, {.client = 2}, {.client = 3}, {.client = 4}, {.client = 5}};
    struct scand_job_info jobs[4] = {{.job = 11, .rows = 4},
                                     {.job = 12, .rows = 4},
                                     {.job = 13, .rows = 4, .rows_done = 3, .state = SCAND_JOB_STATE_RUNNING},
                                     {.job = 14, .rows = 0, .state = SCAND_JOB_STATE_STOPPING}};
    struct snapshot snapshot = snapshot_of(1, 1, clients, 5);
    snapshot.jobs = jobs;
    snapshot.job_count = 4;
    top_of(&snapshot, &snapshot, 4);
    CHECK_CONTAINS(text, "and 3 more");
    CHECK_CONTAINS(text, "      13 root         running  [###############     ]  75 %");
    CHECK_CONTAINS(text, "stopping [####################] 100 %");
    CHECK_CONTAINS(text, "and 2 more");
    CHECK(!strstr(text, "queued   ["));
    CHECK_CONTAINS(top_of(&snapshot, &snapshot, 8), "      11 root         queued   [                    ]   0 %");
    CHECK_CONTAINS(text, "and 1 more");
    /* Lines that one list leaves free are given to the other. */
    snapshot.job_count = 1;
    top_of(&snapshot, &snapshot, 6);
    CHECK(!strstr(text, "more"));
}

/* Screens of 80 columns show everything that says what runs, and for whom. */
static void narrow_screens(void)
{
    struct scand_client_info client = {
        .client = 3, .pid = 17, .host_bytes = 3 << 20, .jobs_running = 1, .name = "scanctl"};
    struct scand_job_info jobs[2] = {{.job = 1234567,
                                      .client = 3,
                                      .rows = 4,
                                      .rows_done = 1,
                                      .age_us = 61000000,
                                      .state = SCAND_JOB_STATE_RUNNING,
                                      .operation = "scan sum forward,backward f32",
                                      .name = "scanctl shot.su"},
                                     {.job = 9, .rows_done = 5, .state = SCAND_JOB_STATE_RUNNING}};
    struct snapshot snapshot = snapshot_of(1, 1, &client, 1);
    snapshot.jobs = jobs;
    snapshot.job_count = 2;
    columns = 80;
    top_of(&snapshot, &snapshot, 9);
    CHECK_CONTAINS(text, "      3 root       0.0 %      0   1   3.0 MiB         0  scanctl\n");
    CHECK_CONTAINS(text, "1234567 root     running   25 %  61.00 s scanctl shot.su    scan sum forward,backward f32\n");
    CHECK_CONTAINS(text, "      9 root     running      - ");
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        CHECK(strncmp(line, "1234567", 7) == 0 || strcspn(line, "\n") <= 81);
    CHECK(!strstr(text, "\033"));
    colours = true;
    top_of(&snapshot, &snapshot, 9);
    CHECK_CONTAINS(text, "\033[7m client user ");
    CHECK_CONTAINS(text, "\033[32mrunning \033[0m  25 %");
    colours = false;
    columns = TOP_WIDE;
}

static void programs_are_sorted(void)
{
    struct scand_client_info clients[3] = {{.client = 1, .name = "most time", .device_busy_us = 500},
                                           {.client = 2, .name = "large", .host_bytes = 5, .device_bytes = 7},
                                           {.client = 3, .name = "fast", .samples_scanned = 9, .host_bytes = 11}};
    const char *const orders[TOP_SORT_COUNT] = {"most time", "large", "fast", "most time"};
    struct snapshot before = snapshot_of(1000, 0, NULL, 0), now = snapshot_of(2000, 500, clients, 3);
    for (sort = 0; sort < TOP_SORT_COUNT; sort++) {
        top_of(&before, &now, 20);
        const char *first = strstr(text, orders[sort]);
        for (size_t i = 0; i < 3; i++)
            CHECK(first && first <= strstr(text, clients[i].name));
    }
    sort = TOP_SORT_DEVICE;
}

static void keys_are_told(void)
{
    struct top_view view = {.columns = 80, .sort = TOP_SORT_RATE};
    FILE *file = text_begin();
    top_help(file, &view, 500);
    fclose(file);
    CHECK(strcmp(text, "q quit   sort by: device memory [rate] client   + - every 0.5 s   space stops") == 0);
    file = text_begin();
    top_help(file, &view, 0);
    top_away(file, &view, 2500000, "no answer");
    fclose(file);
    CHECK_CONTAINS(text, "stopped: space goes onthe daemon is away, for 2.50 s: no answer\n");
}

static void labels_are_escaped(void)
{
    const struct scand_device device = {.name = "a \"b\" \\ \n", .backend = "cpu", .memory_used_bytes = 7};
    FILE *file = text_begin();
    metrics_devices(file, &device, 1);
    fclose(file);
    CHECK_CONTAINS(text,
                   "scand_device_memory_used_bytes{device=\"0\",backend=\"cpu\",name=\"a \\\"b\\\" \\\\ \\n\"} 7\n");
}

static void counters_get_their_names(void)
{
    const struct scand_counter counters[] = {{"jobs_done", 5, "jobs", 1},
                                             {"busy_us", 1000001, "busy", 1},
                                             {"uptime_us", 2, "up", 0},
                                             {"us", 3, "us", 0},
                                             {"device_busy_us", 9, "", 1}};
    FILE *file = text_begin();
    metrics_counters(file, counters, 5);
    fclose(file);
    CHECK_CONTAINS(text, "# TYPE scand_jobs_done_total counter\nscand_jobs_done_total 5\n");
    CHECK_CONTAINS(text, "scand_busy_seconds_total 1.000001\n");
    CHECK_CONTAINS(text, "# TYPE scand_uptime_seconds gauge\nscand_uptime_seconds 0.000002\n");
    CHECK_CONTAINS(text, "scand_us 3\n");
    CHECK(!strstr(text, "scand_device_busy"));
}

static void buckets_add_up(void)
{
    const struct scand_histogram histogram = {.name = "job_queued",
                                              .text = "of jobs",
                                              .bound_count = 2,
                                              .bounds_us = {25, 2500000},
                                              .counts = {1, 2, 4},
                                              .sum_us = 7000000};
    FILE *file = text_begin();
    metrics_histograms(file, &histogram, 1);
    fclose(file);
    CHECK_CONTAINS(text, "# TYPE scand_job_queued_seconds histogram\n"
                         "scand_job_queued_seconds_bucket{le=\"2.5e-05\"} 1\n"
                         "scand_job_queued_seconds_bucket{le=\"2.5\"} 3\n"
                         "scand_job_queued_seconds_bucket{le=\"+Inf\"} 7\n"
                         "scand_job_queued_seconds_sum 7.000000\n"
                         "scand_job_queued_seconds_count 7\n");
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(rates_are_between_two_looks),
        TEST(rates_after_a_restart),
        TEST(devices_are_told_apart),
        TEST(long_lists_are_cut),
        TEST(narrow_screens),
        TEST(programs_are_sorted),
        TEST(keys_are_told),
        TEST(labels_are_escaped),
        TEST(counters_get_their_names),
        TEST(buckets_add_up),
        TEST_END,
    };
    int failed = test_main(argc, argv, tests);
    free(text);
    return failed;
}

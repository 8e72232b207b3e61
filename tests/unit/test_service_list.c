/* The requests by which people watch and steer the service: server.jobs, server.clients, server.users, server.cancel,
 * times. */
#include "tests/unit/list_rig.h"

static uint32_t submit(struct caller *user, uint64_t buffer, uint64_t rows, uint64_t first)
{
    struct msg_job_submit_params params = in_place(buffer, first, rows, 2);
    params.priority = SCAND_PRIORITY_LOW;
    return ask(user, METHOD_job_submit, &params);
}

static struct msg_clients_result clients_from(struct caller *user, uint64_t from)
{
    struct msg_clients_result result = {0};
    CHECK(granted(user, METHOD_server_clients, &(struct msg_page_params){from}, &result));
    return result;
}

static void jobs_are_listed(void)
{
    uint64_t buffer;
    struct caller *anna = begin_with_buffer(&buffer);
    CHECK_EQ(jobs_from(anna, 0).jobs_count, 0);
    submit(anna, buffer, 10, 0);
    rig.now_us += 30;
    submit(anna, buffer, 5, 10);
    rig.now_us += 500;
    rig_complete(0, 0);
    struct msg_jobs_result all = jobs_from(anna, 0);
    CHECK(all.jobs_count == 2 && all.next == 0);
    const struct msg_job_row *first = &all.jobs[0], *second = &all.jobs[1];
    CHECK(first->job == 1 && second->job == 2);
    CHECK(first->client == 1 && first->user == ANNA);
    CHECK(strcmp(first->name, "test") == 0 && strcmp(first->operation, "scan sum forward,backward f32") == 0);
    CHECK(first->state == SCAND_JOB_STATE_RUNNING && second->state == SCAND_JOB_STATE_QUEUED);
    CHECK_EQ(first->priority, SCAND_PRIORITY_LOW);
    CHECK(first->rows == 10 && first->rows_done == 4);
    CHECK_EQ(first->bytes, 2 * 10 * RIG_ROW_BYTES);
    CHECK(first->age_us == 530 && first->running_us == 530);
    CHECK(second->age_us == 500 && second->running_us == 0);
    rig_complete_all();
    CHECK_EQ(next_answer(anna, NULL, NULL).msgid, 4);
    CHECK_EQ(next_answer(anna, NULL, NULL).msgid, 5);
    CHECK_EQ(jobs_from(anna, 0).jobs_count, 0);
    rig_end();
}

static void one_pass_is_named_alone(void)
{
    uint64_t buffer;
    struct caller *anna = begin_with_buffer(&buffer);
    struct msg_tensor row = {.buffer = buffer,
                             .dtype = SCAND_DTYPE_I64,
                             .shape = {10},
                             .shape_count = 1,
                             .strides = {8},
                             .strides_count = 1};
    struct msg_job_submit_params params = {.input = row, .output = row, .passes_count = 1, .op = SCAND_OPERATOR_MAX};
    ask(anna, METHOD_job_submit, &params);
    CHECK_CONTAINS(jobs_from(anna, 0).jobs[0].operation, "scan max forward i64");
    rig_end();
}

/* Ends of pages: one short of a page, a page, and one more. */
static void jobs_come_in_pages(void)
{
    uint64_t buffer;
    struct caller *anna = begin_with_buffer(&buffer);
    for (uint64_t i = 0; i < LIMIT_MAPS - 1; i++)
        submit(anna, buffer, 1, i);
    struct msg_jobs_result page = jobs_from(anna, 0);
    CHECK(page.jobs_count == LIMIT_MAPS - 1 && page.next == 0);
    submit(anna, buffer, 1, LIMIT_MAPS);
    page = jobs_from(anna, 0);
    CHECK(page.jobs_count == LIMIT_MAPS && page.next == 0);
    submit(anna, buffer, 1, LIMIT_MAPS + 1);
    page = jobs_from(anna, 0);
    CHECK(page.jobs_count == LIMIT_MAPS && page.next == LIMIT_MAPS + 1);
    for (uint32_t i = 0; i < page.jobs_count; i++)
        CHECK_EQ(page.jobs[i].job, i + 1);
    page = jobs_from(anna, page.next);
    CHECK(page.jobs_count == 1 && page.jobs[0].job == LIMIT_MAPS + 1 && page.next == 0);
    page = jobs_from(anna, LIMIT_MAPS);
    CHECK(page.jobs_count == 2 && page.jobs[0].job == LIMIT_MAPS);
    CHECK_EQ(jobs_from(anna, LIMIT_MAPS + 2).jobs_count, 0);
    CHECK_EQ(jobs_from(anna, UINT64_MAX).jobs_count, 0);
    rig_end();
}

/* Pages mix the jobs of several clients, by their numbers, whoever has them. */
static void pages_mix_clients(void)
{
    uint64_t buffers[2];
    struct caller *users[2] = {begin_with_buffer(&buffers[0]), user_greet(BERT)};
    buffers[1] = user_create(users[1], 200 * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    for (uint64_t i = 0; i < 2 * LIMIT_MAPS; i++)
        submit(users[i % 2], buffers[i % 2], 1, i);
    struct msg_jobs_result page = jobs_from(users[0], 5);
    CHECK(page.jobs_count == LIMIT_MAPS && page.next == LIMIT_MAPS + 5);
    for (uint32_t i = 0; i < page.jobs_count; i++)
        CHECK(page.jobs[i].job == i + 5 && page.jobs[i].user == (i % 2 ? BERT : ANNA));
    rig_end();
}

static void clients_are_listed(void)
{
    uint64_t buffer;
    struct caller *anna = begin_with_buffer(&buffer);
    user_create(anna, 1000, SCAND_PLACE_DEVICE);
    anna->client->pid = 4321;
    submit(anna, buffer, 8, 0);
    submit(anna, buffer, 4, 8);
    rig.now_us += 70;
    rig_complete(0, 0);
    rig_complete(0, 0);
    rig.now_us += 7;
    CHECK(!next_answer(anna, NULL, NULL).failed);
    struct msg_clients_result all = clients_from(anna, 0);
    CHECK(all.clients_count == 1 && all.next == 0);
    const struct msg_client_row *row = &all.clients[0];
    CHECK(row->client == 1 && row->user == ANNA && row->pid == 4321 && strcmp(row->name, "test") == 0);
    CHECK(row->buffers == 2 && row->host_bytes == 200 * RIG_ROW_BYTES && row->device_bytes == 1000);
    CHECK(row->jobs_queued == 0 && row->jobs_running == 1 && row->jobs_done == 1);
    CHECK(row->rows_scanned == 8 && row->samples_scanned == 800);
    CHECK(row->device_busy_us == 77 && row->age_us == 77);
    rig_end();
}

/* Small jobs are charged by bytes, however long they are out, beside a chunk of four rows. */
static void small_jobs_are_charged_by_bytes(void)
{
    uint64_t buffer;
    rig_begin();
    rig.manual.device.info.small_slots = 1;
    rig.manual.device.info.small_bytes = RIG_ROW_BYTES;
    scheduler_init(&rig.service.scheduler, &rig.devices);
    struct caller *anna = user_greet(ANNA), *bert = user_greet(BERT);
    buffer = user_create(anna, 4 * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    submit(anna, buffer, 4, 0);
    buffer = user_create(bert, RIG_ROW_BYTES, SCAND_PLACE_HOST);
    submit(bert, buffer, 1, 0);
    rig.now_us += 500;
    struct msg_clients_result all = clients_from(anna, 0);
    CHECK(all.clients[0].device_busy_us == 400 && all.clients[1].device_busy_us == 100);
    rig_complete_all();
    CHECK(!next_answer(anna, NULL, NULL).failed);
    rig.now_us += 500;
    all = clients_from(anna, 0);
    CHECK(all.clients[0].device_busy_us == 400 && all.clients[1].device_busy_us == 100);
    rig_end();
}

/* The usage that each connection shows is its user's on all connections; the quotas are those of the settings. */
static void clients_show_quotas(void)
{
    uint64_t buffer;
    struct caller *anna = begin_with_buffer(&buffer), *again = user_greet(ANNA), *bert = user_greet(BERT);
    struct grants grants = {.standard = {.weight = 1, .most = {1, 2, 3, 4}}};
    uint64_t host_bytes = anna->client->user->used[QUOTA_HOST_MEMORY];
    user_create(again, 1000, SCAND_PLACE_DEVICE);
    submit(anna, buffer, 4, 0);
    service_configure(&rig.service, &grants);
    struct msg_clients_result all = clients_from(bert, 0);
    CHECK_EQ(all.clients_count, 3);
    for (int i = 0; i < 3; i++) {
        const struct msg_client_row *row = &all.clients[i];
        bool annas = i < 2;
        CHECK(row->user_host_bytes == (annas ? host_bytes : 0) && row->quota_host_bytes == 1);
        CHECK(row->user_device_bytes == (annas ? 1000 : 0) && row->quota_device_bytes == 2);
        CHECK(row->user_jobs == annas && row->quota_jobs == 3);
        CHECK(row->user_connections == (annas ? 2 : 1) && row->quota_connections == 4);
    }
    CHECK(host_bytes > 0);
    rig_end();
}

static struct msg_users_result users_from(struct caller *caller, uint64_t from)
{
    struct msg_users_result result = {0};
    CHECK(granted(caller, METHOD_server_users, &(struct msg_page_params){from}, &result));
    return result;
}

/* A user's row, from the first page. */
static struct msg_user_row user_row(struct caller *caller, uid_t uid)
{
    const struct msg_users_result all = users_from(caller, 0);
    for (uint32_t i = 0; i < all.users_count; i++)
        if (all.users[i].user == uid)
            return all.users[i];
    CHECK(!"listed");
    return (struct msg_user_row){0};
}

static void users_are_listed(void)
{
    uint64_t buffer;
    struct caller *anna = begin_with_buffer(&buffer), *bert = user_greet(BERT);
    const struct grants grants = {.standard = {.weight = 1, .most = {1, 2, 3, 4, 5}}};
    const uint64_t host_bytes = anna->client->user->used[QUOTA_HOST_MEMORY];
    user_create(bert, 1000, SCAND_PLACE_DEVICE);
    submit(anna, buffer, 8, 0);
    submit(anna, buffer, 4, 8);
    service_configure(&rig.service, &grants);
    rig.now_us += 70;
    const struct msg_user_row first = user_row(bert, ANNA), second = user_row(bert, BERT);
    CHECK(first.connections == 1 && first.connections_quota == 4 && first.jobs == 2 && first.jobs_quota == 3);
    CHECK(first.host_bytes == host_bytes && first.host_quota_bytes == 1 && first.pinned_quota_bytes == 5);
    CHECK(first.jobs_done == 0 && first.queued_us == 0 && first.device_busy_us == 70);
    CHECK(second.connections == 1 && second.device_bytes == 1000 && second.device_quota_bytes == 2);
    CHECK(second.jobs == 0 && second.device_busy_us == 0);
    rig_end();
}

/* Numbers of a user outlive connections, and the sums among them never fall. */
static void users_come_back(void)
{
    uint64_t buffer;
    struct caller *anna = begin_with_buffer(&buffer), *bert = user_greet(BERT);
    submit(anna, buffer, 8, 0);
    submit(anna, buffer, 4, 8);
    rig.now_us += 70;
    rig_complete(0, 0);
    rig_complete(0, 0);
    rig.now_us += 7;
    CHECK_EQ(user_row(bert, ANNA).device_busy_us, 77);
    user_close(anna);
    struct msg_user_row row = user_row(bert, ANNA);
    CHECK(row.connections == 0 && row.jobs_done == 1 && row.device_busy_us == 77);
    rig.now_us += 100; /* a chunk of the connection that is gone is still out */
    CHECK_EQ(user_row(bert, ANNA).device_busy_us, 77);
    rig_complete_all();
    row = user_row(bert, ANNA);
    CHECK(row.jobs == 0 && row.jobs_cancelled == 1 && row.host_bytes == 0 && row.device_busy_us == 177);
    user_greet(ANNA);
    row = user_row(bert, ANNA);
    CHECK(row.connections == 1 && row.jobs_done == 1 && row.jobs_cancelled == 1 && row.device_busy_us == 177);
    rig_end();
}

/* The third job waits until a chunk of the first one has come back. */
static void waiting_is_counted(void)
{
    uint64_t buffer;
    struct caller *anna = begin_with_buffer(&buffer), *bert = user_greet(BERT);
    const uint64_t own = user_create(bert, ROWS * RIG_ROW_BYTES, SCAND_PLACE_HOST);
    submit(anna, buffer, 4, 0);
    submit(anna, buffer, 4, 4);
    submit(bert, own, 4, 0);
    rig.now_us += 50;
    rig_complete_all();
    CHECK(!next_answer(bert, NULL, NULL).failed);
    CHECK_EQ(user_row(bert, ANNA).queued_us, 0);
    CHECK_EQ(user_row(bert, BERT).queued_us, 50);
    CHECK_EQ(rig.service.histograms.job_queued.sum_us, 50);
    rig_end();
}

static void users_come_in_pages(void)
{
    const uint64_t beyond[] = {LIMIT_MAPS + 8, LIMIT_USERS, UINT32_MAX, UINT64_MAX};
    rig_begin();
    struct caller *caller = user_greet(1000);
    for (uid_t i = 1; i < LIMIT_MAPS + 8; i++)
        CHECK(user_acquire(&rig.service.users, 1000 + i));
    struct msg_users_result page = users_from(caller, 0);
    CHECK(page.users_count == LIMIT_MAPS && page.next == LIMIT_MAPS);
    CHECK_EQ(page.users[LIMIT_MAPS - 1].user, 1000 + LIMIT_MAPS - 1);
    page = users_from(caller, page.next);
    CHECK(page.users_count == 8 && page.next == 0 && page.users[7].user == 1000 + LIMIT_MAPS + 7);
    for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++) {
        page = users_from(caller, beyond[i]);
        CHECK(page.users_count == 0 && page.next == 0);
    }
    for (uid_t i = 1; i < LIMIT_MAPS + 8; i++)
        user_unhold(user_find(&rig.service.users, 1000 + i));
    rig_end();
}

static void clients_come_in_pages(void)
{
    struct client *others[LIMIT_MAPS];
    rig_begin();
    struct caller *anna = user_greet(ANNA);
    for (size_t i = 0; i < LIMIT_MAPS; i++) {
        int ends[2];
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        close(ends[0]);
        others[i] = service_open(&rig.service, connection_create(ends[1]), BERT);
        struct msg_clients_result page = clients_from(anna, 0);
        CHECK_EQ(page.clients_count, i + 2 < LIMIT_MAPS ? i + 2 : LIMIT_MAPS);
        CHECK_EQ(page.next, i + 2 > LIMIT_MAPS ? LIMIT_MAPS + 1 : 0);
    }
    CHECK_EQ(clients_from(anna, LIMIT_MAPS + 1).clients[0].client, LIMIT_MAPS + 1);
    service_close(others[3]);
    struct msg_clients_result page = clients_from(anna, 0);
    CHECK(page.clients_count == LIMIT_MAPS && page.next == 0 && page.clients[4].client == 6);
    for (size_t i = 0; i < LIMIT_MAPS; i++)
        if (i != 3)
            service_close(others[i]);
    rig_end();
}

/* Details are private: root and the daemon's own user see everything, other users only who uses how much. */
static void details_are_private(void)
{
    uint64_t buffer;
    struct caller *anna = begin_with_buffer(&buffer), *again = user_greet(ANNA), *bert = user_greet(BERT);
    struct caller *root = user_greet(0), *owner = user_greet(RIG_OWNER);
    struct caller *all[] = {anna, again, root, owner, bert};
    anna->client->pid = 4321;
    submit(anna, buffer, 4, 0);
    for (size_t i = 0; i < 5; i++) {
        bool sees = all[i] != bert;
        struct msg_job_row job = jobs_from(all[i], 0).jobs[0];
        struct msg_client_row client = clients_from(all[i], 0).clients[0];
        CHECK_EQ(job.name[0] != 0 && job.operation[0] != 0, sees);
        CHECK_EQ(job.name[0] == 0 && job.operation[0] == 0, !sees);
        CHECK(strcmp(client.name, sees ? "test" : "") == 0 && client.pid == (sees ? 4321 : 0));
        CHECK(job.user == ANNA && job.rows == 4 && job.client == 1);
        CHECK(client.user == ANNA && client.host_bytes == 200 * RIG_ROW_BYTES && client.jobs_running == 1);
    }
    rig_end();
}

static const char *cancel_refused(struct caller *user, uint64_t number, enum scand_status status)
{
    return refused(user, METHOD_server_cancel, &(struct msg_job_number){number}, status);
}

static void who_may_cancel(void)
{
    const uid_t allowed[] = {ANNA, 0, RIG_OWNER};
    for (size_t i = 0; i < 3; i++) {
        uint64_t buffer;
        struct caller *anna = begin_with_buffer(&buffer), *bert = user_greet(BERT), *other = user_greet(allowed[i]);
        uint32_t running = submit(anna, buffer, 40, 0), queued = submit(anna, buffer, 4, 40);
        CHECK_CONTAINS(
            cancel_refused(bert, 2, SCAND_PERMISSION),
            "\"job\" is 2, which is not a job of user 1001; its own user, root and the daemon's own user 900");
        CHECK(is_silent(anna));
        CHECK(granted(other, METHOD_server_cancel, &(struct msg_job_number){2}, NULL));
        CHECK_CONTAINS(refusal(anna, queued, SCAND_CANCELLED), "cancelled by server.cancel");
        CHECK(granted(other, METHOD_server_cancel, &(struct msg_job_number){1}, NULL));
        CHECK(is_silent(anna)); /* its chunks are still out */
        CHECK_EQ(jobs_from(anna, 0).jobs[0].state, SCAND_JOB_STATE_STOPPING);
        rig_complete_all();
        CHECK_CONTAINS(refusal(anna, running, SCAND_CANCELLED), "cancelled by server.cancel");
        CHECK_EQ(rig.manual.started, 2);
        CHECK_CONTAINS(cancel_refused(other, 1, SCAND_NOT_FOUND), "it has ended, or never was");
        CHECK_CONTAINS(cancel_refused(bert, 1, SCAND_NOT_FOUND), "\"job\" is 1;");
        CHECK_CONTAINS(cancel_refused(other, 0, SCAND_NOT_FOUND), "\"job\" is 0;");
        CHECK_CONTAINS(cancel_refused(other, UINT64_MAX, SCAND_NOT_FOUND), "no such job is queued or running");
        rig_end();
    }
}

static uint64_t counted(const struct msg_histogram *histogram)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < histogram->counts_count; i++)
        all += histogram->counts[i];
    return all;
}

static void times_are_counted(void)
{
    uint64_t buffer;
    struct msg_histograms_result times;
    struct msg_stats_result stats;
    struct caller *anna = begin_with_buffer(&buffer);
    uint32_t failing = submit(anna, buffer, 8, 0), cancelled = submit(anna, buffer, 4, 8);
    rig_complete(0, -EIO);
    CHECK(granted(anna, METHOD_server_cancel, &(struct msg_job_number){2}, NULL));
    rig_complete_all();
    refusal(anna, failing, SCAND_DEVICE);
    refusal(anna, cancelled, SCAND_CANCELLED);
    uint32_t first = submit(anna, buffer, 8, 0), second = submit(anna, buffer, 4, 8);
    rig.now_us += 300;
    rig_complete_all();
    CHECK(answered(anna, first, METHOD_job_submit, NULL) && answered(anna, second, METHOD_job_submit, NULL));
    CHECK(granted(anna, METHOD_server_histograms, &(struct msg_nothing){}, &times));
    CHECK(counted(&times.job_queued) == 2 && times.job_queued.sum_us == 300);
    CHECK(counted(&times.job_duration) == 2 && times.job_duration.sum_us == 600);
    CHECK(counted(&times.chunk_kernel) == 5 && times.chunk_kernel.sum_us == 50);
    CHECK(times.bounds_us[1] == 10 && times.chunk_kernel.counts[1] == 5); /* each took 10 us, which is at most 10 */
    CHECK(granted(anna, METHOD_server_stats, &(struct msg_nothing){}, &stats));
    CHECK(stats.device_busy_us == 300 && stats.uptime_us == 300 && stats.chunks_open == 0);
    CHECK(stats.rows_scanned == 20 && stats.upload_bytes == 20 * RIG_ROW_BYTES);
    CHECK_EQ(stats.download_bytes, 20 * RIG_ROW_BYTES);
    rig_end();
}

/* A worker is lost at any moment, with a job under way. */
static void totals_go_on_with_the_next_service(void)
{
    uint64_t buffer;
    struct service_totals totals;
    struct msg_stats_result stats;
    struct msg_histograms_result times;
    struct caller *anna = begin_with_buffer(&buffer);
    submit(anna, buffer, 8, 0);
    rig.now_us += 300;
    rig_complete_all();
    submit(anna, buffer, 4, 8);
    service_totals(&rig.service, &totals);
    rig_end();
    rig_begin();
    service_resume(&rig.service, &totals, 1);
    uint64_t pool_bytes = rig.service.stats.pool_bytes;
    anna = user_greet(ANNA);
    CHECK(granted(anna, METHOD_server_stats, &(struct msg_nothing){}, &stats));
    CHECK(stats.restarts == 1 && stats.pool_bytes == pool_bytes && pool_bytes > 0);
    CHECK(stats.jobs_submitted == 2 && stats.jobs_done == 1 && stats.jobs_failed == 1 && stats.jobs_open == 0);
    CHECK(stats.rows_scanned == 8 && stats.upload_bytes == 8 * RIG_ROW_BYTES && stats.device_busy_us == 300);
    CHECK(stats.clients_accepted == 2 && stats.uptime_us == 0 && stats.chunks_open == 0);
    CHECK(granted(anna, METHOD_server_histograms, &(struct msg_nothing){}, &times));
    CHECK(counted(&times.job_duration) == 1 && times.job_duration.sum_us == 300);
    rig_end();
}

static void ends_are_traced(void)
{
    uint64_t buffer;
    struct msg_trace_result trace;
    struct caller *anna = begin_with_buffer(&buffer);
    uint32_t msgid = submit(anna, buffer, 8, 0);
    rig.now_us += 50;
    rig_complete(1, 0);
    rig.now_us += 20;
    submit(anna, buffer, 4, 8);
    rig_complete(0, 0);
    CHECK(answered(anna, msgid, METHOD_job_submit, NULL));
    rig_complete(0, -EIO);
    CHECK(next_answer(anna, NULL, NULL).failed);
    CHECK(granted(anna, METHOD_server_trace, &(struct msg_page_params){0}, &trace));
    const struct msg_trace_event *events = trace.events;
    CHECK(trace.events_count == 5 && trace.next == 0);
    for (uint32_t i = 0; i < 5; i++)
        CHECK(events[i].event == i + 1 && events[i].client == 1 && events[i].user == ANNA);
    CHECK(events[0].kind == SCAND_EVENT_CHUNK && events[0].job == 1 && events[0].rows == 4);
    CHECK(events[0].begin_us == 1000 && events[0].end_us == 1050 && events[0].kernel_us == 10);
    CHECK(events[1].kind == SCAND_EVENT_CHUNK && events[1].end_us == 1070 && events[1].slot != events[0].slot);
    CHECK(events[2].kind == SCAND_EVENT_JOB && events[2].job == 1 && events[2].rows == 8 && events[2].code == 0);
    CHECK(events[2].begin_us == 1000 && events[2].started_us == 1000 && events[2].end_us == 1070);
    CHECK(events[3].code == SCAND_DEVICE && events[4].code == SCAND_DEVICE && events[4].job == 2);
    CHECK(granted(anna, METHOD_server_trace, &(struct msg_page_params){5}, &trace));
    CHECK(trace.events_count == 1 && trace.events[0].event == 5 && trace.next == 0);
    CHECK(granted(anna, METHOD_server_trace, &(struct msg_page_params){6}, &trace));
    CHECK_EQ(trace.events_count, 0);
    rig_end();
}

static void old_traces_are_forgotten(void)
{
    static struct event_log event_log;
    static struct msg_trace_result page;
    for (uint64_t i = 1; i <= LIMIT_TRACE; i++)
        *event_log_next(&event_log) = (struct msg_trace_event){.event = i, .job = i};
    event_log_read(&event_log, 0, &page);
    CHECK(page.events[0].event == 1 && page.events[0].job == 1);
    CHECK(page.events_count == LIMIT_MAPS && page.next == LIMIT_MAPS + 1);
    *event_log_next(&event_log) = (struct msg_trace_event){.event = LIMIT_TRACE + 1, .job = LIMIT_TRACE + 1};
    event_log_read(&event_log, 0, &page);
    CHECK(page.events[0].event == 2 && page.events[31].event == 33 && page.next == 34);
    event_log_read(&event_log, LIMIT_TRACE + 1, &page);
    CHECK(page.events_count == 1 && page.events[0].job == LIMIT_TRACE + 1 && page.next == 0);
    event_log_read(&event_log, LIMIT_TRACE + 2 - LIMIT_MAPS, &page);
    CHECK(page.events_count == LIMIT_MAPS && page.next == 0);
    event_log_read(&event_log, UINT64_MAX, &page);
    CHECK(page.events_count == 0 && page.next == 0);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(jobs_are_listed),
        TEST(one_pass_is_named_alone),
        TEST(jobs_come_in_pages),
        TEST(pages_mix_clients),
        TEST(clients_are_listed),
        TEST(small_jobs_are_charged_by_bytes),
        TEST(clients_show_quotas),
        TEST(clients_come_in_pages),
        TEST(users_are_listed),
        TEST(users_come_back),
        TEST(waiting_is_counted),
        TEST(users_come_in_pages),
        TEST(details_are_private),
        TEST(who_may_cancel),
        TEST(times_are_counted),
        TEST(totals_go_on_with_the_next_service),
        TEST(ends_are_traced),
        TEST(old_traces_are_forgotten),
        TEST_END,
    };
    return test_main(argc, argv, tests);
}

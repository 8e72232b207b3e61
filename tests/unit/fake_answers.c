#include "tests/unit/fake_answers.h"

#include <stdio.h>
#include <string.h>

void answer_devices(struct fake *fake, struct fake_client *client, const struct message *message)
{
    struct msg_devices_result result = {.devices_count = 2};
    for (unsigned i = 0; i < 2; i++) {
        snprintf(result.devices[i].name, sizeof result.devices[i].name, "device %u%s", i, fake_ending(fake));
        strcpy(result.devices[i].backend, "a backend whose name is long");
        result.devices[i].memory_bytes = 100 + i;
    }
    fake_send_result(client, message->msgid, &msg_devices_result_type, &result, NULL, 0);
}

/* Answers with FAKE_LISTED kernels, in pages of LIMIT_MAPS, the last kernel of an operation of its own; with fake->loop
 * the pages lead back. */
void answer_kernels(struct fake *fake, struct fake_client *client, const struct message *message)
{
    struct msg_kernels_result result = {0};
    struct msg_page_params params;
    struct error error;
    fake_must(message_read(message, &msg_page_params_type, &params, &error) == 0, "server.kernels");
    for (uint64_t i = params.from; i < FAKE_LISTED && result.kernels_count < LIMIT_MAPS; i++) {
        struct msg_kernel *kernel = &result.kernels[result.kernels_count++];
        snprintf(kernel->name, sizeof kernel->name, "kernel %u%s", (unsigned)i, fake_ending(fake));
        memset(kernel->line, 'l', sizeof kernel->line - 1);
        strcpy(kernel->backend, "cuda");
        kernel->accumulators_count = 2;
        kernel->accumulators[0] = SCAND_ACCUMULATOR_F32;
        kernel->accumulators[1] = SCAND_ACCUMULATOR_F2;
        kernel->repeatable = i % 2;
        result.next = i + 1 < FAKE_LISTED ? i + 1 : 0;
        if (i + 1 == FAKE_LISTED) {
            strcpy(kernel->operation, "a later one");
            strcpy(kernel->dtype, "f16");
        }
    }
    result.next = fake->loop ? 1 : result.next;
    fake_send_result(client, message->msgid, &msg_kernels_result_type, &result, NULL, 0);
}

/* Jobs 1, 3, 5 and so on, FAKE_LISTED of them, in pages of LIMIT_MAPS; fake->loop: pages that lead back, or begin anew.
 */
void answer_jobs(struct fake *fake, struct fake_client *client, const struct message *message)
{
    struct msg_jobs_result result = {0};
    struct msg_page_params params;
    struct error error;
    fake_must(message_read(message, &msg_page_params_type, &params, &error) == 0, "server.jobs");
    for (uint64_t job = fake->loop == 3 ? 1 : params.from | 1; job < 2 * FAKE_LISTED; job += 2) {
        if (result.jobs_count == LIMIT_MAPS) {
            result.next = fake->loop ? 1 : job;
            break;
        }
        struct msg_job_row *row = &result.jobs[result.jobs_count++];
        *row = (struct msg_job_row){.job = job, .client = 7, .user = 1000, .state = SCAND_JOB_STATE_RUNNING, .rows = 9};
        snprintf(row->name, sizeof row->name, "name%s", fake_ending(fake));
        snprintf(row->operation, sizeof row->operation, "scan%s", fake_ending(fake));
    }
    fake_send_result(client, message->msgid, &msg_jobs_result_type, &result, NULL, 0);
}

void answer_clients(struct fake *fake, struct fake_client *client, const struct message *message)
{
    struct msg_clients_result result = {.clients_count = LIMIT_MAPS};
    struct msg_page_params params;
    struct error error;
    fake_must(message_read(message, &msg_page_params_type, &params, &error) == 0, "server.clients");
    uint64_t from = params.from ? params.from : 1;
    result.next = from < FAKE_LISTED || fake->loop ? from + LIMIT_MAPS : 0;
    for (uint32_t i = 0; i < LIMIT_MAPS; i++) {
        struct msg_client_row *row = &result.clients[i];
        *row = (struct msg_client_row){
            .client = from + i, .user = 1001, .pid = 17, .device_busy_us = 99, .user_jobs = 5, .quota_jobs = 6};
        snprintf(row->name, sizeof row->name, "name%s", fake_ending(fake));
    }
    if (fake->loop)
        result.next = from;
    fake_send_result(client, message->msgid, &msg_clients_result_type, &result, NULL, 0);
}

void answer_users(struct fake *fake, struct fake_client *client, const struct message *message)
{
    struct msg_users_result result = {.users_count = LIMIT_MAPS};
    struct msg_page_params params;
    struct error error;
    fake_must(message_read(message, &msg_page_params_type, &params, &error) == 0, "server.users");
    result.next = fake->loop ? params.from : params.from < LIMIT_MAPS ? params.from + LIMIT_MAPS : 0;
    if (fake->loop == 2) {
        result.next = params.from + 1;
        result.users_count = 0;
    }
    for (uint32_t i = 0; i < LIMIT_MAPS; i++)
        result.users[i] =
            (struct msg_user_row){.user = params.from + i, .jobs = 5, .jobs_quota = 6, .queued_us = 1500000};
    fake_send_result(client, message->msgid, &msg_users_result_type, &result, NULL, 0);
}

void answer_trace(struct fake *fake, struct fake_client *client, const struct message *message)
{
    (void)fake;
    struct msg_trace_result result = {.events_count = 2, .next = 0};
    struct msg_page_params params;
    struct error error;
    fake_must(message_read(message, &msg_page_params_type, &params, &error) == 0, "server.trace");
    uint64_t first = params.from ? params.from : 5;
    result.next = first < 9 ? first + 2 : 0;
    for (uint32_t i = 0; i < 2; i++)
        result.events[i] = (struct msg_trace_event){.event = first + i,
                                                    .kind = SCAND_EVENT_CHUNK,
                                                    .user = 1000,
                                                    .begin_us = 10,
                                                    .end_us = 20,
                                                    .slot = 3,
                                                    .kernel_us = 4,
                                                    .code = SCAND_DEVICE};
    fake_send_result(client, message->msgid, &msg_trace_result_type, &result, NULL, 0);
}

void answer_histograms(struct fake *fake, struct fake_client *client, const struct message *message)
{
    (void)fake;
    struct msg_histograms_result result = {
        .bounds_us = {10, 20},
        .bounds_us_count = 2,
        .job_queued = {.sum_us = 50, .counts = {1, 2, 3}, .counts_count = 3},
        .job_duration = {.counts = {4, 5, 6, 7}, .counts_count = 4},
        .chunk_upload = {.counts = {8}, .counts_count = 1},
    };
    fake_send_result(client, message->msgid, &msg_histograms_result_type, &result, NULL, 0);
}

void answer_stats(struct fake *fake, struct fake_client *client, const struct message *message)
{
    (void)fake;
    fake_send_result(client, message->msgid, &msg_stats_result_type, &(struct msg_stats_result){.jobs_submitted = 42},
                     NULL, 0);
}

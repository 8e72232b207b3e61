/*
 * jobs, clients: who uses the daemon, and for what.
 */
#include <inttypes.h>

#include "look.h"

static int ask_jobs(struct scand *daemon, bool json, struct fault *fault)
{
    struct look look = {.job_count = 0};
    struct json out = {.file = stdout};
    int result = look_at_jobs(&look, daemon, fault);
    if (!result && json) {
        jobs_json(&out, NULL, &look);
        putchar('\n');
    } else if (!result) {
        jobs_heading(stdout);
        for (size_t i = 0; i < look.job_count; i++)
            jobs_line(stdout, &look.jobs[i]);
    }
    look_free(&look);
    return result;
}

static void clients_json(const struct look *look)
{
    struct json json = {.file = stdout};
    json_open(&json, NULL, '[');
    for (size_t i = 0; i < look->client_count; i++) {
        json_open(&json, NULL, '{');
        client_members(&json, &look->clients[i]);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    putchar('\n');
}

static void clients_table(const struct look *look)
{
    char user[USER_BYTES], host[GROUPED_BYTES], device[GROUPED_BYTES], busy[GROUPED_BYTES], samples[GROUPED_BYTES];
    printf("%8s %-12s %8s %7s %10s %10s %6s %7s %9s %10s %17s  %s\n", "client", "user", "pid", "buffers", "host",
           "device", "queued", "running", "done", "busy", "samples", "program");
    for (const struct scand_client_info *client = look->clients; client < look->clients + look->client_count; client++)
        printf("%8" PRIu64 " %-12s %8" PRIu32 " %7" PRIu64 " %10s %10s %6" PRIu64 " %7" PRIu64 " %9" PRIu64
               " %10s %17s  %s\n",
               client->client, user_name(client->user, user), client->pid, client->buffers,
               binary_size(client->host_bytes, host), binary_size(client->device_bytes, device), client->jobs_queued,
               client->jobs_running, client->jobs_done, duration(client->device_busy_us, busy),
               grouped(client->samples_scanned, samples), client->name[0] ? client->name : "-");
}

static int ask_clients(struct scand *daemon, bool json, struct fault *fault)
{
    struct look look = {.client_count = 0};
    int result = look_at_clients(&look, daemon, fault);
    if (!result)
        (json ? clients_json : clients_table)(&look);
    look_free(&look);
    return result;
}

int command_jobs(int argc, char **argv, struct common_options *common, struct fault *fault)
{
    return ask(argc, argv, common, ask_jobs, fault);
}

int command_clients(int argc, char **argv, struct common_options *common, struct fault *fault)
{
    return ask(argc, argv, common, ask_clients, fault);
}

/*
 * jobs, clients: who uses the daemon, and for what.
 */
#include <inttypes.h>

#include "client/scanctl/commands/snapshot.h"

#define USE_BYTES (2 * GROUPED_BYTES)

static int query_jobs(struct scand *daemon, bool json, struct error *error)
{
    struct snapshot snapshot = {.job_count = 0};
    struct json out = {.file = stdout};
    int result = snapshot_jobs(&snapshot, daemon, error);
    if (!result && json) {
        jobs_json(&out, NULL, &snapshot);
        putchar('\n');
    } else if (!result) {
        jobs_heading(stdout);
        for (size_t i = 0; i < snapshot.job_count; i++)
            jobs_line(stdout, &snapshot.jobs[i]);
    }
    snapshot_free(&snapshot);
    return result;
}

static void clients_json(const struct snapshot *snapshot)
{
    struct json json = {.file = stdout};
    json_open(&json, NULL, '[');
    for (size_t i = 0; i < snapshot->client_count; i++) {
        json_open(&json, NULL, '{');
        client_members(&json, &snapshot->clients[i]);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    putchar('\n');
}

static void clients_table(const struct snapshot *snapshot)
{
    char user[USER_BYTES], host[GROUPED_BYTES], device[GROUPED_BYTES], busy[GROUPED_BYTES], samples[GROUPED_BYTES];
    printf("%8s %-12s %8s %7s %10s %10s %6s %7s %9s %10s %17s  %s\n", "client", "user", "pid", "buffers", "host",
           "device", "queued", "running", "done", "busy", "samples", "program");
    for (const struct scand_client_info *client = snapshot->clients;
         client < snapshot->clients + snapshot->client_count; client++)
        printf("%8" PRIu64 " %-12s %8" PRIu32 " %7" PRIu64 " %10s %10s %6" PRIu64 " %7" PRIu64 " %9" PRIu64
               " %10s %17s  %s\n",
               client->client, user_name(client->user, user), client->pid, client->buffers,
               binary_size(client->host_bytes, host), binary_size(client->device_bytes, device), client->jobs_queued,
               client->jobs_running, client->jobs_done, duration(client->device_busy_us, busy),
               grouped(client->samples_scanned, samples), client->name[0] ? client->name : "-");
}

/* Writes what a user has of what it may have. */
static const char *use_of_bytes(uint64_t used, uint64_t most, char out[USE_BYTES])
{
    char has[GROUPED_BYTES], may[GROUPED_BYTES];
    snprintf(out, USE_BYTES, "%s of %s", binary_size(used, has), binary_size(most, may));
    return out;
}

static const char *use_of_things(uint64_t used, uint64_t most, char out[USE_BYTES])
{
    char has[GROUPED_BYTES], may[GROUPED_BYTES];
    snprintf(out, USE_BYTES, "%s of %s", grouped(used, has), grouped(most, may));
    return out;
}

static void user_line(const struct scand_client_info *client)
{
    char user[USER_BYTES], connections[USE_BYTES], jobs[USE_BYTES], host[USE_BYTES], device[USE_BYTES];
    printf("%-12s %16s %16s %24s %24s\n", user_name(client->user, user),
           use_of_things(client->user_connections, client->quota_connections, connections),
           use_of_things(client->user_jobs, client->quota_jobs, jobs),
           use_of_bytes(client->user_host_bytes, client->quota_host_bytes, host),
           use_of_bytes(client->user_device_bytes, client->quota_device_bytes, device));
}

static bool is_first_of_user(const struct snapshot *snapshot, const struct scand_client_info *client)
{
    for (const struct scand_client_info *other = snapshot->clients; other < client; other++)
        if (other->user == client->user)
            return false;
    return true;
}

/* Prints each user once, beside its quotas. A user with a connection has one at least, unless the daemon does not say.
 */
static void users_table(const struct snapshot *snapshot)
{
    if (snapshot->client_count == 0 || snapshot->clients[0].user_connections == 0)
        return;
    printf("\n%-12s %16s %16s %24s %24s\n", "user", "connections", "jobs", "host memory", "device memory");
    for (const struct scand_client_info *client = snapshot->clients;
         client < snapshot->clients + snapshot->client_count; client++)
        if (is_first_of_user(snapshot, client))
            user_line(client);
}

static void clients_text(const struct snapshot *snapshot)
{
    clients_table(snapshot);
    users_table(snapshot);
}

static int query_clients(struct scand *daemon, bool json, struct error *error)
{
    struct snapshot snapshot = {.client_count = 0};
    int result = snapshot_clients(&snapshot, daemon, error);
    if (!result)
        (json ? clients_json : clients_text)(&snapshot);
    snapshot_free(&snapshot);
    return result;
}

int command_jobs(int argc, char **argv, struct common_options *common, struct error *error)
{
    return query_run(argc, argv, common, query_jobs, error);
}

int command_clients(int argc, char **argv, struct common_options *common, struct error *error)
{
    return query_run(argc, argv, common, query_clients, error);
}

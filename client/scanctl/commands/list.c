/*
 * jobs, clients, users: who uses the daemon, and for what.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "client/scanctl/commands/snapshot.h"
#include "client/scanctl/stream/remote.h"

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

static void users_table(const struct scand_user_info *users, size_t count)
{
    printf("%-12s %14s %18s %24s %24s %9s %9s %10s %10s\n", "user", "connections", "jobs", "host memory",
           "device memory", "done", "failed", "mean wait", "busy");
    for (const struct scand_user_info *user = users; user < users + count; user++) {
        char name[USER_BYTES], connections[USE_BYTES], jobs[USE_BYTES], host[USE_BYTES], device[USE_BYTES];
        char wait[GROUPED_BYTES], busy[GROUPED_BYTES];
        printf("%-12s %14s %18s %24s %24s %9" PRIu64 " %9" PRIu64 " %10s %10s\n", user_name(user->user, name),
               use_of_things(user->connections, user->connections_quota, connections),
               use_of_things(user->jobs, user->jobs_quota, jobs),
               use_of_bytes(user->host_bytes, user->host_quota_bytes, host),
               use_of_bytes(user->device_bytes, user->device_quota_bytes, device), user->jobs_done, user->jobs_failed,
               duration(user->jobs_done ? user->queued_us / user->jobs_done : 0, wait),
               duration(user->device_busy_us, busy));
    }
}

static void user_members(struct json *json, const struct scand_user_info *user)
{
    json_unsigned(json, "user", user->user);
    json_unsigned(json, "connections", user->connections);
    json_unsigned(json, "connections_quota", user->connections_quota);
    json_unsigned(json, "jobs", user->jobs);
    json_unsigned(json, "jobs_quota", user->jobs_quota);
    json_unsigned(json, "host_bytes", user->host_bytes);
    json_unsigned(json, "host_quota_bytes", user->host_quota_bytes);
    json_unsigned(json, "device_bytes", user->device_bytes);
    json_unsigned(json, "device_quota_bytes", user->device_quota_bytes);
    json_unsigned(json, "pinned_bytes", user->pinned_bytes);
    json_unsigned(json, "pinned_quota_bytes", user->pinned_quota_bytes);
    json_unsigned(json, "jobs_done", user->jobs_done);
    json_unsigned(json, "jobs_failed", user->jobs_failed);
    json_unsigned(json, "jobs_cancelled", user->jobs_cancelled);
    json_unsigned(json, "queued_us", user->queued_us);
    json_unsigned(json, "device_busy_us", user->device_busy_us);
}

static void users_json(const struct scand_user_info *users, size_t count)
{
    struct json json = {.file = stdout};
    json_open(&json, NULL, '[');
    for (const struct scand_user_info *user = users; user < users + count; user++) {
        json_open(&json, NULL, '{');
        user_members(&json, user);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    putchar('\n');
}

static int query_users(struct scand *daemon, bool json, struct error *error)
{
    size_t count = 0;
    struct scand_user_info *users = calloc(USERS_MAX, sizeof *users);
    if (!users)
        return fail(error, EX_OSERR, "out of memory for the list of users");
    const int status = scand_users(daemon, users, sizeof *users, USERS_MAX, &count);
    if (!status)
        (json ? users_json : users_table)(users, count);
    free(users);
    return status ? remote_error(daemon, status, "listing users", error) : 0;
}

static int query_clients(struct scand *daemon, bool json, struct error *error)
{
    struct snapshot snapshot = {.client_count = 0};
    int result = snapshot_clients(&snapshot, daemon, error);
    if (!result)
        (json ? clients_json : clients_table)(&snapshot);
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

int command_users(int argc, char **argv, struct common_options *common, struct error *error)
{
    return query_run(argc, argv, common, query_users, error);
}

#include "client/scanctl/commands/snapshot.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "client/scanctl/stream/remote.h"

int snapshot_jobs(struct snapshot *snapshot, struct scand *daemon, struct error *error)
{
    uint64_t next;
    snapshot->jobs = calloc(JOBS_MAX, sizeof snapshot->jobs[0]);
    if (!snapshot->jobs)
        return fail(error, EX_OSERR, "out of memory for the list of jobs");
    int status = scand_jobs(daemon, 0, snapshot->jobs, sizeof(*snapshot->jobs), JOBS_MAX, &snapshot->job_count, &next);
    return status ? remote_error(daemon, status, "listing jobs", error) : 0;
}

int snapshot_clients(struct snapshot *snapshot, struct scand *daemon, struct error *error)
{
    uint64_t next;
    snapshot->clients = calloc(CLIENTS_MAX, sizeof snapshot->clients[0]);
    if (!snapshot->clients)
        return fail(error, EX_OSERR, "out of memory for the list of connections");
    int status = scand_clients(daemon, 0, snapshot->clients, sizeof(*snapshot->clients), CLIENTS_MAX,
                               &snapshot->client_count, &next);
    return status ? remote_error(daemon, status, "listing connections", error) : 0;
}

int snapshot_all(struct snapshot *snapshot, struct scand *daemon, struct error *error)
{
    int status =
        scand_stats(daemon, snapshot->counters, sizeof(*snapshot->counters), COUNTERS_MAX, &snapshot->counter_count);
    if (!status)
        status =
            scand_devices(daemon, snapshot->devices, sizeof(*snapshot->devices), DEVICES_MAX, &snapshot->device_count);
    if (status)
        return remote_error(daemon, status, "looking at the daemon", error);
    int result = snapshot_clients(snapshot, daemon, error);
    return result ? result : snapshot_jobs(snapshot, daemon, error);
}

void snapshot_free(struct snapshot *snapshot)
{
    free(snapshot->clients);
    free(snapshot->jobs);
    *snapshot = (struct snapshot){.client_count = 0};
}

uint64_t snapshot_counter(const struct snapshot *snapshot, const char *name)
{
    for (size_t i = 0; i < snapshot->counter_count; i++)
        if (!strcmp(snapshot->counters[i].name, name))
            return snapshot->counters[i].value;
    return 0;
}

const char *user_name(uint32_t user, char *out)
{
    const struct passwd *entry = getpwuid(user);
    if (entry)
        snprintf(out, USER_BYTES, "%s", entry->pw_name);
    else
        snprintf(out, USER_BYTES, "%" PRIu32, user);
    return out;
}

void jobs_heading(FILE *file)
{
    fprintf(file, "%8s %8s %-12s %-8s %-10s %5s %11s %10s %10s  %-32s %s\n", "job", "client", "user", "state",
            "priority", "done", "rows", "size", "age", "operation", "program");
}

const char *job_done(const struct scand_job_info *job, char *out)
{
    if (job->rows || !job->rows_done)
        snprintf(out, DONE_BYTES, "%.0f %%", percent(job->rows_done, job->rows));
    else
        snprintf(out, DONE_BYTES, "-");
    return out;
}

void jobs_line(FILE *file, const struct scand_job_info *job)
{
    char user[USER_BYTES], size[GROUPED_BYTES], age[GROUPED_BYTES], rows[GROUPED_BYTES], done[DONE_BYTES];
    fprintf(file, "%8" PRIu64 " %8" PRIu64 " %-12s %-8s %-10s %5s %11s %10s %10s  %-32s %s\n", job->job, job->client,
            user_name(job->user, user), scand_word(SCAND_LIST_JOB_STATE, job->state),
            scand_word(SCAND_LIST_PRIORITY, job->priority), job_done(job, done),
            grouped(job->rows ? job->rows : job->rows_done, rows), binary_size(job->bytes, size),
            duration(job->age_us, age), job->operation[0] ? job->operation : "-", job->name[0] ? job->name : "-");
}

void jobs_json(struct json *json, const char *key, const struct snapshot *snapshot)
{
    json_open(json, key, '[');
    for (const struct scand_job_info *job = snapshot->jobs; job < snapshot->jobs + snapshot->job_count; job++) {
        json_open(json, NULL, '{');
        json_unsigned(json, "job", job->job);
        json_unsigned(json, "client", job->client);
        json_unsigned(json, "user", job->user);
        json_text(json, "name", job->name);
        json_text(json, "operation", job->operation);
        json_text(json, "state", scand_word(SCAND_LIST_JOB_STATE, job->state));
        json_text(json, "priority", scand_word(SCAND_LIST_PRIORITY, job->priority));
        json_unsigned(json, "rows", job->rows);
        json_unsigned(json, "rows_done", job->rows_done);
        json_unsigned(json, "bytes", job->bytes);
        json_unsigned(json, "age_us", job->age_us);
        json_unsigned(json, "running_us", job->running_us);
        json_close(json, '}');
    }
    json_close(json, ']');
}

void client_members(struct json *json, const struct scand_client_info *client)
{
    json_unsigned(json, "client", client->client);
    json_unsigned(json, "user", client->user);
    json_unsigned(json, "pid", client->pid);
    json_text(json, "name", client->name);
    json_unsigned(json, "age_us", client->age_us);
    json_unsigned(json, "buffers", client->buffers);
    json_unsigned(json, "host_bytes", client->host_bytes);
    json_unsigned(json, "device_bytes", client->device_bytes);
    json_unsigned(json, "jobs_queued", client->jobs_queued);
    json_unsigned(json, "jobs_running", client->jobs_running);
    json_unsigned(json, "jobs_done", client->jobs_done);
    json_unsigned(json, "rows_scanned", client->rows_scanned);
    json_unsigned(json, "samples_scanned", client->samples_scanned);
    json_unsigned(json, "device_busy_us", client->device_busy_us);
    json_unsigned(json, "user_host_bytes", client->user_host_bytes);
    json_unsigned(json, "quota_host_bytes", client->quota_host_bytes);
    json_unsigned(json, "user_device_bytes", client->user_device_bytes);
    json_unsigned(json, "quota_device_bytes", client->quota_device_bytes);
    json_unsigned(json, "user_jobs", client->user_jobs);
    json_unsigned(json, "quota_jobs", client->quota_jobs);
    json_unsigned(json, "user_connections", client->user_connections);
    json_unsigned(json, "quota_connections", client->quota_connections);
}

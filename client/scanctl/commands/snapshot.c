#include "client/scanctl/commands/snapshot.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "client/scanctl/stream/remote.h"

int look_at_jobs(struct look *look, struct scand *daemon, struct fault *fault)
{
    uint64_t next;
    look->jobs = calloc(JOBS_MAX, sizeof look->jobs[0]);
    if (!look->jobs)
        return fault_set(fault, EX_OSERR, "out of memory for the list of jobs");
    int status = scand_jobs(daemon, 0, look->jobs, sizeof(*look->jobs), JOBS_MAX, &look->job_count, &next);
    return status ? remote_fault(daemon, status, "listing jobs", fault) : 0;
}

int look_at_clients(struct look *look, struct scand *daemon, struct fault *fault)
{
    uint64_t next;
    look->clients = calloc(CLIENTS_MAX, sizeof look->clients[0]);
    if (!look->clients)
        return fault_set(fault, EX_OSERR, "out of memory for the list of connections");
    int status =
        scand_clients(daemon, 0, look->clients, sizeof(*look->clients), CLIENTS_MAX, &look->client_count, &next);
    return status ? remote_fault(daemon, status, "listing connections", fault) : 0;
}

int look_at_all(struct look *look, struct scand *daemon, struct fault *fault)
{
    int status = scand_stats(daemon, look->counters, sizeof(*look->counters), COUNTERS_MAX, &look->counter_count);
    if (!status)
        status = scand_devices(daemon, look->devices, sizeof(*look->devices), DEVICES_MAX, &look->device_count);
    if (status)
        return remote_fault(daemon, status, "looking at the daemon", fault);
    int result = look_at_clients(look, daemon, fault);
    return result ? result : look_at_jobs(look, daemon, fault);
}

void look_free(struct look *look)
{
    free(look->clients);
    free(look->jobs);
    *look = (struct look){.client_count = 0};
}

uint64_t look_counter(const struct look *look, const char *name)
{
    for (size_t i = 0; i < look->counter_count; i++)
        if (!strcmp(look->counters[i].name, name))
            return look->counters[i].value;
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

void jobs_line(FILE *file, const struct scand_job_info *job)
{
    char user[USER_BYTES], size[GROUPED_BYTES], age[GROUPED_BYTES], rows[GROUPED_BYTES];
    fprintf(file, "%8" PRIu64 " %8" PRIu64 " %-12s %-8s %-10s %3.0f %% %11s %10s %10s  %-32s %s\n", job->job,
            job->client, user_name(job->user, user), scand_word(SCAND_LIST_JOB_STATE, job->state),
            scand_word(SCAND_LIST_PRIORITY, job->priority), percent(job->rows_done, job->rows),
            grouped(job->rows, rows), binary_size(job->bytes, size), duration(job->age_us, age),
            job->operation[0] ? job->operation : "-", job->name[0] ? job->name : "-");
}

void jobs_json(struct json *json, const char *key, const struct look *look)
{
    json_open(json, key, '[');
    for (const struct scand_job_info *job = look->jobs; job < look->jobs + look->job_count; job++) {
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

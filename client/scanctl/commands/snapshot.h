/*
 * A snapshot of the daemon: its counters, devices, connections and jobs, as tables and as JSON.
 */
#ifndef SCANCTL_SNAPSHOT_H
#define SCANCTL_SNAPSHOT_H

#include "client/scanctl/commands/query.h"

struct snapshot {
    struct scand_counter counters[COUNTERS_MAX];
    struct scand_device devices[DEVICES_MAX];
    struct scand_client_info *clients; /* ordered by number */
    struct scand_job_info *jobs;       /* ordered by number */
    size_t counter_count, device_count, client_count, job_count;
};

/* Fill their part of *snapshot, which began as {0}; snapshot_free frees it, also after a failure. */
int snapshot_jobs(struct snapshot *snapshot, struct scand *daemon, struct error *error);
int snapshot_clients(struct snapshot *snapshot, struct scand *daemon, struct error *error);
int snapshot_all(struct snapshot *snapshot, struct scand *daemon, struct error *error);
void snapshot_free(struct snapshot *snapshot);

/* Returns a counter's value; 0 where the daemon has none of that name. */
uint64_t snapshot_counter(const struct snapshot *snapshot, const char *name);

/* Write the list of jobs: the heading, and a line for each job. */
void jobs_heading(FILE *file);
void jobs_line(FILE *file, const struct scand_job_info *job);
void jobs_json(struct json *json, const char *key, const struct snapshot *snapshot);

#define DONE_BYTES 8
/* Writes how much of a job is done: "17 %", or "-" where nobody knows how many rows it has. out: DONE_BYTES. Returns
 * out. */
const char *job_done(const struct scand_job_info *job, char *out);

/* The members of a connection's object. */
void client_members(struct json *json, const struct scand_client_info *client);

#define USER_BYTES 13
/* Writes a user's name, cut to fit, or number. out: USER_BYTES. Returns out. */
const char *user_name(uint32_t user, char *out);

#endif

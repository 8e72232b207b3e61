/*
 * What the daemon does at a moment: its counters, devices, connections and jobs, as tables and as JSON.
 */
#ifndef SCANCTL_LOOK_H
#define SCANCTL_LOOK_H

#include "client/scanctl/commands/query.h"

struct look {
    struct scand_counter counters[COUNTERS_MAX];
    struct scand_device devices[DEVICES_MAX];
    struct scand_client_info *clients; /* in the order of their numbers */
    struct scand_job_info *jobs;       /* likewise */
    size_t counter_count, device_count, client_count, job_count;
};

/* Each fills its part of *look, which began as {0}; look_free frees it, in either case. */
int look_at_jobs(struct look *look, struct scand *daemon, struct fault *fault);
int look_at_clients(struct look *look, struct scand *daemon, struct fault *fault);
int look_at_all(struct look *look, struct scand *daemon, struct fault *fault);
void look_free(struct look *look);

/* A counter's value; 0 where the daemon has none of that name. */
uint64_t look_counter(const struct look *look, const char *name);

/* As they are listed: the heading, and a line for each. */
void jobs_heading(FILE *file);
void jobs_line(FILE *file, const struct scand_job_info *job);
void jobs_json(struct json *json, const char *key, const struct look *look);

/* The members of a connection's object. */
void client_members(struct json *json, const struct scand_client_info *client);

#define USER_BYTES 13
/* A user's name, cut to fit, or number. out: USER_BYTES. Returns out. */
const char *user_name(uint32_t user, char *out);

#endif

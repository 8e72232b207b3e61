/*
 * The daemon as scanctl's commands use it: failures become errors, and a busy daemon is asked again for a while.
 */
#ifndef SCANCTL_REMOTE_H
#define SCANCTL_REMOTE_H

#include <stdbool.h>

#include <scand/scand.h>

#include "client/scanctl/stream/compute.h"
#include "client/scanctl/ui/error.h"

#define BUSY_PATIENCE_MS 30000 /* for how long a busy daemon is asked again */

/* Connects to the daemon, for what is asked of it alone. */
int remote_open(const char *socket_path, struct scand **daemon, struct error *error);
/* Connects for commands that show whether the daemon is there: calls fail at once while it is away, and look for it
 * anew. */
int remote_open_watching(const char *socket_path, struct scand **daemon, struct error *error);
/* Connects for a computation: `local` has it computed in this process, without a daemon, and so does the environment
 * where no daemon answers, which is said on standard error. */
int remote_open_computing(const char *socket_path, bool local, struct scand **daemon, struct error *error);
/* The exit code for the call that has just failed. What a quota will never allow is no failure to try again after. */
int remote_exit_code(const struct scand *daemon, int status);
/* Fills *error from the call that has just failed; `doing` is what was being done: "the scan". */
int remote_error(const struct scand *daemon, int status, const char *doing, struct error *error);
/* The daemon's first device, or one without a name where it tells none. */
struct scand_device remote_device(struct scand *daemon);

/* Calls `each` for every job of a client, or with client 0 of this user, until it returns other than 0, which is then
 * returned, as is the status of a failed call. */
typedef int remote_job_call(void *context, struct scand *daemon, const struct scand_job_info *job);
int remote_jobs(struct scand *daemon, uint64_t client, remote_job_call *each, void *context);
/* Finds whether there is a client of that number. Returns 0, or a status. */
int remote_client_is_there(struct scand *daemon, uint64_t client, bool *there);

/* The time until which a busy daemon is asked again; {0} before the first time. */
struct patience {
    uint64_t until_us;
};

/* Creates a buffer in host memory. A daemon without enough memory is asked to wait; one that cannot wait is asked
 * again. */
int remote_buffer(struct scand *daemon, uint64_t size_bytes, struct scand_buffer **out);

/* A job that is submitted again while the daemon is busy, or its user has as many jobs as it may: a refused job was not
 * begun, so its input is unharmed. */
struct submission {
    struct scand *daemon;
    struct compute compute;
    struct operands operands;
    scand_progress *progress;
    void *context;
    struct patience patience;
    struct scand_job *job; /* NULL when none runs */
};

int submission_start(struct submission *submission, struct error *error);
/* Sets *lost (unless NULL) to whether the daemon lost the job, whose memory may then be half written. */
int submission_finish(struct submission *submission, struct scand_times *times, bool *lost, struct error *error);

#endif

#include "client/scanctl/stream/remote.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "protocol/clock.h"

#define RETRY_DEFAULT_MS 100
#define RETRY_MAX_MS     2000
#define ROWS_AT_ONCE     32       /* rows of the daemon's lists that are asked for at once */
#define DRAIN_MS         86400000 /* a file waits for the next daemon as long as libscand allows */

/* Connects to a daemon. `patient`: calls wait for a daemon that is away. All jobs are the daemon's: people see them as
 * one, and they report progress. */
static int open_with(const char *socket_path, enum scand_local local, bool patient, struct scand **daemon,
                     struct error *error)
{
    struct scand_options *options;
    int status = scand_options_create(&options);
    if (!status) {
        status = scand_options_set(options, "local", local);
        if (!status)
            status = scand_options_set(options, "small_jobs", SCAND_SMALL_JOBS_DAEMON);
        if (!status)
            status = scand_options_set(options, "drain_ms", DRAIN_MS);
        if (!status && !patient)
            status = scand_options_set(options, "reconnect_ms", 0);
        if (!status)
            status = scand_connect_with(options, socket_path, "scanctl", daemon);
        scand_options_destroy(options);
    }
    return status ? fail(error, remote_exit_code(NULL, status), "%s", scand_connect_message()) : 0;
}

int remote_open(const char *socket_path, struct scand **daemon, struct error *error)
{
    return open_with(socket_path, SCAND_LOCAL_NEVER, true, daemon, error);
}

int remote_open_watching(const char *socket_path, struct scand **daemon, struct error *error)
{
    return open_with(socket_path, SCAND_LOCAL_NEVER, false, daemon, error);
}

int remote_open_computing(const char *socket_path, bool local, struct scand **daemon, struct error *error)
{
    if (local && socket_path)
        return fail(error, EX_USAGE, "--local needs no daemon, and --socket names one; give one of them");
    int result = open_with(socket_path, local ? SCAND_LOCAL_ALWAYS : SCAND_LOCAL_DEFAULT, true, daemon, error);
    if (!result && !local && scand_is_local(*daemon))
        fprintf(stderr, "scanctl: no daemon answers: computing in this process\n");
    return result;
}

int remote_exit_code(const struct scand *daemon, int status)
{
    const bool never = status == SCAND_QUOTA && scand_retry_ms(daemon) == 0;
    return never ? EX_NOPERM : scand_status_exit_code(status);
}

static int error_of(const struct scand *daemon, int status, const char *doing, const char *message, struct error *error)
{
    return fail(error, remote_exit_code(daemon, status), "%s failed (%s): %s", doing, scand_status_word(status),
                *message ? message : scand_status_text(status));
}

int remote_error(const struct scand *daemon, int status, const char *doing, struct error *error)
{
    return error_of(daemon, status, doing, scand_message(daemon), error);
}

struct scand_device remote_device(struct scand *daemon)
{
    struct scand_device device = {.name = "unknown device", .backend = "unknown"};
    size_t count;
    scand_devices(daemon, &device, sizeof device, 1, &count);
    return device;
}

int remote_client_is_there(struct scand *daemon, uint64_t client, bool *there)
{
    struct scand_client_info found;
    uint64_t next;
    size_t count;
    int status = scand_clients(daemon, client, &found, sizeof(found), 1, &count, &next);
    *there = !status && count && found.client == client;
    return status;
}

int remote_jobs(struct scand *daemon, uint64_t client, remote_job_call *each, void *context)
{
    struct scand_job_info jobs[ROWS_AT_ONCE];
    uint64_t from = 0;
    size_t count;
    do {
        int status = scand_jobs(daemon, from, jobs, sizeof(*jobs), ROWS_AT_ONCE, &count, &from);
        for (size_t i = 0; !status && i < count; i++)
            if (client ? jobs[i].client == client : jobs[i].user == geteuid())
                status = each(context, daemon, &jobs[i]);
        if (status)
            return status;
    } while (from);
    return SCAND_OK;
}

/* Handles SCAND_BUSY, and SCAND_QUOTA of jobs: sleeps and returns 1, or returns 0 when patience has run out. */
static int patience_wait(struct patience *patience, const struct scand *daemon)
{
    uint64_t now = clock_us();
    uint32_t retry_ms = scand_retry_ms(daemon);
    if (!patience->until_us)
        patience->until_us = now + BUSY_PATIENCE_MS * 1000;
    if (now >= patience->until_us)
        return 0;
    if (!retry_ms)
        retry_ms = RETRY_DEFAULT_MS;
    if (retry_ms > RETRY_MAX_MS)
        retry_ms = RETRY_MAX_MS;
    struct timespec pause = {.tv_sec = retry_ms / 1000, .tv_nsec = retry_ms % 1000 * 1000000L};
    nanosleep(&pause, NULL);
    return 1;
}

int remote_buffer(struct scand *daemon, uint64_t size_bytes, struct scand_buffer **out)
{
    struct patience patience = {.until_us = clock_us() + BUSY_PATIENCE_MS * 1000};
    int status;
    do
        status = scand_buffer_create_wait(daemon, size_bytes, BUSY_PATIENCE_MS, out);
    while (status == SCAND_BUSY && patience_wait(&patience, daemon));
    return status;
}

/* True when a job was refused because there are too many jobs now: of everybody's, or of this user's. */
static bool may_go_later(const struct scand *daemon, int status)
{
    return status == SCAND_BUSY || (status == SCAND_QUOTA && scand_retry_ms(daemon) > 0);
}

/* Pauses where the job is to be submitted again. */
static bool goes_again(struct submission *submission, int status)
{
    return may_go_later(submission->daemon, status) && patience_wait(&submission->patience, submission->daemon);
}

/* The message, in which the first field of a step, "steps[0].dt", is named as people who write steps count them. */
static void step_name(const char *message, char *out, size_t size)
{
    const char *at = strstr(message, "\"steps[");
    const char *method = "job.run: ";
    unsigned step;
    int length = 0;
    if (!at || sscanf(at, "\"steps[%u].%n", &step, &length) != 1 || length == 0) {
        snprintf(out, size, "%s", message);
        return;
    }
    if (strncmp(message, method, strlen(method)) == 0)
        message += strlen(method);
    snprintf(out, size, "step %u, %.*s\"%s; see scanctl operations", step + 1, (int)(at - message), message,
             at + length);
}

/* Calls the result's dtype in a message what it is on the command line, which is as long. */
static void output_dtype_name(char *message)
{
    static const char field[] = "\"output.dtype\"", option[] = "--output-dtype";
    _Static_assert(sizeof(field) == sizeof(option), "the option takes the field's place");
    for (char *at = message; (at = strstr(at, field)); at += strlen(option))
        memcpy(at, option, strlen(option));
}

static int submission_error(const struct submission *submission, int status, struct error *error)
{
    char message[ERROR_TEXT_BYTES];
    if (status == SCAND_CANCELLED)
        return fail(error, scand_status_exit_code(status), "%s was cancelled, as by scanctl cancel",
                    submission->compute.word);
    step_name(scand_message(submission->daemon), message, sizeof message);
    output_dtype_name(message);
    return error_of(submission->daemon, status, submission->compute.word, message, error);
}

int submission_start(struct submission *submission, struct error *error)
{
    const struct compute *compute = &submission->compute;
    int status;
    do
        status = compute->submit(compute->context, &submission->operands, submission->daemon, submission->progress,
                                 submission->context, &submission->job);
    while (goes_again(submission, status));
    return status ? submission_error(submission, status, error) : 0;
}

int submission_finish(struct submission *submission, struct scand_times *times, bool *lost, struct error *error)
{
    for (;;) {
        int status = scand_wait(submission->job, -1, times);
        if (lost)
            *lost = status == SCAND_LOST;
        bool again = goes_again(submission, status);
        int result = status && !again ? submission_error(submission, status, error) : 0;
        scand_job_release(submission->job);
        submission->job = NULL;
        if (!again)
            return result;
        result = submission_start(submission, error);
        if (result)
            return result;
    }
}

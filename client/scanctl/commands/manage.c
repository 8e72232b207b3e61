/*
 * cancel, wait, drain: what may be done about jobs and the daemon.
 */
#include <getopt.h>
#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#include "client/scanctl/commands/snapshot.h"
#include "client/scanctl/stream/remote.h"
#include "protocol/clock.h"

#define WAIT_PAUSE_MS      100
#define STOP_PAUSE_MS      20
#define STOP_TRIES         250 /* number of looks for a job of a client that is to be stopped */
#define WAIT_TIMEOUT_S_MAX UINT64_C(1000000000)

static int job_parse(const char *command, const char *text, uint64_t *number, struct error *error)
{
    if (number_parse(text, 1, UINT64_MAX, number))
        return 0;
    return fail(error, EX_USAGE, "\"%s\" is no job; give the number of one, from 1 on; see scanctl jobs, %s --help",
                text, command);
}

/* The jobs that `cancel` stops. */
struct stopping {
    uint64_t job, client; /* 0: not given */
    bool mine;
    uint64_t stopped; /* jobs that were stopped */
};

enum { OPTION_CLIENT = OPTION_OWN, OPTION_MINE, OPTION_TIMEOUT };

const struct option_row cancel_options[] = {
    {"client", OPTION_CLIENT, 'c', "CLIENT", VALUE_FREE,
     "stop all that a client does, by its number in scanctl clients, as that of a large file"},
    {"mine", OPTION_MINE, 0, NULL, VALUE_FREE, "stop all jobs of yours"},
    QUIET_OPTIONS,
    {0},
};

static int client_parse(const char *text, uint64_t *client, struct error *error)
{
    if (number_parse(text, 1, UINT64_MAX, client))
        return 0;
    return fail(error, EX_USAGE, "--client is \"%s\"; it may be the number of one, from 1 on; see scanctl clients",
                text);
}

static int cancel_option_handle(void *context, int option, const char *argument, struct error *error)
{
    struct stopping *stopping = context;
    if (option == OPTION_CLIENT)
        return client_parse(argument, &stopping->client, error);
    stopping->mine = true;
    return 0;
}

/* Stops a job; one that has ended meanwhile counts as stopped. */
static int job_stop(void *context, struct scand *daemon, const struct scand_job_info *job)
{
    struct stopping *stopping = context;
    int status = scand_cancel_job(daemon, job->job);
    stopping->stopped += status == SCAND_OK;
    return status == SCAND_NOT_FOUND ? SCAND_OK : status;
}

/* Stops jobs. A client that works on a file has no job at some moments: its jobs are looked for again, as long as the
 * client is there. */
static int jobs_stop(struct scand *daemon, struct stopping *stopping, struct error *error)
{
    const struct timespec pause = {.tv_nsec = STOP_PAUSE_MS * 1000000L};
    for (unsigned i = 0; i < STOP_TRIES; i++) {
        bool there = true;
        int status = stopping->client ? remote_client_is_there(daemon, stopping->client, &there) : SCAND_OK;
        if (!status && !there)
            return fail(error, EX_USAGE, "no client has the number %" PRIu64 "; scanctl clients lists all",
                        stopping->client);
        if (!status)
            status = remote_jobs(daemon, stopping->client, job_stop, stopping);
        if (status)
            return remote_error(daemon, status, "cancelling the jobs", error);
        if (stopping->stopped || !stopping->client)
            return 0;
        nanosleep(&pause, NULL);
    }
    return fail(error, EX_TEMPFAIL,
                "client %" PRIu64 " had no job for %d ms; it may be waiting for its input: end it itself",
                stopping->client, STOP_TRIES * STOP_PAUSE_MS);
}

static int cancel_words_check(int argc, char **argv, struct stopping *stopping, struct error *error)
{
    int words = argc - optind, ways = (stopping->client != 0) + stopping->mine + (words > 0);
    if (words > 1 || ways != 1)
        return fail(
            error, EX_USAGE,
            "%s takes the number of one job, or --client, or --mine, and got %d words%s%s; see scanctl jobs, %s --help",
            argv[0], words, stopping->client ? " and --client" : "", stopping->mine ? " and --mine" : "", argv[0]);
    return words ? job_parse(argv[0], argv[optind], &stopping->job, error) : 0;
}

static int numbered_job_stop(struct scand *daemon, uint64_t job, struct error *error)
{
    int status = scand_cancel_job(daemon, job);
    if (status == SCAND_NOT_FOUND)
        return fail(error, scand_status_exit_code(status),
                    "no job of number %" PRIu64
                    " is queued or running: it has ended, or never was; scanctl jobs lists all",
                    job);
    return status ? remote_error(daemon, status, "cancelling the job", error) : 0;
}

int command_cancel(int argc, char **argv, struct common_options *common, struct error *error)
{
    struct stopping stopping = {.job = 0};
    struct scand *daemon;
    const struct option_set set = {.table = cancel_options, .handler = cancel_option_handle, .context = &stopping};
    int result = options_parse(argc, argv, &set, common, error);
    if (result || common->help)
        return result;
    result = cancel_words_check(argc, argv, &stopping, error);
    if (result)
        return result;
    result = remote_open(common->socket_path, &daemon, error);
    if (result)
        return result;
    result = stopping.job ? numbered_job_stop(daemon, stopping.job, error) : jobs_stop(daemon, &stopping, error);
    scand_disconnect(daemon);
    return result;
}

/* The jobs that `wait` waits for. */
struct waiting {
    uint64_t job;       /* 0: all jobs of this user */
    uint64_t client;    /* 0: not given; else the client that is to be gone */
    uint64_t timeout_s; /* 0: none */
};

static int wait_option_handle(void *context, int option, const char *argument, struct error *error)
{
    struct waiting *waiting = context;
    if (option == OPTION_CLIENT)
        return client_parse(argument, &waiting->client, error);
    if (number_parse(argument, 1, WAIT_TIMEOUT_S_MAX, &waiting->timeout_s))
        return 0;
    return fail(error, EX_USAGE, "--timeout is \"%s\"; it may be 1 to %" PRIu64 " seconds", argument,
                WAIT_TIMEOUT_S_MAX);
}

/* Fails for a number that no job has had yet: nobody would know that it was mistyped. */
static int check_number(struct scand *daemon, uint64_t job, struct error *error)
{
    struct snapshot snapshot = {.counter_count = 0};
    int status =
        scand_stats(daemon, snapshot.counters, sizeof(*snapshot.counters), COUNTERS_MAX, &snapshot.counter_count);
    if (status)
        return remote_error(daemon, status, "looking at the daemon", error);
    uint64_t last = snapshot_counter(&snapshot, "jobs_numbered");
    if (!last) /* sent by an older daemon, which has no groups */
        last = snapshot_counter(&snapshot, "jobs_submitted");
    if (job <= last)
        return 0;
    return fail(error, EX_USAGE,
                "no job has the number %" PRIu64 " yet; the last is %" PRIu64 "; scanctl jobs lists all", job, last);
}

static int job_note(void *context, struct scand *daemon, const struct scand_job_info *job)
{
    uint64_t *open = context;
    (void)daemon;
    if (!*open)
        *open = job->job;
    return SCAND_OK;
}

/* The number of a job, or of the client, that is waited for and still there, or 0. */
static int find_open(struct scand *daemon, const struct waiting *waiting, uint64_t *open, struct error *error)
{
    struct scand_job_info job;
    size_t count = 0;
    bool there = false;
    uint64_t next;
    int status;
    *open = 0;
    if (waiting->client) {
        status = remote_client_is_there(daemon, waiting->client, &there);
        *open = there ? waiting->client : 0;
    } else if (waiting->job) {
        status = scand_jobs(daemon, waiting->job, &job, sizeof(job), 1, &count, &next);
        *open = count && job.job == waiting->job ? job.job : 0;
    } else
        status = remote_jobs(daemon, 0, job_note, open);
    return status ? remote_error(daemon, status, "waiting", error) : 0;
}

static int wait_for(struct scand *daemon, const struct waiting *waiting, struct error *error)
{
    const struct timespec pause = {.tv_nsec = WAIT_PAUSE_MS * 1000000L};
    uint64_t begun_us = clock_us(), open;
    int result = waiting->job ? check_number(daemon, waiting->job, error) : 0;
    while (!result && !(result = find_open(daemon, waiting, &open, error)) && open) {
        if (waiting->timeout_s && clock_us() - begun_us >= waiting->timeout_s * 1000000)
            return fail(error, EX_TEMPFAIL,
                        "%s %" PRIu64 " has not ended within %" PRIu64
                        " s; wait longer, or stop it with scanctl cancel %s%" PRIu64,
                        waiting->client ? "client" : "job", open, waiting->timeout_s,
                        waiting->client ? "--client " : "", open);
        nanosleep(&pause, NULL);
    }
    return result;
}

const struct option_row wait_options[] = {
    {"client", OPTION_CLIENT, 'c', "CLIENT", VALUE_FREE,
     "wait until a client has left, as one that works on a large file"},
    {"timeout", OPTION_TIMEOUT, 't', "S", VALUE_FREE, "give up after so many seconds, with exit code 75"},
    QUIET_OPTIONS,
    {0},
};

/* The words behind the options: the number of one job, or none. */
static int wait_words_check(int argc, char **argv, struct waiting *waiting, struct error *error)
{
    if (optind < argc - 1)
        return fail(error, EX_USAGE, "\"%s\" is too much: %s takes the number of one job, or none; see %s --help",
                    argv[optind + 1], argv[0], argv[0]);
    if (optind < argc && waiting->client)
        return fail(error, EX_USAGE, "\"%s\" and --client are both there; give one of them", argv[optind]);
    return optind < argc ? job_parse(argv[0], argv[optind], &waiting->job, error) : 0;
}

int command_wait(int argc, char **argv, struct common_options *common, struct error *error)
{
    struct waiting waiting = {.job = 0};
    struct scand *daemon;
    const struct option_set set = {.table = wait_options, .handler = wait_option_handle, .context = &waiting};
    int result = options_parse(argc, argv, &set, common, error);
    if (result || common->help)
        return result;
    result = wait_words_check(argc, argv, &waiting, error);
    if (result)
        return result;
    result = remote_open(common->socket_path, &daemon, error);
    if (result)
        return result;
    result = wait_for(daemon, &waiting, error);
    scand_disconnect(daemon);
    return result;
}

static int query_drain(struct scand *daemon, bool json, struct error *error)
{
    int status = scand_drain(daemon);
    (void)json; /* nothing is printed */
    return status ? remote_error(daemon, status, "drain", error) : 0;
}

int command_drain(int argc, char **argv, struct common_options *common, struct error *error)
{
    return query_run(argc, argv, common, query_drain, error);
}

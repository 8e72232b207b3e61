/*
 * cancel, wait, drain: what may be done about jobs and the daemon.
 */
#include <getopt.h>
#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#include "client/scanctl/commands/snapshot.h"
#include "client/scanctl/stream/remote.h"
#include "client/scanctl/ui/clock.h"

#define WAIT_PAUSE_MS      100
#define JOBS_AT_ONCE       32 /* that are asked for */
#define WAIT_TIMEOUT_S_MAX UINT64_C(1000000000)

static int number_parse(const char *command, const char *text, uint64_t *number, struct error *error)
{
    if (parse_unsigned(text, number) && *number)
        return 0;
    return fail(error, EX_USAGE, "\"%s\" is no job; give the number of one, from 1 on; see scanctl jobs, %s --help",
                text, command);
}

int command_cancel(int argc, char **argv, struct common_options *common, struct error *error)
{
    struct scand *daemon;
    uint64_t number;
    int result = options_parse(argc, argv, false, common_options, NULL, NULL, common, error);
    if (!result && common->help)
        return 0;
    if (!result && optind != argc - 1)
        result = fail(error, EX_USAGE, "%s takes the number of one job, and got %d words; see scanctl jobs, %s --help",
                      argv[0], argc - optind, argv[0]);
    if (!result)
        result = number_parse(argv[0], argv[optind], &number, error);
    if (!result)
        result = remote_open(common->socket_path, &daemon, error);
    if (result)
        return result;
    int status = scand_cancel_job(daemon, number);
    if (status)
        result = remote_error(daemon, status, "cancelling the job", error);
    scand_disconnect(daemon);
    return result;
}

/* What `wait` waits for. */
struct waiting {
    uint64_t job;       /* 0: all jobs of this user */
    uint64_t timeout_s; /* 0: none */
};

static int wait_option_handle(void *context, int option, const char *argument, struct error *error)
{
    struct waiting *waiting = context;
    (void)option;
    if (parse_unsigned(argument, &waiting->timeout_s) && waiting->timeout_s && waiting->timeout_s <= WAIT_TIMEOUT_S_MAX)
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
    uint64_t last = snapshot_counter(&snapshot, "jobs_submitted");
    if (job <= last)
        return 0;
    return fail(error, EX_USAGE,
                "no job has the number %" PRIu64 " yet; the last is %" PRIu64 "; scanctl jobs lists those that run",
                job, last);
}

/* The number of a job that is waited for and still there, or 0. */
static int find_open(struct scand *daemon, const struct waiting *waiting, uint64_t *open, struct error *error)
{
    struct scand_job_info jobs[JOBS_AT_ONCE];
    uint64_t from = waiting->job;
    size_t count;
    *open = 0;
    do {
        int status = scand_jobs(daemon, from, jobs, sizeof(*jobs), waiting->job ? 1 : JOBS_AT_ONCE, &count, &from);
        if (status)
            return remote_error(daemon, status, "waiting", error);
        for (size_t i = 0; i < count && !*open; i++)
            if (waiting->job ? jobs[i].job == waiting->job : jobs[i].user == geteuid())
                *open = jobs[i].job;
    } while (!*open && !waiting->job && from);
    return 0;
}

static int wait_for(struct scand *daemon, const struct waiting *waiting, struct error *error)
{
    const struct timespec pause = {.tv_nsec = WAIT_PAUSE_MS * 1000000L};
    uint64_t begun_us = clock_now_us(), open;
    int result = waiting->job ? check_number(daemon, waiting->job, error) : 0;
    while (!result && !(result = find_open(daemon, waiting, &open, error)) && open) {
        if (waiting->timeout_s && clock_now_us() - begun_us >= waiting->timeout_s * 1000000)
            return fail(error, EX_TEMPFAIL,
                        "job %" PRIu64 " has not ended within %" PRIu64
                        " s; wait longer, or stop it with scanctl cancel %" PRIu64,
                        open, waiting->timeout_s, open);
        nanosleep(&pause, NULL);
    }
    return result;
}

const struct option_row wait_options[] = {
    {"timeout", OPTION_OWN, 0, "S", VALUE_FREE, "give up after so many seconds, with exit code 75"},
    QUIET_OPTIONS,
    {0},
};

int command_wait(int argc, char **argv, struct common_options *common, struct error *error)
{
    struct waiting waiting = {.job = 0};
    struct scand *daemon;
    int result = options_parse(argc, argv, false, wait_options, wait_option_handle, &waiting, common, error);
    if (!result && common->help)
        return 0;
    if (!result && optind < argc - 1)
        result = fail(error, EX_USAGE, "\"%s\" is too much: %s takes the number of one job, or none; see %s --help",
                      argv[optind + 1], argv[0], argv[0]);
    if (!result && optind < argc)
        result = number_parse(argv[0], argv[optind], &waiting.job, error);
    if (!result)
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

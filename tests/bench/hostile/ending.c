#include "tests/bench/hostile/ending.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/client.h"
#include "tests/bench/hostile/process.h"

#define HEAD_START_MS 300 /* time for the job to get to the device */
#define LOOK_US       1000
#define DRAIN_MS      2000 /* time for a drain to end beside a job */
#define STATS_MAX     64

/* Memory that the attacker shares with the benchmark. */
struct row {
    struct tally tally;
    volatile bool runs; /* the job is under way */
    double cancel_ms;
};

struct plan {
    const struct daemon *daemon;
    long_rows *rows;
    double patience_ms;
    bool cancels; /* cancel the job, or stay */
    struct row *row;
};

static void turn_for(struct attacker *self, struct line *line, double milliseconds)
{
    double until_ms = bench_now_ms() + milliseconds;
    while (bench_now_ms() < until_ms && bench_now_ms() < self->until_ms && line_turn(self, line))
        usleep(LOOK_US);
}

static bool begin_row(struct attacker *self, struct line *line, long_rows *rows)
{
    static struct msg_job_submit_params params;
    if (!line_open(self, line) || !rows(self, line, &params) ||
        !line_ask(line, METHOD_job_submit, &msg_job_submit_params_type, &params, NULL, 0))
        return false;
    line->called = line->msgid;
    line->result_type = NULL;
    turn_for(self, line, HEAD_START_MS);
    return line->called > 0;
}

/* Runs the long row, in the attacker's process. */
static void run_row(const void *argument)
{
    const struct plan *plan = argument;
    struct attacker self = {plan->daemon->server.socket, bench_now_ms() + plan->patience_ms + 10 * HEAD_START_MS,
                            &plan->row->tally, 0};
    struct line line;
    if (!begin_row(&self, &line, plan->rows))
        return;
    plan->row->runs = true;
    if (!plan->cancels) {
        turn_for(&self, &line, plan->patience_ms);
        return;
    }
    const struct msg_job_id id = {.job = line.called};
    double begin_ms = bench_now_ms();
    if (line_ask(&line, METHOD_job_cancel, &msg_job_id_type, &id, NULL, 0))
        line_await(&self, &line, line.called);
    plan->row->cancel_ms = bench_now_ms() - begin_ms;
}

/* Waits until the row is under way, and returns the attacker's process; 0 where it has ended without. */
static pid_t start_row(struct daemon *daemon, const struct plan *plan)
{
    pid_t process = process_start(run_row, plan, PROCESS_ATTACKER);
    while (process > 0 && !plan->row->runs)
        if (daemon_watch_process(daemon, process, bench_now_ms() + 1)) {
            if (plan->row->runs)
                break;
            waitpid(process, NULL, 0);
            return 0;
        }
    return process;
}

static double measure_cancel(struct daemon *daemon, const struct plan *plan)
{
    plan->row->cancel_ms = NAN;
    pid_t process = start_row(daemon, plan);
    if (process <= 0)
        return NAN;
    if (!daemon_watch_process(daemon, process, bench_now_ms() + plan->patience_ms)) {
        plan->row->cancel_ms = plan->patience_ms;
        kill(process, SIGKILL);
    }
    waitpid(process, NULL, 0);
    return plan->row->cancel_ms;
}

static bool has_work(struct scand *client)
{
    struct scand_counter counters[STATS_MAX];
    size_t count = 0;
    if (scand_stats(client, counters, sizeof counters[0], STATS_MAX, &count))
        return false;
    for (size_t i = 0; i < count; i++)
        if (strcmp(counters[i].name, "chunks_open") == 0)
            return counters[i].value > 0;
    return false;
}

/* Waits until no device has work. Returns how long that took. */
static double await_rest(const struct daemon *daemon, double patience_ms)
{
    struct scand *client;
    double begin_ms = bench_now_ms();
    if (scand_connect(daemon->server.socket, "scand-bench", &client))
        return NAN;
    while (has_work(client) && bench_now_ms() - begin_ms < patience_ms)
        usleep(LOOK_US);
    double took_ms = bench_now_ms() - begin_ms;
    scand_disconnect(client);
    return took_ms;
}

static double measure_departed(struct daemon *daemon, const struct plan *plan)
{
    pid_t process = start_row(daemon, plan);
    if (process <= 0)
        return NAN;
    kill(process, SIGKILL);
    waitpid(process, NULL, 0);
    return await_rest(daemon, plan->patience_ms);
}

static void measure_drain(struct daemon *daemon, const struct plan *plan, struct endings *out)
{
    pid_t process = start_row(daemon, plan);
    double begin_ms = bench_now_ms();
    daemon_drain(daemon);
    bool ended = daemon_watch_process(daemon, daemon->server.pid, begin_ms + DRAIN_MS);
    double took_ms = bench_now_ms() - begin_ms;
    if (process > 0) {
        kill(process, SIGKILL);
        waitpid(process, NULL, 0);
        out->drain_ms = ended ? took_ms : NAN;
    }
    took_ms = daemon_end(daemon, plan->patience_ms);
    if (process > 0 && !ended)
        out->left_ms = took_ms;
}

void endings_measure(struct daemon *daemon, long_rows *rows, double patience_ms, struct endings *out)
{
    struct plan plan = {.daemon = daemon, .rows = rows, .patience_ms = patience_ms};
    plan.row = process_share(sizeof *plan.row);
    await_rest(daemon, patience_ms);
    plan.cancels = true;
    out->cancel_ms = measure_cancel(daemon, &plan);
    await_rest(daemon, patience_ms);
    plan.cancels = false;
    plan.row->runs = false;
    out->departed_ms = measure_departed(daemon, &plan);
    plan.row->runs = false;
    measure_drain(daemon, &plan, out);
    process_unshare(plan.row, sizeof *plan.row);
}

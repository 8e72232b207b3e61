#include "client/scanctl/commands/top_view.h"

#include <inttypes.h>
#include <stdlib.h>

#define BAR_CELLS 20

static bool is_same_worker(const struct snapshot *before, const struct snapshot *now)
{
    return snapshot_counter(before, "uptime_us") <= snapshot_counter(now, "uptime_us");
}

/* Returns how much a counter has grown since the earlier snapshot, or since its beginning when the worker is another
 * one now. */
static uint64_t grown(const struct snapshot *before, const struct snapshot *now, const char *name)
{
    uint64_t old = is_same_worker(before, now) ? snapshot_counter(before, name) : 0, new = snapshot_counter(now, name);
    return new > old ? new - old : 0;
}

static double per_second(const struct snapshot *before, const struct snapshot *now, const char *name)
{
    uint64_t passed_us = grown(before, now, "uptime_us");
    return passed_us ? (double)grown(before, now, name) * 1e6 / (double)passed_us : 0;
}

/* A connection and what it had of all devices between the snapshots, in percent of the time. */
struct rate {
    const struct scand_client_info *client;
    double device, samples_per_s;
};

/* Returns the key by which connections are sorted; for numbers, the lowest comes first. */
static double rate_key(const struct rate *rate, enum top_sort sort)
{
    switch (sort) {
    case TOP_SORT_MEMORY:
        return (double)(rate->client->host_bytes + rate->client->device_bytes);
    case TOP_SORT_RATE:
        return rate->samples_per_s;
    case TOP_SORT_CLIENT:
        return 0;
    default:
        return rate->device;
    }
}

static int rate_compare(const void *a, const void *b, void *context)
{
    const struct rate *left = a, *right = b;
    const enum top_sort sort = *(const enum top_sort *)context;
    const double one = rate_key(left, sort), other = rate_key(right, sort);
    if (one != other)
        return one < other ? 1 : -1;
    return left->client->client < right->client->client ? -1 : 1;
}

static size_t device_count(const struct snapshot *snapshot)
{
    return snapshot->device_count > 0 ? snapshot->device_count : 1;
}

/* Computes the connections' rates. Both snapshots have connections in the order of their numbers. Returns NULL without
 * memory. */
static struct rate *rates_of(const struct snapshot *before, const struct snapshot *now, enum top_sort sort)
{
    struct rate *rates = calloc(now->client_count + 1, sizeof *rates);
    uint64_t passed_us = grown(before, now, "uptime_us");
    size_t old = 0;
    for (size_t i = 0; rates && i < now->client_count; i++) {
        const struct scand_client_info *client = &now->clients[i];
        while (old < before->client_count && before->clients[old].client < client->client)
            old++;
        bool known = old < before->client_count && before->clients[old].client == client->client &&
                     before->clients[old].device_busy_us <= client->device_busy_us;
        uint64_t busy_us = client->device_busy_us - (known ? before->clients[old].device_busy_us : 0);
        uint64_t samples = client->samples_scanned - (known ? before->clients[old].samples_scanned : 0);
        rates[i].client = client;
        rates[i].device = passed_us ? percent(busy_us, passed_us * device_count(now)) : 0;
        rates[i].samples_per_s = passed_us ? (double)samples * 1e6 / (double)passed_us : 0;
    }
    if (rates)
        qsort_r(rates, now->client_count, sizeof *rates, rate_compare, &sort);
    return rates;
}

/* Returns how busy all devices together are, in percent. */
static double devices_busy(const struct snapshot *before, const struct snapshot *now)
{
    return per_second(before, now, "device_busy_us") / 1e4 / (double)device_count(now);
}

/* A device's work between the snapshots. */
struct pace {
    double busy; /* percent of the time */
    uint64_t upload_bytes_per_s, download_bytes_per_s;
};

static struct pace pace_of(const struct snapshot *before, const struct snapshot *now, size_t i)
{
    static const struct scand_device none;
    bool known = is_same_worker(before, now) && i < before->device_count;
    const struct scand_device *old = known ? &before->devices[i] : &none, *new = &now->devices[i];
    double passed_us = (double)grown(before, now, "uptime_us");
    if (!(passed_us > 0))
        return (struct pace){0};
    double busy = (double)(new->busy_us - old->busy_us) * 100 / passed_us;
    return (struct pace){
        .busy = busy < 100 ? busy : 100, /* devices are asked after the clock is read, so more is possible */
        .upload_bytes_per_s = (uint64_t)((double)(new->upload_bytes - old->upload_bytes) * 1e6 / passed_us),
        .download_bytes_per_s = (uint64_t)((double)(new->download_bytes - old->download_bytes) * 1e6 / passed_us),
    };
}

static void device_lines(FILE *file, const struct snapshot *before, const struct snapshot *now)
{
    char used[GROUPED_BYTES], limit[GROUPED_BYTES], up[GROUPED_BYTES], down[GROUPED_BYTES];
    for (size_t i = 0; i < now->device_count; i++) {
        const struct scand_device *device = &now->devices[i];
        struct pace pace = pace_of(before, now, i);
        fprintf(file, "%s  %s  memory %s of %s\n", device->backend, device->name,
                binary_size(device->memory_used_bytes, used), binary_size(device->memory_limit_bytes, limit));
        fprintf(file, "busy %5.1f %%  chunks %" PRIu64 "  upload %s/s  download %s/s\n", pace.busy, device->chunks_open,
                binary_size(pace.upload_bytes_per_s, up), binary_size(pace.download_bytes_per_s, down));
    }
}

static void job_counts(FILE *file, const struct snapshot *before, const struct snapshot *now)
{
    char done[GROUPED_BYTES], samples[GROUPED_BYTES];
    fprintf(
        file, "jobs %" PRIu64 " open  %s done  %" PRIu64 " failed  %" PRIu64 " cancelled  %.1f jobs/s  %s samples/s\n",
        snapshot_counter(now, "jobs_open"), grouped(snapshot_counter(now, "jobs_done"), done),
        snapshot_counter(now, "jobs_failed"), snapshot_counter(now, "jobs_cancelled"),
        per_second(before, now, "jobs_done"), grouped((uint64_t)per_second(before, now, "samples_scanned"), samples));
}

/*
 * Lists. A heading is in reverse video, a job's state in a colour.
 */

static const char *style(const struct top_view *view, const char *code)
{
    return view->colours ? code : "";
}

#define STYLE_NONE    "\033[0m"
#define STYLE_BOLD    "\033[1m"
#define STYLE_REVERSE "\033[7m"
#define STYLE_RED     "\033[31m"
#define STYLE_GREEN   "\033[32m"
#define STYLE_YELLOW  "\033[33m"

static void left_out(FILE *file, size_t count, size_t lines)
{
    if (count > lines)
        fprintf(file, "%8s and %zu more\n", "", count - lines);
}

/* Writes a number scaled by thousands, "33.5 M". */
static const char *scaled(double number, char *out)
{
    static const char units[] = " kMGT";
    size_t unit = 0;
    for (; number >= 999.95 && unit < sizeof units - 2; unit++)
        number /= 1000;
    snprintf(out, GROUPED_BYTES, unit ? "%.1f %c" : "%.0f%c", number, unit ? units[unit] : '\0');
    return out;
}

static void client_heading(FILE *file, const struct top_view *view)
{
    fprintf(file, "\n%s", style(view, STYLE_REVERSE));
    if (view->columns >= TOP_WIDE)
        fprintf(file, "%8s %-12s %8s %7s %6s %7s %9s %10s %10s %15s  %s", "client", "user", "pid", "device", "queued",
                "running", "done", "host", "resident", "samples/s", "program");
    else
        fprintf(file, "%7s %-8s %7s %6s %3s %9s %9s  %-23s", "client", "user", "device", "queued", "run", "memory",
                "samples/s", "program");
    fprintf(file, "%s\n", style(view, STYLE_NONE));
}

static void client_line(FILE *file, const struct rate *rate, const struct top_view *view)
{
    const struct scand_client_info *client = rate->client;
    char user[USER_BYTES], host[GROUPED_BYTES], device[GROUPED_BYTES], samples[GROUPED_BYTES];
    const char *program = client->name[0] ? client->name : "-";
    user_name(client->user, user);
    if (view->columns >= TOP_WIDE)
        fprintf(file,
                "%8" PRIu64 " %-12s %8" PRIu32 " %5.1f %% %6" PRIu64 " %7" PRIu64 " %9" PRIu64 " %10s %10s %15s  %s\n",
                client->client, user, client->pid, rate->device, client->jobs_queued, client->jobs_running,
                client->jobs_done, binary_size(client->host_bytes, host), binary_size(client->device_bytes, device),
                grouped((uint64_t)rate->samples_per_s, samples), program);
    else
        fprintf(file, "%7" PRIu64 " %-8.8s %5.1f %% %6" PRIu64 " %3" PRIu64 " %9s %9s  %s\n", client->client, user,
                rate->device, client->jobs_queued, client->jobs_running,
                binary_size(client->host_bytes + client->device_bytes, host), scaled(rate->samples_per_s, samples),
                program);
}

static void client_lines(FILE *file, const struct rate *rates, size_t count, size_t lines, const struct top_view *view)
{
    client_heading(file, view);
    for (size_t i = 0; i < count && i < lines; i++)
        client_line(file, &rates[i], view);
    left_out(file, count, lines);
}

static void job_heading(FILE *file, const struct top_view *view)
{
    fprintf(file, "\n%s", style(view, STYLE_REVERSE));
    if (view->columns >= TOP_WIDE)
        fprintf(file, "%8s %-12s %-8s %-28s %10s  %-32s %s", "job", "user", "state", "progress", "age", "operation",
                "program");
    else
        fprintf(file, "%7s %-8s %-8s %5s %8s %-18s %-20s", "job", "user", "state", "done", "age", "program",
                "operation");
    fprintf(file, "%s\n", style(view, STYLE_NONE));
}

static const char *state_style(const struct top_view *view, enum scand_job_state state)
{
    return style(view, state == SCAND_JOB_STATE_RUNNING  ? STYLE_GREEN
                       : state == SCAND_JOB_STATE_QUEUED ? STYLE_YELLOW
                                                         : STYLE_RED);
}

static void job_line(FILE *file, const struct scand_job_info *job, const struct top_view *view)
{
    char user[USER_BYTES], age[GROUPED_BYTES], done[DONE_BYTES];
    const bool wide = view->columns >= TOP_WIDE;
    const char *operation = job->operation[0] ? job->operation : "-", *program = job->name[0] ? job->name : "-";
    fprintf(file, wide ? "%8" PRIu64 " %-12s %s%-8s%s " : "%7" PRIu64 " %-8.8s %s%-8s%s ", job->job,
            user_name(job->user, user), state_style(view, job->state), scand_word(SCAND_LIST_JOB_STATE, job->state),
            style(view, STYLE_NONE));
    job_done(job, done);
    duration(job->age_us, age);
    if (!wide) {
        fprintf(file, "%5s %8s %-18.18s %s\n", done, age, program, operation);
        return;
    }
    const double part = job->rows || !job->rows_done ? percent(job->rows_done, job->rows) : 0;
    fputc('[', file);
    for (int cell = 0; cell < BAR_CELLS; cell++)
        fputc((cell + 1) * 100 <= part * BAR_CELLS ? '#' : ' ', file);
    fprintf(file, "] %5s %10s  %-32s %s\n", done, age, operation, program);
}

/* Writes the jobs' lines: running jobs first, each kind in the order of their numbers. */
static void job_lines(FILE *file, const struct snapshot *now, size_t lines, const struct top_view *view)
{
    size_t shown = 0;
    job_heading(file, view);
    for (int queued = 0; queued <= 1; queued++)
        for (size_t i = 0; i < now->job_count && shown < lines; i++)
            if ((now->jobs[i].state == SCAND_JOB_STATE_QUEUED) == queued) {
                job_line(file, &now->jobs[i], view);
                shown++;
            }
    left_out(file, now->job_count, lines);
}

/* Returns a list's number of lines: half of the lines for both lists, or what the other list leaves. */
static size_t lines_of(size_t own, size_t other, size_t lines)
{
    const size_t half = lines / 2;
    const size_t most = other < half ? lines - other : half;
    return own < most ? own : most;
}

void top_text(FILE *file, const char *server, const struct snapshot *before, const struct snapshot *now,
              const struct top_view *view)
{
    char uptime[GROUPED_BYTES];
    struct rate *rates = rates_of(before, now, view->sort);
    const size_t clients = rates ? now->client_count : 0;
    fprintf(file, "%s%s%s  up %s\n", style(view, STYLE_BOLD), server, style(view, STYLE_NONE),
            duration(snapshot_counter(now, "uptime_us"), uptime));
    device_lines(file, before, now);
    job_counts(file, before, now);
    client_lines(file, rates, clients, lines_of(clients, now->job_count, view->lines), view);
    job_lines(file, now, lines_of(now->job_count, clients, view->lines), view);
    free(rates);
}

void top_help(FILE *file, const struct top_view *view, unsigned every_ms)
{
    static const char *const words[] = {
#define X(NAME, KEY, WORD) WORD,
        TOP_SORTS(X)
#undef X
    };
    fprintf(file, "q quit   sort by:");
    for (size_t i = 0; i < TOP_SORT_COUNT; i++)
        fprintf(file, i == view->sort ? " [%s%s%s]" : " %s%s%s", i == view->sort ? style(view, STYLE_BOLD) : "",
                words[i], i == view->sort ? style(view, STYLE_NONE) : "");
    if (every_ms)
        fprintf(file, "   + - every %g s   space stops", every_ms / 1e3);
    else
        fprintf(file, "   %sstopped%s: space goes on", style(view, STYLE_BOLD), style(view, STYLE_NONE));
}

void top_away(FILE *file, const struct top_view *view, uint64_t away_us, const char *why)
{
    char time[GROUPED_BYTES];
    fprintf(file, "%sthe daemon is away, for %s%s: %s\n", style(view, STYLE_RED STYLE_BOLD), duration(away_us, time),
            style(view, STYLE_NONE), why);
}

static void paces_json(struct json *json, const struct snapshot *before, const struct snapshot *now)
{
    json_open(json, "devices", '[');
    for (size_t i = 0; i < now->device_count; i++) {
        struct pace pace = pace_of(before, now, i);
        json_open(json, NULL, '{');
        device_members(json, &now->devices[i]);
        json_real(json, "busy_percent", pace.busy);
        json_unsigned(json, "upload_bytes_per_s", pace.upload_bytes_per_s);
        json_unsigned(json, "download_bytes_per_s", pace.download_bytes_per_s);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void shares_json(struct json *json, const struct rate *rates, size_t count)
{
    json_open(json, "clients", '[');
    for (size_t i = 0; i < count; i++) {
        json_open(json, NULL, '{');
        client_members(json, rates[i].client);
        json_real(json, "device_percent", rates[i].device);
        json_real(json, "samples_per_s", rates[i].samples_per_s);
        json_close(json, '}');
    }
    json_close(json, ']');
}

void top_json(FILE *file, const char *server, const struct snapshot *before, const struct snapshot *now)
{
    struct json json = {.file = file};
    struct rate *rates = rates_of(before, now, TOP_SORT_DEVICE);
    json_open(&json, NULL, '{');
    json_text(&json, "server", server);
    json_unsigned(&json, "uptime_us", snapshot_counter(now, "uptime_us"));
    json_unsigned(&json, "measured_us", grown(before, now, "uptime_us"));
    json_real(&json, "busy_percent", devices_busy(before, now));
    json_unsigned(&json, "chunks_open", snapshot_counter(now, "chunks_open"));
    json_real(&json, "upload_bytes_per_s", per_second(before, now, "upload_bytes"));
    json_real(&json, "download_bytes_per_s", per_second(before, now, "download_bytes"));
    json_real(&json, "samples_per_s", per_second(before, now, "samples_scanned"));
    json_real(&json, "jobs_per_s", per_second(before, now, "jobs_done"));
    json_unsigned(&json, "jobs_open", snapshot_counter(now, "jobs_open"));
    json_unsigned(&json, "jobs_done", snapshot_counter(now, "jobs_done"));
    paces_json(&json, before, now);
    shares_json(&json, rates, rates ? now->client_count : 0);
    jobs_json(&json, "jobs", now);
    json_close(&json, '}');
    fputc('\n', file);
    free(rates);
}

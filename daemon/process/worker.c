#include "worker.h"

#include <assert.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <unistd.h>

#include "channel.h"
#include "daemon/core/memory/pool_filler.h"
#include "daemon/core/trust.h"
#include "daemon/net/listener.h"
#include "daemon/net/metrics_http.h"
#include "daemon/net/peer.h"
#include "device_threads.h"
#include "log.h"
#include "protocol/clock.h"
#include "protocol/metrics.h"
#include "protocol/own_descriptors.h"
#include "protocol/report.h"
#include "protocol/slept.h"
#include "provision.h"
#include "readers.h"
#include "watchdog.h"
#include "worker_pool.h"

/* The delay before the rest of the pool is made. Clients who have waited for a worker come first: helpers that map
 * memory occupy processors and the process's maps. */
#define FILL_AFTER_MS 250

/* A unit of work in libuv's thread pool. */
struct deferred {
    uv_work_t request; /* must be the first member */
    struct worker *worker;
    struct work *work; /* NULL: no work */
};

struct worker {
    struct device_set devices;
    struct worker_pool pool;
    struct pool_filler filler;
    struct service *service; /* in shared memory */
    struct listener listener;
    struct metrics_http http;
    int metrics_fd; /* -1: no http */
    bool metrics_users;
    int channel_fd;
    struct device_threads device_threads;
    struct deferred deferred[LIMIT_HELPERS];
    struct readers readers;
    uv_loop_t loop;
    bool drained;
    uv_timer_t wake;      /* for the service's deadlines; runs only while there are some */
    uv_timer_t fill;      /* for the rest of the pool */
    uv_timer_t show;      /* for progress that the supervisor looks at */
    uint64_t watchdog_ms; /* the longest turn of the loop */
    uv_signal_t terminate, interrupt, reload;
    struct shared_page *shared_page;
    struct rusage usage; /* of the loop's thread, at its latest look */
};

static uint64_t ops_now_us(void *context)
{
    (void)context;
    return clock_us();
}

static void ops_start(void *context, struct chunk *chunks)
{
    struct worker *worker = context;
    device_threads_submit(&worker->device_threads, chunks);
}

/* Logs why this worker ends, and leaves the reason for the supervisor. */
static void give_cause(struct worker *worker, const char *cause)
{
    log_error("%s", cause);
    snprintf(worker->shared_page->cause, sizeof worker->shared_page->cause, "%s", cause);
}

static void show_ending(struct worker *worker)
{
    atomic_store(&worker->shared_page->progress.phase, PHASE_ENDING);
}

/* Ends a worker that has lost a device. Finished jobs are answered first, so that no client repeats them or takes their
 * output for lost. */
static void end_lost(struct worker *worker)
{
    show_ending(worker);
    give_cause(worker, "the device is lost; this worker ends");
    listener_flush(&worker->listener, LIMIT_LOST_MS);
    _exit(WORKER_LOST);
}

static void collect(struct worker *worker, bool all)
{
    if (!device_threads_collect(&worker->device_threads, all))
        end_lost(worker);
}

static void deferred_run(uv_work_t *request)
{
    work_run(((struct deferred *)request)->work);
}

static void deferred_done(uv_work_t *request, int status)
{
    struct deferred *deferred = (struct deferred *)request;
    struct work *work = deferred->work;
    (void)status; /* nothing is cancelled */
    if (device_set_is_lost(&deferred->worker->devices))
        collect(deferred->worker, true); /* ends: clients repeat unanswered requests, not failed ones */
    deferred->work = NULL;
    service_work_done(deferred->worker->service, work);
}

/* Runs work in libuv's thread pool. There are as many places as the service may ask for at a time, and libuv refuses no
 * request that has functions. */
static void ops_defer(void *context, struct work *work)
{
    struct worker *worker = context;
    struct deferred *deferred = worker->deferred;
    while (deferred->work)
        deferred++;
    deferred->worker = worker;
    deferred->work = work;
    int r = uv_queue_work(&worker->loop, &deferred->request, deferred_run, deferred_done);
    assert(r == 0);
    (void)r;
}

static void thread_begins(uv_work_t *request)
{
    (void)request;
}

/* Makes libuv start its threads, which it does with the first work, aborting where it cannot: better now than in the
 * middle of clients' jobs. */
static void start_helpers(struct worker *worker)
{
    static uv_work_t first;
    int r = uv_queue_work(&worker->loop, &first, thread_begins, NULL);
    assert(r == 0);
    (void)r;
}

static void ops_read(void *context, struct work *work)
{
    struct worker *worker = context;
    readers_submit(&worker->readers, work);
}

static void ops_output(void *context, struct client *client)
{
    struct worker *worker = context;
    peer_output(&worker->listener, client);
}

static void ops_draining(void *context)
{
    struct worker *worker = context;
    if (atomic_exchange(&worker->shared_page->draining, true))
        return;
    channel_send(worker->channel_fd, &(struct channel_message){.word = CHANNEL_DRAINING, .fd = -1});
    log_info("draining: no more jobs are taken, %llu are left", (unsigned long long)worker->service->stats.jobs_open);
}

static void ops_drained(void *context)
{
    struct worker *worker = context;
    if (!worker->drained)
        log_info("drained: none is left");
    worker->drained = true;
}

static void on_wake(uv_timer_t *timer)
{
    struct worker *worker = timer->data;
    service_tick(worker->service);
}

static void ops_wake(void *context, uint64_t at_us)
{
    struct worker *worker = context;
    uint64_t now_us = ops_now_us(context);
    if (at_us == UINT64_MAX) {
        uv_timer_stop(&worker->wake);
        return;
    }
    uv_update_time(&worker->loop); /* timers count from the loop's idea of now */
    uv_timer_start(&worker->wake, on_wake, at_us > now_us ? (at_us - now_us) / 1000 + 1 : 0, 0);
}

static bool ops_slept(void *context)
{
    struct worker *worker = context;
    const struct rusage before = worker->usage;
    getrusage(RUSAGE_THREAD, &worker->usage);
    return slept_at_memory(&before, &worker->usage);
}

static const struct service_ops ops = {ops_start,   ops_defer,  ops_read, ops_output, ops_draining,
                                       ops_drained, ops_now_us, ops_wake, ops_slept};

/* Wakes the loop from a thread of a device or a reader. */
static void wake_loop(void *context)
{
    struct worker *worker = context;
    listener_wake(&worker->listener);
}

static void on_show(uv_timer_t *timer)
{
    struct worker *worker = timer->data;
    progress_show(&worker->shared_page->progress, worker->service, worker->watchdog_ms);
}

/* Lets the supervisor watch from now on, and shows it progress as often as it checks, also while the loop is idle. */
static void show_progress(struct worker *worker, uint64_t limit_ms)
{
    const uint64_t period_ms = limit_ms / WATCHDOG_CHECKS;
    worker->watchdog_ms = limit_ms;
    on_show(&worker->show);
    if (period_ms > 0)
        uv_timer_start(&worker->show, on_show, period_ms, period_ms);
    atomic_store(&worker->shared_page->progress.phase, PHASE_SERVING);
}

/* Passes on what readers have done. True when there was something. */
static bool collect_reads(struct worker *worker)
{
    struct work *work = readers_collect(&worker->readers), *next;
    const bool some = work != NULL;
    for (; work; work = next) {
        next = work->next;
        service_work_done(worker->service, work);
    }
    return some;
}

/* Computes the small chunk of a processor's that is left to the loop, once devices have the others. */
static void run_now(struct worker *worker)
{
    struct user *user = device_threads_user_now(&worker->device_threads);
    if (!user)
        return;
    const uint64_t now_us = clock_us();
    trust_begin(worker->service, user);
    device_threads_run_now(&worker->device_threads);
    listener_end_turn(&worker->listener, user, now_us);
}

static void run(struct worker *worker)
{
    while (!worker->drained) {
        if (device_threads_end_spin(&worker->device_threads))
            collect(worker, false);
        listener_wait(&worker->listener, device_threads_may_block(&worker->device_threads));
        collect(worker, false);
        collect_reads(worker);
        run_now(worker);
        listener_serve(&worker->listener);
        run_now(worker);
    }
    listener_end_input(&worker->listener, LIMIT_LAST_INPUT_MS);
}

static void on_signal(uv_signal_t *signal, int number)
{
    struct worker *worker = signal->data;
    (void)number;
    service_drain(worker->service);
}

static void configure(struct worker *worker)
{
    struct grants grants;
    shared_page_read_grants(worker->shared_page, &grants);
    service_configure(worker->service, &grants);
}

static void on_reload(uv_signal_t *signal, int number)
{
    (void)number;
    configure(signal->data);
}

/* Fills in all users, of whom there are LIMIT_USERS at most, and returns how many. */
static size_t list_users(struct service *service, struct scand_user_info *users)
{
    struct msg_user_row page[LIMIT_MAPS];
    uint64_t from = 0;
    size_t count = 0;
    do {
        const uint32_t rows = service_describe_users(service, &from, page);
        for (uint32_t i = 0; i < rows; i++)
            report_user(&page[i], &users[count++]);
    } while (from);
    return count;
}

/* Writes the text that scanctl metrics prints, without users where they are not to be named. */
static void write_metrics(void *context, FILE *file)
{
    struct worker *worker = context;
    struct service *service = worker->service;
    struct metrics metrics = {.server = SERVICE_NAME};
    struct msg_stats_result stats;
    struct msg_device devices[LIMIT_MAPS];
    struct scand_user_info users[LIMIT_USERS];
    service_describe_stats(service, &stats);
    metrics.device_count = service_describe_devices(service, devices);
    for (size_t i = 0; i < metrics.device_count; i++)
        report_device(&devices[i], &metrics.devices[i]);
    metrics.counter_count = report_counters(&stats, metrics.counters, METRICS_COUNTERS);
    metrics.histogram_count = report_histograms(&service->histograms, metrics.histograms, METRICS_HISTOGRAMS);
    metrics.users = users;
    metrics.user_count = worker->metrics_users ? list_users(service, users) : 0;
    metrics_print(file, &metrics);
}

/* Returns how many memory maps a process may have. */
static uint64_t read_map_limit(void)
{
    FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
    unsigned long long most = LIMIT_MAPS_STANDARD;
    if (file && fscanf(file, "%llu", &most) != 1)
        most = LIMIT_MAPS_STANDARD;
    if (file)
        fclose(file);
    return most;
}

static int watch_signals(struct worker *worker)
{
    const struct {
        uv_signal_t *handle;
        uv_signal_cb caught;
        int number;
    } signals[] = {{&worker->terminate, on_signal, SIGTERM},
                   {&worker->interrupt, on_signal, SIGINT},
                   {&worker->reload, on_reload, SIGHUP}};
    int r = 0;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0] && !r; i++) {
        r = uv_signal_init(&worker->loop, signals[i].handle);
        if (!r)
            r = uv_signal_start(signals[i].handle, signals[i].caught, signals[i].number);
        signals[i].handle->data = worker;
    }
    return r;
}

/* Initializes the loop's timers and signals. Timers cannot fail, neither here nor when they are started. */
static int init_handles(struct worker *worker)
{
    int r = uv_loop_init(&worker->loop);
    if (r)
        return r;
    uv_timer_init(&worker->loop, &worker->wake);
    uv_timer_init(&worker->loop, &worker->fill);
    uv_timer_init(&worker->loop, &worker->show);
    worker->wake.data = worker->fill.data = worker->show.data = worker;
    return watch_signals(worker);
}

static int start_loop(struct worker *worker, int listen_fd)
{
    char threads[12];
    snprintf(threads, sizeof threads, "%d", LIMIT_HELPERS);
    setenv("UV_THREADPOOL_SIZE", threads, 1); /* as many as the service counts on */
    int r = init_handles(worker);
    if (r)
        return r;
    configure(worker); /* after the signals are watched, so that no change is missed */
    r = device_threads_start(&worker->device_threads, &worker->devices, worker->service, wake_loop, worker);
    if (r)
        return r;
    r = readers_start(&worker->readers, wake_loop, worker);
    if (r)
        return r;
    if (worker->metrics_fd >= 0) {
        r = metrics_http_start(&worker->http, &worker->loop, worker->metrics_fd, write_metrics, worker);
        if (r)
            return r;
    }
    return listener_start(&worker->listener, &worker->loop, worker->service, listen_fd);
}

/* Runs what helpers and readers have left; each may leave work for the others. A reader whose file system does not
 * answer is waited for so long and no longer: the process ends without what that reader has. */
static void finish_work(struct worker *worker)
{
    do
        uv_run(&worker->loop, UV_RUN_DEFAULT);
    while (collect_reads(worker) || readers_wait(&worker->readers, LIMIT_DRAINED_MS));
    if (readers_out(&worker->readers) > 0)
        _exit(EX_OK);
    service_trim(worker->service);
}

/* Ends what start_loop began: the devices' threads, clients, then the handles. Signals are still caught: a second
 * request to end, as from a service manager that asks supervisor and worker, must not kill. */
static void stop_loop(struct worker *worker)
{
    device_threads_stop(&worker->device_threads); /* wakes the listener */
    collect(worker, true);
    listener_flush(&worker->listener, LIMIT_DRAINED_MS);
    readers_silence(&worker->readers); /* wakes the listener, too */
    listener_stop(&worker->listener);
    if (worker->metrics_fd >= 0)
        metrics_http_stop(&worker->http);
    device_threads_finish(&worker->device_threads);
    service_finish(worker->service);
    uv_close((uv_handle_t *)&worker->wake, NULL);
    uv_close((uv_handle_t *)&worker->fill, NULL);
    uv_close((uv_handle_t *)&worker->show, NULL);
    uv_unref((uv_handle_t *)&worker->terminate);
    uv_unref((uv_handle_t *)&worker->interrupt);
    uv_unref((uv_handle_t *)&worker->reload);
    finish_work(worker);
}

static int prepare(struct worker *worker, const struct options *options, const struct pool_store *store,
                   struct error *error)
{
    int r = device_set_open(options, &worker->devices, error);
    return r ? r : worker_pool_make(&worker->pool, &worker->devices, store, worker->channel_fd, error);
}

static void pool_is_full(struct pool_filler *filler)
{
    if (filler->failures > 0)
        log_error("%u segments of the pool could not be made: too little memory is free; they are made when a client "
                  "needs them",
                  filler->failures);
}

static void on_fill(uv_timer_t *timer)
{
    struct worker *worker = timer->data;
    pool_filler_start(&worker->filler, worker->service, pool_is_full);
}

/* Limits clients' descriptors to what the pool leaves: it opens the segments that it has yet to make, and small
 * segments as they are needed. */
static void limit_files(struct worker *worker)
{
    const struct pool *pool = &worker->pool.pool;
    uint64_t connections, others;
    provision_descriptors(own_descriptors_limit(), descriptors_count(), pool_descriptors_to_come(pool), &connections,
                          &others);
    service_limit_files(worker->service, connections, others);
}

/* Begins to serve. The counters go on where a lost worker's ended. */
static void begin_service(struct worker *worker)
{
    struct service_totals totals;
    service_totals(worker->service, &totals);
    service_init(worker->service, &ops, worker, &worker->devices, &worker->pool.pool, getuid());
    if (worker->shared_page->starts > 1)
        service_resume(worker->service, &totals, worker->shared_page->starts - 1);
    service_limit_maps(worker->service, read_map_limit());
    limit_files(worker);
}

/* Counts how long the start took and how long clients have waited for this worker. */
static void count_start(struct worker *worker)
{
    const uint64_t now_us = ops_now_us(worker), lost_us = worker->shared_page->lost_us;
    worker->service->stats.start_us = now_us - worker->shared_page->started_us;
    if (lost_us > 0)
        worker->service->stats.outage_us += now_us - lost_us;
}

static void log_ready(const struct options *options, const struct device_set *devices)
{
    const struct device_info *first = &devices->devices[0]->info;
    char text[SETTING_TEXT_BYTES];
    if (listen_choice_loopback(options->metrics_listen) != LOOPBACK_NONE)
        log_info("metrics at http://%s/metrics", listen_choice_format(options->metrics_listen, text, sizeof text));
    for (unsigned i = 0; i < devices->count && devices->count > 1; i++)
        log_info("device %u: %s (%s)", i, devices->devices[i]->info.name, devices->devices[i]->info.backend);
    if (devices->count > 1)
        log_info("ready at %s on %u devices", options->socket, devices->count);
    else
        log_info("ready at %s on %s (%s)", options->socket, first->name, first->backend);
}

int worker_run(const struct options *options, const struct worker_ends *ends, struct shared_page *shared_page)
{
    static struct worker worker; /* static: signal handlers may use it after this function */
    struct error error;
    mallopt(M_MMAP_THRESHOLD, MIB(4)); /* fixes the threshold: larger blocks are never parts of a heap that all share */
    worker.metrics_fd = ends->metrics_fd;
    worker.channel_fd = ends->channel_fd;
    worker.metrics_users = options->metrics_users;
    worker.shared_page = shared_page;
    worker.service = &shared_page->service;
    if (prepare(&worker, options, ends->store, &error)) {
        give_cause(&worker, error.message);
        return EX_UNAVAILABLE;
    }
    begin_service(&worker);
    int r = start_loop(&worker, ends->listen_fd);
    if (r) {
        error_set(&error, r, "could not start the loop: %s", strerror(-r));
        give_cause(&worker, error.message);
        return EX_OSERR;
    }
    start_helpers(&worker);
    count_start(&worker);
    /* The supervisor is told before the log: whoever reads the log may rely on the supervisor's knowing. */
    channel_send(worker.channel_fd, &(struct channel_message){.word = CHANNEL_READY, .fd = -1});
    log_ready(options, &worker.devices);
    show_progress(&worker, options->watchdog_ms);
    uv_timer_start(&worker.fill, on_fill, FILL_AFTER_MS, 0);
    run(&worker);
    show_ending(&worker);
    stop_loop(&worker);
    worker_pool_free(&worker.pool);
    device_set_close(&worker.devices);
    return EX_OK;
}

/*
 * The service inside a program (protocol/local.h): the daemon's core and its CPU device, without a supervisor, a loop
 * or a socket. Its one client is this program, in whose calls all is done that takes no long: messages, small jobs, and
 * what the daemon has helpers do. Larger jobs have threads (far.h).
 */
#include "protocol/local.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <scand/version.h>

#include "daemon/core/service.h"
#include "daemon/device/devices.h"
#include "far.h"
#include "near.h"
#include "pipe.h"
#include "protocol/clock.h"
#include "protocol/own_descriptors.h"

/* Chunks of at most this size are computed by the calling thread: handing one to a thread and waking up again would
 * take longer. */
#define AT_ONCE_BYTES KIB(256)

/* Chunks that a thread computes go on whether the program calls or not. They are large, since nobody else waits for
 * them, and one can be cancelled in the middle. */
#define CHUNK_BYTES MIB(256)

/* The pool has room for all memory of the machine; where so many addresses cannot be had, for less. */
#define POOL_LEAST_BYTES MIB(64)

/* Memory that buffers gave back and that is kept for the next ones: the rest is the system's again. */
#define KEEP_BYTES MIB(256)

/* Results that the program has not taken; more than these are sent. */
#define RESULTS 64

/* Results of jobs, in the order in which the jobs ended. */
struct results {
    struct {
        uint32_t msgid;
        struct msg_job_submit_result result;
    } items[RESULTS];
    unsigned first, count;
};

struct local {
    pid_t process;         /* process that made it */
    struct device *device; /* the service's; computes in the calls of the program */
    struct far far;
    struct device_set devices;
    struct pool pool;
    struct client *client;
    struct pipe requests, answers;
    struct results results;      /* these come before what is in the pipe */
    struct work_list work;       /* deferred */
    struct chunk_queue returned; /* chunks that were computed at once, or could not be */
    uint64_t now_us;             /* time at which the latest turn with something to do began */
    uint64_t wake_us;            /* the time at which the service is to be called; UINT64_MAX: none */
    bool is_over;                /* the client has broken the protocol: nothing more is read from it */
    struct service service;
};

/*
 * The functions of the device that the service calls.
 */

static bool is_at_once(const struct chunk *chunk)
{
    return chunk->small || chunk->bytes <= AT_ONCE_BYTES;
}

/* Each is done with when this returns, so there is one at a time. */
static int compute_at_once(struct device *device, struct chunk *chunk)
{
    int r = device->ops->start(device, chunk);
    while (!r && device->ops->finish(device, 1) != chunk)
        ;
    return r;
}

static void start(struct local *self, struct chunk *chunk)
{
    const bool at_once = is_at_once(chunk);
    chunk->next = NULL; /* a thread would start those behind it, too */
    int r = at_once ? compute_at_once(self->device, chunk) : far_submit(&self->far, chunk);
    if (r)
        chunk->status = r;
    if (r || at_once)
        chunk_queue_push(&self->returned, chunk);
}

static void ops_start(void *context, struct chunk *chunks)
{
    for (struct chunk *chunk = chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        start(context, chunk);
    }
}

static void ops_defer(void *context, struct work *work)
{
    struct local *self = context;
    work_list_push(&self->work, work);
}

/* All output is sent at the end of a turn. */
static void ops_output(void *context, struct client *client)
{
    (void)context, (void)client;
}

/* A service that drains refuses jobs, and ends with the program's connection. */
static void ops_draining(void *context)
{
    (void)context;
}

/* Looking takes longer than much of what lies between two looks. */
static uint64_t ops_now_us(void *context)
{
    return ((const struct local *)context)->now_us;
}

static void ops_wake(void *context, uint64_t at_us)
{
    ((struct local *)context)->wake_us = at_us;
}

/* The only user is the program itself. */
static bool ops_slept(void *context)
{
    (void)context;
    return false;
}

static const struct service_ops service_ops = {ops_start,    ops_defer,  ops_defer, ops_output, ops_draining,
                                               ops_draining, ops_now_us, ops_wake,  ops_slept};

/*
 * Turns: each returns true when it has done something, before which it looks at the clock.
 */

static void turn_begin(struct local *self)
{
    self->now_us = clock_us();
}

static bool handle_requests(struct local *self)
{
    struct client *client = self->client;
    const bool resumes = client->paused && !service_is_clogged(client);
    if (self->is_over || (client->paused && !resumes) || (connection_receive(client->connection) <= 0 && !resumes))
        return false;
    turn_begin(self);
    int r;
    do
        r = service_input(client, UINT64_MAX);
    while (r > 0);
    self->is_over = r < 0;
    return true;
}

static bool do_work(struct local *self)
{
    struct work *work = work_list_pop(&self->work);
    if (!work)
        return false;
    turn_begin(self);
    work_run(work);
    service_work_done(&self->service, work);
    return true;
}

static bool collect(struct local *self, struct chunk *chunks)
{
    const bool some = chunks != NULL;
    if (some)
        turn_begin(self);
    while (chunks)
        service_collect(&self->service, &chunks, UINT64_MAX);
    return some;
}

static bool collect_returned(struct local *self)
{
    return collect(self, chunk_queue_pop_all(&self->returned));
}

static bool wake_service(struct local *self)
{
    if (self->wake_us == UINT64_MAX)
        return false;
    turn_begin(self);
    if (self->now_us < self->wake_us)
        return false;
    self->wake_us = UINT64_MAX;
    service_tick(&self->service);
    return true;
}

static void send_answers(struct local *self)
{
    if (!connection_has_output(self->client->connection))
        return;
    service_sends(self->client);
    connection_flush(self->client->connection);
    service_sent(self->client);
}

static bool take_turn(struct local *self)
{
    return handle_requests(self) || do_work(self) || collect_returned(self) || collect(self, far_collect(&self->far)) ||
           wake_service(self);
}

static void take_turns(struct local *self)
{
    do {
        while (take_turn(self))
            ;
        send_answers(self);
    } while (self->client->paused && !service_is_clogged(self->client));
    if (self->pool.made_bytes > self->pool.bytes.used + KEEP_BYTES)
        pool_trim(&self->pool, KEEP_BYTES);
}

/*
 * The service's end of the connection.
 */

static int service_write(void *context, const uint8_t *bytes, size_t size, const int *fds, size_t fd_count)
{
    struct local *self = context;
    return pipe_write(&self->answers, bytes, size, fds, fd_count);
}

static int service_read(void *context, uint8_t *bytes, size_t size, int *fds, size_t *fd_count)
{
    struct local *self = context;
    return pipe_read(&self->requests, bytes, size, fds, fd_count);
}

static void service_end(void *context)
{
    (void)context;
}

/* A result comes before what can be read, so none is taken while there is anything. */
static bool take_result(void *context, uint32_t msgid, const struct msg_job_submit_result *result)
{
    struct local *self = context;
    struct results *results = &self->results;
    if (results->count == RESULTS || !pipe_is_empty(&self->answers) || connection_has_output(self->client->connection))
        return false;
    const unsigned end = (results->first + results->count++) % RESULTS;
    results->items[end].msgid = msgid;
    results->items[end].result = *result;
    return true;
}

static const struct carrier service_carrier = {service_write, service_read, service_end};

/*
 * The program's end.
 */

static int local_write(void *context, const uint8_t *bytes, size_t size, const int *fds, size_t fd_count)
{
    struct local *self = context;
    int n = pipe_write(&self->requests, bytes, size, fds, fd_count);
    take_turns(self);
    return n;
}

static int local_read(void *context, uint8_t *bytes, size_t size, int *fds, size_t *fd_count)
{
    struct local *self = context;
    if (pipe_is_empty(&self->answers))
        take_turns(self);
    int n = pipe_read(&self->answers, bytes, size, fds, fd_count);
    return n == -EAGAIN && self->is_over ? 0 : n;
}

static bool local_submit(struct local *self, uint32_t msgid, const struct msg_job_submit_params *params)
{
    if (self->is_over || !pipe_is_empty(&self->requests) || self->client->paused)
        return false;
    turn_begin(self);
    if (!service_submit(self->client, msgid, params))
        return false;
    take_turns(self);
    return true;
}

static bool local_result(struct local *self, uint32_t *msgid, struct msg_job_submit_result *result)
{
    struct results *results = &self->results;
    if (results->count == 0)
        return false;
    *msgid = results->items[results->first].msgid;
    *result = results->items[results->first].result;
    results->first = (results->first + 1) % RESULTS;
    results->count--;
    return true;
}

static bool local_is_ready(const struct local *self)
{
    return self->results.count > 0 || !pipe_is_empty(&self->answers) || far_is_ready(&self->far) || self->is_over;
}

static uint64_t local_due_us(const struct local *self)
{
    return self->wake_us;
}

/*
 * Beginning and end.
 */

static uint64_t memory_bytes(void)
{
    struct sysinfo memory;
    return sysinfo(&memory) ? POOL_LEAST_BYTES : (uint64_t)memory.totalram * memory.mem_unit;
}

/* One user may have so many eighths of a pool; each small segment takes a descriptor of the program's. */
static int pool_begin(struct local *self)
{
    uint64_t bytes = memory_bytes() / LIMIT_USER_EIGHTHS * 8;
    int r;
    while ((r = pool_init(&self->pool, &self->devices, bytes)) && bytes > POOL_LEAST_BYTES)
        bytes /= 2;
    if (r)
        return r;
    pool_limit_files(&self->pool, own_descriptors_limit() / 4);
    self->pool.of_program = true;
    return 0;
}

static int client_begin(struct local *self)
{
    struct connection *connection = connection_create_on(&service_carrier, self);
    if (!connection)
        return -ENOMEM;
    self->client = service_open(&self->service, connection, getuid());
    if (!self->client) {
        connection_destroy(connection);
        return -ENOMEM;
    }
    self->client->pid = self->process;
    self->client->peer = self;
    self->client->take_result = take_result;
    return 0;
}

static int service_begin(struct local *self)
{
    int r = pool_begin(self);
    if (r)
        return r;
    service_init(&self->service, &service_ops, self, &self->devices, &self->pool, getuid());
    service_limit_files(&self->service, 1, own_descriptors_limit() - 1);
    r = client_begin(self);
    if (r)
        pool_finish(&self->pool);
    return r;
}

static int device_begin(struct local *self, struct error *error)
{
    int r = device_cpu_open(1, memory_bytes(), &self->device, error);
    if (r)
        return r;
    struct device_info *info = &self->device->info;
    info->chunk_bytes = info->resident_chunk_bytes = CHUNK_BYTES;
    info->slice_us = 0;
    return 0;
}

static int local_begin(struct local *self, struct error *error)
{
    int r = device_begin(self, error);
    if (r)
        return r;
    self->devices = (struct device_set){{self->device}, 1};
    r = service_begin(self);
    if (r)
        self->device->ops->close(self->device);
    return r ? error_set(error, r, "no memory to compute in this process: %s", strerror(-r)) : 0;
}

static int local_open(void (*wake)(void *context), void *wake_context, struct local **out, struct error *error)
{
    struct local *self = calloc(1, sizeof *self);
    if (!self)
        return error_set(error, -ENOMEM, "no memory to compute in this process");
    self->process = getpid();
    self->now_us = clock_us();
    self->wake_us = UINT64_MAX;
    far_init(&self->far, wake, wake_context);
    int r = local_begin(self, error);
    if (r)
        free(self);
    else
        *out = self;
    return r;
}

static void finish_all(struct local *self)
{
    service_close(self->client);
    far_stop(&self->far);
    while (do_work(self) || collect_returned(self) || collect(self, far_collect(&self->far)))
        ;
    far_finish(&self->far);
    service_finish(&self->service);
    service_trim(&self->service);
}

/* Closes the service. In a child of the process that made it there are no threads, and locks are as they were: the
 * child's part of the memory goes, and the rest is left. */
static void local_close(void *context)
{
    struct local *self = context;
    if (self->process != getpid()) {
        pool_forget(&self->pool);
        return;
    }
    finish_all(self);
    pool_finish(&self->pool);
    pipe_finish(&self->requests);
    pipe_finish(&self->answers);
    self->device->ops->close(self->device);
    free(self);
}

__attribute__((visibility("default"))) const struct local_library scand_local_library = {
    .release = SCAND_VERSION_TEXT,
    .open = local_open,
    .carrier = {local_write, local_read, local_close},
    .submit = local_submit,
    .result = local_result,
    .is_ready = local_is_ready,
    .due_us = local_due_us,
    .near_open = near_open,
    .near_compute = near_compute,
    .near_close = near_close,
};

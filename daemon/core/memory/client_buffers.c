#include "client_buffers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client_descriptors.h"
#include "daemon/core/clients.h"
#include "daemon/core/jobs/job.h"
#include "daemon/core/loop.h"
#include "daemon/core/replies.h"
#include "import.h"

/* A buffer on a helper thread: being prepared for a client that waits, or dismantled. */
struct buffer_work {
    struct work work; /* first */
    struct service *service;
    struct client *client; /* held; NULL while dismantling */
    uint32_t msgid;
    struct buffer *buffer;
    int status;
    struct error error;
};

/* Returns the request that made a buffer, for errors. */
static const char *buffer_method(const struct buffer *buffer)
{
    switch (buffer->source) {
    case BUFFER_IMPORT:
        return "buffer.import";
    case BUFFER_FILE:
        return "buffer.import_file";
    case BUFFER_FOREIGN:
        return "buffer.import_device";
    case BUFFER_POOL:
    case BUFFER_DEVICE:
    case BUFFER_EXPORTABLE:
        break;
    }
    return "buffer.create";
}

static enum quota buffer_quota(const struct buffer *buffer)
{
    return buffer->span.place == SCAND_PLACE_DEVICE ? QUOTA_DEVICE_MEMORY : QUOTA_HOST_MEMORY;
}

static uint64_t *buffer_counter(struct msg_stats_result *stats, const struct buffer *buffer)
{
    if (buffer->source == BUFFER_FOREIGN)
        return &stats->imported_bytes;
    if (buffer->source == BUFFER_FILE)
        return &stats->file_bytes;
    return buffer->span.place == SCAND_PLACE_DEVICE ? &stats->device_bytes : &stats->host_bytes;
}

static void count_buffer(struct service *service, const struct buffer *buffer, int sign)
{
    void (*const user_count)(struct user *, enum quota, uint64_t) = sign > 0 ? user_add : user_subtract;
    *buffer_counter(&service->stats, buffer) += (uint64_t)sign * buffer->span.size_bytes;
    service->stats.buffers_open += (uint64_t)sign;
    user_count(buffer->user, buffer_quota(buffer), buffer_cost_bytes(buffer));
    user_count(buffer->user, QUOTA_PINNED_MEMORY, buffer->pinned_bytes);
}

/* Imported memory is pinned within the user's quota of that. */
static void choose_pinning(struct buffer *buffer)
{
    struct error error;
    uint64_t size_bytes = buffer->span.size_bytes;
    if (buffer->source == BUFFER_IMPORT &&
        user_check(buffer->user, QUOTA_PINNED_MEMORY, size_bytes, "buffer.import", &error) == 0)
        buffer->pinned_bytes = size_bytes;
}

void buffer_hold(struct buffer *buffer)
{
    buffer->holds++;
}

/*
 * The end of a buffer.
 */

static bool dismantle_run(struct work *work)
{
    struct buffer_work *self = (struct buffer_work *)work;
    return buffer_dismantle(self->buffer, self->service->pool);
}

/* Ends the counting of a buffer's maps and file, which count until they are gone, and destroys the buffer. */
static void dismantled(struct service *service, struct buffer *buffer)
{
    buffer->user->maps -= buffer->maps;
    service->maps.used -= buffer->maps;
    buffer->user->files -= buffer->counted_files;
    service->files.used -= buffer->counted_files;
    buffer_destroy(buffer, service->pool);
    waiting_pump(service);
}

static void dismantle_done(struct work *work)
{
    struct buffer_work *self = (struct buffer_work *)work;
    dismantled(self->service, self->buffer);
    free(self);
}

/* Drops the descriptors that came with a buffer's request, and are no longer needed or never were. */
static void drop_descriptors(struct service *service, struct buffer *buffer)
{
    client_descriptors_drop(service, buffer->user, buffer->fds, buffer->fd_count);
    buffer->fd_count = 0;
    if (buffer->ticket.fd >= 0)
        client_descriptors_drop(service, buffer->user, &buffer->ticket.fd, 1);
    buffer->ticket.fd = -1;
}

static void dismantle(struct service *service, struct buffer *buffer)
{
    drop_descriptors(service, buffer);
    struct buffer_work *work = buffer_dismantles_fast(buffer) ? NULL : malloc(sizeof *work);
    if (!work) {
        while (buffer_dismantle(buffer, service->pool))
            ;
        dismantled(service, buffer);
        return;
    }
    *work = (struct buffer_work){.work = {.run = dismantle_run, .done = dismantle_done, .lasts = buffer_lasts(buffer)},
                                 .service = service,
                                 .buffer = buffer};
    service_defer(service, buffer->user, &work->work);
}

void buffer_unhold(struct service *service, struct buffer *buffer)
{
    if (--buffer->holds > 0)
        return;
    count_buffer(service, buffer, -1);
    if (buffer->span.staged)
        service->stats.staged_bytes -= buffer->span.size_bytes;
    dismantle(service, buffer);
}

/*
 * Pinning of what lies behind the first unit of imported memory, which was pinned before its client knew of it.
 */

/* The helpers that pin one buffer at a time. More of them only wait for the driver's lock. */
#define PINNERS 3

/* A helper of a buffer, which it holds: some units at a time. */
struct pinner {
    struct work work; /* first */
    struct service *service;
    struct buffer *buffer;
    size_t first, count, pinned; /* units that it has begun; of these, pinned ones */
    int status;
};

static bool pin_run(struct work *work)
{
    struct pinner *self = (struct pinner *)work;
    self->status = 0;
    for (self->pinned = 0; self->pinned < self->count && !self->status; self->pinned += !self->status)
        self->status = buffer_pin(self->buffer, self->first + self->pinned, self->service->devices);
    return false;
}

/* Stages all of a buffer from now on, since some of it cannot be pinned: chunks with the device go on as they were, so
 * what is pinned stays pinned. A device that is lost says so to the next chunk. */
static void buffer_give_up(struct service *service, struct buffer *buffer)
{
    if (!buffer->span.staged)
        service->stats.staged_bytes += buffer->span.size_bytes;
    buffer->span.staged = true;
}

/* True when only its helpers still hold a buffer: the client has released it, or is gone. */
static bool is_forgotten(const struct buffer *buffer)
{
    return buffer->holds == buffer->pinners;
}

/* Ends when there is nothing more to do. */
static void pinner_go_on(struct pinner *self)
{
    struct service *service = self->service;
    struct buffer *buffer = self->buffer;
    self->count = 0;
    if (!is_forgotten(buffer) && !buffer->span.staged)
        self->count = pin_units_begin(&buffer->pin_units, PIN_UNITS_AT_ONCE, &self->first);
    if (self->count > 0) {
        service_defer(service, buffer->user, &self->work);
        return;
    }
    free(self);
    buffer->pinners--;
    buffer_unhold(service, buffer);
}

static void pin_done(struct work *work)
{
    struct pinner *self = (struct pinner *)work;
    for (size_t i = 0; i < self->pinned; i++)
        pin_units_note(&self->buffer->pin_units, self->first + i);
    if (self->status)
        buffer_give_up(self->service, self->buffer);
    pinner_go_on(self);
}

static bool pinner_start(struct service *service, struct buffer *buffer)
{
    struct pinner *self = malloc(sizeof *self);
    if (!self)
        return false;
    *self = (struct pinner){.work = {.run = pin_run, .done = pin_done}, .service = service, .buffer = buffer};
    buffer_hold(buffer);
    buffer->pinners++;
    pinner_go_on(self);
    return true;
}

static void buffer_pin_rest(struct service *service, struct buffer *buffer)
{
    for (size_t i = 0; i < PINNERS && i < buffer->pin_units.left && buffer_is_partial(buffer); i++)
        if (!pinner_start(service, buffer) && i == 0)
            buffer_give_up(service, buffer);
}

/*
 * The beginning of a buffer.
 */

static int reply_created(struct client *client, uint32_t msgid, const struct buffer *buffer)
{
    struct msg_buffer_create_result result = {.buffer = buffer->id,
                                              .device = buffer->device ? buffer->device->number + 1 : 0};
    int fds[LIMIT_MESSAGE_FDS];
    if (buffer->source == BUFFER_POOL) {
        result.segment = buffer->run.class->segment_bytes;
        result.fds = buffer->run.count;
        for (size_t i = 0; i < buffer->run.count; i++)
            fds[i] = run_segment(&buffer->run, i)->fd;
    }
    if (buffer->source == BUFFER_IMPORT || buffer->source == BUFFER_FILE)
        return reply_descriptors(client, msgid, &msg_buffer_id_type, &(struct msg_buffer_id){buffer->id}, NULL, 0);
    if (buffer->source == BUFFER_FOREIGN)
        return reply_descriptors(client, msgid, &msg_buffer_import_device_result_type,
                                 &(struct msg_buffer_import_device_result){result.buffer, result.device}, NULL, 0);
    return reply_descriptors(client, msgid, &msg_buffer_create_result_type, &result, fds, result.fds);
}

/* Notes which buffers that a job uses, although the client has released them, are the memory of a new one. */
static int note_released(struct buffer *buffer, const struct job *job)
{
    int r = 0;
    for (uint32_t i = 0; i < job->operand_count && !r; i++) {
        struct buffer *other = job->operands[i].buffer;
        if (!other || !other->run.released || other->compared)
            continue;
        other->compared = true;
        r = buffer_note_alias(buffer, other);
    }
    return r;
}

static void forget_compared(const struct job *job)
{
    for (uint32_t i = 0; i < job->operand_count; i++)
        if (job->operands[i].buffer)
            job->operands[i].buffer->compared = false;
}

/* Notes which buffers are the memory of a new one. */
static int note_aliases(const struct client *client, struct buffer *buffer)
{
    int r = 0;
    for (struct buffer *other = client->buffers; other && !r; other = other->next)
        r = buffer_note_alias(buffer, other);
    for (const struct job *job = client->jobs; job && !r; job = job->peer)
        r = note_released(buffer, job);
    for (const struct job *job = client->jobs; job; job = job->peer)
        forget_compared(job);
    return r;
}

/* Gives the client its buffer, unless it cannot be told. */
static int buffer_publish(struct client *client, uint32_t msgid, struct buffer *buffer, struct error *error)
{
    int r = note_aliases(client, buffer);
    if (r)
        return error_set(error, r, "%s: out of memory for another buffer; try again later", buffer_method(buffer));
    buffer->id = client->last_buffer_id + 1;
    r = reply_created(client, msgid, buffer);
    if (r) {
        error_set(error, -EAGAIN, "%s: its descriptors cannot be sent now: %s; try again in %d ms",
                  buffer_method(buffer), strerror(-r), RETRY_MS);
        error->retry_ms = RETRY_MS;
        return -EAGAIN;
    }
    client->last_buffer_id = buffer->id;
    if (buffer->device)
        client->home = buffer->device;
    buffer->next = client->buffers;
    client->buffers = buffer;
    return 0;
}

/* True where others may give back what a buffer that could not be prepared lacks: no device has more than its limit. */
static bool is_worth_a_wait(const struct buffer *buffer, int status)
{
    return status == -EAGAIN ||
           (status == -EDQUOT && buffer->device && buffer->span.size_bytes <= buffer->device->info.memory_limit_bytes);
}

/* Ends preparation: the client gets its buffer, or the reason why not. */
static void buffer_prepared(struct service *service, struct client *client, uint32_t msgid, struct buffer *buffer,
                            int status, struct error *error)
{
    if (buffer->span.staged)
        service->stats.staged_bytes += buffer->span.size_bytes;
    if (buffer->source == BUFFER_POOL)
        pool_settle(service->pool, &buffer->run);
    client_descriptors_return(service, buffer->user, buffer->lent_fds);
    if (buffer->source != BUFFER_FILE)
        drop_descriptors(service, buffer);
    if (is_worth_a_wait(buffer, status))
        error->retry_ms = RETRY_MS;
    if (!status)
        status = client->connection ? buffer_publish(client, msgid, buffer, error) : -ECANCELED;
    if (!status) {
        buffer_pin_rest(service, buffer);
        return;
    }
    client->buffer_count--;
    buffer_unhold(service, buffer);
    reply_failure(client, msgid, error);
}

static bool prepare_run(struct work *work)
{
    struct buffer_work *self = (struct buffer_work *)work;
    self->status = buffer_prepare(self->buffer, self->service->pool, &self->error);
    return self->status == PREPARE_MORE;
}

/* True while the client is there: nobody waits for the buffer of a client that is gone. */
static bool prepare_is_wanted(struct work *work)
{
    return ((struct buffer_work *)work)->client->connection;
}

static void prepare_done(struct work *work)
{
    struct buffer_work *self = (struct buffer_work *)work;
    if (self->status == PREPARE_BY_HELPER && prepare_is_wanted(work)) {
        service_defer(self->service, self->buffer->user, work);
        return;
    }
    buffer_prepared(self->service, self->client, self->msgid, self->buffer, self->status, &self->error);
    client_unhold(self->client);
    free(self);
}

/* An import takes a map for each descriptor, of which the process has only so many. */
static int reserve_maps(struct service *service, struct buffer *buffer, struct error *error)
{
    struct user *user = buffer->user;
    const uint64_t count = buffer->fd_count, allowed = stock_allowed_half(&service->maps, user->maps);
    if (buffer->source != BUFFER_IMPORT)
        return 0;
    if (user->maps > allowed || count > allowed - user->maps) {
        error_set(error, -EDQUOT,
                  "buffer.import: its %" PRIu64 " descriptors take as many memory maps; user %u has %" PRIu64
                  " and may have %" PRIu64 " of the %" PRIu64
                  " for imports, half of what others leave; import fewer, larger descriptors, release a buffer, "
                  "or raise vm.max_map_count "
                  "and start scand anew",
                  count, (unsigned)user->uid, user->maps, allowed, service->maps.most);
        error->retry_ms = count <= service->maps.most / 2 ? RETRY_MS : 0;
        return -EDQUOT;
    }
    buffer->maps = count;
    user->maps += count;
    service->maps.used += count;
    return 0;
}

/* A file is open for as long as it is a buffer. */
static int reserve_file(struct service *service, struct buffer *buffer, struct error *error)
{
    struct user *user = buffer->user;
    const uint64_t allowed = stock_allowed_half(&service->files, user->files);
    if (buffer->source != BUFFER_FILE)
        return 0;
    if (user->files >= allowed) {
        error_set(error, -EDQUOT,
                  "buffer.import_file: user %u has %" PRIu64 " files open in buffers and may have %" PRIu64
                  " of %" PRIu64 ", half of what others leave; release a buffer",
                  (unsigned)user->uid, user->files, allowed, service->files.most);
        error->retry_ms = RETRY_MS;
        return -EDQUOT;
    }
    buffer->counted_files = 1;
    user->files++;
    service->files.used++;
    return 0;
}

/* Lends an import's descriptors to threads; a file's are counted for as long as it is open. */
static void lend_descriptors(struct service *service, struct buffer *buffer)
{
    if (buffer->source != BUFFER_FILE)
        buffer->lent_fds = buffer->fd_count + (buffer->ticket.fd >= 0);
    client_descriptors_lend(service, buffer->user, buffer->lent_fds);
}

/* Prepares a buffer by helpers, or by readers where preparing takes as long as a client's file system likes. */
static void prepare(struct service *service, struct buffer *buffer, struct work *work)
{
    const bool lingers = buffer->source == BUFFER_FILE || (buffer->source == BUFFER_IMPORT && !buffer->complete);
    (lingers ? service_read : service_defer)(service, buffer->user, work);
}

int buffer_begin(struct call *call, struct buffer *buffer)
{
    struct client *client = call->client;
    if (buffer->source == BUFFER_IMPORT)
        import_look(buffer);
    uint64_t cost_bytes = buffer_cost_bytes(buffer);
    int r = 0;
    if (cost_bytes > 0)
        r = user_check(client->user, buffer_quota(buffer), cost_bytes, buffer_method(buffer), &call->error);
    if (!r)
        r = reserve_maps(call->service, buffer, &call->error);
    if (!r)
        r = reserve_file(call->service, buffer, &call->error);
    if (r) {
        dismantle(call->service, buffer);
        return r;
    }
    client->buffer_count++;
    choose_pinning(buffer);
    lend_descriptors(call->service, buffer);
    count_buffer(call->service, buffer, 1);
    struct buffer_work *work = buffer_prepares_fast(buffer) ? NULL : malloc(sizeof *work);
    if (!work) {
        while ((r = buffer_prepare(buffer, call->service->pool, &call->error)) > 0)
            ;
        buffer_prepared(call->service, client, call->msgid, buffer, r, &call->error);
        return 0;
    }
    *work = (struct buffer_work){.work = {.run = prepare_run,
                                          .done = prepare_done,
                                          .is_wanted = prepare_is_wanted,
                                          .lasts = buffer->span.place == SCAND_PLACE_DEVICE},
                                 .service = call->service,
                                 .client = client,
                                 .msgid = call->msgid,
                                 .buffer = buffer};
    client_hold(client);
    prepare(call->service, buffer, &work->work);
    return 0;
}

/*
 * Requests that wait for memory.
 */

/* Answers a request that has been taken out of its queue, unless -EAGAIN: there is still nothing for it. */
static int waiting_try(struct service *service, const struct waiting *self, struct error *error)
{
    struct client *client = self->client;
    struct call call = {.service = service, .client = client, .msgid = self->msgid};
    struct buffer *buffer;
    int r = buffer_create_host(service->pool, self->size_bytes, client->user, &buffer, &call.error);
    if (r == -EAGAIN) {
        *error = call.error;
        return r;
    }
    if (r || buffer_begin(&call, buffer))
        reply_failure(client, self->msgid, &call.error);
    return 0;
}

/* Serves the first request of a queue, if it can have what it waits for; returns whether it could. */
static bool serve_first(struct service *service, struct waiting_queue *queue)
{
    struct error error;
    struct waiting *self = queue->first;
    if (waiting_try(service, self, &error))
        return false;
    waiting_remove(service, self);
    free(self);
    return true;
}

void waiting_pump(struct service *service)
{
    unsigned refused = 0, users = 0;
    if (!service->waiting || service->serving_waiting)
        return;
    service->serving_waiting = true; /* a buffer that fails to be made comes back here */
    struct round_robin *at = service->waiting;
    do
        users++;
    while ((at = at->next) != service->waiting);
    while (service->waiting && refused < users) {
        struct waiting_queue *queue = (struct waiting_queue *)service->waiting;
        service->waiting = service->waiting->next; /* the next user's turn, whatever comes of this one */
        refused = serve_first(service, queue) ? 0 : refused + 1;
    }
    service->serving_waiting = false;
}

void waiting_expire(struct service *service, struct waiting *self)
{
    struct error error = {0};
    waiting_remove(service, self);
    if (waiting_try(service, self, &error)) {
        error.retry_ms = RETRY_MS;
        reply_failure(self->client, self->msgid, &error);
    }
    free(self);
}

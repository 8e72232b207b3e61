/* buffer.create, buffer.import, buffer.import_device and buffer.release. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/core/call.h"

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

static enum quota buffer_quota(const struct buffer *buffer)
{
    return buffer->span.place == SCAND_PLACE_DEVICE ? QUOTA_DEVICE_MEMORY : QUOTA_HOST_MEMORY;
}

static uint64_t *buffer_counter(struct msg_stats_result *stats, const struct buffer *buffer)
{
    if (buffer->source == BUFFER_FOREIGN)
        return &stats->imported_bytes;
    return buffer->span.place == SCAND_PLACE_DEVICE ? &stats->device_bytes : &stats->host_bytes;
}

static void count_buffer(struct service *service, const struct buffer *buffer, int sign)
{
    *buffer_counter(&service->stats, buffer) += (uint64_t)sign * buffer->span.size_bytes;
    service->stats.buffers_open += (uint64_t)sign;
    if (sign > 0)
        user_add(buffer->user, buffer_quota(buffer), buffer_cost_bytes(buffer));
    else
        user_subtract(buffer->user, buffer_quota(buffer), buffer_cost_bytes(buffer));
    if (sign > 0)
        user_add(buffer->user, QUOTA_PINNED_MEMORY, buffer->pinned_bytes);
    else
        user_subtract(buffer->user, QUOTA_PINNED_MEMORY, buffer->pinned_bytes);
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

static bool dismantle_run(struct work *work)
{
    struct buffer_work *self = (struct buffer_work *)work;
    return buffer_dismantle(self->buffer, self->service->pool);
}

/* Its maps count until they are gone. */
static void dismantled(struct service *service, struct buffer *buffer)
{
    buffer->user->maps -= buffer->maps;
    service->maps.used -= buffer->maps;
    buffer_destroy(buffer, service->pool);
    waiting_pump(service);
}

static void dismantle_done(struct work *work)
{
    struct buffer_work *self = (struct buffer_work *)work;
    dismantled(self->service, self->buffer);
    free(self);
}

static void dismantle(struct service *service, struct buffer *buffer)
{
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

struct buffer *client_find_buffer(const struct client *client, uint64_t id)
{
    struct buffer *buffer = client->buffers;
    while (buffer && buffer->id != id)
        buffer = buffer->next;
    return buffer;
}

static int reply_created(struct client *client, uint32_t msgid, const struct buffer *buffer)
{
    struct msg_buffer_create_result result = {.buffer = buffer->id,
                                              .device = buffer->device ? buffer->device->number + 1 : 0};
    int fds[LIMIT_MESSAGE_FDS];
    if (buffer->source == BUFFER_POOL) {
        result.segment = buffer->run.class->segment_bytes;
        result.fds = buffer->run.count;
        for (size_t i = 0; i < buffer->run.count; i++)
            fds[i] = buffer->run.class->segments[buffer->run.first + i].fd;
    }
    if (buffer->source == BUFFER_IMPORT)
        return reply_descriptors(client, msgid, &msg_buffer_id_type, &(struct msg_buffer_id){buffer->id}, NULL, 0);
    if (buffer->source == BUFFER_FOREIGN)
        return reply_descriptors(client, msgid, &msg_buffer_import_device_result_type,
                                 &(struct msg_buffer_import_device_result){result.buffer, result.device}, NULL, 0);
    return reply_descriptors(client, msgid, &msg_buffer_create_result_type, &result, fds, result.fds);
}

/* Gives the client its buffer, unless it cannot be told. */
static int buffer_publish(struct client *client, uint32_t msgid, struct buffer *buffer, struct error *error)
{
    int r = buffer_note_aliases(buffer, client->buffers);
    if (r)
        return error_set(error, r, "buffer.create: out of memory for another buffer; try again later");
    buffer->id = client->last_buffer_id + 1;
    r = reply_created(client, msgid, buffer);
    if (r) {
        error_set(error, -EAGAIN, "buffer.create: its descriptors cannot be sent now: %s; try again in %d ms",
                  strerror(-r), RETRY_MS);
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

/* The end of preparation: the client gets its buffer, or why not. */
static void buffer_prepared(struct service *service, struct client *client, uint32_t msgid, struct buffer *buffer,
                            int status, struct error *error)
{
    if (buffer->span.staged)
        service->stats.staged_bytes += buffer->span.size_bytes;
    if (buffer->source == BUFFER_POOL)
        pool_settle(service->pool, &buffer->run);
    if (status == -EAGAIN)
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
    return self->status > 0;
}

/* Nobody waits for the buffer of a client that is gone. */
static bool prepare_is_wanted(struct work *work)
{
    return ((struct buffer_work *)work)->client->connection;
}

static void prepare_done(struct work *work)
{
    struct buffer_work *self = (struct buffer_work *)work;
    buffer_prepared(self->service, self->client, self->msgid, self->buffer, self->status, &self->error);
    client_unhold(self->client);
    free(self);
}

/* An import takes a map for each descriptor, of which the process has only so many. */
static int take_maps(struct service *service, struct buffer *buffer, struct error *error)
{
    struct user *user = buffer->user;
    const uint64_t count = buffer->fd_count, share = stock_half(&service->maps, user->maps);
    if (buffer->source != BUFFER_IMPORT)
        return 0;
    if (user->maps > share || count > share - user->maps)
        return error_set(error, -EDQUOT,
                         "buffer.import: its %" PRIu64 " descriptors take as many memory maps; user %u has %" PRIu64
                         " and may have %" PRIu64 " of the %" PRIu64
                         " for imports, half of what others leave; import fewer, larger descriptors, release a buffer, "
                         "or raise vm.max_map_count "
                         "and start scand anew",
                         count, (unsigned)user->uid, user->maps, share, service->maps.most);
    buffer->maps = count;
    user->maps += count;
    service->maps.used += count;
    return 0;
}

int buffer_begin(struct call *call, struct buffer *buffer)
{
    struct client *client = call->client;
    const char *method = buffer->source == BUFFER_IMPORT ? "buffer.import" : "buffer.create";
    uint64_t cost_bytes = buffer_cost_bytes(buffer);
    int r = cost_bytes ? user_check(client->user, buffer_quota(buffer), cost_bytes, method, &call->error) : 0;
    if (!r)
        r = take_maps(call->service, buffer, &call->error);
    if (r) {
        dismantle(call->service, buffer);
        return r;
    }
    client->buffer_count++;
    choose_pinning(buffer);
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
    service_defer(call->service, client->user, &work->work);
    return 0;
}

static int check_new_buffer(struct call *call, const char *method, uint64_t size_bytes)
{
    if (size_bytes == 0 || size_bytes > LIMIT_IMPORT_BYTES)
        return error_set(&call->error, -EINVAL, "%s: \"size\" is %" PRIu64 " bytes; allowed: 1 to %" PRIu64, method,
                         size_bytes, LIMIT_IMPORT_BYTES);
    if (call->client->buffer_count >= LIMIT_CLIENT_BUFFERS)
        return error_set(&call->error, -EDQUOT,
                         "%s: this connection has %d buffers, as many as are allowed; release some", method,
                         LIMIT_CLIENT_BUFFERS);
    return 0;
}

/* Where most memory is free. */
static struct device *roomiest_device(const struct device_set *devices)
{
    struct device *roomiest = devices->devices[0];
    for (unsigned i = 1; i < devices->count; i++)
        if (device_free_bytes(devices->devices[i]) > device_free_bytes(roomiest))
            roomiest = devices->devices[i];
    return roomiest;
}

/* The device that the client says, or where its others are, since a job can use several of one device only. */
static int choose_device(struct call *call, const struct msg_buffer_create_params *params)
{
    const struct device_set *devices = call->service->devices;
    struct client *client = call->client;
    if (params->device > devices->count)
        return error_set(&call->error, -ENOENT,
                         "buffer.create: \"device\" is %" PRIu64
                         "; allowed: 0 to %u; server.devices lists those that there are",
                         params->device - 1, devices->count - 1);
    if (params->device)
        client->home = devices->devices[params->device - 1];
    else if (!client->home || device_free_bytes(client->home) < params->size)
        client->home = roomiest_device(devices);
    return 0;
}

static int check_create(struct call *call, const struct msg_buffer_create_params *params)
{
    const bool host = params->place == SCAND_PLACE_HOST;
    int r = check_new_buffer(call, "buffer.create", params->size);
    if (!r && host && params->device)
        r = error_set(&call->error, -EINVAL,
                      "buffer.create: \"device\" is %" PRIu64
                      ", but \"place\" is \"host\"; host memory is for all devices: leave it out",
                      params->device - 1);
    else if (!r && host && params->sharing)
        r = error_set(&call->error, -EINVAL,
                      "buffer.create: \"sharing\" is \"%s\", which is for \"place\" \"device\"; a host buffer's "
                      "descriptors can be given away as they are",
                      sharing_words.words[params->sharing]);
    else if (!r && !host && params->wait_ms)
        r = error_set(&call->error, -EINVAL,
                      "buffer.create: \"wait_ms\" is %" PRIu64
                      ", but \"place\" is \"device\"; only memory of the pool is waited for: leave it out",
                      params->wait_ms);
    return r;
}

/* Of the pool, now or when there is some. */
static int create_host(struct call *call, const struct msg_buffer_create_params *params)
{
    struct buffer *buffer;
    int r = buffer_create_host(call->service->pool, params->size, call->client->user, &buffer, &call->error);
    if (!r)
        return buffer_begin(call, buffer);
    if (r == -EAGAIN && params->wait_ms > 0 && buffer_wait(call, params->size, params->wait_ms) == 0)
        return 0;
    if (r == -EAGAIN)
        call->error.retry_ms = RETRY_MS;
    return r;
}

int handle_buffer_create(struct call *call, const struct msg_buffer_create_params *params)
{
    struct buffer *buffer;
    int r = check_create(call, params);
    if (r || params->place == SCAND_PLACE_HOST)
        return r ? r : create_host(call, params);
    r = choose_device(call, params);
    if (!r)
        r = buffer_create_device(call->client->home, params->size, (enum scand_sharing)params->sharing,
                                 call->client->user, &buffer, &call->error);
    return r ? r : buffer_begin(call, buffer);
}

static int check_segments(struct call *call, const struct msg_buffer_import_params *params, uint64_t segment)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (params->fds == 0)
        return error_set(&call->error, -EBADF, "buffer.import: \"fds\" is 0; send at least one memfd");
    if (params->fds > 1 && (segment == 0 || segment % page))
        return error_set(&call->error, -EINVAL,
                         "buffer.import: \"segment\" is %" PRIu64 " bytes; allowed: a multiple of %" PRIu64, segment,
                         page);
    if (params->size > segment * params->fds || params->size <= segment * (params->fds - 1))
        return error_set(&call->error, -EINVAL,
                         "buffer.import: %" PRIu64 " descriptors of %" PRIu64 " bytes do not make %" PRIu64
                         " bytes; every descriptor must be needed and all together enough",
                         params->fds, segment, params->size);
    return 0;
}

int handle_buffer_import(struct call *call, const struct msg_buffer_import_params *params)
{
    struct buffer *buffer;
    uint64_t segment = params->segment || params->fds != 1 ? params->segment : params->size;
    int r = check_new_buffer(call, "buffer.import", params->size);
    if (!r && segment > LIMIT_IMPORT_BYTES)
        r = error_set(&call->error, -EINVAL,
                      "buffer.import: \"segment\" is %" PRIu64 " bytes; allowed: at most %" PRIu64, segment,
                      LIMIT_IMPORT_BYTES);
    if (!r)
        r = check_segments(call, params, segment);
    if (r)
        return r;
    size_t count = call->fd_count;
    call->fd_count = 0;
    r = buffer_create_import(call->fds, count, segment, params->size, call->client->user, &buffer, &call->error);
    return r ? r : buffer_begin(call, buffer);
}

/* By a handle or a descriptor; the allocation's size, where it was given, holds the part. */
static int check_ticket(struct call *call, const struct msg_buffer_import_device_params *params)
{
    uint64_t end, most = LIMIT_IMPORT_BYTES;
    if ((params->handle_count > 0) == (params->fds > 0))
        return error_set(&call->error, -EINVAL,
                         "buffer.import_device: %s \"handle\" and a descriptor (\"fds\" 1); give one of the two",
                         params->fds ? "both" : "neither");
    if (params->handle_count > 0 && !client_may_manage(call->client))
        return error_set(
            &call->error, -EPERM,
            "buffer.import_device: user %u may not import by \"handle\", which anybody could guess; root and "
            "the daemon's own user %u may; import by a descriptor, or start a daemon of your own",
            (unsigned)call->client->user->uid, (unsigned)call->service->owner);
    if (params->handle_count > 0 && params->handle_count != SCAND_IPC_BYTES)
        return error_set(&call->error, -EINVAL,
                         "buffer.import_device: \"handle\" has %u bytes; allowed: the %d of a cudaIpcMemHandle_t",
                         (unsigned)params->handle_count, SCAND_IPC_BYTES);
    if (__builtin_add_overflow(params->offset, params->size, &end) || end > most || params->allocation > most)
        return error_set(&call->error, -EINVAL,
                         "buffer.import_device: \"offset\" is %" PRIu64 " and \"allocation\" %" PRIu64
                         " bytes; allowed: an allocation of at most %" PRIu64 ", and \"size\" (%" PRIu64
                         ") bytes in it from \"offset\" on",
                         params->offset, params->allocation, most, params->size);
    if (params->allocation && end > params->allocation)
        return error_set(&call->error, -EINVAL,
                         "buffer.import_device: \"size\" (%" PRIu64 ") bytes from \"offset\" (%" PRIu64
                         ") on end behind the \"allocation\" of %" PRIu64 " bytes",
                         params->size, params->offset, params->allocation);
    return 0;
}

int handle_buffer_import_device(struct call *call, const struct msg_buffer_import_device_params *params)
{
    struct shared_ticket ticket = {.fd = -1, .allocation_bytes = params->allocation};
    struct buffer *buffer;
    int r = check_new_buffer(call, "buffer.import_device", params->size);
    if (!r)
        r = check_ticket(call, params);
    if (r)
        return r;
    memcpy(ticket.handle, params->handle, sizeof ticket.handle);
    if (call->fd_count > 0)
        ticket.fd = call->fds[--call->fd_count];
    r = buffer_create_foreign(&ticket, params->offset, params->size, call->client->user, &buffer, &call->error);
    return r ? r : buffer_begin(call, buffer);
}

int handle_buffer_release(struct call *call, const struct msg_buffer_id *params)
{
    struct client *client = call->client;
    struct buffer **at = &client->buffers;
    while (*at && (*at)->id != params->buffer)
        at = &(*at)->next;
    struct buffer *buffer = *at;
    if (!buffer)
        return error_set(&call->error, -ENOENT,
                         "buffer.release: \"buffer\" is %" PRIu64 "; this connection has no such buffer",
                         params->buffer);
    *at = buffer->next;
    client->buffer_count--;
    buffer->run.released = true;
    buffer_unhold(call->service, buffer);
    reply_nothing(client, call->msgid);
    return 0;
}

/* buffer.create, buffer.import, buffer.import_file, buffer.import_device and buffer.release. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "daemon/core/clients.h"
#include "daemon/core/memory/client_buffers.h"
#include "daemon/core/memory/waiting.h"
#include "daemon/core/replies.h"
#include "handlers.h"

static int check_new_buffer(struct call *call, const char *method, uint64_t size_bytes, uint64_t most_bytes)
{
    if (size_bytes == 0 || size_bytes > most_bytes)
        return error_set(&call->error, -EINVAL, "%s: \"size\" is %" PRIu64 " bytes; allowed: 1 to %" PRIu64, method,
                         size_bytes, most_bytes);
    if (call->client->buffer_count < LIMIT_CLIENT_BUFFERS)
        return 0;
    error_set(&call->error, -EDQUOT, "%s: this connection has %d buffers, as many as are allowed; release some", method,
              LIMIT_CLIENT_BUFFERS);
    call->error.retry_ms = RETRY_MS;
    return -EDQUOT;
}

/* Returns the device where most memory is free. */
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
                         "buffer.create: \"device\" is %" PRIu64 "; allowed: 0 to %u; server.devices lists all",
                         params->device - 1, devices->count - 1);
    if (params->device && devices->devices[params->device - 1]->info.helps)
        return error_set(
            &call->error, -EINVAL,
            "buffer.create: \"device\" is %" PRIu64
            ", the processor beside this daemon's GPUs, which has no memory of its own; leave it out, or use "
            "\"place\" \"host\"",
            params->device - 1);
    if (params->device)
        client->home = devices->devices[params->device - 1];
    else if (!client->home || device_free_bytes(client->home) < params->size)
        client->home = roomiest_device(devices);
    return 0;
}

static int check_create(struct call *call, const struct msg_buffer_create_params *params)
{
    const bool host = params->place == SCAND_PLACE_HOST;
    int r = check_new_buffer(call, "buffer.create", params->size, LIMIT_IMPORT_BYTES);
    if (r)
        return r;
    if (host && params->device)
        return error_set(&call->error, -EINVAL,
                         "buffer.create: \"device\" is %" PRIu64
                         ", but \"place\" is \"host\"; host memory is for all devices: leave it out",
                         params->device - 1);
    if (host && params->sharing)
        return error_set(&call->error, -EINVAL,
                         "buffer.create: \"sharing\" is \"%s\", which is for \"place\" \"device\"; a host buffer's "
                         "descriptors can be given away as they are",
                         sharing_words.words[params->sharing]);
    if (!host && params->wait_ms)
        return error_set(&call->error, -EINVAL,
                         "buffer.create: \"wait_ms\" is %" PRIu64
                         ", but \"place\" is \"device\"; only memory of the pool is waited for: leave it out",
                         params->wait_ms);
    return 0;
}

/* Segments that are being made may be all that is missing, and are there soon. */
static uint64_t wait_ms(const struct pool *pool, uint64_t asked_ms)
{
    return pool->filling > 0 && asked_ms < LIMIT_FILL_WAIT_MS ? LIMIT_FILL_WAIT_MS : asked_ms;
}

/* Creates a buffer of the pool, now or when there is memory for it. */
static int create_host(struct call *call, const struct msg_buffer_create_params *params)
{
    struct buffer *buffer;
    int r = buffer_create_host(call->service->pool, params->size, call->client->user, &buffer, &call->error);
    if (!r)
        return buffer_begin(call, buffer);
    const uint64_t patience_ms = wait_ms(call->service->pool, params->wait_ms);
    if (r == -EAGAIN && patience_ms > 0 && buffer_wait(call, params->size, patience_ms) == 0)
        return 0;
    if (r == -EAGAIN)
        call->error.retry_ms = RETRY_MS;
    return r;
}

int handle_buffer_create(struct call *call, const struct msg_buffer_create_params *params)
{
    struct buffer *buffer;
    int r = check_create(call, params);
    if (r)
        return r;
    if (params->place == SCAND_PLACE_HOST)
        return create_host(call, params);
    if ((r = choose_device(call, params)) ||
        (r = buffer_create_device(call->client->home, params->size, (enum scand_sharing)params->sharing,
                                  call->client->user, &buffer, &call->error)))
        return r;
    return buffer_begin(call, buffer);
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
    int r = check_new_buffer(call, "buffer.import", params->size, LIMIT_IMPORT_BYTES);
    if (r)
        return r;
    if (segment > LIMIT_IMPORT_BYTES)
        return error_set(&call->error, -EINVAL,
                         "buffer.import: \"segment\" is %" PRIu64 " bytes; allowed: at most %" PRIu64, segment,
                         LIMIT_IMPORT_BYTES);
    r = check_segments(call, params, segment);
    if (r)
        return r;
    size_t count = call->fd_count;
    call->fd_count = 0;
    r = buffer_create_import(call->fds, count, segment, params->size, call->client->user, &buffer, &call->error);
    return r ? r : buffer_begin(call, buffer);
}

int handle_buffer_import_file(struct call *call, const struct msg_buffer_import_file_params *params)
{
    struct buffer *buffer;
    int r = check_new_buffer(call, "buffer.import_file", params->size, LIMIT_FILE_BYTES);
    if (r)
        return r;
    if (call->fd_count != 1)
        return error_set(&call->error, -EBADF,
                         "buffer.import_file: \"fds\" is %" PRIu64 "; allowed: 1, the descriptor of one file",
                         params->fds);
    call->fd_count = 0;
    r = buffer_create_file(call->fds[0], params->size, call->client->user, &buffer, &call->error);
    return r ? r : buffer_begin(call, buffer);
}

/* Checks an import by a handle or a descriptor; the allocation's size, where it was given, must hold the part. */
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
    struct export_ticket ticket = {.fd = -1, .allocation_bytes = params->allocation};
    struct buffer *buffer;
    int r;
    if ((r = check_new_buffer(call, "buffer.import_device", params->size, LIMIT_IMPORT_BYTES)) ||
        (r = check_ticket(call, params)))
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

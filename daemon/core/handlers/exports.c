/* buffer.export: a ticket for a device buffer that was made to be shared. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/core/clients.h"
#include "daemon/core/loop.h"
#include "daemon/core/memory/client_buffers.h"
#include "daemon/core/replies.h"
#include "handlers.h"

/* The device makes the ticket on a helper thread. */
struct export_work {
    struct work work; /* first */
    struct service *service;
    struct client *client; /* held */
    uint32_t msgid;
    struct buffer *buffer; /* held */
    struct export_ticket ticket;
    int status;
};

static bool export_run(struct work *work)
{
    struct export_work *self = (struct export_work *)work;
    struct device *device = self->buffer->device;
    self->status = device->ops->export_ticket(device, self->buffer->exported, &self->ticket);
    return false;
}

static int export_reply(struct export_work *self, struct error *error)
{
    const struct export_ticket *ticket = &self->ticket;
    struct msg_buffer_export_result result = {
        .size = self->buffer->span.size_bytes, .allocation = ticket->allocation_bytes, .fds = ticket->fd >= 0};
    if (self->status)
        return error_set(error, self->status,
                         "buffer.export: the device did not export buffer %" PRIu64 ": %s; the daemon's log says why",
                         self->buffer->id, strerror(-self->status));
    if (ticket->fd < 0) {
        result.handle_count = sizeof ticket->handle;
        memcpy(result.handle, ticket->handle, sizeof ticket->handle);
    }
    int r =
        reply_descriptors(self->client, self->msgid, &msg_buffer_export_result_type, &result, &ticket->fd, result.fds);
    if (!r)
        return 0;
    error_set(error, -EAGAIN, "buffer.export: its descriptor cannot be sent now: %s; try again in %d ms", strerror(-r),
              RETRY_MS);
    error->retry_ms = RETRY_MS;
    return -EAGAIN;
}

static void export_done(struct work *work)
{
    struct export_work *self = (struct export_work *)work;
    struct error error;
    if (export_reply(self, &error))
        reply_failure(self->client, self->msgid, &error);
    if (self->ticket.fd >= 0)
        close(self->ticket.fd);
    self->buffer->exporting = false;
    buffer_unhold(self->service, self->buffer);
    client_unhold(self->client);
    free(self);
}

/* Checks an export. A buffer has one at a time, so that there are no more answers under way than buffers. */
static int check_export(struct call *call, uint64_t id, const struct buffer *buffer)
{
    if (!buffer)
        return error_set(&call->error, -ENOENT,
                         "buffer.export: \"buffer\" is %" PRIu64 "; this connection has no such buffer", id);
    if (buffer->source != BUFFER_EXPORTABLE)
        return error_set(&call->error, -EINVAL,
                         "buffer.export: buffer %" PRIu64 " was not made to be shared; create a device buffer with "
                         "\"sharing\" \"descriptor\" or \"handle\"",
                         id);
    if (!buffer->exporting)
        return 0;
    error_set(&call->error, -EAGAIN, "buffer.export: buffer %" PRIu64 " is being exported; wait for the answer", id);
    call->error.retry_ms = RETRY_MS;
    return -EAGAIN;
}

int handle_buffer_export(struct call *call, const struct msg_buffer_id *params)
{
    struct buffer *buffer = client_find_buffer(call->client, params->buffer);
    int r = check_export(call, params->buffer, buffer);
    if (r)
        return r;
    struct export_work *work = malloc(sizeof *work);
    if (!work)
        return error_set(&call->error, -ENOMEM, "buffer.export: out of memory; try again later");
    *work = (struct export_work){.work = {.run = export_run, .done = export_done, .lasts = true},
                                 .service = call->service,
                                 .client = call->client,
                                 .msgid = call->msgid,
                                 .buffer = buffer,
                                 .ticket = {.fd = -1}};
    buffer->exporting = true;
    buffer_hold(buffer);
    client_hold(call->client);
    service_defer(call->service, buffer->user, &work->work);
    return 0;
}

#include "stale.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "daemon/core/clients.h"

#define ADVICE                                                                                                     \
    "which an earlier job of this connection was to write, but it failed or was refused; so this job was "         \
    "not run, and its output is as it was: submit both again, or set \"after_failure\" to have it run on what is " \
    "there"

static bool is_empty(const struct extent *extent)
{
    return extent->begin >= extent->end;
}

/* Widens what is stale of a buffer, until the client has been answered. */
static void mark(struct client *client, struct buffer *buffer, struct extent extent)
{
    struct extent *stale = &buffer->stale;
    if (is_empty(&extent))
        return;
    if (is_empty(stale))
        *stale = extent;
    stale->begin = extent.begin < stale->begin ? extent.begin : stale->begin;
    stale->end = extent.end > stale->end ? extent.end : stale->end;
    buffer->stale_until = UINT64_MAX;
    client->stale = client->stale_unsent = true;
}

void stale_refuse(struct client *client, const struct msg_tensor *output)
{
    struct buffer *buffer = client_find_buffer(client, output->buffer);
    if (!buffer)
        return;
    struct extent extent = {0, buffer->span.size_bytes}; /* unless the output can be understood */
    if (output->shape_count == output->strides_count)
        tensor_extent(output, "output", buffer->span.size_bytes, &extent, NULL);
    mark(client, buffer, extent);
}

/* Forgets what was answered before the client sent this message. */
static void forget(struct client *client, uint64_t position)
{
    if (!client->stale)
        return;
    client->stale = false;
    for (struct buffer *buffer = client->buffers; buffer; buffer = buffer->next) {
        if (buffer->stale_until <= position)
            buffer->stale = (struct extent){0, 0};
        client->stale |= !is_empty(&buffer->stale);
    }
}

int stale_check(struct call *call, const struct job *job)
{
    struct client *client = call->client;
    forget(client, call->position);
    if (!client->stale || job->after_failure)
        return 0;
    for (const struct buffer *buffer = client->buffers; buffer; buffer = buffer->next)
        if (!is_empty(&buffer->stale) && job_reads(job, buffer, &buffer->stale))
            return error_set(&call->error, -ESTALE,
                             "the job reads bytes of %" PRIu64 " to %" PRIu64 " of buffer %" PRIu64 ", " ADVICE,
                             buffer->stale.begin, buffer->stale.end, buffer->id);
    return 0;
}

void stale_replace(struct client *client, const struct job *job)
{
    for (struct buffer *buffer = client->stale ? client->buffers : NULL; buffer; buffer = buffer->next)
        buffer->stale = job_leaves(job, buffer, buffer->stale);
}

/* Stops the jobs that were to read what the failed job was to write. */
static bool stop_readers_of(struct service *service, const struct job *failed, const struct operand *written)
{
    struct extent left = written->extent; /* bytes that no job in between replaces */
    bool stopped = false;
    for (struct job *job = failed->peer_before; job && !is_empty(&left); job = job->peer_before) {
        if (job->outcome.code)
            continue;
        if (job->after_failure || !job_reads(job, written->buffer, &left)) {
            left = job_leaves(job, written->buffer, left);
            continue;
        }
        char message[LIMIT_ERROR_BYTES];
        snprintf(message, sizeof message,
                 "the job reads bytes of %" PRIu64 " to %" PRIu64 " of buffer %" PRIu64 ", " ADVICE, left.begin,
                 left.end, written->buffer->id);
        job_stop(job, -ESTALE, message);
        scheduler_stop(&service->scheduler, job);
        stopped = true;
    }
    mark(failed->client, written->buffer, left);
    return stopped;
}

static bool stop_readers(struct service *service, const struct job *failed)
{
    bool stopped = false;
    for (uint32_t i = 0; i < failed->operand_count; i++)
        if (failed->operands[i].access == ACCESS_WRITE && failed->operands[i].buffer)
            stopped |= stop_readers_of(service, failed, &failed->operands[i]);
    return stopped;
}

bool stale_spread(struct service *service, const struct job *failed)
{
    bool stopped = failed->client->connection && stop_readers(service, failed);
    for (const struct job *job = failed->peer_before; stopped && job; job = job->peer_before)
        if (job->state == JOB_ENDED && job->outcome.code == -ESTALE)
            stop_readers(service, job);
    return stopped;
}

/* Notes up to which message the client does not know what is stale: just before output is sent and not just after,
 * since a client whom sending wakes may answer before anything else is done here. */
void service_sends(struct client *client)
{
    if (!client->stale_unsent || client->failing_batches > 0)
        return;
    client->stale_unsent = false;
    const uint64_t until = connection_arrived_bytes(client->connection);
    for (struct buffer *buffer = client->buffers; buffer; buffer = buffer->next)
        if (buffer->stale_until == UINT64_MAX)
            buffer->stale_until = until;
}

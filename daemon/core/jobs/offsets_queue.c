#include "offsets_queue.h"

#include <stdlib.h>

#include "daemon/core/clients.h"
#include "daemon/core/loop.h"
#include "daemon/core/memory/client_buffers.h"

void offsets_count(struct client *client, uint64_t bytes)
{
    client->offsets_bytes += bytes;
    client->user->offsets_bytes += bytes;
    client->service->offsets_bytes += bytes;
}

static void offsets_uncount(struct client *client, uint64_t bytes)
{
    client->offsets_bytes -= bytes;
    client->user->offsets_bytes -= bytes;
    client->service->offsets_bytes -= bytes;
}

/* Freeing of offsets: some hundred microseconds for the largest number of them, since pages of 8 MiB go back. */
struct freeing {
    struct work work;      /* first */
    struct client *client; /* held */
    uint64_t *values, count;
};

static bool freeing_run(struct work *work)
{
    free(((struct freeing *)work)->values);
    return false;
}

static void freeing_done(struct work *work)
{
    struct freeing *self = (struct freeing *)work;
    struct client *client = self->client;
    offsets_uncount(client, self->count * sizeof *self->values);
    free(self);
    client_unhold(client);
}

void offsets_drop(struct client *client, uint64_t *values, uint64_t count)
{
    struct freeing *freeing = values && count > LIMIT_LOOP_OFFSETS ? malloc(sizeof *freeing) : NULL;
    if (!freeing) {
        if (values)
            offsets_uncount(client, count * sizeof *values);
        free(values);
        return;
    }
    *freeing = (struct freeing){
        .work = {.run = freeing_run, .done = freeing_done}, .client = client, .values = values, .count = count};
    client_hold(client);
    service_defer(client->service, client->user, &freeing->work);
}

bool reading_must_wait(const struct job *older, const struct job *job)
{
    const struct operand *offsets = &job->operands[OPERAND_OFFSETS];
    for (; older; older = older->peer)
        if (job_writes(older, offsets->buffer, &offsets->extent))
            return true;
    return false;
}

uint64_t reading_row_count(const struct job *job)
{
    return job->reading ? job->reading->copy.count - 1 : job->rows.row_count;
}

static void unlink_reading(struct reading *reading)
{
    struct client *client = reading->client;
    struct reading **at = &client->readings, *before = NULL;
    while (*at != reading) {
        before = *at;
        at = &before->next;
    }
    *at = reading->next;
    if (client->last_reading == reading)
        client->last_reading = before;
}

void reading_free(struct reading *reading)
{
    struct client *client = reading->client;
    unlink_reading(reading);
    offsets_drop(client, reading->copy.values, reading->copy.count);
    buffer_unhold(client->service, reading->buffer);
    free(reading);
    client_unhold(client);
}

void reading_next(struct client *client)
{
    struct reading *first = client->readings;
    if (!first || first->out || !client->connection || first->job->state != JOB_QUEUED ||
        reading_must_wait(first->job->peer, first->job))
        return;
    first->out = true;
    service_defer(client->service, client->user, &first->work);
}

void reading_forget(struct job *job)
{
    struct reading *reading = job->reading;
    job->reading = NULL;
    if (!reading)
        return;
    reading->job = NULL;
    if (!reading->out)
        reading_free(reading);
}

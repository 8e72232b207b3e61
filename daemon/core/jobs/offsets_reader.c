#include "offsets_reader.h"

#include <errno.h>
#include <stdlib.h>

struct reading {
    struct work work;      /* first */
    struct client *client; /* held */
    struct job *job;       /* NULL: it has ended meanwhile */
    struct buffer *buffer; /* held: where they are */
    struct offsets_copy copy;
    struct error error; /* code 0: nothing is wrong with them */
    bool out;           /* helpers have it */
    struct reading *next;
};

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

/* Some hundred microseconds for as many as are allowed: pages of 8 MiB go back. */
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
    for (; older; older = older->peer)
        if (buffers_meet(older->output, &older->output_extent, job->offsets_in, &job->offsets_extent))
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

static void reading_free(struct reading *reading)
{
    struct client *client = reading->client;
    unlink_reading(reading);
    offsets_drop(client, reading->copy.values, reading->copy.count);
    buffer_unhold(client->service, reading->buffer);
    free(reading);
    client_unhold(client);
}

static bool reading_run(struct work *work)
{
    struct reading *self = (struct reading *)work;
    offsets_continue(&self->copy, offsets_unit(&self->copy), &self->error);
    return self->error.code == 0 && offsets_left(&self->copy) > 0;
}

static bool reading_is_wanted(struct work *work)
{
    return ((struct reading *)work)->job != NULL;
}

static void reading_done(struct work *work)
{
    struct reading *self = (struct reading *)work;
    struct client *client = self->client;
    struct service *service = client->service;
    struct job *job = self->job;
    client_hold(client);
    self->job = NULL;
    if (job)
        job->reading = NULL;
    if (job && self->error.code)
        job_abandon(service, job, self->error.code, self->error.message);
    else if (job)
        job_go_on(service, job, &self->copy);
    reading_free(self);
    reading_next(client);
    client_unhold(client);
    service_pump(service);
}

int reading_begin(struct call *call, struct job *job, struct buffer *buffer, struct offsets_copy *copy)
{
    struct client *client = call->client;
    struct reading *reading = calloc(1, sizeof *reading);
    if (!reading) {
        free(copy->values);
        return error_set(&call->error, -ENOMEM, "job.submit: out of memory for another job; try again later");
    }
    *reading = (struct reading){
        .work = {.run = reading_run, .done = reading_done, .is_wanted = reading_is_wanted},
        .client = client,
        .job = job,
        .buffer = buffer,
        .copy = *copy,
    };
    client_hold(client);
    buffer_hold(buffer);
    offsets_count(client, copy->count * sizeof *copy->values);
    *(client->last_reading ? &client->last_reading->next : &client->readings) = reading;
    client->last_reading = reading;
    job->reading = reading;
    return 0;
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

#include "offsets_reader.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/core/clients.h"
#include "daemon/core/memory/client_buffers.h"
#include "ending.h"
#include "offsets_queue.h"

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
    if (job && !self->error.code)
        job_check_ragged(job, self->copy.longest, &self->error);
    if (job && self->error.code)
        job_abandon(service, job, self->error.code, self->error.message);
    else if (job)
        job_go_on(service, job, &self->copy);
    reading_free(self);
    reading_next(client);
    client_unhold(client);
}

int reading_begin(struct call *call, struct job *job, struct buffer *buffer, struct offsets_copy *copy)
{
    struct client *client = call->client;
    struct reading *reading = calloc(1, sizeof *reading);
    if (!reading) {
        free(copy->values);
        return error_set(&call->error, -ENOMEM, "out of memory for another job; try again later");
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
    job->rows.row_count = 1; /* also of an input without samples: nobody knows yet whether its offsets are right */
    return 0;
}

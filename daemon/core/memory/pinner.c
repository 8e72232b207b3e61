/* Pins imported memory behind its first piece, which was pinned before its client knew of it, on helper threads. */
#include <stdlib.h>

#include "daemon/core/call.h"

/* Of one buffer at a time. More of them only wait for the driver's lock. */
#define PINNERS 3

/* A helper of a buffer, which it holds: one piece after the other. */
struct pinner {
    struct work work; /* first */
    struct service *service;
    struct buffer *buffer;
    size_t piece;
    int status;
};

static bool pin_run(struct work *work)
{
    struct pinner *self = (struct pinner *)work;
    self->status = buffer_pin(self->buffer, self->piece, self->service->devices);
    return false;
}

/* Some memory cannot be pinned, so from now on all of it is staged: chunks with the device go on as they were, and so
 * what is pinned remains it. A device that is lost says so to the next chunk. */
static void buffer_give_up(struct service *service, struct buffer *buffer)
{
    if (!buffer->span.staged)
        service->stats.staged_bytes += buffer->span.size_bytes;
    buffer->span.staged = true;
}

/* Nobody else waits for it: the client has released it, or is gone. */
static bool is_forgotten(const struct buffer *buffer)
{
    return buffer->holds == buffer->pinners;
}

/* Ends when there is nothing more to do. */
static void pinner_go_on(struct pinner *self)
{
    struct service *service = self->service;
    struct buffer *buffer = self->buffer;
    if (!is_forgotten(buffer) && !buffer->span.staged && pieces_begin(&buffer->pieces, &self->piece)) {
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
    if (self->status)
        buffer_give_up(self->service, self->buffer);
    else
        pieces_note(&self->buffer->pieces, self->piece);
    if (!is_forgotten(self->buffer))
        service_pump(self->service);
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

void buffer_pin_rest(struct service *service, struct buffer *buffer)
{
    for (size_t i = 0; i < PINNERS && i < buffer->pieces.left && buffer_is_partial(buffer); i++)
        if (!pinner_start(service, buffer) && i == 0)
            buffer_give_up(service, buffer);
}

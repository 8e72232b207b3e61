/* Requests for memory of the pool that wait until some is free. Users take turns; a user's own come in their order.
 * Those that fit are not held up by one that does not: what waits is passed by requests that need not. */
#include <errno.h>
#include <stdlib.h>

#include "daemon/core/call.h"

struct waiting {
    struct waiting *next; /* of its user's */
    struct client *client;
    uint32_t msgid;
    uint64_t size_bytes, deadline_us;
};

int buffer_wait(struct call *call, uint64_t size_bytes, uint64_t wait_ms)
{
    struct service *service = call->service;
    struct client *client = call->client;
    struct waiting_queue *queue = &client->user->waiting;
    struct waiting *self = client->waits < LIMIT_CLIENT_WAITS ? malloc(sizeof *self) : NULL;
    if (!self)
        return -EAGAIN;
    *self = (struct waiting){.client = client,
                             .msgid = call->msgid,
                             .size_bytes = size_bytes,
                             .deadline_us = service->ops->now_us(service->context) + wait_ms * 1000};
    if (queue->first)
        queue->last->next = self;
    else
        queue->first = self;
    queue->last = self;
    if (queue->first == self)
        ring_join(&service->waiting, &queue->ring);
    client->waits++;
    client->buffer_count++; /* it is to become one */
    service_wake_by(service, self->deadline_us);
    return 0;
}

/* Takes one out of its user's queue, after `before` (NULL: it is the first). */
static void waiting_take(struct service *service, struct waiting_queue *queue, struct waiting *before,
                         struct waiting *self)
{
    if (before)
        before->next = self->next;
    else
        queue->first = self->next;
    if (queue->last == self)
        queue->last = before;
    if (!queue->first)
        ring_leave(&service->waiting, &queue->ring);
    self->client->waits--;
    self->client->buffer_count--;
}

/* Answers one that has been taken out, unless -EAGAIN: there is still nothing for it. */
static int waiting_try(struct service *service, const struct waiting *self, struct error *error)
{
    struct client *client = self->client;
    struct call call = {.service = service, .client = client, .msgid = self->msgid};
    struct buffer *buffer;
    int r = buffer_create_host(service->pool, self->size_bytes, client->user, &buffer, &call.error);
    if (!r)
        r = buffer_begin(&call, buffer);
    else if (r == -EAGAIN) {
        *error = call.error;
        return r;
    }
    if (r)
        reply_failure(client, self->msgid, &call.error);
    return 0;
}

/* Whether the first of a queue can have what it waits for: it does then. */
static bool serve_first(struct service *service, struct waiting_queue *queue)
{
    struct error error;
    struct waiting *self = queue->first;
    if (waiting_try(service, self, &error))
        return false;
    waiting_take(service, queue, NULL, self);
    free(self);
    return true;
}

void waiting_pump(struct service *service)
{
    unsigned refused = 0, users = 0;
    if (!service->waiting || service->serving_waiting)
        return;
    service->serving_waiting = true; /* a buffer that fails to be made comes back here */
    struct ring *ring = service->waiting;
    do
        users++;
    while ((ring = ring->next) != service->waiting);
    while (service->waiting && refused < users) {
        struct waiting_queue *queue = (struct waiting_queue *)service->waiting;
        service->waiting = service->waiting->next; /* the next user's turn, whatever comes of this one */
        refused = serve_first(service, queue) ? 0 : refused + 1;
    }
    service->serving_waiting = false;
}

/* Ends those of a queue that may not wait any longer. The earliest deadline of the others. */
static uint64_t expire_queue(struct service *service, struct waiting_queue *queue, uint64_t now_us)
{
    uint64_t earliest_us = UINT64_MAX;
    struct waiting *before = NULL;
    for (struct waiting *self = queue->first, *next; self; self = next) {
        next = self->next;
        if (self->deadline_us > now_us) {
            earliest_us = self->deadline_us < earliest_us ? self->deadline_us : earliest_us;
            before = self;
            continue;
        }
        struct error error = {0};
        waiting_take(service, queue, before, self);
        if (waiting_try(service, self, &error)) {
            error.retry_ms = RETRY_MS;
            reply_failure(self->client, self->msgid, &error);
        }
        free(self);
    }
    return earliest_us;
}

uint64_t waiting_expire(struct service *service, uint64_t now_us)
{
    uint64_t earliest_us = UINT64_MAX;
    struct ring *last = service->waiting ? service->waiting->previous : NULL, *next = service->waiting;
    service->serving_waiting = true;
    while (next) {
        struct ring *ring = next;
        next = ring == last ? NULL : ring->next;
        uint64_t at_us = expire_queue(service, (struct waiting_queue *)ring, now_us);
        earliest_us = at_us < earliest_us ? at_us : earliest_us;
    }
    service->serving_waiting = false;
    return earliest_us;
}

void waiting_drop(struct client *client)
{
    struct waiting_queue *queue = &client->user->waiting;
    struct waiting *before = NULL;
    for (struct waiting *self = queue->first, *next; self; self = next) {
        next = self->next;
        if (self->client != client) {
            before = self;
            continue;
        }
        waiting_take(client->service, queue, before, self);
        free(self);
    }
}

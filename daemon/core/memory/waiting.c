#include "waiting.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/core/loop.h"

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
        round_robin_join(&service->waiting, &queue->node);
    client->waits++;
    client->buffer_count++; /* it is to become one */
    service_wake_by(service, self->deadline_us);
    return 0;
}

/* Takes a request out of its user's queue, after `before` (NULL: it is the first). */
void waiting_remove(struct service *service, struct waiting_queue *queue, struct waiting *before, struct waiting *self)
{
    if (before)
        before->next = self->next;
    else
        queue->first = self->next;
    if (queue->last == self)
        queue->last = before;
    if (!queue->first)
        round_robin_leave(&service->waiting, &queue->node);
    self->client->waits--;
    self->client->buffer_count--;
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
        waiting_remove(client->service, queue, before, self);
        free(self);
    }
}

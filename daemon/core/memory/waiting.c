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
    *self = (struct waiting){
        .client = client,
        .msgid = call->msgid,
        .size_bytes = size_bytes,
        .before = queue->first ? queue->last : NULL,
        .deadline = {.at_us = service->ops->now_us(service->context) + wait_ms * 1000, .kind = DEADLINE_WAITING}};
    if (queue->first)
        queue->last->next = self;
    else
        queue->first = self;
    queue->last = self;
    if (queue->first == self)
        round_robin_join(&service->waiting, &queue->node);
    client->waits++;
    client->buffer_count++; /* it is to become one */
    deadlines_add(&service->deadlines, &self->deadline);
    service_wake_by(service, self->deadline.at_us);
    return 0;
}

void waiting_remove(struct service *service, struct waiting *self)
{
    struct waiting_queue *queue = &self->client->user->waiting;
    if (self->before)
        self->before->next = self->next;
    else
        queue->first = self->next;
    if (self->next)
        self->next->before = self->before;
    else
        queue->last = self->before;
    if (!queue->first)
        round_robin_leave(&service->waiting, &queue->node);
    deadlines_remove(&service->deadlines, &self->deadline);
    self->client->waits--;
    self->client->buffer_count--;
}

void waiting_drop(struct client *client)
{
    for (struct waiting *self = client->user->waiting.first, *next; self && client->waits > 0; self = next) {
        next = self->next;
        if (self->client != client)
            continue;
        waiting_remove(client->service, self);
        free(self);
    }
}

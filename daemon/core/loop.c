#include "loop.h"

void service_pump_helpers(struct service *service)
{
    struct work *work;
    while ((work = helpers_next(&service->helpers)))
        service->ops->defer(service->context, work);
    while ((work = helpers_next(&service->readers)))
        service->ops->read(service->context, work);
}

void service_defer(struct service *service, struct user *user, struct work *work)
{
    helpers_add(&service->helpers, &user->work, work);
    service_pump_helpers(service);
}

void service_read(struct service *service, struct user *user, struct work *work)
{
    helpers_add(&service->readers, &user->reads, work);
    service_pump_helpers(service);
}

void service_wake_at(struct service *service, uint64_t at_us)
{
    service->wake_us = at_us;
    service->ops->wake(service->context, at_us);
}

void service_wake_by(struct service *service, uint64_t at_us)
{
    if (at_us < service->wake_us)
        service_wake_at(service, at_us);
}

static bool has_group(const struct client *client)
{
    bool found = false;
    for (unsigned i = 0; i < LIMIT_CLIENT_GROUPS; i++)
        found = found || client->groups[i].number > 0;
    return found;
}

/* True when a client goes on with a group, and has not been told yet that a drain refuses more of it. */
static bool group_holds(const struct service *service)
{
    const struct client *client = service->clients;
    while (client && (client->knows_drain || !has_group(client)))
        client = client->next;
    return client && service->ops->now_us(service->context) < service->drain_end_us;
}

void service_check_drained(struct service *service)
{
    if (service->draining && service->stats.jobs_open == 0 && !group_holds(service))
        service->ops->drained(service->context);
}

void service_drain(struct service *service)
{
    if (!service->draining)
        service->drain_end_us = service->ops->now_us(service->context) + LIMIT_DRAIN_GROUP_MS * UINT64_C(1000);
    service->draining = true;
    service->ops->draining(service->context);
    service_wake_by(service, service->drain_end_us);
    service_check_drained(service);
}

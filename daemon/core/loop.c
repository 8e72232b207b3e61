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

void service_drain(struct service *service)
{
    service->draining = true;
    service->ops->draining(service->context);
    if (service->stats.jobs_open == 0)
        service->ops->drained(service->context);
}

/*
 * The counters of the service, for server.stats, server.devices, metrics and the next worker: service_totals,
 * service_resume and service_describe_* of service.h are here, too.
 */
#ifndef DAEMON_COUNTERS_H
#define DAEMON_COUNTERS_H

#include "daemon/core/service.h"

/* Returns the counters of a device. */
static inline struct device_counters *device_counters_of(struct service *service, const struct device *device)
{
    return &service->device_counters[device->number];
}

/* Charges device time up to now. */
void service_charge_devices(struct service *service);

/* A job has ended: counts its outcome and its times. */
void counters_add_job(struct service *service, const struct job *job);
/* A chunk has been computed: counts its rows, samples, bytes and times. */
void counters_add_chunk(struct service *service, const struct job *job, const struct chunk *chunk);

#endif

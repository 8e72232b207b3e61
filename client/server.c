/* Questions about the daemon. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/internal.h"

static uint64_t clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

int scand_ping(struct scand *daemon, uint64_t *round_trip_us)
{
    /* Reconnecting is no part of a round trip. */
    int code = session_ready(daemon);
    uint64_t begin_us = clock_us();
    if (code == 0)
        code = call_run(daemon, &(struct call){.method = METHOD_server_ping, .params = &(struct msg_nothing){}});
    if (code == 0 && round_trip_us)
        *round_trip_us = clock_us() - begin_us;
    return (int)status_from_errno(code);
}

static void device_fill(struct scand_device *device, const struct msg_device *from)
{
    snprintf(device->name, sizeof device->name, "%.*s", (int)sizeof device->name - 1, from->name);
    snprintf(device->backend, sizeof device->backend, "%.*s", (int)sizeof device->backend - 1, from->backend);
    device->memory_bytes = from->memory_bytes;
    device->memory_limit_bytes = from->memory_limit_bytes;
    device->memory_used_bytes = from->memory_used_bytes;
    device->chunk_bytes = from->chunk_bytes;
}

int scand_devices(struct scand *daemon, struct scand_device *devices, size_t capacity, size_t *count)
{
    struct msg_devices_result result;
    int code = call_run(
        daemon, &(struct call){.method = METHOD_server_devices, .params = &(struct msg_nothing){}, .result = &result});
    if (code)
        return (int)status_from_errno(code);
    size_t n = result.devices_count < capacity ? result.devices_count : capacity;
    for (size_t i = 0; i < n; i++)
        device_fill(&devices[i], &result.devices[i]);
    *count = n;
    return SCAND_OK;
}

static void kernel_fill(struct scand_kernel *kernel, const struct msg_kernel *from)
{
    *kernel = (struct scand_kernel){.repeatable = from->repeatable != 0, .operation = from->operation};
    snprintf(kernel->name, sizeof kernel->name, "%.*s", (int)sizeof kernel->name - 1, from->name);
    snprintf(kernel->line, sizeof kernel->line, "%.*s", (int)sizeof kernel->line - 1, from->line);
    snprintf(kernel->backend, sizeof kernel->backend, "%.*s", (int)sizeof kernel->backend - 1, from->backend);
    for (uint32_t i = 0; i < from->accumulators_count; i++)
        kernel->accumulators |= 1u << from->accumulators[i];
    for (uint32_t i = 0; i < from->reductions_count; i++)
        kernel->reductions |= 1u << from->reductions[i];
}

int scand_kernels(struct scand *daemon, struct scand_kernel *kernels, size_t capacity, size_t *count)
{
    struct msg_kernels_result result;
    int code = call_run(
        daemon, &(struct call){.method = METHOD_server_kernels, .params = &(struct msg_nothing){}, .result = &result});
    if (code)
        return (int)status_from_errno(code);
    size_t n = result.kernels_count < capacity ? result.kernels_count : capacity;
    for (size_t i = 0; i < n; i++)
        kernel_fill(&kernels[i], &result.kernels[i]);
    *count = n;
    return SCAND_OK;
}

int scand_stats(struct scand *daemon, struct scand_counter *counters, size_t capacity, size_t *count)
{
    struct msg_stats_result result;
    int code = call_run(
        daemon, &(struct call){.method = METHOD_server_stats, .params = &(struct msg_nothing){}, .result = &result});
    if (code)
        return (int)status_from_errno(code);
#define COUNTER(S, NAME, KIND, PRESENCE, DETAIL) {#NAME, result.NAME},
    const struct scand_counter all[] = {STATS_RESULT(COUNTER, stats_result)};
#undef COUNTER
    size_t n = sizeof all / sizeof all[0];
    n = n < capacity ? n : capacity;
    if (n)
        memcpy(counters, all, n * sizeof all[0]);
    *count = n;
    return SCAND_OK;
}

int scand_drain(struct scand *daemon)
{
    return (int)status_from_errno(
        call_run(daemon, &(struct call){.method = METHOD_server_drain, .params = &(struct msg_nothing){}}));
}

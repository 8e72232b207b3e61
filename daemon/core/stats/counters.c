#include "counters.h"

#include <errno.h>
#include <string.h>

#include "daemon/core/memory/pool.h"
#include "histogram.h"

void service_totals(const struct service *service, struct service_totals *totals)
{
    enum { NOW, TOTAL };
#define TAKE(X, S, NAME, PRESENCE, TYPE, TEXT) .NAME = TYPE == TOTAL ? service->stats.NAME : 0,
    *totals = (struct service_totals){
        .stats = {COUNTERS(TAKE, , )}, .histograms = service->histograms, .distrusted = service->users.distrusted};
#undef TAKE
    totals->stats.jobs_failed += service->stats.jobs_open;
    for (unsigned i = 0; i < LIMIT_DEVICES; i++) {
        const struct device_counters *counters = &service->device_counters[i];
        totals->devices[i].busy_us = counters->device_time.busy_us;
        totals->devices[i].upload_bytes = counters->upload_bytes;
        totals->devices[i].download_bytes = counters->download_bytes;
    }
}

void service_resume(struct service *service, const struct service_totals *totals, uint64_t restarts)
{
    uint64_t pool_bytes = service->stats.pool_bytes;
    service->stats = totals->stats;
    service->stats.pool_bytes = pool_bytes;
    service->stats.restarts = restarts;
    service->users.distrusted = totals->distrusted;
    if (totals->histograms.bounds_us_count == service->histograms.bounds_us_count)
        service->histograms = totals->histograms;
    for (unsigned i = 0; i < LIMIT_DEVICES; i++) {
        struct device_counters *counters = &service->device_counters[i];
        counters->device_time.busy_us = totals->devices[i].busy_us;
        counters->upload_bytes = totals->devices[i].upload_bytes;
        counters->download_bytes = totals->devices[i].download_bytes;
    }
}

void service_charge_devices(struct service *service)
{
    uint64_t now_us = service->ops->now_us(service->context);
    for (unsigned i = 0; i < service->devices->count; i++)
        device_time_read(&service->device_counters[i].device_time, now_us);
}

static void describe_device(struct device *device, const struct device_counters *counters, struct msg_device *out)
{
    const struct device_info *info = &device->info;
    _Static_assert(sizeof info->name == sizeof out->name, "a name has one size");
    *out = (struct msg_device){
        .memory_bytes = info->memory_bytes,
        .memory_limit_bytes = info->memory_limit_bytes,
        .memory_used_bytes = device->ops->memory_used_bytes(device),
        .chunk_bytes = info->chunk_bytes,
        .busy_us = counters->device_time.busy_us,
        .chunks_open = counters->device_time.count,
        .upload_bytes = counters->upload_bytes,
        .download_bytes = counters->download_bytes,
        .chunks = info->slots,
        .bytes_per_s = info->bytes_per_s,
    };
    memcpy(out->name, info->name, sizeof info->name);
    memcpy(out->backend, info->backend, sizeof info->backend);
}

uint32_t service_describe_devices(struct service *service, struct msg_device out[LIMIT_MAPS])
{
    _Static_assert(LIMIT_DEVICES <= LIMIT_MAPS, "one list holds all");
    service_charge_devices(service);
    for (unsigned i = 0; i < service->devices->count; i++)
        describe_device(service->devices->devices[i], &service->device_counters[i], &out[i]);
    return service->devices->count;
}

void service_describe_stats(struct service *service, struct msg_stats_result *out)
{
    *out = service->stats;
    service_charge_devices(service);
    out->uptime_us = service->ops->now_us(service->context) - service->began_us;
    out->pool_used_bytes = service->pool->bytes.used;
    for (unsigned i = 0; i < service->devices->count; i++) {
        const struct device_counters *counters = &service->device_counters[i];
        out->device_busy_us += counters->device_time.busy_us;
        out->chunks_open += counters->device_time.count;
        out->upload_bytes += counters->upload_bytes;
        out->download_bytes += counters->download_bytes;
    }
}

static void describe_user(const struct user *user, uint64_t open_busy_ns, struct msg_user_row *out)
{
    const struct user_counters *counters = &user->counters;
    *out = (struct msg_user_row){
        .user = user->uid,
        .connections = user->used[QUOTA_CONNECTIONS],
        .connections_quota = user->most[QUOTA_CONNECTIONS],
        .jobs = user->used[QUOTA_JOBS],
        .jobs_quota = user->most[QUOTA_JOBS],
        .host_bytes = user->used[QUOTA_HOST_MEMORY],
        .host_quota_bytes = user->most[QUOTA_HOST_MEMORY],
        .device_bytes = user->used[QUOTA_DEVICE_MEMORY],
        .device_quota_bytes = user->most[QUOTA_DEVICE_MEMORY],
        .pinned_bytes = user->used[QUOTA_PINNED_MEMORY],
        .pinned_quota_bytes = user->most[QUOTA_PINNED_MEMORY],
        .jobs_done = counters->jobs_done,
        .jobs_failed = counters->jobs_failed,
        .jobs_cancelled = counters->jobs_cancelled,
        .queued_us = counters->queued_us,
        .device_busy_us = (counters->device_busy_ns + open_busy_ns) / 1000,
    };
}

uint32_t service_describe_users(struct service *service, uint64_t *from, struct msg_user_row out[LIMIT_MAPS])
{
    const struct user *slots = service->users.slots;
    const uint64_t first = *from, end = service->users.slot_count;
    uint64_t busy_ns[LIMIT_MAPS] = {0}; /* busy time of connections that are open */
    uint32_t count = 0;
    service_charge_devices(service);
    for (const struct client *client = service->clients; client; client = client->next) {
        const uint64_t slot = (uint64_t)(client->user - slots);
        if (slot >= first && slot - first < LIMIT_MAPS)
            busy_ns[slot - first] += client->counters.device_busy_ns;
    }
    for (; count < LIMIT_MAPS && first < end && count < end - first; count++)
        describe_user(&slots[first + count], busy_ns[count], &out[count]);
    *from = first < end && end - first > count ? first + count : 0;
    return count;
}

void counters_add_job(struct service *service, const struct job *job)
{
    struct msg_stats_result *stats = &service->stats;
    struct user_counters *user = &job->client->user->counters;
    stats->jobs_open--;
    if (job->outcome.code == 0) {
        stats->jobs_done++;
        job->client->counters.jobs_done++;
        user->jobs_done++;
        user->queued_us += job->times.queued_us;
        histogram_add(&service->histograms, &service->histograms.job_queued, job->times.queued_us);
        histogram_add(&service->histograms, &service->histograms.job_duration, job->times.total_us);
    } else if (job->outcome.code == -ECANCELED) {
        stats->jobs_cancelled++;
        user->jobs_cancelled++;
    } else {
        stats->jobs_failed++;
        user->jobs_failed++;
        stats->jobs_expired += job->outcome.code == -ETIME;
    }
}

void counters_add_chunk(struct service *service, const struct job *job, const struct chunk *chunk)
{
    struct client_counters *counters = &job->client->counters;
    struct msg_stats_result *stats = &service->stats;
    struct msg_histograms_result *histograms = &service->histograms;
    uint64_t samples = job_chunk_samples(job, chunk);
    stats->rows_scanned += chunk->count;
    counters->rows_scanned += chunk->count;
    stats->samples_scanned += samples;
    counters->samples_scanned += samples;
    device_counters_of(service, chunk->device)->upload_bytes += job_upload_bytes(job, chunk);
    device_counters_of(service, chunk->device)->download_bytes += job_download_bytes(job, chunk);
    histogram_add(histograms, &histograms->chunk_upload, chunk->upload_us);
    histogram_add(histograms, &histograms->chunk_kernel, chunk->kernel_us);
    histogram_add(histograms, &histograms->chunk_download, chunk->download_us);
}

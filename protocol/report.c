#include "report.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

void report_device(const struct msg_device *from, struct scand_device *device)
{
    snprintf(device->name, sizeof device->name, "%.*s", (int)sizeof device->name - 1, from->name);
    snprintf(device->backend, sizeof device->backend, "%.*s", (int)sizeof device->backend - 1, from->backend);
    device->memory_bytes = from->memory_bytes;
    device->memory_limit_bytes = from->memory_limit_bytes;
    device->memory_used_bytes = from->memory_used_bytes;
    device->chunk_bytes = from->chunk_bytes;
    device->busy_us = from->busy_us;
    device->chunks_open = from->chunks_open;
    device->upload_bytes = from->upload_bytes;
    device->download_bytes = from->download_bytes;
    device->chunks = from->chunks;
    device->bytes_per_s = from->bytes_per_s;
}

void report_user(const struct msg_user_row *from, struct scand_user_info *user)
{
#define COPY(X, S, NAME, TYPE, TEXT) user->NAME = from->NAME;
    memset(user, 0, sizeof *user);
    USER_NUMBERS(COPY, , )
#undef COPY
    user->user = (uint32_t)from->user;
}

size_t report_counters(const struct msg_stats_result *from, struct scand_counter *counters, size_t capacity)
{
    enum { NOW, TOTAL };
#define ROW(X, S, NAME, PRESENCE, TYPE, TEXT) {#NAME, TEXT, offsetof(struct msg_stats_result, NAME), TYPE},
    static const struct {
        const char *name, *text;
        size_t offset;
        uint32_t total;
    } all[] = {COUNTERS(ROW, , )};
#undef ROW
    size_t n = sizeof all / sizeof all[0];
    n = n < capacity ? n : capacity;
    if (n)
        memset(counters, 0, n * sizeof *counters);
    for (size_t i = 0; i < n; i++) {
        counters[i].name = all[i].name;
        counters[i].text = all[i].text;
        counters[i].total = all[i].total;
        memcpy(&counters[i].value, (const char *)from + all[i].offset, sizeof counters[i].value);
    }
    return n;
}

/* A daemon that counts more or fewer buckets than it has bounds for is taken at its shorter word. */
static void histogram_fill(struct scand_histogram *histogram, const struct msg_histograms_result *all,
                           const struct msg_histogram *from)
{
    uint32_t count = all->bounds_us_count + 1;
    count = count < from->counts_count ? count : from->counts_count;
    histogram->bound_count = count ? count - 1 : 0;
    memcpy(histogram->bounds_us, all->bounds_us, histogram->bound_count * sizeof all->bounds_us[0]);
    memcpy(histogram->counts, from->counts, count * sizeof from->counts[0]);
    histogram->sum_us = from->sum_us;
}

size_t report_histograms(const struct msg_histograms_result *from, struct scand_histogram *histograms, size_t capacity)
{
#define ROW(X, S, NAME, TEXT) {#NAME, TEXT, &from->NAME},
    const struct {
        const char *name, *text;
        const struct msg_histogram *from;
    } all[] = {HISTOGRAMS(ROW, , )};
#undef ROW
    size_t n = sizeof all / sizeof all[0];
    n = n < capacity ? n : capacity;
    for (size_t i = 0; i < n; i++) {
        histograms[i] = (struct scand_histogram){.name = all[i].name, .text = all[i].text};
        histogram_fill(&histograms[i], from, all[i].from);
    }
    return n;
}

#include "metrics.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "messages.h"

#define MICROSECONDS 1000000
#define DEVICE_BUSY  "scand_device_busy_seconds_total"

static void heading(FILE *file, const char *name, const char *type, const char *text)
{
    fprintf(file, "# HELP %s %s\n# TYPE %s %s\n", name, text, name, type);
}

/* A label's value, escaped as the format wants it. */
static void label(FILE *file, const char *name, const char *value)
{
    fprintf(file, "%s=\"", name);
    for (; *value; value++) {
        if (*value == '\n')
            fputs("\\n", file);
        else if (*value == '"' || *value == '\\')
            fprintf(file, "\\%c", *value);
        else
            fputc(*value, file);
    }
    fputc('"', file);
}

static void seconds(FILE *file, uint64_t time_us)
{
    fprintf(file, "%" PRIu64 ".%06" PRIu64, time_us / MICROSECONDS, time_us % MICROSECONDS);
}

/* The end of a line; times are in seconds. */
static void number(FILE *file, uint64_t value, bool is_time)
{
    if (is_time)
        seconds(file, value);
    else
        fprintf(file, "%" PRIu64, value);
    fputc('\n', file);
}

static void metrics_server(FILE *file, const char *server)
{
    heading(file, "scand_build_info", "gauge", "Name and release of the daemon.");
    fputs("scand_build_info{", file);
    label(file, "server", server);
    fputs("} 1\n", file);
}

static void device_labels(FILE *file, const char *name, size_t number, const struct scand_device *device)
{
    fprintf(file, "%s{device=\"%zu\",", name, number);
    label(file, "backend", device->backend);
    fputc(',', file);
    label(file, "name", device->name);
    fputs("} ", file);
}

void metrics_devices(FILE *file, const struct scand_device *devices, size_t count)
{
    static const struct {
        const char *name, *type, *text;
        size_t offset;
    } rows[] = {
        {"scand_device_memory_size_bytes", "gauge", "Memory of the device.",
         offsetof(struct scand_device, memory_bytes)},
        {"scand_device_memory_limit_bytes", "gauge", "Memory of the device that the daemon may take.",
         offsetof(struct scand_device, memory_limit_bytes)},
        {"scand_device_memory_used_bytes", "gauge", "Memory of the device that the daemon has taken.",
         offsetof(struct scand_device, memory_used_bytes)},
        {DEVICE_BUSY, "counter", "Time for which the device had work.", offsetof(struct scand_device, busy_us)},
        {"scand_device_chunks_open", "gauge", "Chunks that the device has.",
         offsetof(struct scand_device, chunks_open)},
        {"scand_device_upload_bytes_total", "counter", "Samples that the device read from host memory.",
         offsetof(struct scand_device, upload_bytes)},
        {"scand_device_download_bytes_total", "counter", "Samples that the device wrote to host memory.",
         offsetof(struct scand_device, download_bytes)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        heading(file, rows[i].name, rows[i].type, rows[i].text);
        for (size_t k = 0; k < count; k++) {
            uint64_t value;
            memcpy(&value, (const char *)&devices[k] + rows[i].offset, sizeof value);
            device_labels(file, rows[i].name, k, &devices[k]);
            number(file, value, strcmp(rows[i].name, DEVICE_BUSY) == 0);
        }
    }
}

/* A member's name and heading by Prometheus' rules. */
struct family {
    char name[96];
    bool is_time, total;
};

static struct family family_of(const char *prefix, const char *member, bool total)
{
    const size_t length = strlen(member);
    struct family family = {.is_time = length > 3 && !strcmp(member + length - 3, "_us"), .total = total};
    snprintf(family.name, sizeof family.name, "%s%.*s%s%s", prefix, (int)(family.is_time ? length - 3 : length), member,
             family.is_time ? "_seconds" : "", total ? "_total" : "");
    return family;
}

static void family_heading(FILE *file, const struct family *family, const char *began, const char *counted)
{
    char text[160];
    snprintf(text, sizeof text, "%s: %s.", family->total ? began : "Now", counted);
    heading(file, family->name, family->total ? "counter" : "gauge", text);
}

void metrics_counters(FILE *file, const struct scand_counter *counters, size_t count)
{
    for (const struct scand_counter *counter = counters; counter < counters + count; counter++) {
        const struct family family = family_of("scand_", counter->name, counter->total);
        if (strcmp(family.name, DEVICE_BUSY) == 0) /* which is told of each */
            continue;
        family_heading(file, &family, "Since the daemon began", counter->text);
        fprintf(file, "%s ", family.name);
        number(file, counter->value, family.is_time);
    }
}

void metrics_users(FILE *file, const struct scand_user_info *users, size_t count)
{
    enum { NOW, TOTAL };
    static const struct {
        const char *name, *text;
        size_t offset;
        bool total;
    } rows[] = {
#define ROW(X, S, NAME, TYPE, TEXT) {#NAME, TEXT, offsetof(struct scand_user_info, NAME), TYPE},
        USER_NUMBERS(ROW, , )
#undef ROW
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && count > 0; i++) {
        const struct family family = family_of("scand_user_", rows[i].name, rows[i].total);
        family_heading(file, &family, "Since the daemon's worker began", rows[i].text);
        for (const struct scand_user_info *user = users; user < users + count; user++) {
            uint64_t value;
            memcpy(&value, (const char *)user + rows[i].offset, sizeof value);
            fprintf(file, "%s{user=\"%" PRIu32 "\"} ", family.name, user->user);
            number(file, value, family.is_time);
        }
    }
}

static void histogram_print(FILE *file, const struct scand_histogram *histogram)
{
    char name[96], text[160];
    uint64_t count = 0;
    snprintf(name, sizeof name, "scand_%s_seconds", histogram->name);
    snprintf(text, sizeof text, "Time %s.", histogram->text);
    heading(file, name, "histogram", text);
    for (uint32_t i = 0; i < histogram->bound_count; i++) {
        count += histogram->counts[i];
        fprintf(file, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", name, (double)histogram->bounds_us[i] / MICROSECONDS,
                count);
    }
    count += histogram->counts[histogram->bound_count];
    fprintf(file, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum ", name, count, name);
    seconds(file, histogram->sum_us);
    fprintf(file, "\n%s_count %" PRIu64 "\n", name, count);
}

void metrics_histograms(FILE *file, const struct scand_histogram *histograms, size_t count)
{
    for (size_t i = 0; i < count; i++)
        histogram_print(file, &histograms[i]);
}

void metrics_print(FILE *file, const struct metrics *metrics)
{
    metrics_server(file, metrics->server);
    metrics_devices(file, metrics->devices, metrics->device_count);
    metrics_counters(file, metrics->counters, metrics->counter_count);
    metrics_histograms(file, metrics->histograms, metrics->histogram_count);
    metrics_users(file, metrics->users, metrics->user_count);
}

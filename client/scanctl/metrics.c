#include "metrics.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#define MICROSECONDS 1000000

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

void metrics_server(FILE *file, const char *server)
{
    heading(file, "scand_build_info", "gauge", "Name and release of the daemon.");
    fputs("scand_build_info{", file);
    label(file, "server", server);
    fputs("} 1\n", file);
}

void metrics_devices(FILE *file, const struct scand_device *devices, size_t count)
{
    static const struct {
        const char *name, *text;
        size_t offset;
    } gauges[] = {
        {"scand_device_memory_size_bytes", "Memory of the device.", offsetof(struct scand_device, memory_bytes)},
        {"scand_device_memory_limit_bytes", "Memory of the device that the daemon may take.",
         offsetof(struct scand_device, memory_limit_bytes)},
        {"scand_device_memory_used_bytes", "Memory of the device that the daemon has taken.",
         offsetof(struct scand_device, memory_used_bytes)},
    };
    for (size_t i = 0; i < sizeof gauges / sizeof gauges[0]; i++) {
        heading(file, gauges[i].name, "gauge", gauges[i].text);
        for (size_t k = 0; k < count; k++) {
            uint64_t value;
            memcpy(&value, (const char *)&devices[k] + gauges[i].offset, sizeof value);
            fprintf(file, "%s{device=\"%zu\",", gauges[i].name, k);
            label(file, "backend", devices[k].backend);
            fputc(',', file);
            label(file, "name", devices[k].name);
            fprintf(file, "} %" PRIu64 "\n", value);
        }
    }
}

void metrics_counters(FILE *file, const struct scand_counter *counters, size_t count)
{
    for (const struct scand_counter *counter = counters; counter < counters + count; counter++) {
        char name[96], text[160];
        size_t length = strlen(counter->name);
        bool is_time = length > 3 && !strcmp(counter->name + length - 3, "_us");
        snprintf(name, sizeof name, "scand_%.*s%s%s", (int)(is_time ? length - 3 : length), counter->name,
                 is_time ? "_seconds" : "", counter->total ? "_total" : "");
        snprintf(text, sizeof text, "%s: %s.", counter->total ? "Since the daemon began" : "Now", counter->text);
        heading(file, name, counter->total ? "counter" : "gauge", text);
        fprintf(file, "%s ", name);
        if (is_time)
            seconds(file, counter->value);
        else
            fprintf(file, "%" PRIu64, counter->value);
        fputc('\n', file);
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

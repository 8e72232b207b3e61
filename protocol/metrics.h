/*
 * The daemon's counters and histograms in Prometheus' text format, version 0.0.4, and by its naming rules: base units,
 * counters end in _total. https://prometheus.io/docs/instrumenting/exposition_formats
 */
#ifndef PROTOCOL_METRICS_H
#define PROTOCOL_METRICS_H

#include <stdio.h>

#include <scand/report.h>

#include "limits.h"

#define METRICS_COUNTERS   256
#define METRICS_HISTOGRAMS 16

struct metrics {
    const char *server; /* name and release */
    size_t device_count, counter_count, histogram_count, user_count;
    struct scand_device devices[LIMIT_MAPS];
    struct scand_counter counters[METRICS_COUNTERS];
    struct scand_histogram histograms[METRICS_HISTOGRAMS];
    const struct scand_user_info *users;
};

/* All of them, as a server scrapes them; the others print a part. */
void metrics_print(FILE *file, const struct metrics *metrics);
void metrics_devices(FILE *file, const struct scand_device *devices, size_t count);
void metrics_counters(FILE *file, const struct scand_counter *counters, size_t count);
void metrics_histograms(FILE *file, const struct scand_histogram *histograms, size_t count);
void metrics_users(FILE *file, const struct scand_user_info *users, size_t count);

#endif

/*
 * The daemon's counters and histograms in Prometheus' text format, version 0.0.4, and by its naming rules: base units,
 * counters end in _total. https://prometheus.io/docs/instrumenting/exposition_formats
 */
#ifndef SCANCTL_METRICS_H
#define SCANCTL_METRICS_H

#include <stdio.h>

#include <scand/scand.h>

void metrics_server(FILE *file, const char *server);
void metrics_devices(FILE *file, const struct scand_device *devices, size_t count);
void metrics_counters(FILE *file, const struct scand_counter *counters, size_t count);
void metrics_histograms(FILE *file, const struct scand_histogram *histograms, size_t count);

#endif

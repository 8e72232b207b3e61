/*
 * Events of the daemon in Chrome's trace format, for chrome://tracing or ui.perfetto.dev: the devices with a row for
 * each chunk that they can have at a time, and every connection with a row for each job.
 */
#ifndef SCANCTL_CHROME_TRACE_H
#define SCANCTL_CHROME_TRACE_H

#include <stdio.h>

#include <scand/scand.h>

/* The chunks that a device can have at a time. */
#define CHROME_TRACE_SLOTS 132

void chrome_trace_print(FILE *file, const struct scand_event *events, size_t count);

#endif

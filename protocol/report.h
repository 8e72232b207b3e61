/*
 * The numbers that people and programs see, from the daemon's answers, each with its name and what it counts: for
 * libscand, which has them from messages, and for the daemon, which has them itself.
 */
#ifndef PROTOCOL_REPORT_H
#define PROTOCOL_REPORT_H

#include <scand/report.h>

#include "messages.h"

/* The numbers of counters and of histograms. */
#define REPORT_ONE(...) +1
enum { REPORT_COUNTERS = COUNTERS(REPORT_ONE, , ), REPORT_HISTOGRAMS = HISTOGRAMS(REPORT_ONE, , ) };
#undef REPORT_ONE

void report_device(const struct msg_device *from, struct scand_device *device);
void report_user(const struct msg_user_row *from, struct scand_user_info *user);
/* Fill at most `capacity` and return how many. */
size_t report_counters(const struct msg_stats_result *from, struct scand_counter *counters, size_t capacity);
size_t report_histograms(const struct msg_histograms_result *from, struct scand_histogram *histograms, size_t capacity);

#endif

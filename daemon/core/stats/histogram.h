/* Histograms of times: how many were at most so long, for fixed lengths in steps of about 2.5. */
#ifndef DAEMON_HISTOGRAM_H
#define DAEMON_HISTOGRAM_H

#include "protocol/messages.h"

/* Sets all histograms to zero. */
void histograms_init(struct msg_histograms_result *histograms);
/* Counts a time in one of them. */
void histogram_add(const struct msg_histograms_result *all, struct msg_histogram *histogram, uint64_t time_us);

#endif

/*
 * metrics: what a Prometheus server scrapes, for its node exporter's text files or a pipe.
 */
#include "ask.h"
#include "metrics.h"
#include "protocol/limits.h"
#include "remote.h"

static int ask_metrics(struct scand *daemon, bool json, struct fault *fault)
{
    struct scand_counter counters[COUNTERS_MAX];
    struct scand_histogram histograms[HISTOGRAMS_MAX];
    struct scand_device devices[LIMIT_MAPS];
    size_t counter_count, histogram_count, device_count;
    if (json)
        return fault_set(fault, EX_USAGE,
                         "scanctl metrics has one form, Prometheus' text; for JSON see scanctl stats --json");
    int status = scand_stats(daemon, counters, COUNTERS_MAX, &counter_count);
    if (!status)
        status = scand_histograms(daemon, histograms, HISTOGRAMS_MAX, &histogram_count);
    if (!status)
        status = scand_devices(daemon, devices, LIMIT_MAPS, &device_count);
    if (status)
        return remote_fault(daemon, status, "metrics", fault);
    metrics_server(stdout, scand_server_name(daemon));
    metrics_devices(stdout, devices, device_count);
    metrics_counters(stdout, counters, counter_count);
    metrics_histograms(stdout, histograms, histogram_count);
    return 0;
}

int command_metrics(int argc, char **argv, struct common_options *common, struct fault *fault)
{
    return ask(argc, argv, common, ask_metrics, fault);
}

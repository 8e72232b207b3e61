/*
 * metrics: what a Prometheus server scrapes, for its node exporter's text files or a pipe.
 */
#include "protocol/metrics.h"
#include "client/scanctl/commands/query.h"
#include "client/scanctl/stream/remote.h"

static int ask_metrics(struct scand *daemon, bool json, struct fault *fault)
{
    struct metrics metrics = {.server = scand_server_name(daemon)};
    if (json)
        return fault_set(fault, EX_USAGE,
                         "scanctl metrics has one form, Prometheus' text; for JSON see scanctl stats --json");
    int status =
        scand_stats(daemon, metrics.counters, sizeof(*metrics.counters), METRICS_COUNTERS, &metrics.counter_count);
    if (!status)
        status = scand_histograms(daemon, metrics.histograms, sizeof(*metrics.histograms), METRICS_HISTOGRAMS,
                                  &metrics.histogram_count);
    if (!status)
        status = scand_devices(daemon, metrics.devices, sizeof(*metrics.devices), LIMIT_MAPS, &metrics.device_count);
    if (status)
        return remote_fault(daemon, status, "metrics", fault);
    metrics_print(stdout, &metrics);
    return 0;
}

int command_metrics(int argc, char **argv, struct common_options *common, struct fault *fault)
{
    return ask(argc, argv, common, ask_metrics, fault);
}

/*
 * metrics: what a Prometheus server scrapes, for its node exporter's text files or a pipe.
 */
#include <stdlib.h>

#include "client/scanctl/commands/query.h"
#include "client/scanctl/stream/remote.h"

static int ask_metrics(struct scand *daemon, bool json, struct fault *fault)
{
    char *text;
    if (json)
        return fault_set(fault, EX_USAGE,
                         "scanctl metrics has one form, Prometheus' text; for JSON see scanctl stats --json");
    int status = scand_metrics(daemon, &text);
    if (status)
        return remote_fault(daemon, status, "metrics", fault);
    fputs(text, stdout);
    free(text);
    return 0;
}

int command_metrics(int argc, char **argv, struct common_options *common, struct fault *fault)
{
    return ask(argc, argv, common, ask_metrics, fault);
}

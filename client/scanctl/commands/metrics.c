/*
 * metrics: what a Prometheus server scrapes, for its node exporter's text files or a pipe.
 */
#include <stdlib.h>

#include "client/scanctl/commands/query.h"
#include "client/scanctl/stream/remote.h"

static int query_metrics(struct scand *daemon, bool json, struct error *error)
{
    char *text;
    if (json)
        return fail(error, EX_USAGE,
                    "scanctl metrics has one form, Prometheus' text; for JSON see scanctl stats --json");
    int status = scand_metrics(daemon, &text);
    if (status)
        return remote_error(daemon, status, "metrics", error);
    fputs(text, stdout);
    free(text);
    return 0;
}

int command_metrics(int argc, char **argv, struct common_options *common, struct error *error)
{
    return query_run(argc, argv, common, query_metrics, error);
}

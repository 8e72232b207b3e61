/*
 * trace: what became of the latest jobs, for a viewer.
 */
#include <stdlib.h>

#include "client/scanctl/commands/query.h"
#include "client/scanctl/stream/remote.h"
#include "client/scanctl/ui/chrome_trace.h"

/* Prints events in their one form, which is JSON, whether --json was given or not. */
static int query_trace(struct scand *daemon, bool json, struct error *error)
{
    struct scand_event *events = calloc(EVENTS_MAX, sizeof *events);
    size_t count;
    uint64_t next;
    (void)json;
    if (!events)
        return fail(error, EX_OSERR, "out of memory for the trace");
    int status = scand_trace(daemon, 0, events, sizeof(*events), EVENTS_MAX, &count, &next);
    if (!status)
        chrome_trace_print(stdout, events, count);
    free(events);
    return status ? remote_error(daemon, status, "trace", error) : 0;
}

int command_trace(int argc, char **argv, struct common_options *common, struct error *error)
{
    return query_run(argc, argv, common, query_trace, error);
}

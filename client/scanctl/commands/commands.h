/*
 * The commands. Each gets its words (argv[0] is "scanctl" and its name) and the options that stood before it, and
 * returns 0 or an exit code with *error filled.
 */
#ifndef SCANCTL_COMMANDS_H
#define SCANCTL_COMMANDS_H

#include "client/scanctl/commands/options.h"

/*  name       arguments                    what it does */
#define COMMANDS(X)                                                                       \
    X(scan, "[OPTION...] IN -o OUT", "scan the rows of a file")                           \
    X(reduce, "--op OP [OPTION...] IN [-o OUT]", "reduce each row of a file to a number") \
    X(ping, "[--json]", "measure a round trip to the daemon")                             \
    X(devices, "[--json]", "list the daemon's devices")                                   \
    X(kernels, "[--json]", "list what --algorithm may name")                              \
    X(stats, "[--json]", "print the daemon's counters")                                   \
    X(jobs, "[--json]", "list the jobs that wait or run")                                 \
    X(clients, "[--json]", "list the programs that are connected")                        \
    X(top, "[--once] [--json]", "watch devices, programs and jobs")                       \
    X(metrics, "", "print counters and times for Prometheus")                             \
    X(trace, "", "print what became of the latest jobs, for Chrome's viewer")             \
    X(cancel, "JOB", "stop a job, by its number")                                         \
    X(wait, "[--timeout S] [JOB]", "wait until a job, or all of yours, have ended")       \
    X(drain, "", "finish all jobs, then stop the daemon")                                 \
    X(demo, "[OPTION...]", "scan a synthetic shot gather and check the result")

#define X(NAME, ARGUMENTS, TEXT) \
    int command_##NAME(int argc, char **argv, struct common_options *common, struct error *error);
COMMANDS(X)
#undef X

/* Prints the help of a command, "scanctl scan" or another. */
void help_print(const char *command);

#endif

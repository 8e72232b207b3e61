/*
 * The commands. Each gets its words (argv[0] is "scanctl" and its name) and the options that stood before it, and
 * returns 0 or an exit code with *error filled. Where common->help is set after that, its help is what was asked for.
 */
#ifndef SCANCTL_COMMANDS_H
#define SCANCTL_COMMANDS_H

#include <stdio.h>

#include "client/scanctl/commands/options.h"

/*  name        its options           arguments                    what it does */
#define COMMANDS(X)                                                                                                 \
    X(scan, scan_options, "[OPTION...] IN... -o OUT", "scan the rows of files")                                     \
    X(reduce, reduce_options, "--op OP [OPTION...] IN... [-o OUT]", "reduce rows of files to numbers")              \
    X(run, run_options, "STEPS [OPTION...] IN... [-o OUT]", "run a chain of operations on files")                   \
    X(operations, local_options, "[--json] [OPERATION...]", "list what the steps of run may be")                    \
    X(ping, common_options, "[--json]", "measure a round trip to the daemon")                                       \
    X(devices, common_options, "[--json]", "list the daemon's devices")                                             \
    X(kernels, local_options, "[--json]", "list what --algorithm may name")                                         \
    X(stats, common_options, "[--json]", "print the daemon's counters")                                             \
    X(jobs, common_options, "[--json]", "list the jobs that wait or run")                                           \
    X(clients, common_options, "[--json]", "list the programs that are connected")                                  \
    X(users, common_options, "[--json]", "list the users: memory, jobs, quotas, waiting times")                     \
    X(top, top_options, "[--once] [--json]", "watch devices, programs and jobs")                                    \
    X(metrics, common_options, "", "print counters and times for Prometheus")                                       \
    X(trace, common_options, "", "print what became of the latest jobs, for Chrome's viewer")                       \
    X(cancel, cancel_options, "JOB | --client CLIENT | --mine", "stop jobs")                                        \
    X(wait, wait_options, "[--timeout S] [JOB | --client CLIENT]", "wait until a job, or all of yours, have ended") \
    X(drain, common_options, "", "finish all jobs, then stop the daemon")                                           \
    X(demo, demo_options, "[OPTION...]", "scan a synthetic shot gather and check the result")                       \
    X(completion, common_options, "bash | zsh | fish", "print a script that completes words for a shell")           \
    X(help, common_options, "[COMMAND]", "print the help of a command, or of all")

#define X(NAME, OPTIONS, ARGUMENTS, TEXT)                                                          \
    int command_##NAME(int argc, char **argv, struct common_options *common, struct error *error); \
    extern const struct option_row OPTIONS[];
COMMANDS(X)
#undef X

/* A command's row, but for its function. */
struct command {
    const char *name, *full_name;
    const struct option_row *options;
    const char *arguments, *text;
};
/* The i-th of all, or NULL. */
const struct command *command_at(size_t i);

/* Fails for a word that is no command's name. */
int command_unknown(const char *word, struct error *error);

/* Prints what all commands do, or the help of one. */
void usage_print(FILE *file);
void help_print(const struct command *command, FILE *file);

#endif

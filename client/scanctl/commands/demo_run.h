/*
 * The demonstration: a synthetic gather is made in a buffer of the daemon, scanned forward and backward with f64
 * accumulation into a second buffer, and the result checked. What it is checked against is the caller's.
 */
#ifndef SCANCTL_DEMO_H
#define SCANCTL_DEMO_H

#include "client/scanctl/commands/options.h"

struct demo {
    uint64_t traces, samples;
    const float *input, *output; /* traces x samples each */
};

/* Returns 0, or 1 with *error saying where the result is wrong. */
typedef int demo_check(const struct demo *demo, struct error *error);

/* The options of the demonstration, and its help for a program of another name. */
extern const struct option_row demo_options[];
void demo_help(const char *name);

/* Parses argv (argv[0] names the caller) and runs. `outcome` is said of a result that passes the check, as
 * in "identical to the reference". Returns 0, 1 for a wrong result, or another exit code with *error filled.
 * Where common->help is set after that, the help is what was asked for. */
int demo_command(int argc, char **argv, struct common_options *common, demo_check *check, const char *outcome,
                 struct error *error);

#endif

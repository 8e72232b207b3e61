/* Parts that the commands share that ask the daemon. */
#ifndef SCANCTL_QUERY_H
#define SCANCTL_QUERY_H

#include "client/scanctl/commands/commands.h"
#include "client/scanctl/ui/text.h"

/* The most that a daemon lists. */
#define COUNTERS_MAX 256
#define DEVICES_MAX  32
#define KERNELS_MAX  128
#define JOBS_MAX     4096
#define CLIENTS_MAX  1024
#define USERS_MAX    1280
#define EVENTS_MAX   4096

/* Asks, and prints the answer. */
typedef int query(struct scand *daemon, bool json, struct error *error);

/* Runs a command without options of its own: parses the command line, connects, asks. */
int query_run(int argc, char **argv, struct common_options *common, query *put, struct error *error);
/* Does the same, and has the option --local, as commands that compute have it. */
int query_run_local(int argc, char **argv, struct common_options *common, query *put, struct error *error);

/* The members of a device's object. */
void device_members(struct json *json, const struct scand_device *device);

#endif

/* What the daemon was started with: the command line over the configuration file over the defaults. */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include "daemon/core/user.h"
#include "daemon/device/devices.h"
#include "settings.h"

struct options {
    char socket[SOCKET_PATH_BYTES];
    unsigned socket_mode;  /* 0: auto */
    uint64_t socket_group; /* a gid + 1; 0: the daemon's own */
    int listen_fd;         /* a service manager's socket, whose path `socket` is then; -1: none */
    uint64_t devices;      /* which: see settings.h */
    uint64_t pool_bytes;
    uint64_t device_memory_bytes;
    unsigned threads;            /* of the CPU device; 0: one per core */
    uint64_t chunk_bytes;        /* 0: measured, and so for chunks */
    uint32_t chunks;             /* that a device has at a time */
    uint64_t metrics_listen;     /* where: see settings.h */
    uint64_t watchdog_ms;        /* after which a worker whose loop makes no turn is ended; 0: never */
    struct grants grants;        /* to users; the only thing that a reload changes */
    struct device_faults faults; /* for tests */
    bool foreground, check_config;

    const char *config;           /* the file named on the command line, or NULL */
    struct settings command_line; /* what it gives */
    struct settings settings;     /* all of them, from wherever they came */
};

/* Fills *options. Returns -1 to go on, or an exit code: help was shown, the file was checked, or a message said what is
 * wrong. passed_fds: what a service manager has passed (activation.h). */
int options_parse(int argc, char **argv, size_t passed_fds, struct options *options);
/* Reads the file again: 0 with new grants, and log lines on what else has changed but needs a new start; or -errno,
 * with *error and nothing changed. */
int options_reload(struct options *options, struct error *error);

#endif

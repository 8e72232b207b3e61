/* The daemon's options: the command line overrides the configuration file, which overrides the defaults. */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include "daemon/core/user.h"
#include "daemon/device/devices.h"
#include "settings.h"

struct options {
    char socket[SOCKET_PATH_BYTES];
    unsigned socket_mode;  /* 0: auto */
    uint64_t socket_group; /* a gid + 1; 0: the daemon's own group */
    int listen_fd;         /* a service manager's socket, at the path `socket`; -1: none */
    uint64_t devices;      /* a choice of devices (settings.h) */
    uint64_t pool_bytes;
    uint64_t device_memory_bytes;
    unsigned threads;            /* threads of the CPU device; 0: one per core */
    uint64_t chunk_bytes;        /* 0: measured; the same for `chunks` */
    uint32_t chunks;             /* chunks that a device has at a time */
    uint64_t metrics_listen;     /* a place to listen at (settings.h) */
    bool metrics_users;          /* metrics over HTTP tell of each user */
    uint64_t watchdog_ms;        /* the longest turn of a worker's loop before it is ended; 0: unlimited */
    uint64_t drain_ms;           /* the longest drain before the worker is ended with its jobs; 0: unlimited */
    struct grants grants;        /* quotas and weights of users; the only part that a reload changes */
    struct device_faults faults; /* for tests */
    bool foreground, check_config;

    const char *config;           /* the file named on the command line, or NULL */
    struct settings command_line; /* the settings that the command line gives */
    struct settings settings;     /* the settings from all sources */
};

/* Fills *options. Returns -1 to go on, or an exit code: help was shown, the file was checked, or a message said what is
 * wrong. passed_fds is the number of descriptors that a service manager has passed (activation.h). */
int options_parse(int argc, char **argv, size_t passed_fds, struct options *options);
/* Reads the file again. Returns 0 with new grants, after log lines on what else has changed but needs a new start; or
 * -errno, with *error and nothing changed. */
int options_reload(struct options *options, struct error *error);

#endif

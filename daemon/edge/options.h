/* The command line. */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/socket.h"

enum device_choice { DEVICE_AUTO, DEVICE_CPU, DEVICE_CUDA };

struct options {
    char socket[SOCKET_PATH_BYTES];
    enum device_choice device;
    int cuda_index;
    uint64_t pool_bytes;
    uint64_t device_memory_bytes;
    unsigned threads;    /* of the CPU device; 0: one per core */
    uint64_t fail_chunk; /* for tests: this chunk loses the device; 0: none */
    bool foreground;
};

/* Fills *options. Returns -1 to go on, or an exit code: help was shown, or a message said what is wrong. */
int options_parse(int argc, char **argv, struct options *options);

#endif

/* A process's memory, descriptors and wake-ups, as Linux tells them in /proc. */
#ifndef TESTS_BENCH_VITALS_H
#define TESTS_BENCH_VITALS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/server.h"

struct vitals {
    uint64_t resident_kib;  /* RSS: the pool's pages that were touched, and the program, too */
    uint64_t anonymous_kib; /* the part of it that belongs to no file: heap and stacks */
    uint64_t data_kib;      /* VmData: address space for those */
    uint64_t mappings;
    uint64_t descriptors;
    uint64_t threads;
};

/* A process's activity since its threads began. */
struct activity {
    uint64_t wakes;        /* switches to a thread of the process that had waited */
    uint64_t driver_wakes; /* switches to a thread that the CUDA driver has made for itself */
    uint64_t busy_ns;      /* processor time of all threads */
};

/* Each returns false when /proc does not have it. */
bool vitals_read(pid_t pid, struct vitals *out);
bool activity_read(pid_t pid, struct activity *out);
/* Measures what a daemon, its supervisor and its worker, does in so many seconds. */
bool daemon_watch(const struct server *server, unsigned seconds, struct activity *out);

#endif

/* The daemon of an attack: what it logs, whether it lives, and a guard over the memory of this machine. */
#ifndef TESTS_BENCH_HOSTILE_DAEMON_H
#define TESTS_BENCH_HOSTILE_DAEMON_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/server.h"

struct daemon {
    struct server server;
    pid_t worker;
    int log;            /* the daemon's stderr */
    uint64_t floor_kib; /* floor of MemAvailable: below it the guard ends the daemon */
    bool drains;
    bool guarded; /* the guard has ended the daemon */
};

/* Starts the daemon with these arguments, NULL at their end. 0, or 1 after a line on stderr; after 0 daemon_end comes
 * last. */
int daemon_start(struct daemon *daemon, const char *scand, const char *const *arguments);
/* Waits until it answers. 0, or 1: it does not, or has ended. The guard watches meanwhile. */
int daemon_await(struct daemon *daemon, double patience_ms);
/* Asks the daemon to finish its jobs and end. */
void daemon_drain(struct daemon *daemon);
/* Drains the daemon unless that has been done, and returns for how long it still ran; after `patience_ms` it is killed.
 * Takes the daemon down. */
double daemon_end(struct daemon *daemon, double patience_ms);
/* True when the worker is the one that it was, and answers. */
bool daemon_lives(struct daemon *daemon);
uint64_t daemon_log_lines(const struct daemon *daemon);
/* Returns the daemon's last line, cut to size. */
void daemon_log_last(const struct daemon *daemon, char *out, size_t size);

/* Waits until a process that this one started has ended, without taking its status: false when it has not by then. */
bool daemon_watch_process(struct daemon *daemon, pid_t pid, double until_ms);

#endif

/* The time until a long row of an attacker ends: when it is cancelled, when the attacker has left, when the daemon is
 * to stop. */
#ifndef TESTS_BENCH_HOSTILE_ENDING_H
#define TESTS_BENCH_HOSTILE_ENDING_H

#include "tests/bench/hostile/attack.h"
#include "tests/bench/hostile/daemon.h"

/* Times of endings in milliseconds, at most the patience; NAN where the job was refused or had ended before. */
struct endings {
    double cancel_ms;   /* from job.cancel to the job's answer */
    double departed_ms; /* from the end of the attacker's process until no device has work */
    double drain_ms;    /* from SIGTERM to the daemon's exit, with such a row under way; or, where that takes long, */
    double left_ms;     /* from the end of the attacker's process to the exit of a daemon that was to drain before */
};

/* Takes the daemon down. */
void endings_measure(struct daemon *daemon, long_rows *rows, double patience_ms, struct endings *out);

#endif

/* Daemons that are started with less than they need: what becomes of them, and what they say. */
#ifndef TESTS_BENCH_HOSTILE_STARTS_H
#define TESTS_BENCH_HOSTILE_STARTS_H

#include <stdbool.h>

/* Each start: X(name, whether it can use up memory, what it is). */
#define STARTS(X)                                                      \
    X(pool_large, true, "scand --pool with twice the memory there is") \
    X(few_files, false, "scand --pool 64M with 80 open files at most")

/* Prints what became of it. Nonzero where it could not be tried; *bad where the daemon took memory until the guard
 * came, or neither serves nor has ended, or keeps a processor busy with nothing to do. */
#define X(NAME, MEMORY, WHAT) int start_##NAME(const char *scand, double patience_ms, bool *bad);
STARTS(X)
#undef X

#endif

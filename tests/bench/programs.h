/*
 * Programs that bench_fresh.c and `look` start: each is scand-bench with a hidden word. They take its command line from
 * that word on and return its exit status.
 */
#ifndef TESTS_BENCH_PROGRAMS_H
#define TESTS_BENCH_PROGRAMS_H

#include "tests/bench/client.h"

#define FRESH_ROWS (MAIN_ROWS / 4) /* rows of a job: 100 MB */
#define FRESH_JOBS 10

#ifdef __cplusplus
extern "C" {
#endif

/* --fresh-client SOCKET START_MS: prints the milliseconds from there to its first result, less filling the data. */
int fresh_client(int argc, char **argv);
/* --fresh-jobs SOCKET: ten jobs, one after another. */
int fresh_jobs(int argc, char **argv);
/* CUDA. --fresh-own: the same without a daemon. */
int fresh_own(int argc, char **argv);

/* --load SOCKET SECONDS: see load.c. */
int load_clients(int argc, char **argv);

#ifdef __cplusplus
}
#endif

#endif

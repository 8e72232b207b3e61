/*
 * Clients of the benchmarks of the daemon. Each has a connection with a host buffer of f32 rows and scans them in
 * place, forward and backward, with sums in f64: as the main job does.
 */
#ifndef TESTS_BENCH_CLIENT_H
#define TESTS_BENCH_CLIENT_H

#include <stdbool.h>

#include <scand/scand.h>

#include "kernels/scan.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MAIN_ROWS    10000
#define MAIN_SAMPLES 10000

static inline uint64_t client_bytes(uint64_t rows, uint64_t samples)
{
    return rows * samples * sizeof(float);
}

/* Says what went wrong, on stderr. Returns 1. */
int client_fail(const char *what, const char *message);

/* A buffer of zeros, which jobs leave as they are. Without a socket the service is this process' own. 0, or 1 after a
 * line on stderr. */
int client_open(const char *socket, uint64_t size_bytes, struct scand **daemon, struct scand_buffer **buffer);
/* Rows first <= r < first + rows of the buffer. */
struct scand_scan client_scan(struct scand_buffer *buffer, uint64_t rows, uint64_t samples, uint64_t first);
/* Returns such a job's rows as the kernels take them. */
struct scan_rows client_rows(void *memory, uint64_t rows, uint64_t samples);
/* Submits and waits. 0, or 1 after a line on stderr. */
int client_run(struct scand *daemon, const struct scand_scan *scan);
/* Submits a job and waits, some times over, warm. Returns as client_run. */
int client_time(struct scand *daemon, const struct scand_scan *scan, double *median_ms);

/* Jobs of one short row each, one after another: how long each takes, sorted. 0, or 1 after a line on stderr. */
#define SMALL_SAMPLES 1000
#define ROUND_TRIPS   4000
int client_round_trips(const char *socket, double times_ms[ROUND_TRIPS]);

/* Fill x with noise, the same every time; and check that a row of the main job's length is that noise, scanned. */
void client_fill(float *x, size_t count);
bool client_row_is_scanned(const float *row);

/* Makes this process another user's, as which it connects from now on. Only root may. Returns 0, or 1 after a line on
 * stderr. */
int client_become(unsigned user);

#ifdef __cplusplus
}
#endif

#endif

/* Connections to a daemon as good and as bad programs make them. */
#ifndef TESTS_BENCH_VISITS_H
#define TESTS_BENCH_VISITS_H

#include <stdint.h>

#include <scand/scand.h>

/* A forward scan, in place, of rows from byte `offset` of a buffer. */
struct scand_scan visit_scan(struct scand_buffer *buffer, uint64_t offset, uint64_t rows, uint64_t samples);

/* The n-th of many connections: one kind after the other. Returns when it is closed; 0, or 1 after a line on stderr. */
int visit(const char *socket, uint64_t n);

/* Says what went wrong, on stderr. Returns 1. */
int visit_fail(const char *what, const char *message);

#endif

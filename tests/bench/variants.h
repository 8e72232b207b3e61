/* The variants of the scan by name, on rows of one length, 100 million samples of them. */
#ifndef TESTS_BENCH_VARIANTS_H
#define TESTS_BENCH_VARIANTS_H

#include "tests/bench/bench.h"

/* Measures the variants of the GPU. */
int variants_measure(uint64_t length, struct bench_table *table);

/* Measures the variant of the CPU, on a tenth of the rows, beside a copy of as many by the same thread. */
int variant_serial_measure(uint64_t length, struct bench_table *table);

#endif

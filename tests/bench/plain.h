/*
 * Forward then backward sums as a C programmer writes them and the compiler at hand makes the best of them: one serial
 * loop per pass and row, or, of columns, one that goes along the columns side by side. Another association than order
 * 1, so not the same bits. They are what the CPU path is measured against.
 */
#ifndef TESTS_BENCH_PLAIN_H
#define TESTS_BENCH_PLAIN_H

#include <scand/types.h>
#include <stdint.h>

/* Sums along `length` samples of `rows` rows, which lie one right after the other or, of columns, side by side.
 * `sums` has room for rows x 8 bytes. */
typedef void plain_scan(const void *input, void *output, void *sums, uint64_t rows, uint64_t length);

/* NULL where there is none: columns only of f32, f64 and i32. */
plain_scan *plain_find(enum scand_dtype dtype, enum scand_accumulator accumulator, int columns);

#endif
